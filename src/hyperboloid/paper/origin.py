"""Who computed what: by model the cells, the settings tried, the minutes, the machines and the code."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import MODELS
from .markdown import MISSING, table
from .results import Line

HEADING = "## Where the numbers come from"
#: How lines tell what their minutes were spent on; old ones do not tell how many processes there were.
SHARES = ("GPU, one process", "GPU, several processes", "GPU, not told how many", "CPU")


def origin_section(lines: Sequence[Line]) -> str:
    """A row for each model.

    Args:
        lines: one for each cell that has been measured.
    """
    rows = []
    for model in dict.fromkeys([*MODELS, *(line["model"] for line in lines)]):
        own = [line for line in lines if line["model"] == model]
        if own:
            tried = sorted({line["tried"] for line in own if "tried" in line})
            between = MISSING if not tried else f"{tried[0]}" if len(tried) == 1 else f"{tried[0]} to {tried[-1]}"
            where = [", ".join(sorted({str(line.get(key, MISSING)) for line in own})) for key in ("device", "commit")]
            rows.append([model, f"{len(own)}", between, *(_minutes(own, share) for share in SHARES), *where])
    if not rows:
        return f"{HEADING}\n\nNothing has been measured."
    text = (
        "Minutes are those of the lines in Tables 4 to 6, added up, and in brackets of how many cells; searches that "
        "later ones have replaced are not in them. Where several processes of one command shared a machine, each of "
        "them counts its own minutes, so that together they took less on the clock. Lines do not tell whether anything "
        "else ran on the machine, and old ones not how many processes there were."
    )
    header = ["model", "cells", "settings tried", *(f"minutes: {share}" for share in SHARES), "device", "code"]
    return f"{HEADING}\n\n{text}\n\n{table(header, rows)}"


def _minutes(lines: Sequence[Line], share: str) -> str:
    seconds = [line.get("seconds", 0.0) for line in lines if _share(line) == share]
    return f"{sum(seconds) / 60:.1f} ({len(seconds)})" if seconds else MISSING


def _share(line: Line) -> str:
    one, several, untold, on_cpu = SHARES
    if "CPU core" in str(line.get("device")):
        return on_cpu
    workers = line.get("workers")
    return untold if workers is None else one if workers == 1 else several
