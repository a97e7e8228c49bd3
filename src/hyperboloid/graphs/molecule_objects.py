"""Small graphs from a collection of PyG ``Data`` objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyperboloid.errors import InputError

from .molecules import Array, MoleculeSet, smallest


def from_data_list(collection: Iterable[Any], name: str = "graphs") -> MoleculeSet:
    """Graphs with targets ``y`` from a PyG data set, or a list of its ``Data``.

    ``x`` may be the kind of each node (one column of whole numbers, or one-hot rows), or any features; ``edge_attr``,
    if it is there, the kind of each edge in the same ways. Edges are taken as undirected. All numbers of ``y`` are
    targets.

    Raises:
        InputError: a graph lacks something, or differs from the others in kind.
    """
    from torch_geometric.data import Data

    if isinstance(collection, Data):
        raise InputError("This Data is one graph: give a list of them, or a PyG data set.")
    graphs = list(collection)
    if not graphs:
        raise InputError("There are no graphs in this collection.")
    for k, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise InputError(f"Graph {k + 1} of this collection is a {type(graph).__name__}, not a PyG Data.")
    targets = [_target(graph, k) for k, graph in enumerate(graphs)]
    if len({len(y) for y in targets}) > 1:
        raise InputError("All graphs must have equally many numbers in y.")
    x, nodes, kinds = _kinds([_x(graph, k) for k, graph in enumerate(graphs)], "x")
    _, relations, bonds = _kinds([_edges(graph, k)[1] for k, graph in enumerate(graphs)], "edge_attr", features=False)
    num_atoms = np.array([graph.num_nodes for graph in graphs], dtype=np.int32)
    edges = [_edges(graph, k)[0] for k, graph in enumerate(graphs)]
    ends, bond, num_bonds = _undirected(edges, bonds)
    return MoleculeSet(
        name,
        tuple(f"node {k}" for k in nodes),
        tuple(f"edge {k}" for k in relations),
        num_atoms=num_atoms,
        num_bonds=num_bonds,
        atom=smallest(kinds, len(nodes)),
        bond=smallest(bond, len(relations)),
        ends=smallest(ends, int(num_atoms.max())),
        targets=np.stack(targets),
        target_names=tuple(f"y{k}" for k in range(len(targets[0]))) if len(targets[0]) > 1 else ("y",),
        lines=np.arange(1, len(graphs) + 1),
        x=x,
    )


def _target(graph: Any, k: int) -> Array:
    y = torch.as_tensor(graph.y if isinstance(graph.y, int | float | Tensor) else [], dtype=torch.float64)
    if y.numel() == 0 or not bool(torch.isfinite(y).all()):
        raise InputError(f"Graph {k + 1} has no finite numbers in y, which are to be predicted.")
    return y.detach().cpu().flatten().numpy()


def _x(graph: Any, k: int) -> Tensor:
    if not graph.num_nodes:
        raise InputError(f"Graph {k + 1} has no nodes.")
    return torch.zeros(graph.num_nodes, 1) if graph.x is None else _rows(graph.x)


def _edges(graph: Any, k: int) -> tuple[Array, Tensor]:
    edges, kind = graph.edge_index, graph.edge_attr
    if edges is None:
        raise InputError(f"Graph {k + 1} has no edge_index.")
    if edges.numel() and not (int(edges.min()) >= 0 and int(edges.max()) < graph.num_nodes):
        raise InputError(f"Graph {k + 1} has edges to nodes outside 0 to {graph.num_nodes - 1}.")
    if kind is not None and kind.size(0) != edges.size(1):
        raise InputError(f"Graph {k + 1} has {edges.size(1)} edges, but {kind.size(0)} rows in edge_attr.")
    return edges.cpu().numpy(), torch.zeros(edges.size(1), 1) if kind is None else _rows(kind)


def _rows(t: Tensor) -> Tensor:
    """A row for each node or edge."""
    return t.detach().cpu().unsqueeze(1) if t.dim() == 1 else t.detach().cpu().flatten(1)


def _kinds(tensors: list[Tensor], what: str, *, features: bool = True) -> tuple[Array | None, Array, Array]:
    """Features or None, the kinds there are, and which of them each row is; where rows are features all are of one."""
    given = [t for t in tensors if len(t)] or [torch.zeros(0, 1)]  # a graph without edges has no kinds of them
    if len({t.size(1) for t in given}) > 1:
        raise InputError(f"All graphs must have equally many columns in {what}.")
    rows = torch.cat(given)
    if rows.size(1) == 1 and bool((rows == rows.long()).all()) and bool((rows >= 0).all()):
        return None, *_numbered(rows.long().flatten())
    if bool(((rows == 0) | (rows == 1)).all()) and bool((rows.sum(1) == 1).all()):
        return None, *_numbered(rows.argmax(1))
    if not features:
        raise InputError(f"{what} must be the kind of each edge: whole numbers from 0, or one-hot rows.")
    if not bool(torch.isfinite(rows.double()).all()):
        raise InputError(f"{what} has numbers that are not finite.")
    return rows.float().numpy(), *_numbered(torch.zeros(len(rows), dtype=torch.long))


def _numbered(values: Tensor) -> tuple[Array, Array]:
    """The values that occur, at least one, and the place of each row's among them."""
    found, place = np.unique(values.numpy(), return_inverse=True)
    return found if len(found) else np.zeros(1, dtype=np.int64), place


def _undirected(edges: list[Array], kinds: Array) -> tuple[Array, Array, Array]:
    """Each edge once, without loops: ends ``(2, B)``, kinds ``(B,)``, and how many each graph has ``(G,)``."""
    owner = np.repeat(np.arange(len(edges)), [e.shape[1] for e in edges])
    a, b = np.concatenate(edges, axis=1).astype(np.int64)
    low, high = np.minimum(a, b), np.maximum(a, b)
    key = np.stack([owner, low, high, kinds], axis=1)[low != high]
    each = np.unique(key, axis=0)
    return each[:, 1:3].T, each[:, 3], np.bincount(each[:, 0], minlength=len(edges)).astype(np.int32)
