"""Cells on other splits than the one that settings are chosen on: how far the split moves a score."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hyperboloid.scores import percent, spread_of

from .alike import measured_apart
from .board import Score, chosen_lines, measured_board, noise_between
from .cell_jobs import MASKS
from .cells import Cell, all_cells
from .claims import points
from .markdown import MISSING, NARROW, table
from .protocol import SPLIT
from .results import Key, Line, cell_key, key_of
from .shortfalls import targets

HEADING = "## Where the split decides"


def other_splits(everything: Sequence[Line]) -> list[Line]:
    """Lines of cells that were measured on other splits too, in the order of the tables."""
    others = [split for split in dict.fromkeys(line["split"] for line in everything) if split != SPLIT]
    place = {cell_key(cell): i for i, cell in enumerate(all_cells())}
    found = [line for split in sorted(others, key=str) for line in chosen_lines(everything, split)]
    return sorted(found, key=lambda line: place[key_of(line)])


def scores_elsewhere(others: Sequence[Line], current: Sequence[Line]) -> dict[Key, str]:
    """Scores over several splits, by cell."""
    return {
        key_of(line): percent(line["test_mean"], line["test_std"])
        for line in others
        if line["split"] != MASKS and line in current
    }


def splits_section(others: Sequence[Line], current: Sequence[Line], lines: Sequence[Line]) -> str:
    """A table of them beside the same cells on the usual split.

    Args:
        others: :func:`other_splits`.
        current: the lines that count.
        lines: those of the usual split, one for each cell.
    """
    if not others:
        return f"{HEADING}\n\nNo cell has been measured on other splits."
    cells = {cell_key(cell): cell for cell in all_cells()}
    here = {key_of(line): line for line in lines}
    beside = [(cells[key_of(line)], here[key_of(line)], line) for line in others if key_of(line) in here]
    text = [
        f"Settings are those chosen on split {SPLIT}, but for the authors' masks, which have a search of their own; "
        f"{NARROW} where that choice or the protocol has changed since. A line over several splits tells by which "
        "rules its settings were chosen; its runs were stopped by those of its code."
    ]
    for split in dict.fromkeys(line["split"] for line in others if line["split"] != MASKS):
        board = measured_board(line for line in others if line["split"] == split and line in current)
        text.append(f"LGCN over splits {split}: {targets(board, of_splits=True)}")
    text += [_scatter(others), _twice(beside), measured_apart(beside, f"split {SPLIT}", "the other splits")]
    header = ["cell", "split", "measured there", "means of the splits", "runs", f"split {SPLIT}", "printed"]
    rows = [_row(line, cells[key_of(line)], here.get(key_of(line)), line in current) for line in others]
    return f"{HEADING}\n\n{' '.join(filter(None, text))}\n\n{table(header, rows)}"


def _row(line: Line, cell: Cell, here: Line | None, counts: bool) -> list[str]:
    means = [statistics.mean(tests) for tests in _by_split(line).values()]
    printed = percent(cell.paper_mean, cell.paper_std)
    return [
        f"{cell}",
        "the authors' masks" if line["split"] == MASKS else f"splits {line['split']}",
        f"{_score(line)}{'' if counts else NARROW}",
        f"{percent(min(means))} to {percent(max(means))}" if means else MISSING,
        f"{line['runs']}",
        MISSING if here is None else _score(here),
        printed if cell.comparable else f"{printed} (not comparable)",
    ]


def _scatter(others: Sequence[Line]) -> str:
    """Of how many cells the splits differ by more than the initialisations on one of them."""
    several = [list(_by_split(line).values()) for line in others if len(_by_split(line)) > 1]
    if not several:
        return ""
    more = sum(
        spread_of([statistics.mean(tests) for tests in splits])
        > statistics.mean(spread_of(tests) ** 2 for tests in splits) ** 0.5
        for splits in several
    )
    return (
        f"The means of the splits have a larger standard deviation than the runs on one split in {more} of "
        f"{len(several)} cells."
    )


def _twice(beside: Sequence[tuple[Cell, Line, Line]]) -> str:
    """Where the usual split's runs, made again for a line over several, have come out otherwise."""
    far = []
    for cell, here, line in beside:
        if again := _by_split(line).get(str(SPLIT)):
            before = Score(here["test_mean"], here["test_std"], here["runs"])
            now = Score(statistics.mean(again), spread_of(again), len(again))
            if abs(now.mean - before.mean) > noise_between(now, before):
                far.append(f"{cell} ({points(100 * (now.mean - before.mean))})")
    if not far:
        return ""
    return (
        f"Split {SPLIT} is one of the splits, and was run again with the same settings and initialisations. Its means "
        f"differ by more than the noise, in points: {', '.join(far)}; there the code or the machine makes a difference."
    )


def _by_split(line: Line) -> dict[str, list[float]]:
    found: dict[str, list[float]] = line.get("test_by_split", {})
    return found


def _score(line: Line) -> str:
    return percent(line["test_mean"], line["test_std"])
