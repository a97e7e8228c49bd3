"""HGCN's mean: in the tangent space of each node, as it was described, or at the origin, as its code was published."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from hyperboloid.scores import percent
from hyperboloid.training.settings import Settings

from .alike import measured_apart
from .board import layers_of, mean_of, texts_of
from .cells import DATASETS, Cell, all_cells
from .claims import TASKS, points
from .markdown import MISSING, table
from .results import Key, Line, cell_key, key_of, lgcn_key

MODEL, MEAN = "hgcn", "origin"


def published_mean_section(lines: Sequence[Line], beside: Mapping[Key, Sequence[Line]]) -> str:
    """HGCN with either mean, and LGCN next to it; nothing where there is no such measurement.

    Args:
        lines: the lines of today's protocol, each model with its own mean.
        beside: lines of other means and numbers of layers, by cell.
    """
    own = {key_of(line): line for line in lines}
    at_origin = {
        key: line
        for key, found in beside.items()
        for line in found
        if key[2] == MODEL and mean_of(line) == MEAN and layers_of(line) == Settings.layers
    }
    both = [cell for cell in all_cells() if cell_key(cell) in own.keys() & at_origin.keys()]
    if not both:
        return ""
    of_either = [(cell, own[cell_key(cell)], at_origin[cell_key(cell)]) for cell in both]
    of_lgcn = [(cell, own[cell_key(cell)], own[lgcn_key(cell)]) for cell in both if lgcn_key(cell) in own]
    apart = [
        measured_apart(of_either, "HGCN's own tangent spaces", "the origin"),
        measured_apart(of_lgcn, "HGCN in its own tangent spaces", "LGCN"),
    ]
    text = (
        "HGCN's paper, and this one after it, average neighbours in the tangent space of each node, and so do the "
        "tables and claims above. HGCN's published code averages in the tangent space of the origin, which is what "
        "its users, perhaps the authors of the printed numbers too, have run. `hyperboloid paper run node --models "
        f"{MODEL} --mean {MEAN}` has the same search for it. The first mean can overstep ([models.md](models.md))."
    )
    header = ["cell", "own tangent space: validation", "test", "origin: validation", "test", "lgcn: test", "printed"]
    rows = []
    for cell in both:
        key, rival = cell_key(cell), own.get(lgcn_key(cell))
        scores = [*texts_of(own[key]), *texts_of(at_origin[key]), MISSING if rival is None else texts_of(rival)[1]]
        rows.append([f"{cell}", *scores, percent(cell.paper_mean, cell.paper_std)])
    findings = [_finding(task, both, own, at_origin) for task in TASKS]
    parts = ["## HGCN's mean", text, " ".join(filter(None, findings)), *filter(None, apart), table(header, rows)]
    return "\n\n".join(parts)


def _finding(task: str, both: Sequence[Cell], own: Mapping[Key, Line], at_origin: Mapping[Key, Line]) -> str:
    """What the origin is worth by graph, and to LGCN's place before HGCN; nothing for a task without measurements."""
    asked = [cell for cell in both if cell.task == task]
    if not asked:
        return ""
    gains: dict[str, list[float]] = {}
    ahead = still = compared = preferred = 0
    for cell in asked:
        before, after, lgcn = own[cell_key(cell)], at_origin[cell_key(cell)], own.get(lgcn_key(cell))
        gains.setdefault(cell.dataset, []).append(100 * (after["test_mean"] - before["test_mean"]))
        prefers = after["val_mean"] > before["val_mean"]
        preferred += prefers
        if lgcn is not None:
            compared += 1
            ahead += lgcn["test_mean"] > before["test_mean"]
            still += lgcn["test_mean"] > (after if prefers else before)["test_mean"]
    listed = ", ".join(f"{name} {points(statistics.mean(gains[name]))}" for name in DATASETS if name in gains)
    return (
        f"{TASKS[task].capitalize()}: the origin gains {listed} points of the test score (mean over dimensions), and "
        f"validation prefers it in {preferred} of {len(asked)} cells. LGCN's mean is ahead of HGCN's in {ahead} of "
        f"{compared} of them, and in {still} where HGCN has the mean that validation prefers."
    )
