r"""The largest δ⁺ of a graph: exactly by looking at far-apart pairs, and from below by climbing.

With L ≥ M ≥ S the three sums of opposite distances of four nodes, δ⁺ = (L − M)/2 (the paper's appendix). Here the *gap*
L − M = 2δ⁺ is used, a whole number.

The exact search is that of Borassi, Coudert, Crescenzi and Marino (2015), built on Cohen, Coudert and Lancin (2015):

- δ of a graph is the largest δ of its biconnected components, each of which keeps its distances;
- some worst quadruple is made of two *far-apart* pairs, x and y being far-apart if no neighbour of one is farther from
  the other, with d(x, y) + d(v, w) = L;
- the gap is at most min(d(x, y), d(v, w)): pairs are taken by decreasing distance until none can do better;
- a pair (v, w) that came before (x, y) is looked at only if both v and w pass tests that cost O(1) each. Of their four
  tests two are made here: one follows from another, and eccentricities gain nothing on Cora, Pubmed or Amazon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .graph import Graph
from .paths import ROWS_AT_ONCE, Array, Paths, in_threads

#: Pairs that one piece of work looks at: some tenths of a second, so that Ctrl-C need not wait.
PAIRS_AT_ONCE = 4096
#: The exact search keeps all distances of a block: some gigabytes for this many nodes.
MOST_NODES = 20_000
#: It gives up where far-apart pairs times nodes pass this, which takes minutes; no block of 5,000 nodes gets there.
MOST_WORK = 10**11


def gaps(a: Any, b: Any, c: Any) -> Any:
    """The largest of three sums less the second largest, elementwise."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    return np.maximum(high, c) - np.maximum(low, np.minimum(high, c))


def climb(paths: Paths, quadruple: Array) -> int:
    """The gap of a quadruple ``(4,)`` after its nodes have been replaced one by one as long as that makes it larger.

    Each replacement is the best one in the whole graph: three searches are enough to know them all.
    """
    nodes = list(quadruple)
    rows = list(paths.lengths(quadruple).astype(np.int64))
    best, since = 0, 0
    while since < 4:
        nodes, rows = [*nodes[1:], nodes[0]], [*rows[1:], rows[0]]
        (_, b, c, _), (from_a, from_b, from_c, _) = nodes, rows
        found = gaps(from_a[b] + from_c, from_a[c] + from_b, from_b[c] + from_a)
        since += 1
        if found.max() > best:
            best, since = int(found.max()), 1
            nodes[3] = int(found.argmax())
            rows[3] = paths.lengths(np.array([nodes[3]]))[0].astype(np.int64)
    return best


def largest_gap(graph: Graph, nodes: Array, least: int, watch: Callable[[str], None]) -> tuple[int, bool]:
    """The largest gap of all quadruples of a component, and whether the search could afford to be complete.

    Args:
        graph: the graph.
        nodes: those of the component.
        least: a gap that is known to be reached; the larger, the less there is to search.
        watch: is told how it goes.
    """
    if len(nodes) > 10 * MOST_NODES:  # even to find the blocks would take long
        return least, False
    complete = True
    for block in _biconnected(graph, nodes):
        if len(block) > MOST_NODES:
            complete = False
        elif len(block) >= 4:
            least, done = _largest_in_block(Paths.of(graph, block), least, watch)
            complete &= done
    return least, complete


def _biconnected(graph: Graph, nodes: Array) -> list[Array]:
    """The biconnected components of a component, the largest first."""
    import networkx

    network = networkx.Graph()
    network.add_edges_from(graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist())
    parts = networkx.biconnected_components(network.subgraph(nodes.tolist()))
    return sorted((np.array(sorted(part)) for part in parts), key=len, reverse=True)


def _largest_in_block(paths: Paths, least: int, watch: Callable[[str], None]) -> tuple[int, bool]:
    """The largest gap of a block, if it is above ``least``; pairs are taken by decreasing distance."""
    length = paths.all_lengths()
    distance = int(length.max())
    if distance <= least:
        return least, True
    far, pairs = _far_apart(paths, length), np.empty((0, 2), np.int16)
    while distance > least:
        watch(f"δ_worst ≥ {least / 2:g}; far-apart pairs at distance {distance}")
        before = len(pairs)
        pairs = np.concatenate([pairs, np.argwhere(far & (length == distance)).astype(np.int16)])
        if len(pairs) * paths.num_nodes > MOST_WORK:
            return least, False
        least = _largest_of_pairs(length, pairs, before, least)
        distance -= 1
    return least, True


