"""Tables of scores as Markdown: measured beside printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .board import PAPER_RUNS, Board, Score, noise_to_print
from .cells import (
    ABLATION_DATASETS,
    ABLATION_MODELS,
    DATASETS,
    DIMS,
    MODELS,
    Cell,
    cells,
)
from .claims import points
from .printed import printed_tables
from .results import Key, cell_key
from .table import PaperTable

WITHIN, ABOVE, BELOW, MISSING, NARROW = "≈", "▲", "▼", "–", "†"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def mark(measured: Score, printed: Score) -> str:
    """Within the noise, above it or below."""
    difference = measured.mean - printed.mean
    if abs(difference) <= noise_to_print(measured, printed):
        return WITHIN
    return ABOVE if difference > 0 else BELOW


def beside(measured: Score | None, printed: Score, *, comparable: bool, narrow: bool) -> str:
    """One cell: measured, printed in brackets, difference in points and its mark; † for another protocol."""
    if measured is None:
        return f"{MISSING} ({printed})"
    # the others diverged, or were not asked for
    few = f" of {measured.runs} runs" if measured.runs < PAPER_RUNS else ""
    text = f"**{measured}**{few}{NARROW if narrow else ''} ({printed})"
    if not comparable:
        return text
    return f"{text} {points(100 * (measured.mean - printed.mean))} {mark(measured, printed)}"


def main_table(task: str, measured: Board, printed: Board, narrow: set[Key]) -> str:
    """Table 4 or 5: a table for each graph, in the order of δ."""
    delta = printed_tables()["delta_avg"]
    parts = []
    for dataset in sorted(DATASETS, key=lambda d: delta[d]):
        own = cells(task, datasets=[dataset])
        rows = [
            [model, *(_beside(cell, measured, printed, narrow) for cell in own if cell.model == model)]
            for model in MODELS
        ]
        heading = f"**{dataset}** (δ = {delta[dataset]:.2f}{_remark(own[0])})"
        parts.append(f"{heading}\n\n" + table(["model", *(f"d = {dim}" for dim in DIMS)], rows))
    return "\n\n".join(parts)


def ablation_table(measured: Board, printed: Board, narrow: set[Key]) -> str:
    """Table 6."""
    own = cells("ablation")
    rows = [
        [model, *(_beside(cell, measured, printed, narrow) for cell in own if cell.model == model)]
        for model in ABLATION_MODELS
    ]
    header = [f"{dataset}, {task}s" for dataset in ABLATION_DATASETS for task in ("link", "node")]
    return table(["model", *header], rows)


def paper_table(found: PaperTable) -> str:
    """A table of the paper, or the numbers of a figure, with its remarks."""
    remarks = "\n".join(f"- {remark}" for remark in found.remarks)
    return f"{table(list(found.columns.values()), found.texts())}\n\n{remarks}"


def _beside(cell: Cell, measured: Board, printed: Board, narrow: set[Key]) -> str:
    theirs = printed.of(cell)
    assert theirs is not None  # every cell is one of the paper's
    return beside(measured.of(cell), theirs, comparable=cell.comparable, narrow=cell_key(cell) in narrow)


def _remark(cell: Cell) -> str:
    """Which graph stands for the paper's."""
    if cell.graph == cell.dataset and cell.comparable:
        return ""
    what = "an assumption" if cell.comparable else "generated: not comparable"
    return f"; measured on `{cell.graph}`, which is {what}"
