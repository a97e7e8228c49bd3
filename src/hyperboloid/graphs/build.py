"""From raw pairs of nodes to a clean :class:`Graph`; every reader and generator ends here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs.graph import UNLABELLED, Graph


def build_graph(
    name: str,
    rows: ArrayLike | Tensor,
    cols: ArrayLike | Tensor,
    num_nodes: int,
    *,
    x: ArrayLike | Tensor | None = None,
    y: ArrayLike | Tensor | None = None,
    weight: ArrayLike | Tensor | None = None,
    node_ids: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    masks: dict[str, dict[str, Tensor]] | None = None,
    directed: bool = False,
) -> Graph:
    """An undirected graph from a list of links, in any order and direction.

    Self loops go, and the two directions and any repetitions of an edge become one edge, which keeps the
    largest of their weights. Links of which some come in both directions and others in one are taken for directed;
    where all come once, nobody can tell.

    Args:
        name: what to call the graph.
        rows: ``(M,)`` first end of each link, ``0 … N-1``.
        cols: ``(M,)`` second end of each link.
        num_nodes: ``N``.
        x: ``(N, k)`` finite features.
        y: ``(N,)`` integer classes, ``-1`` for unknown.
        weight: ``(M,)`` positive finite weight of each link.
        node_ids: ``N`` names of the nodes.
        class_names: names of the classes.
        masks: splits that come with the data.
        directed: the source says that its links are directed.

    Raises:
        InputError: no edge is left, an end is out of range, shapes do not match, a feature is not finite or a
            weight is not positive and finite.
    """
    ends = np.stack([_integers(name, rows), _integers(name, cols)])
    if ends.size and (ends.min() < 0 or ends.max() >= num_nodes):
        raise InputError(
            f"graph '{name}' has {num_nodes} nodes but an edge to node {_stray(ends, num_nodes)}; "
            "number the nodes from 0 or give more nodes"
        )
    weights = None if weight is None else _weights(name, weight, ends.shape[1])
    edge_index, edge_weight, one_way = _undirected(name, ends, weights, num_nodes)
    if one_way == edge_index.size(1) // 2 and not directed:
        one_way = 0
    return Graph(
        name=name,
        edge_index=edge_index,
        num_nodes=int(num_nodes),
        x=None if x is None else _features(name, x, num_nodes),
        y=None if y is None else node_classes(name, y, num_nodes),
        edge_weight=edge_weight,
        node_ids=node_ids,
        class_names=class_names,
        masks={} if masks is None else masks,
        one_way=one_way,
        self_loops=int((ends[0] == ends[1]).sum()),
    )


def _undirected(
    name: str, ends: NDArray[np.int64], weights: NDArray[np.float32] | None, num_nodes: int
) -> tuple[Tensor, Tensor | None, int]:
    """Both directions of each edge once, sorted by (row, column), the largest weight of its copies, and how many edges
    were there in one direction only."""
    proper = ends[0] != ends[1]
    low, high = ends.min(axis=0)[proper], ends.max(axis=0)[proper]
    if low.size == 0:
        raise InputError(f"graph '{name}' has no edges between two different nodes; give a graph with at least one")
    # One int64 per edge sorts much faster than pairs do.
    key = low * num_nodes + high
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    key = key[first]
    both = np.concatenate([key, (key % num_nodes) * num_nodes + key // num_nodes])
    sort = np.argsort(both, kind="stable")
    both = both[sort]
    edge_index = torch.from_numpy(np.stack([both // num_nodes, both % num_nodes]))
    rising = (ends[0] < ends[1])[proper][order]
    one_way = int((np.logical_and.reduceat(rising, first) | ~np.logical_or.reduceat(rising, first)).sum())
    if weights is None:
        return edge_index, None, one_way
    largest = np.maximum.reduceat(weights[proper][order], first)
    return edge_index, torch.from_numpy(np.concatenate([largest, largest])[sort]), one_way


def _integers(name: str, values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"graph '{name}': the ends of the edges must be two flat lists of integers")
    return array.astype(np.int64)


def _stray(ends: NDArray[np.int64], num_nodes: int) -> int:
    """The first end that is no node."""
    flat = ends.T.ravel()
    return int(flat[(flat < 0) | (flat >= num_nodes)][0])


def check_weights(values: NDArray[np.floating[Any]], where: Callable[[int], str]) -> None:
    """Raise an :class:`InputError` that says ``where`` the first weight is that is not positive and finite."""
    # Judged in float32: 1e-60 is positive but would be stored as 0.
    with np.errstate(over="ignore", under="ignore"):
        stored = values.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(stored) & (stored > 0)))
    if bad.size:
        raise InputError(f"{where(int(bad[0]))}: the weight is {values[bad[0]]}, not a positive finite float32 number")


def _weights(name: str, weight: Any, num_links: int) -> NDArray[np.float32]:
    array = np.asarray(weight)
    if array.shape != (num_links,):
        raise InputError(f"graph '{name}' has {num_links} links but weights of shape {array.shape}")
    check_weights(array, lambda i: f"graph '{name}': link {i}")
    return array.astype(np.float32)


def dense_tensor(values: Any, what: str) -> Tensor:
    """Numbers of any kind as a dense tensor; ``what`` they are, should they be none."""
    try:
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{what} must be a tensor or an array of numbers; this {type(values).__name__} is none"
        ) from error
    # PyG's EdgeIndex is an edge list that would call itself sparse
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def _features(name: str, x: Any, num_nodes: int) -> Tensor:
    tensor = dense_tensor(x, f"graph '{name}': the features").to(torch.float32).contiguous()
    if tensor.dim() != 2 or tensor.size(0) != num_nodes or tensor.size(1) == 0:
        raise InputError(
            f"graph '{name}' has {num_nodes} nodes but features of shape {tuple(tensor.shape)}; "
            "give one row of at least one number for each node"
        )
    if not bool(torch.isfinite(tensor).all()):
        row, column = (~torch.isfinite(tensor)).nonzero()[0].tolist()
        raise InputError(
            f"graph '{name}': feature {column} of node {row} is not a finite float32 number; replace missing values"
        )
    return tensor


def node_classes(name: str, y: Any, num_nodes: int) -> Tensor:
    """Labels ``(N,)`` as int64 classes; an :class:`InputError` says why they cannot be."""
    tensor = dense_tensor(y, f"graph '{name}': the labels")
    if tensor.shape != (num_nodes,):
        raise InputError(
            f"graph '{name}' has {num_nodes} nodes but labels of shape {tuple(tensor.shape)}; "
            "give one class for each node"
        )
    if tensor.is_floating_point() and not bool((tensor == tensor.round()).all()):
        raise InputError(f"graph '{name}': labels must be whole numbers, one class for each node")
    tensor = tensor.to(torch.int64)
    if bool((tensor < UNLABELLED).any()):
        raise InputError(f"graph '{name}': labels must be 0, 1, … or {UNLABELLED} where unknown")
    return tensor
