"""What models of whole graphs have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hyperboloid.first_order import first_order
from hyperboloid.function import Function
from hyperboloid.kernels.sums import sum_aggregate

from .graph_batch import GraphBatch
from .settings import ModelSettings


@dataclass(frozen=True)
class GraphSizes:
    """What the data and the task ask of a model of whole graphs.

    Attributes:
        kinds: kinds of nodes, the virtual node's included.
        features: features of a node beside its kind.
        relations: kinds of edges, the virtual node's included.
        targets: numbers to predict.
    """

    kinds: int
    features: int
    relations: int
    targets: int


class GraphModel(nn.Module):
    """A batch of graphs in, ``(B, targets)`` numbers out."""

    #: whether its space has a curvature
    hyperbolic: ClassVar[bool] = False
    #: what it wants to be in the rows of a batch, see :func:`hyperboloid.graphs.packing.pack`
    self_loops: ClassVar[bool] = False
    virtual_node: ClassVar[bool] = False

    @classmethod
    def from_settings(cls, sizes: GraphSizes, settings: ModelSettings) -> GraphModel:
        """The model that a training run asks for."""
        raise NotImplementedError

    @classmethod
    def takes(cls) -> frozenset[str]:
        """Names in :class:`ModelSettings` that it has a use for."""
        return frozenset({"dim", "layers"})

    def forward(self, batch: GraphBatch) -> Tensor:
        """Predictions ``(B, targets)``."""
        raise NotImplementedError


class NodeEmbedding(nn.Module):
    """A vector for each kind of node, and a linear map of its features where it has some; no bias.

    Args:
        sizes: of the data.
        channels: width d.
    """

    def __init__(self, sizes: GraphSizes, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(sizes.kinds, channels))
        self.lin = nn.Linear(sizes.features, channels, bias=False) if sizes.features else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform."""
        nn.init.xavier_uniform_(self.weight)
        if self.lin is not None:
            nn.init.xavier_uniform_(self.lin.weight)

    def forward(self, batch: GraphBatch) -> Tensor:
        """``(N, channels)``; a product of matrices, whose gradient sums in the same order every time."""
        kinds = torch.arange(self.weight.size(0), device=batch.kind.device)
        out = (batch.kind.unsqueeze(1) == kinds).to(self.weight.dtype) @ self.weight
        return out if self.lin is None or batch.x is None else out + self.lin(batch.x)


class RelationalLinear(nn.Module):
    """One matrix for each relation: every (source, relation) pair of a batch becomes a message W_r x_j.

    Args:
        channels: width d of input and output.
        relations: R.
    """

    def __init__(self, channels: int, relations: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(relations, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform, each matrix by itself."""
        for matrix in self.weight:
            nn.init.xavier_uniform_(matrix)

    def forward(self, x: Tensor, batch: GraphBatch) -> Tensor:
        """Messages ``(P, d)`` of nodes ``(N, d)``."""
        return messages(x, self.weight, batch)


class _Messages(Function):
    """The products of all relations, written into one matrix, and their gradients summed without one more copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, batch: GraphBatch) -> Tensor:
        out = x.new_empty(batch.adj.num_cols, matrices.size(1))
        sent = [x if source is None else x.index_select(0, source) for source in batch.sources]
        for part, matrix, place in zip(sent, matrices, out.split(batch.columns), strict=True):
            torch.mm(part, matrix.mT, out=place)
        ctx.batch = batch
        ctx.save_for_backward(x, matrices, *sent)
        return out

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, matrices, *sent = ctx.saved_tensors
        to_x, to_matrices = torch.zeros_like(x), torch.empty_like(matrices)
        parts = zip(grad.split(ctx.batch.columns), ctx.batch.sources, sent, matrices, to_matrices, strict=True)
        for of_part, source, part, matrix, to_matrix in parts:
            torch.mm(of_part.mT, part, out=to_matrix)
            if source is None:
                to_x.addmm_(of_part, matrix)
            else:
                to_x.index_add_(0, source, of_part @ matrix)
        return to_x, to_matrices, None


def messages(x: Tensor, matrices: Tensor, batch: GraphBatch) -> Tensor:
    """W_r x_j ``(P, d)`` of every pair, for nodes ``(N, k)`` and matrices ``(R, d, k)``."""
    out: Tensor = _Messages.apply(x, matrices, batch)
    return out


def summed(x: Tensor, matrices: Tensor, batch: GraphBatch) -> Tensor:
    """Σ_r Σ_j W_r x_j over each node's neighbours, ``(N, k)`` to ``(N, d)``."""
    return sum_aggregate(messages(x, matrices, batch), batch.adj)
