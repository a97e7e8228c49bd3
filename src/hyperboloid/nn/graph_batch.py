"""A batch of small graphs as models of whole graphs take it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hyperboloid.kernels import Adjacency


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs side by side, their edges of several relations.

    A column of the adjacency is a (source node, relation) pair. Columns are sorted by relation, and only pairs that
    some edge has are there, so that one aggregation serves all relations and no message is computed in vain.

    Attributes:
        kind: ``(N,)`` kind of each node.
        x: ``(N, k)`` features of each node, or None.
        graph: ``(N,)`` the graph of each node, sorted.
        num_graphs: B.
        source: ``(P,)`` source node of each column.
        columns: columns of each relation, R numbers that sum to P.
        adj: rows are nodes, columns are pairs.
    """

    kind: Tensor
    x: Tensor | None
    graph: Tensor
    num_graphs: int
    source: Tensor
    columns: list[int]
    adj: Adjacency

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the nodes of each graph, ``(N, d)`` to ``(B, d)``."""
        size = torch.bincount(self.graph, minlength=self.num_graphs).clamp_min(1)
        return self.sum(values) / size.unsqueeze(-1)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the nodes of each graph, ``(N, d)`` to ``(B, d)``."""
        return values.new_zeros(self.num_graphs, values.size(-1)).index_add(0, self.graph, values)
