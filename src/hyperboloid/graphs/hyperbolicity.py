r"""How far a graph is from a tree: Gromov's δ, on average and at worst (the paper's appendix on δ-hyperbolicity).

For four distinct nodes let S ≤ M ≤ L be the three sums of opposite distances; δ⁺ = (L − M)/2, which is 0 for all
quadruples of a tree. δ_avg is its mean over all quadruples, δ_worst its maximum.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hyperboloid.errors import InputError, check_seed

from .graph import Graph
from .paths import Array, Paths, in_threads, largest_component
from .worst_quadruple import climb, gaps, largest_gap

#: Up to so many nodes every quadruple is looked at.
ALL_UP_TO = 100
#: A batch: so many searches, from nodes of its own, and so many quadruples that three of them begin.
SOURCES, QUADRUPLES = 32, 4096
#: Batches that are drawn before the interval is looked at: a t interval of fewer means is not to be trusted.
FEWEST = 32
#: Quadruples, the worst of a batch each, that a lower bound of δ_worst is climbed to from.
CLIMBS = 256
CONFIDENCE = 0.95


class Average(NamedTuple):
    """δ_avg: the mean, the half width of its confidence interval, and how many quadruples have the gap 0, 1, 2, …."""

    mean: float
    half_width: float
    counts: Array


@dataclass(frozen=True)
class Hyperbolicity:
    """What is known about the δ of a graph's largest component.

    Attributes:
        nodes: of the component.
        graph_nodes: of the whole graph.
        components: how many there are.
        delta_avg: mean δ⁺.
        delta_avg_half_width: of its 95 % confidence interval; 0 where all quadruples were looked at.
        delta_worst: largest δ⁺, or the largest that was found.
        delta_worst_exact: whether no quadruple has a larger one.
        diameter: longest shortest path.
        counts: how many of the quadruples looked at have δ⁺ = 0, 1/2, 1, ….
    """

    nodes: int
    graph_nodes: int
    components: int
    delta_avg: float
    delta_avg_half_width: float
    delta_worst: float
    delta_worst_exact: bool
    diameter: int
    counts: list[int]

    @property
    def delta_avg_ci(self) -> tuple[float, float]:
        """The 95 % confidence interval of δ_avg, which is never negative."""
        return max(0.0, self.delta_avg - self.delta_avg_half_width), self.delta_avg + self.delta_avg_half_width

    @property
    def delta_relative(self) -> float:
        """2δ_worst/diameter: 0 for a tree, 1 for a cycle whose length is a multiple of 4."""
        return 2 * self.delta_worst / self.diameter

    @property
    def quadruples(self) -> int:
        """How many were looked at for δ_avg."""
        return sum(self.counts)

    def as_json(self) -> dict[str, Any]:
        """Everything, in types that JSON has."""
        derived = {"delta_avg_ci": list(self.delta_avg_ci), "delta_relative": self.delta_relative}
        return {**dataclasses.asdict(self), **derived, "quadruples": self.quadruples}


def hyperbolicity(
    graph: Graph, *, precision: float = 0.005, seed: int = 0, watch: Callable[[str], None] = lambda text: None
) -> Hyperbolicity:
    """δ_avg and δ_worst of a graph's largest component; the same for the same seed, on however many cores.

    Args:
        graph: its edges count alike, whatever their weights are.
        precision: half width at which the 95 % confidence interval of δ_avg is narrow enough.
        seed: of the sampled quadruples.
        watch: is told how it goes.

    Raises:
        InputError: the component has fewer than 4 nodes, or the precision or the seed is no such number.
    """
    nodes, components = _component(graph, precision, seed)
    paths = Paths.of(graph, nodes)
    if len(nodes) <= ALL_UP_TO:
        average, gap, exact = *_of_all(paths), True
    else:
        average, gap = sample_average(paths, precision, seed, watch)
        gap, exact = largest_gap(graph, nodes, gap, watch)
    watch("the diameter")
    return Hyperbolicity(
        nodes=len(nodes),
        graph_nodes=graph.num_nodes,
        components=components,
        delta_avg=average.mean,
        delta_avg_half_width=average.half_width,
        delta_worst=gap / 2,
        delta_worst_exact=exact,
        diameter=paths.diameter,
        counts=average.counts.tolist(),
    )


def delta_average(graph: Graph, *, precision: float = 0.005, seed: int = 0) -> Average:
    """δ_avg alone, which takes far less time; arguments and errors are those of :func:`hyperbolicity`."""
    nodes, _ = _component(graph, precision, seed)
    paths = Paths.of(graph, nodes)
    return _of_all(paths)[0] if len(nodes) <= ALL_UP_TO else sample_average(paths, precision, seed)[0]


def _component(graph: Graph, precision: float, seed: int) -> tuple[Array, int]:
    """Nodes of the largest component and the number of components, if that and the arguments will do."""
    if not 0 < precision <= 1:
        raise InputError(f"The precision must be above 0 and at most 1, not {precision}.")
    check_seed(seed)
    nodes, components = largest_component(graph)
    if len(nodes) < 4:
        raise InputError(
            f"The largest component of graph '{graph.name}' has {len(nodes)} nodes: hyperbolicity is about four."
        )
    return nodes, components


def _of_all(paths: Paths) -> tuple[Average, int]:
    """δ_avg and the largest gap from every quadruple."""
    counts = _count_all(paths.all_lengths())
    return Average(_mean(counts), 0.0, np.trim_zeros(counts, "b")), int(np.flatnonzero(counts)[-1])


@njit(cache=True)
def _count_all(length: Array) -> Array:
    """How many quadruples of nodes have the gap 0, 1, 2, …."""
    n = length.shape[0]
    counts = np.zeros(n + 1, np.int64)
    for a in range(n):
        for b in range(a):
            for c in range(b):
                for d in range(c):
                    p = length[a, b] + length[c, d]
                    q = length[a, c] + length[b, d]
                    r = length[a, d] + length[b, c]
                    top = max(p, q, r)
                    counts[top - (p + q + r - top - min(p, q, r))] += 1
    return counts


def sample_average(
    paths: Paths, precision: float, seed: int, watch: Callable[[str], None] = lambda text: None
) -> tuple[Average, int]:
    """δ_avg of a connected graph from samples, and a lower bound of the largest gap.

    Quadruples that share a search are not independent, so the interval is made of what is: batches. Each has search
    nodes of its own, and the mean δ⁺ of quadruples that are drawn uniformly from three of its search nodes and any
    fourth node; with the means of the batches goes Student's interval. Their number is settled in steps that foresee
    how many are needed, so that the interval is not looked at after each batch until it happens to be narrow.
    """
    from scipy.stats import t

    means: list[float] = []
    counts = np.zeros(0, np.int64)
    worst: list[tuple[int, Array]] = []
    goal = FEWEST
    while len(means) < goal:
        jobs = [(seed, number) for number in range(len(means), goal)]
        for found, gap, quadruple in in_threads(lambda job: _batch(paths, job), jobs):
            means.append(_mean(found))
            counts = _padded(counts, found) + _padded(found, counts)
            worst.append((gap, quadruple))
            watch(f"δ_avg ≈ {np.mean(means):.3f}: {len(means)} of about {goal} batches")
        spread = float(np.std(means, ddof=1))
        half_width = float(t.ppf((1 + CONFIDENCE) / 2, len(means) - 1)) * spread / math.sqrt(len(means))
        if half_width > precision:
            goal = math.ceil(1.1 * len(means) * (half_width / precision) ** 2)
    worst.sort(key=lambda entry: -entry[0])
    watch("a lower bound of δ_worst")
    climbed = in_threads(lambda entry: climb(paths, entry[1]), worst[:CLIMBS])
    return Average(float(np.mean(means)), half_width, counts), max(climbed)


def _batch(paths: Paths, key: tuple[int, int]) -> tuple[Array, int, Array]:
    """A batch: how many quadruples have the gap 0, 1, 2, …; the largest gap, and a quadruple ``(4,)`` that has it."""
    rng = np.random.default_rng(key)
    sources = rng.choice(paths.num_nodes, SOURCES, replace=False)
    length = paths.lengths(sources).astype(np.int64)
    a, b, c = rng.integers(SOURCES, size=(3, QUADRUPLES))
    fourth = rng.integers(paths.num_nodes, size=QUADRUPLES)
    quadruples = np.stack([sources[a], sources[b], sources[c], fourth])
    ordered = np.sort(quadruples, axis=0)
    distinct = (ordered[1:] != ordered[:-1]).all(0)
    a, b, c, quadruples = a[distinct], b[distinct], c[distinct], quadruples[:, distinct]
    _, second, third, fourth = quadruples
    found = gaps(
        length[a, second] + length[c, fourth],
        length[a, third] + length[b, fourth],
        length[a, fourth] + length[b, third],
    )
    return np.bincount(found), int(found.max()), quadruples[:, found.argmax()]


def _mean(counts: Array) -> float:
    """Mean δ⁺ of quadruples counted by their gap."""
    return float(counts @ np.arange(len(counts)) / 2 / counts.sum())


def _padded(counts: Array, other: Array) -> Array:
    """Counts, with zeros where only the other ones go on."""
    return np.pad(counts, (0, max(0, len(other) - len(counts))))
