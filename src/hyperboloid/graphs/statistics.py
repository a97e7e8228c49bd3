"""What a graph looks like, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

#: A power law is fitted to at least so many nodes.
SHORTEST_TAIL = 50
#: Rows of the adjacency matrix that are squared at a time: bounds the memory where there are hubs.
ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class PowerLaw:
    """A fit of P(degree = k) ∝ k^−α for k ≥ xmin.

    Attributes:
        alpha: the exponent.
        error: its standard error, (α − 1)/√tail.
        xmin: from where on it is fitted.
        tail: nodes with at least that degree.
        distance: Kolmogorov-Smirnov distance of the fit, 0 for a perfect one.
    """

    alpha: float
    error: float
    xmin: int
    tail: int
    distance: float


@dataclass(frozen=True)
class Statistics:
    """A graph's shape.

    Attributes:
        nodes: their number.
        edges: undirected, each counted once.
        components: how many; isolated nodes count.
        largest: nodes of the largest component.
        mean_degree, max_degree: of all nodes.
        power_law: of the degrees; None where there are too few different ones.
        clustering: mean over nodes with two neighbours or more of the share of their pairs of neighbours that are
            linked; 0 where there is no such node.
        forest_share: share of the edges that a spanning forest needs, (nodes − components)/edges: 1 for a tree.
    """

    nodes: int
    edges: int
    components: int
    largest: int
    mean_degree: float
    max_degree: int
    power_law: PowerLaw | None
    clustering: float
    forest_share: float


def statistics(graph: Graph) -> Statistics:
    """Measure a graph; edge weights do not count."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n, (row, col) = graph.num_nodes, graph.edge_index.numpy()
    matrix = csr_matrix((np.ones(row.size, dtype=np.int32), (row, col)), shape=(n, n))
    count, component = connected_components(matrix, directed=False)
    degree = np.bincount(row, minlength=n)
    closed = np.zeros(n)
    for start in range(0, n, ROWS_AT_ONCE):
        some = matrix[start : start + ROWS_AT_ONCE]
        closed[start : start + ROWS_AT_ONCE] = np.asarray((some @ matrix).multiply(some).sum(axis=1)).ravel()
    social = degree > 1
    return Statistics(
        nodes=n,
        edges=graph.num_edges,
        components=int(count),
        largest=int(np.bincount(component).max()),
        mean_degree=float(degree.mean()),
        max_degree=int(degree.max()),
        power_law=fit_power_law(degree[degree > 0]),
        clustering=float((closed[social] / (degree[social] * (degree[social] - 1))).mean()) if social.any() else 0.0,
        forest_share=(n - int(count)) / graph.num_edges if graph.num_edges else 1.0,
    )


def fit_power_law(values: NDArray[np.int64]) -> PowerLaw | None:
    """The discrete power law of greatest likelihood (Clauset, Shalizi & Newman, SIAM Review '09).

    For every xmin the exponent maximises −n log ζ(α, xmin) − α Σ log k; of all xmin the one whose fit has the smallest
    Kolmogorov-Smirnov distance is taken. None where no xmin leaves :data:`SHORTEST_TAIL` values, two of them different.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    best: PowerLaw | None = None
    for xmin in np.unique(values).tolist():
        tail = values[values >= xmin]
        kinds, counts = np.unique(tail, return_counts=True)
        if tail.size < SHORTEST_TAIL or kinds.size < 2:
            break  # a larger xmin leaves fewer
        logs = float(np.log(tail).sum())

        def cost(alpha: float, xmin: int = xmin, size: int = tail.size, logs: float = logs) -> float:
            return float(size * np.log(zeta(alpha, xmin)) + alpha * logs)

        alpha = float(minimize_scalar(cost, bounds=(1.01, 12.0), method="bounded").x)
        fitted = 1 - zeta(alpha, kinds + 1) / zeta(alpha, xmin)
        distance = float(np.abs(np.cumsum(counts) / tail.size - fitted).max())
        if best is None or distance < best.distance:
            best = PowerLaw(alpha, (alpha - 1) / tail.size**0.5, xmin, int(tail.size), distance)
    return best
