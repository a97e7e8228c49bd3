"""Sections of the report on the experiments that are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .claims import Claim, Finding, told
from .figures import Asked, FigureExperiment, draw_lines, get_figure, is_current
from .markdown import MISSING, paper_table
from .registry import FIGURES
from .results import Line


@dataclass(frozen=True)
class Drawn:
    """One of them: its section, where its pictures are, and what its lines say about the paper's claims."""

    text: str
    pictures: list[Path]
    findings: list[tuple[Claim[Sequence[Line]], Finding]]


def drawn_sections(results: Path, folder: Path) -> list[Drawn]:
    """Draw all of them from their lines in ``results``, pictures into ``folder``."""
    return [_drawn(get_figure(name), results, folder) for name in FIGURES]


def _drawn(figure: FigureExperiment, results: Path, folder: Path) -> Drawn:
    lines = figure.read(results)
    old = _replaced(figure, lines, results)
    findings = [(claim, claim.judge([line for line in lines if line not in old])) for claim in figure.claims]
    pictures = draw_lines(figure, lines, folder)
    parts = [f"## {figure.title}", figure.about]
    if lines:
        parts += [f"![{figure.title}](figures/{figure.name}.png)", paper_table(figure.table(lines))]
    if old:
        listed = ", ".join(" ".join(str(line[name]) for name in figure.key) for line in old)
        parts.append(
            "Drawn, but left out of the verdicts until they are measured again, because their settings or their "
            f"protocol have been replaced since: {listed}."
        )
    parts += [told(claim, finding) for claim, finding in findings]
    if lines:
        where = [", ".join(sorted({str(line.get(key, MISSING)) for line in lines})) for key in ("device", "commit")]
        parts.append(f"`hyperboloid paper run {figure.name}`; {where[0]}, code {where[1]}.")
    return Drawn("\n\n".join(part.strip() for part in parts), pictures, findings)


def _replaced(figure: FigureExperiment, lines: Sequence[Line], results: Path) -> list[Line]:
    """Lines that today's command would measure again; which device has measured them does not matter."""
    wanted = [{name: v for name, v in line.items() if name != "device"} for line in figure.wanted(Asked(results))]
    return [line for line in lines if not any(is_current(line, one) for one in wanted)]
