"""How deep a node lies below the centre of its component."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .graph import Graph


def depths(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges between each node and the centre of its component ``(N,)``, and the centres ``(components,)``.

    The centre is the middle of a longest path: from the node with the most neighbours go to a farthest node a, from
    there to a farthest node b, and take the node halfway from a to b; of several the one with the most neighbours. In a
    tree that is the node of least eccentricity, whatever node one starts from; in other graphs it is near it, for three
    searches instead of N. An isolated node is its own centre.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components, dijkstra

    n = graph.num_nodes
    row, col = graph.edge_index.numpy()
    matrix = csr_matrix((np.ones(row.size, dtype=np.int8), (row, col)), shape=(n, n))
    count, component = connected_components(matrix, directed=False)
    degree = np.bincount(row, minlength=n)

    def away(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Edges to the nearest of ``nodes``, of which every component has one."""
        return dijkstra(matrix, indices=nodes, unweighted=True, min_only=True).astype(np.int64)

    def first(key: NDArray[np.int64], among: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The node of each component with the largest key, the first of several; ``among`` has some of each."""
        nodes = np.flatnonzero(among)
        order = nodes[np.lexsort((nodes, -key[nodes], component[nodes]))]
        return order[np.unique(component[order], return_index=True)[1]]

    everywhere = np.ones(n, dtype=bool)
    end = first(away(first(degree, everywhere)), everywhere)
    from_end = away(end)
    other = first(from_end, everywhere)
    length = from_end[other][component]  # of each node's component
    middle = (from_end == length // 2) & (from_end + away(other) == length)
    centres = first(degree, middle)
    assert centres.size == count
    return away(centres), centres
