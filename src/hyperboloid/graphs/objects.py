"""Graphs that are already in memory: PyG ``Data`` and networkx graphs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs.build import build_graph, check_weights, dense_tensor, node_classes
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.ids import integer_values, node_ids, number_classes


def from_pyg(data: Any, name: str, weight: str | None) -> Graph:
    """A graph from PyG's ``Data``: its ``x``, ``y``, ``edge_weight`` (or the attribute ``weight``) and masks.

    ``train_mask``, ``val_mask`` and ``test_mask``, when all three are there, become ``masks["public"]``, or where they
    have a column for each of several splits ``masks["public 0"]``, ``masks["public 1"]``, …. They may be masks or lists
    of nodes. Labels and masks that cannot be used are left out, as links are learned without them, and ``problems``
    says why.
    """
    edges = _tensor(data, "edge_index")
    if edges is None or edges.dim() != 2 or edges.size(0) != 2:
        raise InputError("this PyG Data object has no edge_index of shape (2, E); give one")
    rows, cols = edges
    if weight is not None and weight not in data:
        raise InputError(f"this PyG Data object has no attribute '{weight}'; it has {', '.join(map(str, data.keys()))}")
    weights = _tensor(data, weight or "edge_weight")
    if weights is not None:
        weights = weights.squeeze(-1) if weights.dim() == 2 else weights
        if weights.shape != rows.shape:
            raise InputError(f"edge weights must be one per edge, these have shape {tuple(weights.shape)}")
        check_weights(weights.double().numpy(), lambda i: f"graph '{name}': edge ({int(rows[i])}, {int(cols[i])})")
    graph = build_graph(name, rows, cols, int(data.num_nodes), x=_tensor(data, "x"), weight=weights)
    return dataclasses.replace(graph, **_pyg_labels_and_masks(data, graph))


def _tensor(data: Any, key: str) -> Tensor | None:
    value = data.get(key)
    return None if value is None else dense_tensor(value, f"the {key} of this PyG Data object").detach().cpu()


def _pyg_labels_and_masks(data: Any, graph: Graph) -> dict[str, Any]:
    """The fields of the graph that only the classification of nodes asks for."""
    found: dict[str, Any] = {}
    problems = {}
    for key, read in (("y", _pyg_classes), ("masks", _pyg_masks)):
        try:
            found[key] = read(data, graph)
        except InputError as error:
            problems[key] = str(error)
    return {**found, "problems": problems}


def _pyg_classes(data: Any, graph: Graph) -> Tensor | None:
    y = _tensor(data, "y")
    if y is not None and y.dim() == 2 and y.size(1) == 1:
        y = y.squeeze(1)
    return None if y is None else node_classes(graph.name, y, graph.num_nodes)


def _pyg_masks(data: Any, graph: Graph) -> dict[str, dict[str, Tensor]]:
    masks = {part: mask for part in ("train", "val", "test") if (mask := _tensor(data, f"{part}_mask")) is not None}
    if len(masks) < 3:
        return {}
    parts = {part: _nodes_of(mask, f"{part}_mask", graph) for part, mask in masks.items()}
    counts = {len(nodes) for nodes in parts.values()} - {1}  # a flat mask belongs to all splits that the others have
    if len(counts) > 1:
        raise InputError(f"the masks of graph '{graph.name}' must have equally many columns, one for each split")
    splits = max(counts, default=1)
    names = [f"public {k}" for k in range(splits)] if splits > 1 else ["public"]
    # copies, as a run folder holds no tensor twice
    return {name: {part: at[k % len(at)].clone() for part, at in parts.items()} for k, name in enumerate(names)}


def _nodes_of(mask: Tensor, key: str, graph: Graph) -> list[Tensor]:
    """The nodes ``(V,)`` of one part, in each of the splits that a mask ``(N,)`` or ``(N, splits)`` has."""
    n = graph.num_nodes
    if mask.shape[:1] == (n,) and mask.dim() <= 2 and mask.numel() and bool(((mask == 0) | (mask == 1)).all()):
        return [column.nonzero().flatten() for column in mask.reshape(n, -1).unbind(1)]
    whole = mask.dim() == 1 and mask.dtype in (torch.int32, torch.int64)
    nodes = mask.unique().long()
    if not whole or len(nodes) < len(mask) or bool(((nodes < 0) | (nodes >= n)).any()):
        raise InputError(
            f"the {key} of graph '{graph.name}' has shape {tuple(mask.shape)} and is neither a mask of its {n} nodes, "
            "with a column for each split, nor a list of different nodes; correct it or leave it out"
        )
    return [nodes]


def from_networkx(network: Any, name: str, features: str | None, labels: str | None, weight: str | None) -> Graph:
    """A graph from networkx, in the order of its nodes (in numerical order when all ids are integers).

    Args:
        network: any networkx graph.
        name: what to call the graph.
        features: node attributes that hold numbers, separated by commas.
        labels: the node attribute that holds the class; nodes without it get -1.
        weight: the edge attribute that holds the weight.
    """
    import pyarrow as pa

    nodes = list(network)
    names = pa.array([str(node) for node in nodes], pa.string())
    if len(names.unique()) < len(nodes):
        raise InputError(f"graph '{name}' has two nodes that are written alike; give them different ids")
    values = integer_values(names)
    if values is not None:
        nodes = [nodes[i] for i in np.argsort(values)]
    number = {node: i for i, node in enumerate(nodes)}
    links = list(network.edges(data=weight) if weight else network.edges())
    rows = np.fromiter((number[link[0]] for link in links), np.int64, len(links))
    cols = np.fromiter((number[link[1]] for link in links), np.int64, len(links))
    y, class_names = (None, None) if labels is None else _node_classes(network, nodes, labels)
    return build_graph(
        name,
        rows,
        cols,
        len(nodes),
        x=None if features is None else _node_numbers(network, nodes, features),
        y=y,
        weight=None if weight is None else _edge_numbers(network, links, weight, name),
        node_ids=node_ids([str(node) for node in nodes]),
        class_names=class_names,
        directed=network.is_directed(),
    )


def _edge_numbers(network: Any, links: list[Any], weight: str, name: str) -> NDArray[np.float64]:
    if all(value is None for *_, value in links):
        known = sorted({str(key) for *_, data in network.edges(data=True) for key in data})
        raise InputError(f"no edge has an attribute '{weight}'; {_known(known, 'the edges')}")
    values = np.empty(len(links))
    for i, (u, v, value) in enumerate(links):
        values[i] = _number(value, f"graph '{name}': edge ('{u}', '{v}'): the weight")
    check_weights(values, lambda i: f"graph '{name}': edge ('{links[i][0]}', '{links[i][1]}')")
    return values


def _node_numbers(network: Any, nodes: list[Any], features: str) -> NDArray[np.float64]:
    columns = [key.strip() for key in features.split(",")]
    for key in columns:
        _check_attribute(network, key)
    x = np.empty((len(nodes), len(columns)))
    for i, node in enumerate(nodes):
        for j, key in enumerate(columns):
            x[i, j] = _number(network.nodes[node].get(key), f"node '{node}': the feature '{key}'")
            if not abs(x[i, j]) <= np.finfo(np.float32).max:
                raise InputError(f"node '{node}': the feature '{key}' is {x[i, j]}, not a finite number")
    return x


def _node_classes(network: Any, nodes: list[Any], labels: str) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    import pyarrow as pa

    _check_attribute(network, labels)
    found = [network.nodes[node].get(labels) for node in nodes]
    words = [None if value is None or value == "" else str(value) for value in found]
    return number_classes(pa.chunked_array([pa.array(words, pa.string())]))


def _check_attribute(network: Any, key: str) -> None:
    known = sorted({str(name) for _, data in network.nodes(data=True) for name in data})
    if key not in known:
        raise InputError(f"no node has an attribute '{key}' and no such file is there; {_known(known, 'the nodes')}")


def _known(names: list[str], owners: str) -> str:
    return f"{owners} have {', '.join(names)}" if names else f"{owners} have no attributes"


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is {value!r}, not a number") from error
