"""Attention drawn: a node among its neighbours in every layer, and what the layers do across the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hyperboloid.graphs import Graph
from hyperboloid.graphs.graph import UNLABELLED
from hyperboloid.training.experiment import Run

from .attention import Attention, LayerSummary, neighbours
from .style import COLOURS, UNKNOWN, dress, look, new_figure, plain

#: Neighbours that still can be told apart around a node.
MOST_NEIGHBOURS = 24
#: Width in points of an edge that has all the attention.
WIDEST = 14.0
HATCHES = ("", "///", "...", "xxx")


def draw_attention(
    run: Run, layers: list[Attention], summaries: Sequence[LayerSummary], node: int | None = None
) -> Any:
    """A figure of a node's attention and of the numbers across the graph.

    Args:
        run: the trained model.
        layers: its weights.
        summaries: of the layers.
        node: whose neighbours to show; None for the numbers across the graph alone.
    """
    figure = new_figure(4.2 * (len(layers) if node is not None else 0) + 5.2, 4.6)
    grid = figure.subplots(1, 1 + (len(layers) if node is not None else 0), squeeze=False)[0]
    if node is not None:
        around, weights = neighbours(layers, node)
        kept = _heaviest(weights)
        for number, axes in enumerate(grid[:-1]):
            _neighbourhood(axes, run.graph, around[kept], weights[number][kept])
            axes.set_title(f"layer {number + 1}", fontsize=10)
        shown = "all" if kept.numel() == around.numel() else f"the {kept.numel() - 1} heaviest"
        note = f"node {plain(run.graph.id_of(node))}: {shown} of its {around.numel() - 1} neighbours"
        grid[0].text(0.0, -0.02, note, transform=grid[0].transAxes, fontsize=8, va="top")
        _legend(grid[0], run.graph, run.graph.y[around[kept]] if run.graph.y is not None else None)
    _across(grid[-1], summaries)
    figure.suptitle(f"Attention of {run.config.model} on {plain(run.config.dataset)}, {run.config.task}", fontsize=11)
    return figure


def _heaviest(weights: Tensor) -> Tensor:
    """Places of the node itself and of the neighbours to show, in their order."""
    rest = weights[:, 1:].mean(0)
    best = torch.topk(rest, min(MOST_NEIGHBOURS, rest.numel())).indices + 1
    return torch.cat([torch.zeros(1, dtype=torch.long), best.sort().values])


def _look(graph: Graph, node: int) -> dict[str, Any]:
    label = UNLABELLED if graph.y is None else int(graph.y[node])
    return UNKNOWN if label == UNLABELLED else look(label)


def _neighbourhood(axes: Any, graph: Graph, around: Tensor, weights: Tensor) -> None:
    """The node in the middle, its neighbours around it, edges as wide as the attention they get."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-1.55, 1.55)
    axes.set_ylim(-1.45, 1.45)
    centre, *others = around.tolist()
    for k, (node, weight) in enumerate(zip(others, weights[1:].tolist(), strict=True)):
        angle = math.pi / 2 - 2 * math.pi * k / len(others)
        x, y = math.cos(angle), math.sin(angle)
        axes.plot([0, x], [0, y], color="0.45", linewidth=max(0.4, WIDEST * weight), zorder=1, solid_capstyle="butt")
        axes.plot([x], [y], markersize=11, markeredgecolor="black", zorder=3, linestyle="", **_look(graph, node))
        text = f"{plain(graph.id_of(node))}\n{weight:.2f}"
        axes.text(1.28 * x, 1.25 * y, text, ha="center", va="center", fontsize=8, zorder=4)
    own = _look(graph, centre)
    axes.plot([0], [0], markersize=15, markeredgecolor="black", markeredgewidth=2.5, zorder=3, linestyle="", **own)
    name = f"{plain(graph.id_of(centre))}\nitself {float(weights[0]):.2f}"
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    axes.text(0, -0.3, name, ha="center", va="center", fontsize=8, zorder=4, bbox=box)


def _legend(axes: Any, graph: Graph, labels: Tensor | None) -> None:
    """Which look stands for which label."""
    from matplotlib.lines import Line2D

    if labels is None:
        return
    marks = []
    for label in sorted(set(labels.tolist())):
        name = "no label" if label == UNLABELLED else f"label {graph.class_name(label)}"
        shape = UNKNOWN if label == UNLABELLED else look(label)
        marks.append(Line2D([], [], linestyle="", markeredgecolor="black", label=plain(name), **shape))
    axes.legend(handles=marks, loc="upper left", fontsize=8, frameon=False, borderpad=0, handletextpad=0.1)


def _across(axes: Any, summaries: Sequence[LayerSummary]) -> None:
    """Bars for each layer beside what uniform attention, and shuffled labels, would give."""
    labelled = all(s.same_label is not None for s in summaries)
    names = [
        *(["on neighbours of\nthe same label"] if labelled else []),
        "on the\nnode itself",
        "entropy, 1 for\nuniform",
    ]
    wide = 0.8 / len(summaries)
    for k, s in enumerate(summaries):
        values, uniform = [s.self_share, s.entropy], [s.self_uniform, 1.0]
        if labelled and s.same_label is not None:
            values, uniform = [s.same_label.attention, *values], [s.same_label.share, *uniform]
        places = [place - 0.4 + wide * (k + 0.5) for place in range(len(values))]
        look = {"color": COLOURS[k % len(COLOURS)], "hatch": HATCHES[k % len(HATCHES)], "edgecolor": "white"}
        axes.bar(places, values, 0.9 * wide, label=f"layer {s.layer}", **look)
        axes.hlines(
            uniform,
            [p - 0.45 * wide for p in places],
            [p + 0.45 * wide for p in places],
            color="black",
            linewidth=2,
            label="uniform attention" if k == 0 else None,
        )
        if labelled and s.same_label is not None:
            axes.errorbar(
                [places[0]],
                [s.same_label.share + s.same_label.control],
                yerr=2 * s.same_label.control_std,
                color="black",
                capsize=4,
                linewidth=1,
                label="shuffled labels, ± 2 std" if k == 0 else None,
            )
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(0, 1.32)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.set_ylabel("share of the attention, mean over nodes", fontsize=9)
    dress(axes, "across the graph")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
