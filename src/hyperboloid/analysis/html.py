"""The few pieces of HTML that a report is made of; whatever comes from the user is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .style import picture

STYLE = """
:root { color-scheme: light dark; --ink: #1c2326; --faint: #5d6a70; --line: #d5dcdf; --paper: #ffffff; --band: #f3f6f7 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4eaed; --faint: #9fadb4; --line: #3a464c; --paper: #14191c; --band: #1d2529 }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
       margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
p.lead { font-size: 1.1rem; margin-top: 0 } .note { color: var(--faint); font-size: 0.9rem }
table { border-collapse: collapse; margin: 0.6rem 0; font-variant-numeric: tabular-nums; font-size: 0.92rem }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0.4rem; border-bottom: 1px solid var(--line) }
th { font-weight: 600; background: var(--band) } .wide { overflow-x: auto }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; padding: 6px; box-sizing: border-box }
#picture img { max-width: min(100%, 44rem) }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole document that asks nothing of the network: even the icon that browsers look for is given."""
    body = "\n".join(part for part in parts if part)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def section(name: str, title: str, *parts: str) -> str:
    """A heading with what belongs to it."""
    return (
        f'<section id="{name}">\n<h2>{escape(title)}</h2>\n'
        + "\n".join(part for part in parts if part)
        + "\n</section>"
    )


def paragraph(text: str, kind: str = "") -> str:
    """Plain text."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of plain text; no header for a list of names and values."""
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in header) + "</tr>"] if header else []
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def image(figure: Any, kind: str, what: str) -> str:
    """A figure as part of the page: ``svg`` stays sharp, ``png`` stays small where there are many marks."""
    mime = {"svg": "image/svg+xml", "png": "image/png"}[kind]
    content = base64.b64encode(picture(figure, kind)).decode()
    return f'<img src="data:{mime};base64,{content}" alt="{escape(what, quote=True)}">'
