"""Embeddings on the Poincaré disk: geodesics as arcs, colours for labels or degree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz, PoincareBall
from hyperboloid.training.experiment import Run

from .style import plain, save_figure


def disk_coordinates(v: Tensor, beta: float) -> Tensor:
    """Points ``(N, 2)`` of the unit disk for normal coordinates ``(N, d)``.

    Beyond two dimensions the two principal axes of the tangent space at the origin are kept (tangent PCA), after the
    space is moved so that the centroid of all points lies in the middle. Each point keeps its distance from the middle,
    which is what says how deep it lies in the tree; only directions are projected.
    """
    v = v.double()
    centre = Lorentz(beta).normal.centroid(v)
    v = Lorentz(beta).normal.log_at(centre.expand_as(v), v)
    if v.size(1) == 1:
        v = torch.cat([v, torch.zeros_like(v)], dim=1)
    if v.size(1) > 2:
        radius = v.norm(dim=1, keepdim=True)
        _, _, axes = torch.linalg.svd(v - v.mean(0), full_matrices=False)
        v = v @ axes[:2].T
        v = v / v.norm(dim=1, keepdim=True).clamp_min(1e-12) * radius
    return PoincareBall(1.0).from_normal(v / beta**0.5)


def geodesic(a: np.ndarray, b: np.ndarray, steps: int = 16) -> np.ndarray:
    """Points ``(E, steps, 2)`` along the geodesics from ``a`` to ``b``, both ``(E, 2)`` in the unit disk."""
    ball, straight = PoincareBall(1.0), torch.linspace(0, 1, steps, dtype=torch.float64)
    p, q = torch.as_tensor(a), torch.as_tensor(b)
    along = ball.log0(ball.add(-p, q)).unsqueeze(1) * straight.view(1, -1, 1)
    return ball.add(p.unsqueeze(1).expand_as(along), ball.exp0(along)).numpy()


def draw_disk(run: Run, path: Path) -> None:
    """Draw a run's embeddings to a PNG or SVG file; nodes coloured by label, else by degree."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    encoder, graph = run.encoder, run.graph
    with torch.no_grad():
        v = run.task.encode(encoder)
    beta = float(encoder.curvature.beta.detach()) if encoder.curvature is not None else 1.0
    points = disk_coordinates(v, beta).numpy()
    each_once = graph.edge_index[0] < graph.edge_index[1]
    ends = graph.edge_index[:, each_once].numpy()

    figure = Figure(figsize=(8, 8), dpi=150)
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.92))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(-1.03, 1.03)
    axes.add_patch(Circle((0, 0), 1, fill=False, color="0.4", linewidth=1))
    faint = min(0.6, 600 / max(1, ends.shape[1]) + 0.04)
    arcs = geodesic(points[ends[0]], points[ends[1]])
    axes.add_collection(LineCollection(list(arcs), colors="0.5", linewidths=0.5, alpha=faint, zorder=1))
    size = float(np.clip(12_000 / graph.num_nodes, 1.5, 40))
    _scatter(axes, points, run, size)
    summary = run.summary
    axes.set_title(
        f"{run.config.model} on {plain(run.config.dataset)}, {run.config.task}: test {run.task.metric} "
        f"{100 * summary['test']:.1f} %, d = {v.size(1)}, β = {beta:.2f}",
        fontsize=11,
    )
    save_figure(figure, path)


def _scatter(axes: Any, points: np.ndarray, run: Run, size: float) -> None:
    """The nodes, with a legend of the classes or a bar of the degrees."""
    graph = run.graph
    if graph.y is None:
        degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).numpy()
        order = np.argsort(degree)
        dots = axes.scatter(*points[order].T, c=np.log10(1 + degree[order]), s=size, cmap="viridis", zorder=2, lw=0)
        axes.figure.colorbar(dots, ax=axes, label="log10(1 + degree)", shrink=0.5)
        return
    names = graph.class_names or [str(c) for c in range(graph.num_classes)]
    labels = graph.y.numpy()
    for number in sorted(set(labels.tolist()), key=lambda c: -(labels == c).sum()):
        chosen = labels == number
        name, colour = (names[number], f"C{number % 10}") if number >= 0 else ("unlabelled", "0.7")
        axes.scatter(*points[chosen].T, color=colour, s=size, label=plain(name), zorder=2, linewidths=0)
    axes.legend(loc="lower right", markerscale=max(1.0, 4 / size**0.5), fontsize=8, frameon=False)
