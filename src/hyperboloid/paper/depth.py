"""One layer or two: the paper does not say; cells were measured with two, some with one as well."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from hyperboloid.scores import percent
from hyperboloid.training.settings import Settings

from .alike import RIVALS, measured_apart
from .board import layers_of, mean_of, measured_board, texts_of
from .cells import ALL_MODELS, all_cells
from .claims import SHALLOW, TASKS, best_model, points
from .markdown import table
from .results import Key, Line, cell_key, key_of, lgcn_key


def other_depths(beside: Mapping[Key, Sequence[Line]]) -> dict[Key, list[Line]]:
    """Of the lines beside the tables, by cell, those of another number of layers, but with the model's own mean."""
    own = {key: [line for line in found if mean_of(line) is None] for key, found in beside.items()}
    return {key: found for key, found in own.items() if found}


def preferred_lines(lines: Sequence[Line], others: dict[Key, list[Line]]) -> list[Line]:
    """For each cell the line of the number of layers that has the best mean *validation* score over its test runs.

    Args:
        lines: the chosen line of each cell, of the usual number of layers.
        others: :func:`other_depths`.
    """
    return [max([line, *others.get(key_of(line), [])], key=lambda one: one["val_mean"]) for line in lines]


def depth_section(lines: Sequence[Line], others: dict[Key, list[Line]]) -> str:
    """A table of cells that were measured with other numbers of layers; nothing where there are none.

    Args:
        lines: the lines of today's protocol, of the usual number of layers.
        others: :func:`other_depths`.
    """
    usual = {key_of(line): line for line in lines}
    preferred = {key_of(line): line for line in preferred_lines(lines, others)}
    both = [
        (cell, usual[cell_key(cell)], other)
        for cell in all_cells()
        if cell_key(cell) in usual
        for other in others.get(cell_key(cell), [])
    ]
    if not both:
        return ""
    rows = [
        [
            f"{cell}",
            *(text for line in pair for text in _scores(line)),
            f"{layers_of(preferred[cell_key(cell)])}",
            percent(cell.paper_mean, cell.paper_std),
        ]
        for cell, *pair in both
    ]
    text = (
        "The paper does not say how many layers its models have; the published code has two, and so have all tables "
        "and claims above, so that models are compared at the same depth. `hyperboloid paper run link --layers 1` has "
        "the same search for one. Which number is preferred is decided by the mean *validation* score of the ten runs. "
        "Models that are not listed have not been measured with one layer yet."
    )
    header = ["cell", "2 layers: validation", "test", "other: layers", "validation", "test", "preferred", "printed"]
    apart = measured_apart(both, "2 layers", "the other number")
    parts = ["## One layer or two", text, _gains(usual, others), apart, *_best_of_all(lines, others)]
    return "\n\n".join([*filter(None, parts), table(header, rows)])


def _gains(usual: dict[Key, Line], others: dict[Key, list[Line]]) -> str:
    """What another number of layers is worth to each model, mean over the dimensions that all of them have."""
    gains: dict[tuple[int, str, str], dict[str, dict[int, float]]] = {}
    for key in usual.keys() & others.keys():
        for line in others[key]:
            dataset, task, model, dim = key
            own = gains.setdefault((layers_of(line), task, dataset), {}).setdefault(model, {})
            own[dim] = 100 * (line["test_mean"] - usual[key]["test_mean"])
    sentences = []
    for (layers, task, dataset), found in sorted(gains.items(), key=str):
        dims = sorted(set.intersection(*(set(own) for own in found.values())))
        if dims:
            means = {m: statistics.mean(found[m][dim] for dim in dims) for m in ALL_MODELS if m in found}
            listed = ", ".join(f"{model} {points(gain)}" for model, gain in means.items())
            name = f"{layers} layer{'' if layers == 1 else 's'}"
            widths = ", ".join(map(str, dims))
            sentences.append(f"{dataset}, {TASKS[task]}, {name}, mean over d = {widths}: {listed}.")
    return " ".join(["Gain in points of the test score.", *sentences])


def _best_of_all(lines: Sequence[Line], others: dict[Key, list[Line]]) -> list[str]:
    """LGCN against the best rival, each with the number of layers that it prefers, where every GCN has both."""
    both = [line for line in preferred_lines(lines, others) if key_of(line) in others or line["model"] in SHALLOW]
    by_key = {key_of(line): line for line in both}
    pairs = [
        (cell, by_key[lgcn_key(cell)], by_key[cell_key(cell)])
        for cell in all_cells()
        if cell.model in RIVALS and {lgcn_key(cell), cell_key(cell)} <= by_key.keys()
    ]
    found = {task: best_model(task, True, measured_board(both)) for task in TASKS}
    told = [
        f"With as many layers as each model prefers, where every GCN was measured with both ({TASKS[task]}): "
        f"{finding.text}"
        for task, finding in found.items()
        if finding.compared
    ]
    return [*told, measured_apart(pairs, "LGCN", "the rival")] if told else []


def _scores(line: Line) -> list[str]:
    """Validation and test scores, before them the number of layers where it is not the usual one."""
    number = [] if layers_of(line) == Settings.layers else [f"{layers_of(line)}"]
    return [*number, *texts_of(line)]
