r"""How well embeddings keep the distances of their graph (the paper's section 5.4).

With d the distance of the model's own space, d^G the length of shortest paths in the whole graph, and both divided by
their averages, the average distortion over pairs of different nodes is

.. math::  \mathrm{mean}_{i \ne j} \Big( \big( \frac{d(u_i, u_j) / d_{avg}}{d^G(i, j) / d^G_{avg}} \big)^2 - 1 \Big)^2.

It is 0 for an embedding that keeps all distances but for a factor. Pairs without a path are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.graphs import Graph
from hyperboloid.graphs.paths import Array, Paths
from hyperboloid.nn.shallow import ShallowEncoder
from hyperboloid.training.experiment import Run

from .style import COLOURS, dress, new_figure, plain, save_figure

#: Pairs (i, j) at most; beyond, all pairs of as many random nodes i are taken as fit.
MOST_PAIRS = 10_000_000
#: Coordinates of pairs handled at a time: what stays in the processor's cache is more than twice as fast.
COORDINATES_AT_ONCE = 200_000
#: Of the embedded distances between nodes so many edges apart.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OF_LOGITS = "The embeddings of a node run are its logits, which were not trained to keep distances."


@dataclass(frozen=True)
class Distortion:
    """How well embeddings keep the distances of their graph.

    Attributes:
        average: the average distortion.
        standard_error: of it; 0 where all pairs were looked at.
        mean_average_precision: of a node's neighbours among the nodes nearest to it, of which it asks that they come
            first; mean over nodes.
        correlation: Pearson's, of embedded with graph distances.
        rank_correlation: Spearman's.
        nodes: how many nodes i were looked at, each with all nodes j.
        pairs: how many pairs that makes.
        all_pairs: whether these are all.
        mean_length: d^G_avg.
        bands: :data:`QUANTILES` of d/d_avg by graph distance.
    """

    average: float
    standard_error: float
    mean_average_precision: float
    correlation: float
    rank_correlation: float
    nodes: int
    pairs: int
    all_pairs: bool
    mean_length: float
    bands: dict[int, list[float]]


def run_distortion(run: Run, seed: int = 0) -> Distortion:
    """Distortion of a run's embeddings as it was evaluated: its validation and test edges are hidden from the model."""
    graph, encoder = run.graph, run.encoder
    with torch.no_grad():
        z = encoder.embedding if isinstance(encoder, ShallowEncoder) else run.encode()
        return distortion(z, encoder.manifold, graph, seed)


