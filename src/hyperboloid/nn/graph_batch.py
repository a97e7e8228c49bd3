"""A batch of small graphs as models of whole graphs take it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hyperboloid.kernels import Adjacency


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs side by side, their edges of several relations.

    A column of the adjacency is a (source node, relation) pair. Columns are sorted by relation, then source, and of
    most relations only pairs that some edge has are there, so that one aggregation serves all relations and hardly a
    message is computed in vain.

    Attributes:
        kind: ``(N,)`` kind of each node.
        x: ``(N, k)`` features of each node, or None.
        graph: ``(N,)`` the graph of each node, sorted.
        ptr: ``(B + 1,)`` where the nodes of each graph start.
        sources: for each of R relations the source nodes of its columns, or None where these are all nodes.
        columns: how many columns each relation has, R numbers that sum to P.
        adj: rows are nodes, columns are pairs.
    """

    kind: Tensor
    x: Tensor | None
    graph: Tensor
    ptr: Tensor
    sources: list[Tensor | None]
    columns: list[int]
    adj: Adjacency

    @property
    def num_graphs(self) -> int:
        """B."""
        return self.ptr.numel() - 1

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the nodes of each graph, ``(N, d)`` to ``(B, d)``."""
        return self._reduce(values, "mean")

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph, ``(N, d)`` to ``(B, d)``."""
        return self._reduce(values, "sum")

    def _reduce(self, values: Tensor, how: str) -> Tensor:
        return torch.segment_reduce(values, how, offsets=self.ptr, axis=0, unsafe=True)
