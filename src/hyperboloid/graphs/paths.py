"""Lengths of shortest paths, edges counted without weights: breadth-first searches, several at a time.

Searches run in Python's own threads over a compiled loop that gives up the interpreter's lock, not in numba's parallel
loops, for the reasons that `kernels/threads.py` gives; and Ctrl-C arrives between two pieces of work. How long a search
takes is not known before, as the work of the kernels' rows is, so that whoever is idle takes the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from .graph import Graph

Array = NDArray[Any]
Job = TypeVar("Job")
Result = TypeVar("Result")

#: Rows of distances that one piece of work computes.
ROWS_AT_ONCE = 64


def in_threads(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
    """Results of ``work`` in the order of the jobs, on as many threads as torch has."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        yield from pool.map(work, jobs)


@njit(cache=True, nogil=True)
def _search(rowptr: Array, col: Array, sources: Array, out: Array) -> None:
    """Fill ``out`` ``(K, N)``, a search for each source; −1 for nodes that it does not reach."""
    queue = np.empty(rowptr.shape[0] - 1, np.int32)
    out[:] = -1
    for k in range(sources.shape[0]):
        found = out[k]
        queue[0] = sources[k]
        found[sources[k]] = 0
        head, tail = 0, 1
        while head < tail:
            here = queue[head]
            head += 1
            for e in range(rowptr[here], rowptr[here + 1]):
                there = col[e]
                if found[there] < 0:
                    found[there] = found[here] + 1
                    queue[tail] = there
                    tail += 1


@dataclass(frozen=True, eq=False)
class Paths:
    """The shortest paths of an undirected graph.

    Attributes:
        rowptr: ``(N + 1,)`` where the neighbours of each node start in ``col``.
        col: ``(E,)`` int32 the neighbours.
    """

    rowptr: Array
    col: Array

    @classmethod
    def of(cls, graph: Graph, nodes: Array | None = None) -> Paths:
        """Those of a graph, or of the subgraph that some nodes span, which are then numbered in the order given."""
        row, col = graph.edge_index.numpy()
        count = graph.num_nodes
        if nodes is not None:
            number = np.full(count, -1)
            number[nodes] = np.arange(len(nodes))
            inside = (number[row] >= 0) & (number[col] >= 0)
            row, col, count = number[row[inside]], number[col[inside]], len(nodes)
            order = np.argsort(row, kind="stable")
            row, col = row[order], col[order]
        rowptr = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=count), out=rowptr[1:])
        return cls(rowptr, col.astype(np.int32))

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return len(self.rowptr) - 1

    @property
    def dtype(self) -> type[np.signedinteger[Any]]:
        """The smallest integers that hold every length."""
        return np.int16 if self.num_nodes <= np.iinfo(np.int16).max else np.int32

    def lengths(self, sources: Array) -> Array:
        """Lengths ``(K, N)`` of the shortest paths from some nodes to all, by this thread alone; −1 for none."""
        out = np.empty((len(sources), self.num_nodes), self.dtype)
        _search(self.rowptr, self.col, np.asarray(sources, np.int64), out)
        return out

    def all_lengths(self, sources: Array | None = None) -> Array:
        """The same on all cores, by default from every node."""
        sources = np.arange(self.num_nodes) if sources is None else np.asarray(sources, np.int64)
        out = np.empty((len(sources), self.num_nodes), self.dtype)

        def rows(start: int) -> None:
            part = slice(start, start + ROWS_AT_ONCE)
            _search(self.rowptr, self.col, sources[part], out[part])

        for _ in in_threads(rows, range(0, len(sources), ROWS_AT_ONCE)):
            pass
        return out

    @cached_property
    def diameter(self) -> int:
        """The longest shortest path of a connected graph, by bounds on eccentricities (Takes & Kosters 2011).

        A search from v with eccentricity e says that a node at distance d has one between max(d, e − d) and e + d.
        Nodes that cannot beat the longest path known are left out; a few dozen searches are usual.
        """
        lower, upper = np.zeros(self.num_nodes, np.int64), np.full(self.num_nodes, self.num_nodes)
        degree, high = np.diff(self.rowptr), True
        longest = 0
        while (left := np.flatnonzero(upper > longest)).size:
            bound = upper[left] if high else -lower[left]
            ties = left[bound == bound.max()]
            node = ties[degree[ties].argmax()]
            high = not high
            away = self.lengths(np.array([node]))[0].astype(np.int64)
            farthest = int(away.max())
            lower = np.maximum(lower, np.maximum(away, farthest - away))
            upper = np.minimum(upper, farthest + away)
            upper[node] = farthest
            longest = max(longest, farthest)
        return longest


def largest_component(graph: Graph) -> tuple[Array, int]:
    """Nodes of the largest component in ascending order (the first of several), and how many components there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    row, col = graph.edge_index.numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    count, component = connected_components(coo_array((np.ones(len(row), np.int8), (row, col)), shape=shape))
    return np.flatnonzero(component == np.bincount(component).argmax()), int(count)
