"""Attention drawn: a node among its neighbours in every layer, and what the layers do across the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

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
        graph, shown = run.graph, around[kept].tolist()
        labels = [None if graph.y is None else int(graph.y[other]) for other in shown]
        for number, axes in enumerate(grid[:-1]):
            draw_neighbourhood(axes, [graph.id_of(i) for i in shown], labels, weights[number][kept].tolist())
            axes.set_title(f"layer {number + 1}", fontsize=10)
        which = "all" if len(shown) == around.numel() else f"the {len(shown) - 1} heaviest"
        note = f"node {plain(graph.id_of(node))}: {which} of its {around.numel() - 1} neighbours"
        grid[0].text(0.0, -0.02, note, transform=grid[0].transAxes, fontsize=8, va="top")
        if graph.y is not None:
            legend(grid[0], labels, graph.class_name)
    _across(grid[-1], summaries)
    figure.suptitle(f"Attention of {run.config.model} on {plain(run.config.dataset)}, {run.config.task}", fontsize=11)
    return figure


def _heaviest(weights: Tensor) -> Tensor:
    """Places of the node itself and of the neighbours to show, in their order."""
    rest = weights[:, 1:].mean(0)
    best = torch.topk(rest, min(MOST_NEIGHBOURS, rest.numel())).indices + 1
    return torch.cat([torch.zeros(1, dtype=torch.long), best.sort().values])


def look_of(label: int | None) -> dict[str, Any]:
    """Colour and marker of a node with this label, or without one."""
    return UNKNOWN if label is None or label == UNLABELLED else look(label)


def draw_neighbourhood(axes: Any, names: Sequence[str], labels: Sequence[int | None], weights: Sequence[float]) -> None:
    """A node (the first) in the middle, its neighbours around it, edges as wide as the attention they get."""
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-1.55, 1.55)
    axes.set_ylim(-1.45, 1.45)
    mark = {"linestyle": "", "markeredgecolor": "black", "zorder": 3}
    others = list(zip(names, labels, weights, strict=True))[1:]
    for k, (name, label, weight) in enumerate(others):
        angle = math.pi / 2 - 2 * math.pi * k / len(others)
        x, y = math.cos(angle), math.sin(angle)
        axes.plot([0, x], [0, y], color="0.45", linewidth=max(0.4, WIDEST * weight), zorder=1, solid_capstyle="butt")
        axes.plot([x], [y], markersize=11, **mark, **look_of(label))
        axes.text(1.28 * x, 1.25 * y, f"{plain(name)}\n{weight:.2f}", ha="center", va="center", fontsize=8, zorder=4)
    axes.plot([0], [0], markersize=15, markeredgewidth=2.5, **mark, **look_of(labels[0]))
    text = f"{plain(names[0])}\nitself {weights[0]:.2f}"
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    axes.text(0, -0.3, text, ha="center", va="center", fontsize=8, zorder=4, bbox=box)


def legend(axes: Any, labels: Sequence[int | None], name_of: Callable[[int], str]) -> None:
    """Which look stands for which label."""
    from matplotlib.lines import Line2D

    known = sorted({label for label in labels if label is not None and label != UNLABELLED})
    entries = [(f"label {name_of(label)}", look_of(label)) for label in known]
    if len(known) < len(set(labels)):
        entries.append(("no label", UNKNOWN))
    marks = [
        Line2D([], [], linestyle="", markeredgecolor="black", label=plain(text), **shape) for text, shape in entries
    ]
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
