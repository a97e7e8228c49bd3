"""One graph in memory, whatever it was read from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with optional features, labels and edge weights.

    Attributes:
        name: what the user called it (``cora``), or the file's name with its ending, which no data set has.
        edge_index: ``(2, E)`` int64; each edge in both directions, sorted by (row, column), no self loops, no
            duplicates.
        num_nodes: ``N``; isolated nodes count.
        x: ``(N, k)`` float32 features, or None: the models then learn an embedding for each node.
        y: ``(N,)`` int64 class of each node, ``-1`` where unknown, or None.
        edge_weight: ``(E,)`` float32, positive, the same for both directions of an edge, or None for all ones.
        node_ids: the user's names of the nodes, or None when they are ``0 … N-1``.
        class_names: the user's names of the classes, or None when they are ``0 … C-1``.
        masks: splits that came with the data, by name (``public``, ``authors``; of several ``public 0``, ``public 1``,
            …): each maps ``train``, ``val`` and ``test`` to int64 node indices.
        one_way: edges that their source had in one direction only, where it distinguishes directions; they count in
            both like all others.
        self_loops: links of the source from a node to itself, which are left out.
        problems: why the source's labels (``y``) or splits (``masks``) cannot be used; told to who asks for them.
    """

    name: str
    edge_index: Tensor
    num_nodes: int
    x: Tensor | None = None
    y: Tensor | None = None
    edge_weight: Tensor | None = None
    node_ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    masks: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    one_way: int = 0
    self_loops: int = 0
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once."""
        return self.edge_index.size(1) // 2

    @property
    def num_features(self) -> int:
        """Columns of ``x``; 0 when there are none."""
        return 0 if self.x is None else self.x.size(1)

    @property
    def num_classes(self) -> int:
        """Classes that ``y`` may take; 0 when there are no labels."""
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.y is None or self.y.numel() == 0 else int(self.y.max()) + 1

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of everything a run depends on: edges, weights, features, labels, given splits."""
        digest = hashlib.sha256(str(self.num_nodes).encode())
        for name in ("edge_index", "edge_weight", "x", "y"):
            tensor = getattr(self, name)
            digest.update(name.encode())
            if tensor is not None:
                digest.update(str(tuple(tensor.shape)).encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        for mask, parts in sorted(self.masks.items()):
            for part, nodes in sorted(parts.items()):
                digest.update(f"{mask}.{part}".encode())
                digest.update(nodes.contiguous().numpy().tobytes())
        return digest.hexdigest()

    @property
    def notes(self) -> list[str]:
        """What was done to the links of the source, in sentences."""
        notes = []
        if self.one_way:
            notes.append(f"{self.one_way} of {self.num_edges} edges go one way in the source; here they go both ways.")
        if self.self_loops:
            notes.append(f"Self loops are left out; the source has {self.self_loops}.")
        return notes

    def id_of(self, node: int) -> str:
        """The user's name of a node."""
        return str(node) if self.node_ids is None else self.node_ids[node]

    def class_name(self, label: int) -> str:
        """The user's name of a class."""
        return str(label) if self.class_names is None else self.class_names[label]
