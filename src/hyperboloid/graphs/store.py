"""A graph in one file that can be read without running anything: safetensors, features as sparse triples if smaller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError

from .graph import Graph


def graph_to_bytes(graph: Graph) -> bytes:
    """Serialise a graph."""
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {"edge_index": graph.edge_index}
    for name in ("y", "edge_weight"):
        tensor = getattr(graph, name)
        if tensor is not None:
            tensors[name] = tensor
    if graph.x is not None:
        places = graph.x.flatten().nonzero().squeeze(-1)
        if 3 * places.numel() < graph.x.numel():
            tensors |= {"x.places": places, "x.values": graph.x.flatten()[places]}
        else:
            tensors["x"] = graph.x
    for mask, parts in graph.masks.items():
        tensors |= {f"mask.{mask}.{part}": nodes for part, nodes in parts.items()}
    about = {
        "name": graph.name,
        "num_nodes": graph.num_nodes,
        "num_features": graph.num_features,
        "node_ids": None if graph.node_ids is None else list(graph.node_ids),
        "class_names": None if graph.class_names is None else list(graph.class_names),
    }
    return save({k: v.contiguous() for k, v in tensors.items()}, metadata={"graph": json.dumps(about)})


def read_stored_graph(path: Path) -> Graph:
    """Inverse of :func:`graph_to_bytes`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["graph"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
        return _assemble(about, tensors)
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} is not a stored graph: {error}.") from error


def _assemble(about: dict[str, Any], tensors: dict[str, Tensor]) -> Graph:
    x = tensors.get("x")
    if "x.places" in tensors:
        x = torch.zeros(about["num_nodes"] * about["num_features"], dtype=tensors["x.values"].dtype)
        x[tensors["x.places"]] = tensors["x.values"]
        x = x.view(about["num_nodes"], about["num_features"])
    masks: dict[str, dict[str, Tensor]] = {}
    for key, nodes in tensors.items():
        if key.startswith("mask."):
            _, mask, part = key.split(".")
            masks.setdefault(mask, {})[part] = nodes
    return Graph(
        about["name"],
        tensors["edge_index"],
        about["num_nodes"],
        x=x,
        y=tensors.get("y"),
        edge_weight=tensors.get("edge_weight"),
        node_ids=about["node_ids"],
        class_names=about["class_names"],
        masks=masks,
    )
