"""Embeddings drawn: the Poincaré disk with geodesics for edges; the plane for Euclidean models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hyperboloid.errors import InputError
from hyperboloid.graphs.depth import depths
from hyperboloid.graphs.graph import UNLABELLED
from hyperboloid.training.experiment import Run
from hyperboloid.training.tasks import LinkTask, NodeTask

from .disk import disk_coordinates, geodesic, plane_coordinates
from .style import UNKNOWN, look, plain

COLOUR_BY = ("label", "degree", "depth", "split")
#: More edges make the picture grey, not richer: so many are drawn, chosen at random.
MOST_EDGES = 20_000
#: More shapes than this make an SVG file that is slow to open: they become pixels inside it.
MOST_SHAPES = 3_000
#: Points that all lie this near to the middle of the disk are looked at more closely.
NEAR = 0.5
#: Edges of a link run's parts: training edges first, below the others.
EDGE_LOOK = {
    "training": {"colors": "0.6"},
    "validation": {"colors": "#dfa03f", "linestyles": "dashed"},
    "test": {"colors": "#01556a"},
}


@dataclass(frozen=True)
class Colouring:
    """What the colours of nodes say: groups with a name each, or a number for each node.

    Attributes:
        title: what it is, for the picture.
        groups: nodes ``(N,)`` of each group, as true or false, by its name, with the look of its marks.
        numbers: ``(N,)``, instead.
    """

    title: str
    groups: Sequence[tuple[str, NDArray[np.bool_], dict[str, Any]]] = ()
    numbers: NDArray[Any] | None = None


def colouring(run: Run, by: str | None) -> Colouring:
    """The colours of a run's nodes.

    Args:
        run: the trained model.
        by: one of :data:`COLOUR_BY`; None for labels where there are any, else degrees.
    """
    graph = run.graph
    if by is None:
        by = "degree" if graph.y is None else "label"
    if by not in COLOUR_BY:
        raise InputError(f"Nodes are coloured by one of {', '.join(COLOUR_BY)}, not {by!r}.")
    if by == "label":
        if graph.y is None:
            raise InputError(f"Graph '{graph.name}' has no labels: colour by degree, depth or split.")
        y = graph.y.numpy()
        classes = sorted(set(y.tolist()) - {UNLABELLED}, key=lambda c: -(y == c).sum())
        groups = [(graph.class_name(c), y == c, look(c)) for c in classes]
        return Colouring("label", [*([("no label", y == UNLABELLED, UNKNOWN)] if (y < 0).any() else []), *groups])
    if by == "degree":
        degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).numpy()
        return Colouring("log10(1 + degree)", numbers=np.log10(1 + degree))
    if by == "depth":
        return Colouring("depth: edges to the component's centre", numbers=depths(graph)[0])
    if not isinstance(run.task, NodeTask):
        return Colouring("split", [("nodes", np.ones(graph.num_nodes, bool), {"color": "0.3", "marker": "o"})])
    parts = {"training": run.task.split.train, "validation": run.task.split.val, "test": run.task.split.test}
    masks = {name: np.isin(np.arange(graph.num_nodes), nodes.numpy()) for name, nodes in parts.items()}
    rest = ~np.logical_or.reduce(list(masks.values()))
    named = sorted(((n, mask, look(k)) for k, (n, mask) in enumerate(masks.items())), key=lambda g: -g[1].sum())
    return Colouring("split", [*([("in no part", rest, UNKNOWN)] if rest.any() else []), *named])


def draw_disk(run: Run, by: str | None = None) -> Any:
    """A figure of a run's embeddings.

    Args:
        run: the trained model.
        by: what colours say, see :func:`colouring`; ``split`` colours the edges of a link run, the nodes of another.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    colours = colouring(run, by)
    v, notes = run.encode(), []
    curvature = run.encoder.curvature
    if curvature is None:
        points, space = plane_coordinates(v).numpy(), "Euclidean"
    else:
        beta = float(curvature.beta.detach())
        points, space = disk_coordinates(v, beta).numpy(), f"β = {beta:.2f}"
    if v.size(1) > 2:
        notes.append(f"{v.size(1)} dimensions, " + ("two principal axes" if curvature is None else "tangent PCA to 2"))
    settings = run.config.settings
    if settings.last_activation and settings.activation == "relu":
        notes.append("a ReLU after the last layer confines it to one orthant")

    figure = Figure(figsize=(8, 8.4), dpi=150)
    axes = figure.add_axes((0.02, 0.06, 0.96, 0.88))
    axes.set_aspect("equal")
    axes.set_axis_off()
    farthest = float(np.linalg.norm(points, axis=1).max())
    reach = farthest if 0 < farthest < NEAR or (curvature is None and farthest) else 1.0
    if curvature is not None and reach < 1:
        notes.append(f"only the inner {100 * reach:.2g} % of the disk's radius")
    axes.set_xlim(-1.03 * reach, 1.03 * reach)
    axes.set_ylim(-1.03 * reach, 1.03 * reach)
    if curvature is not None and reach == 1:
        axes.add_patch(Circle((0, 0), 1, fill=False, color="0.4", linewidth=1))
    notes += _edges(axes, run, points, coloured=by == "split", curved=curvature is not None)
    _nodes(axes, points, colours)
    axes.set_title(
        f"{run.config.model} on {plain(run.config.dataset)}, {run.config.task}: test {run.task.metric} "
        f"{100 * run.summary['test']:.1f} %, {space}",
        fontsize=11,
    )
    figure.text(0.5, 0.02, "; ".join(notes), ha="center", fontsize=8, color="0.35")
    return figure