def distortion(z: Tensor, manifold: Lorentz | Euclidean, graph: Graph, seed: int = 0) -> Distortion:
    """Distortion of embeddings.

    Args:
        z: normal coordinates ``(N, d)``, without gradient.
        manifold: the space that they lie in.
        graph: whose distances they should keep.
        seed: of the nodes that are taken where there are too many pairs.

    Raises:
        InputError: all embeddings are the same.
    """
    n = graph.num_nodes
    nodes = np.arange(n)
    if n * n > MOST_PAIRS:
        nodes = np.sort(np.random.default_rng(seed).choice(n, max(2, MOST_PAIRS // n), replace=False))
    paths = Paths.of(graph)
    by_graph = paths.all_lengths(nodes)
    embedded = _embedded(z.double(), manifold, nodes)
    joined = by_graph > 0
    if not embedded[joined].any():
        raise InputError(f"All embeddings of graph '{graph.name}' are the same: they have no distances.")
    moments = _moments(embedded, by_graph, joined)
    d, g = embedded[joined], by_graph[joined]
    return Distortion(
        average=float(_average(moments.sum(0))),
        standard_error=_standard_error(moments, n),
        mean_average_precision=_mean_average_precision(embedded, paths, nodes),
        correlation=_correlation(d, g),
        rank_correlation=_rank_correlation(d, g),
        nodes=len(nodes),
        pairs=len(d),
        all_pairs=len(nodes) == n,
        mean_length=float(g.mean()),
        bands={int(hops): (np.quantile(d[g == hops], QUANTILES) / d.mean()).tolist() for hops in np.unique(g)},
    )


def _embedded(z: Tensor, manifold: Lorentz | Euclidean, nodes: Array) -> Array:
    """Distances ``(K, N)`` of some nodes to all."""
    step = max(1, COORDINATES_AT_ONCE // z.numel())
    rows = [manifold.normal.dist(z[part].unsqueeze(1), z.unsqueeze(0)) for part in torch.as_tensor(nodes).split(step)]
    found: Array = torch.cat(rows).numpy()
    return found


def _moments(embedded: Array, by_graph: Array, joined: Array) -> Array:
    """For each node i, sums over its pairs ``(K, 5)``: 1, d, d^G, (d/d^G)² and (d/d^G)⁴."""
    square = np.where(joined, embedded / np.where(joined, by_graph, 1), 0) ** 2
    sums = (joined, embedded * joined, by_graph * joined, square, square**2)
    return np.stack([part.sum(1, dtype=np.float64) for part in sums], axis=1)


def _average(sums: Array) -> Any:
    """The average distortion from sums of :func:`_moments` ``(…, 5)``."""
    pairs, d, g, square, fourth = np.moveaxis(sums, -1, 0)
    scale = (g / d) ** 2
    return np.maximum(0, scale**2 * fourth / pairs - 2 * scale * square / pairs + 1)


def _standard_error(moments: Array, n: int) -> float:
    """By leaving out one node i after the other, for pairs with the same i are not independent."""
    k = len(moments)
    if k == n:
        return 0.0
    without = _average(moments.sum(0) - moments)
    return float(np.sqrt((1 - k / n) * (k - 1) * np.var(without)))


def _mean_average_precision(embedded: Array, paths: Paths, nodes: Array) -> float:
    """Mean over nodes i, and over the neighbours j of each, of the share of neighbours among the nodes as near as j.

    Nodes that are equally far all count as nearer: to put them all into one place gains nothing.
    """
    found = []
    for row, node in zip(embedded, nodes, strict=True):
        neighbours = paths.col[paths.rowptr[node] : paths.rowptr[node + 1]]
        if len(neighbours):
            near = np.sort(row[neighbours])
            others = np.sort(np.delete(row, node))
            found.append(np.mean(np.searchsorted(near, near, "right") / np.searchsorted(others, near, "right")))
    return float(np.mean(found))


def _correlation(d: Array, g: Array) -> float:
    """Pearson's; 0 where all values of one of them are the same, as in a graph of single edges."""
    return float(np.corrcoef(d, g)[0, 1]) if np.ptp(d) > 0 and np.ptp(g) > 0 else 0.0


def _rank_correlation(d: Array, g: Array) -> float:
    """Spearman's; of graph distances, which are few, a count of each gives the ranks without sorting."""
    from scipy.stats import rankdata

    count = np.bincount(g)
    rank = np.cumsum(count) - (count - 1) / 2
    return _correlation(rankdata(d), rank[g])


def draw_distortion(found: Distortion, title: str, path: Path) -> None:
    """Draw embedded against graph distances to a PNG or SVG file."""
    figure = new_figure(6.5, 4.5)
    draw_bands(figure.subplots(), found.bands, found.mean_length, f"{plain(title)}: distortion {found.average:.3f}")
    save_figure(figure, path)


def draw_bands(axes: Any, bands: dict[int, list[float]], mean_length: float, title: str) -> None:
    """A box for each graph distance from 25 to 75 %, a line at the median, whiskers from 5 to 95 %."""
    hops = list(bands)
    names = ("whislo", "q1", "med", "q3", "whishi")
    boxes = [dict(zip(names, bands[hop], strict=True)) for hop in hops]
    axes.bxp(
        boxes,
        positions=hops,
        widths=0.6,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": COLOURS[2], "edgecolor": COLOURS[0]},
        medianprops={"color": COLOURS[0], "linewidth": 2},
        manage_ticks=False,
    )
    ideal = [0, hops[-1] / mean_length]
    axes.plot([0, hops[-1]], ideal, color=COLOURS[1], linestyle="--", linewidth=1.8, label="no distortion")
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    axes.set_xlim(0, hops[-1] + 0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("graph distance, edges")
    axes.set_ylabel("embedded distance / average")
    dress(axes, title)