def _largest_of_pairs(length: Array, pairs: Array, before: int, least: int) -> int:
    """The largest gap, or ``least``, of pairs ``(P, 2)`` from the place ``before`` on, each with all before it."""
    centre = length.sum(1, dtype=np.int64).argmin()
    place, mate, rank = _mates(pairs, len(length))
    best = np.array([least])  # shared by the threads: whoever reads an older value only searches more

    def look(first: int) -> None:
        last = min(first + PAIRS_AT_ONCE, len(pairs))
        found = _search_pairs(length, length[centre], pairs, place, mate, rank, first, last, best[0])
        best[0] = max(best[0], found)

    for _ in in_threads(look, range(before, len(pairs), PAIRS_AT_ONCE)):
        pass
    return int(best[0])


def _far_apart(paths: Paths, length: Array) -> Array:
    """Whether x < y are far-apart, ``(N, N)``."""
    ends = np.empty(length.shape, np.bool_)

    def rows(start: int) -> None:
        part = slice(start, start + ROWS_AT_ONCE)
        _mark_ends(paths.rowptr, paths.col, length[part], ends[part])

    for _ in in_threads(rows, range(0, paths.num_nodes, ROWS_AT_ONCE)):
        pass
    return np.triu(ends & ends.T, 1)


def _mates(pairs: Array, num_nodes: int) -> tuple[Array, Array, Array]:
    """For each node, from ``place[v]`` on, the other ends of its pairs and the pairs' ranks, in ascending order."""
    order = np.argsort(pairs.ravel(), kind="stable")
    place = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(pairs.ravel(), minlength=num_nodes), out=place[1:])
    return place, pairs[:, ::-1].ravel()[order], (order // 2).astype(np.int32)


@njit(cache=True, nogil=True)
def _mark_ends(rowptr: Array, col: Array, length: Array, ends: Array) -> None:
    """Whether no neighbour of y is farther from x, ``(rows of x, N)``."""
    for x in range(length.shape[0]):
        for y in range(length.shape[1]):
            farther = False
            for e in range(rowptr[y], rowptr[y + 1]):
                farther |= length[x, col[e]] > length[x, y]
            ends[x, y] = not farther


@njit(cache=True, nogil=True)
def _search_pairs(
    length: Array, from_centre: Array, pairs: Array, place: Array, mate: Array, rank: Array,
    start: int, stop: int, best: int,
) -> int:  # fmt: skip
    """The largest gap above ``best`` of pairs start … stop − 1 with pairs of a smaller rank.

    For a quadruple x, y, v, w with L = d(x, y) + d(v, w) the triangle inequality bounds the gap by
    d(x, y) − |d(x, v) − d(y, v)|, likewise for w; and, for any node c, by f(v) + f(w) with
    f(v) = d(v, c) + (d(x, y) − d(x, v) − d(y, v))/2, so that one of v and w must have f above half of it.
    """
    n = length.shape[0]
    accepted = np.full(n, -1, np.int64)
    valuable = np.empty(n, np.int32)
    for i in range(start, stop):
        dx, dy = length[pairs[i, 0]], length[pairs[i, 1]]
        d = np.int64(dx[pairs[i, 1]])
        if d <= best:
            break
        count = 0
        for v in range(n):
            if place[v] == place[v + 1] or rank[place[v]] >= i:
                continue
            p, q = np.int64(dx[v]), np.int64(dy[v])
            if d - abs(p - q) <= best:
                continue
            accepted[v] = i
            if 2 * np.int64(from_centre[v]) + d - p - q > best:
                valuable[count] = v
                count += 1
        for k in range(count):
            v = valuable[k]
            for e in range(place[v], place[v + 1]):
                if rank[e] >= i:
                    break
                w = mate[e]
                if accepted[w] == i:
                    opposite = d + np.int64(length[v, w])
                    gap = opposite - max(np.int64(dx[v]) + dy[w], np.int64(dx[w]) + dy[v])
                    best = max(best, gap)
    return best
