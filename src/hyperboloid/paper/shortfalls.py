"""Where LGCN falls short of the paper, by how much, and what else was tried (``benchmarks/shortfall.py``)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from hyperboloid.scores import percent
from hyperboloid.training.settings import Settings

from .board import Board, layers_of, short_of_print
from .cells import Cell, all_cells
from .markdown import MISSING, table
from .results import Key, Line, cell_key, key_of, read_figure_results

HEADING = "## Where LGCN falls short"
#: What a line without a change is called.
UNCHANGED = "unchanged"
#: What a line of ``results/shortfall.jsonl`` must have.
NEEDS = ("dataset", "task", "model", "dim", "change", "base", "settings", "runs", "val")


def read_tried(results: Path) -> list[Line]:
    """Changes that were tried: validation scores of each, over the same runs as without a change."""
    return read_figure_results(results, "shortfall", NEEDS)


def targets(measured: Board, *, of_splits: bool = False) -> str:
    """How many of LGCN's cells are within one printed standard deviation, or better; some have no other splits."""
    own = [c for c in all_cells() if c.model == "lgcn" and c.comparable and not (of_splits and c.public_split)]
    scores = [(cell, score) for cell in own if (score := measured.of(cell)) is not None]
    reached = sum(short_of_print(cell, score.mean) <= 0 for cell, score in scores)
    exactly = sum(score.mean >= cell.paper_mean - cell.paper_std for cell, score in scores)
    unrounded = f" ({exactly} if means were not rounded)" if exactly != reached else ""
    return (
        f"within one printed standard deviation of the paper or better in {reached} of {len(scores)} measured "
        f"cells{unrounded}; {len(own)} cells can be compared."
    )


def short_falls(lines: Sequence[Line], elsewhere: Mapping[Key, str], tried: Sequence[Line]) -> str:
    """LGCN's cells below one printed standard deviation, the farthest first.

    Args:
        lines: one for each cell, of the number of layers that validation prefers.
        elsewhere: scores over several splits, of the usual number of layers.
        tried: lines of :func:`read_tried`.
    """
    by_key = {key_of(line): line for line in lines}
    found = []
    for cell in all_cells():
        line = by_key.get(cell_key(cell))
        if cell.model == "lgcn" and cell.comparable and line is not None:
            short = short_of_print(cell, line["test_mean"])
            if short > 0:
                found.append((short, cell, line))
    if not any(key[2] == "lgcn" for key in by_key):
        return f"{HEADING}\n\nLGCN has not been measured by today's protocol."
    if not found:
        return f"{HEADING}\n\nNo measured cell lies below the printed mean less one printed standard deviation."
    rows = [
        [
            f"{cell}",
            percent(line["test_mean"], line["test_std"]),
            percent(cell.paper_mean, cell.paper_std),
            f"{short:.1f}",
            elsewhere.get(cell_key(cell), MISSING) if layers_of(line) == Settings.layers else MISSING,
            f"{line.get('tried', MISSING)} settings",
            f"{layers_of(line)}",
            percent(line["val_mean"]),
        ]
        for short, cell, line in sorted(found, key=lambda entry: -entry[0])
    ]
    below = "points below the mean less one deviation"
    header = ["cell", "measured", "printed", below, "over several splits", "tried", "layers", "validation"]
    intro = "Cells have as many layers as validation prefers, where both numbers were measured."
    parts = [HEADING, intro, table(header, rows), _beyond_the_search(tried)]
    return "\n\n".join(part for part in parts if part)


def _beyond_the_search(tried: Sequence[Line]) -> str:
    """A table of changes by cells: what each is worth on validation."""
    latest = {(key_of(line), line["change"]): line for line in tried}
    cells = [cell for cell in all_cells() if (cell_key(cell), UNCHANGED) in latest]
    changes = [change for change in dict.fromkeys(line["change"] for line in tried) if change != UNCHANGED]
    if not cells or not changes:
        return ""
    rows = []
    for change in changes:
        gains = [_gain(latest[cell_key(cell), UNCHANGED], latest.get((cell_key(cell), change))) for cell in cells]
        rows.append([change, *gains])
    start = ["unchanged, mean validation score", *(_mean(latest[cell_key(cell), UNCHANGED]) for cell in cells)]
    text = (
        "Changes beyond the search, each to the settings that it had chosen by then, and judged by *validation* "
        "scores: points gained, ± the standard error of the mean over the same splits or, where the split is public, "
        "initialisations (`python benchmarks/shortfall.py`). The unchanged setting has a head start where it was "
        "chosen by the same validation part: on split 0, and on public splits. Longer patience raises a validation "
        "score by itself, which is the best of more epochs. None of them is part of the protocol, for what is offered "
        "to LGCN has to be offered to every model; one layer has got a search of its own since, see above."
    )
    return f"{text}\n\n{table(['change', *map(_name, cells)], [start, *rows])}"


def _name(cell: Cell) -> str:
    return f"{cell.task} {cell.dataset} d={cell.dim}"


def _mean(line: Line) -> str:
    return percent(statistics.mean(line["val"]))


def _gain(before: Line, after: Line | None) -> str:
    """Mean difference of paired runs in points, and its standard error; of other runs or settings nothing is said."""
    if after is None or (after["runs"], after["base"]) != (before["runs"], before["base"]):
        return MISSING
    gains = [100 * (b - a) for a, b in zip(before["val"], after["val"], strict=True)]
    error = statistics.stdev(gains) / len(gains) ** 0.5
    return f"{statistics.mean(gains):+.1f} ± {error:.1f}"
