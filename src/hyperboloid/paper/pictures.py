"""A picture for each of Tables 4 to 6: measured against printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperboloid.analysis.style import GREY, dress, new_figure, save_figure

from .board import Board, Score
from .cells import ABLATION_DIM, ABLATION_MODELS, DATASETS, DIMS, MODELS, cells
from .claims import EUCLIDEAN, HYPERBOLIC, SHALLOW, TASKS
from .printed import printed_tables

METRIC = {"link": "test ROC AUC, %", "node": "test accuracy, %"}
#: From the left: shallow embeddings, Euclidean GCNs, hyperbolic GCNs.
ORDER = (*SHALLOW, *EUCLIDEAN, *(m for m in reversed(HYPERBOLIC)))
SHORT = {
    "lgcn_no_beta": "lgcn\nno β",
    "lgcn_no_att": "lgcn\nno att.",
    "lgcn_no_att_no_centroid": "lgcn\nno att.\nno centr.",
    "deepwalk": "deep\nwalk",
    "poincare_emb": "poincaré\nemb.",
    "graphsage": "graph\nsage",
}
COLOURS = ("#a6611a", "#dfa03f", "#3fa796", "#01556a")  # by dimension, low to high
#: A measured mark stands a little to the left of its printed one, so that neither hides the other.
MAIN_SHIFT, ABLATION_SHIFT = 0.035, 0.1


def draw_tables(measured: Board, printed: Board, folder: Path) -> list[Path]:
    """Draw all pictures, as PNG and SVG, and say where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in (
        ("link", _main_table("link", measured, printed)),
        ("node", _main_table("node", measured, printed)),
        ("ablation", _ablation(measured, printed)),
    ):
        for suffix in ("png", "svg"):
            path = folder / f"{name}.{suffix}"
            save_figure(figure, path)
            written.append(path)
    return written


def _main_table(task: str, measured: Board, printed: Board) -> Any:
    """Table 4 or 5: a panel for each graph in the order of δ, the models side by side, the dimensions as colours."""
    delta = printed_tables()["delta_avg"]
    figure = new_figure(15, 9)
    panels = figure.subplots(2, 3).flat
    for axes, dataset in zip(panels, sorted(DATASETS, key=lambda d: delta[d]), strict=True):
        for k, dim in enumerate(DIMS):
            middle = 0.19 * (k - (len(DIMS) - 1) / 2)
            theirs, ours = ([board.get(dataset, task, m, dim) for m in ORDER] for board in (printed, measured))
            _series(axes, middle + MAIN_SHIFT, theirs, None)
            _series(axes, middle - MAIN_SHIFT, ours, COLOURS[k])
        _dress(axes, [SHORT.get(m, m) for m in ORDER], f"{_title(dataset, task)}, δ = {delta[dataset]:.2f}")
        for border in (len(SHALLOW), len(SHALLOW) + len(EUCLIDEAN)):
            axes.axvline(border - 0.5, color="0.8", linewidth=1)
        _count(axes, [measured.get(dataset, task, m, d) for m in MODELS for d in DIMS])
        axes.set_ylabel(METRIC[task])
    _legend(figure, [(COLOURS[k], f"measured, d = {dim}") for k, dim in enumerate(DIMS)])
    return figure


def _ablation(measured: Board, printed: Board) -> Any:
    """Table 6: a panel for each graph and task."""
    datasets = list(dict.fromkeys(cell.dataset for cell in cells("ablation")))
    figure = new_figure(15, 8)
    panels = figure.subplots(2, len(datasets))
    models = ["hgcn", "hgcn_c", *(m for m in reversed(ABLATION_MODELS) if not m.startswith("hgcn"))]
    for row, task in zip(panels, TASKS, strict=True):
        for axes, dataset in zip(row, datasets, strict=True):
            theirs, ours = (
                [board.get(dataset, task, m, ABLATION_DIM) for m in models] for board in (printed, measured)
            )
            _series(axes, ABLATION_SHIFT, theirs, None)
            _series(axes, -ABLATION_SHIFT, ours, COLOURS[-1])
            _dress(axes, [SHORT.get(m, m) for m in models], f"{_title(dataset, task)}, {TASKS[task]}")
            axes.set_ylabel(METRIC[task])
            _count(axes, ours)
    _legend(figure, [(COLOURS[-1], f"measured, d = {ABLATION_DIM}")])
    return figure


def _series(axes: Any, shift: float, scores: Sequence[Score | None], colour: str | None) -> None:
    """The scores that are there, each at its model's place; no colour for printed ones; bars are one deviation."""
    there = [(place + shift, 100 * s.mean, 100 * s.std) for place, s in enumerate(scores) if s is not None]
    if not there:
        return
    x, y, deviation = zip(*there, strict=True)
    if colour is None:
        mark = {"fmt": "D", "mfc": "white", "mec": GREY, "mew": 0.9, "ms": 4, "zorder": 2}
        axes.errorbar(x, y, yerr=deviation, ecolor=GREY, elinewidth=1.0, **mark)
    else:
        axes.errorbar(x, y, yerr=deviation, fmt="o", color=colour, ms=4.5, elinewidth=1.6, capsize=2, zorder=3)


def _dress(axes: Any, names: Sequence[str], title: str) -> None:
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(-0.6, len(names) - 0.4)
    dress(axes, title)


def _title(dataset: str, task: str) -> str:
    """The paper's name, and a warning where its graph could not be had."""
    cell = cells(task, datasets=[dataset])[0]
    return dataset if cell.comparable else f"{dataset} (generated, not comparable)"


def _count(axes: Any, scores: Sequence[Score | None]) -> None:
    """Say how much of a panel has been measured."""
    there = sum(score is not None for score in scores)
    text = "not measured" if there == 0 else f"{there} of {len(scores)} measured"
    axes.text(0.99, 0.02, text, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color="0.4")


def _legend(figure: Any, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=colour, marker="o", linestyle="", label=text) for colour, text in entries]
    marks.append(Line2D([], [], color=GREY, marker="D", markerfacecolor="white", linestyle="", label="printed"))
    figure.legend(handles=marks, loc="outside upper center", ncols=len(marks), frameon=False)