def _edges(axes: Any, run: Run, points: NDArray[Any], *, coloured: bool, curved: bool) -> list[str]:
    """The edges, each once, and what is to be said about them."""
    from matplotlib.collections import LineCollection

    if coloured and isinstance(run.task, LinkTask):
        split = run.task.split
        parts = {"training": split.train, "validation": split.val, "test": split.test}
        ends = np.concatenate([pairs.numpy() for pairs in parts.values()], axis=1)
        part = np.repeat(list(parts), [pairs.size(1) for pairs in parts.values()])
    else:
        ends = run.graph.edge_index[:, run.graph.edge_index[0] < run.graph.edge_index[1]].numpy()
        part = np.full(ends.shape[1], "training")
    total, notes = ends.shape[1], []
    if total > MOST_EDGES:
        chosen = np.random.default_rng(0).choice(total, MOST_EDGES, replace=False)
        ends, part = ends[:, chosen], part[chosen]
        notes.append(f"{MOST_EDGES:,} of {total:,} edges, drawn at random")
    arcs = geodesic(points[ends[0]], points[ends[1]]) if curved else points[ends.T]
    faint = float(np.clip(600 / max(1, ends.shape[1]), 0.04, 0.6))
    for name, look_ in EDGE_LOOK.items():
        chosen = part == name
        if chosen.any():
            alpha = faint if name == "training" else max(faint, 0.5)
            lines = LineCollection(list(arcs[chosen]), linewidths=0.5, alpha=alpha, zorder=1, **look_)
            lines.set_rasterized(ends.shape[1] > MOST_SHAPES)
            lines.set_label(f"{name} edges" if coloured and isinstance(run.task, LinkTask) else "_")
            axes.add_collection(lines)
    return notes


def _nodes(axes: Any, points: NDArray[Any], colours: Colouring) -> None:
    """The nodes, with a legend of the groups or a bar of the numbers."""
    size = float(np.clip(12_000 / len(points), 1.5, 40))
    many = len(points) > MOST_SHAPES
    if colours.numbers is not None:
        order = np.argsort(colours.numbers, kind="stable")
        dots = axes.scatter(
            *points[order].T, c=colours.numbers[order], s=size, cmap="viridis", zorder=2, lw=0, rasterized=many
        )
        bar = axes.inset_axes((0.0, 0.03, 0.3, 0.02))
        axes.figure.colorbar(dots, cax=bar, orientation="horizontal").set_label(colours.title, fontsize=8)
        bar.tick_params(labelsize=8)
        return
    for name, chosen, look_ in colours.groups:
        axes.scatter(*points[chosen].T, s=size, label=plain(name), zorder=2, lw=0, alpha=0.8, rasterized=many, **look_)
    look_of_legend = {"frameon": True, "framealpha": 0.85, "edgecolor": "none", "fontsize": 8, "title_fontsize": 8}
    scale = max(1.0, 5 / size**0.5)
    legend = axes.legend(loc="lower right", markerscale=scale, title=colours.title, **look_of_legend)
    for handle in legend.legend_handles:
        handle.set_alpha(1)
