"""One style for every picture, and one way to a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from hyperboloid.training.checkpoint import write_atomically

#: From dark to light in a fixed order, so that they stay apart in black and white.
COLOURS = ("#01556a", "#a6611a", "#3fa796", "#dfa03f")
#: More of them, for classes.
PALETTE = (*COLOURS, "#7b3294", "#c51b7d", "#5e8c31", "#d73027", "#4575b4", "#222222")
#: As many as have no common factor with the number of colours, so that 70 pairs come before one repeats.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "0.5"
#: Of a node that has no label.
UNKNOWN: dict[str, Any] = {"color": "0.75", "marker": "."}


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def dress(axes: Any, title: str) -> None:
    """Title, faint horizontal lines behind the data, no frame above and on the right."""
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def picture(figure: Any, kind: str) -> bytes:
    """The figure as ``png`` or ``svg``; the same picture gives the same bytes: no date, no random names."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "hyperboloid"}):
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def save_figure(figure: Any, path: Path) -> None:
    """Write a PNG or SVG file, as the name says."""
    write_atomically(path, picture(figure, path.suffix.removeprefix(".")))


def plain(text: str) -> str:
    """Text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def look(number: int) -> dict[str, Any]:
    """Colour and marker of the class with this number: classes that share the one differ in the other."""
    return {"color": PALETTE[number % len(PALETTE)], "marker": MARKERS[number % len(MARKERS)]}
