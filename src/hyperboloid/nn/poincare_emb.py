"""Poincaré embeddings (Nickel & Kiela, NeurIPS '17), kept in normal coordinates."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyperboloid.geometry import Curvature
from hyperboloid.kernels import Adjacency, pair_sqdist
from hyperboloid.kernels.adjacency import cached_adjacency
from hyperboloid.kernels.backend import chosen_backend

from .encoder import Sizes
from .riemannian_sgd import RiemannianSGD
from .settings import ModelSettings
from .shallow import ShallowEncoder

#: Edges of one step. Their gradients are added up, so the learning rate is that of a single edge.
BATCH = 4096
#: At a hub so many add up that it would be thrown about; together they weigh at most this much.
LARGEST_STEP = 1.0


class PoincareEmbedding(ShallowEncoder):
    r"""Points of hyperbolic space, a node nearer to its neighbours than to others.

    For every edge (i, j), in both directions, and k nodes n drawn from those that are not linked to i, minimise

    .. math::  -\log \frac{e^{-d(v_i, v_j)}}{e^{-d(v_i, v_j)} + \sum_n e^{-d(v_i, v_n)}}

    by Riemannian gradient descent, with a tenth of the learning rate in the first epochs (the burn-in, which settles
    the angles). The published algorithm keeps points of the Poincaré ball and pushes back those that leave it; normal
    coordinates describe the same points and reach everywhere. Edge weights are not looked at.

    Args:
        num_nodes: number of nodes N.
        dim: width d of the embeddings.
        num_classes: see :class:`ShallowEncoder`.
        negatives: k.
        burn_in: number of epochs of the burn-in.
        beta: β of the hyperboloid, which is not learned: all distances could grow with it.
    """

    curvature: Curvature

    def __init__(
        self,
        num_nodes: int,
        dim: int,
        num_classes: int | None = None,
        *,
        negatives: int = 10,
        burn_in: int = 5,
        beta: float = 1.0,
    ) -> None:
        super().__init__(num_nodes, dim, num_classes, curvature=Curvature(beta, trainable=False))
        self.negatives = negatives
        self.burn_in = burn_in
        self.reset_parameters()

    @classmethod
    def takes(cls) -> frozenset[str]:
        """Its own settings."""
        return frozenset({"dim", "beta", "negatives", "burn_in"})

    @classmethod
    def from_settings(cls, sizes: Sizes, settings: ModelSettings) -> PoincareEmbedding:
        """The model that a training run asks for."""
        return cls(
            sizes.nodes,
            settings.dim,
            sizes.classes,
            negatives=10 if settings.negatives is None else settings.negatives,
            burn_in=settings.burn_in,
            beta=settings.beta,
        )

    def reset_parameters(self) -> None:
        """Start again, close to the origin."""
        super().reset_parameters()
        nn.init.uniform_(self.table, -1e-3, 1e-3)

    def loss(self, points: Tensor, place: Tensor) -> Tensor:
        """The loss of each edge ``(B,)`` from points ``(N, d)`` and i, j and negatives among them ``(B, 2 + k)``."""
        pairs = torch.stack([place[:, :1].expand_as(place[:, 1:]), place[:, 1:]]).flatten(1)
        square = pair_sqdist(points, pairs, self.curvature().to(points.dtype))
        # where two points are one, the distance has no gradient
        score = -square.clamp_min(torch.finfo(square.dtype).tiny).sqrt().view(-1, place.size(1) - 1)
        return score.logsumexp(1) - score[:, 0]

    def train_epoch(
        self, edge_index: Tensor, edge_weight: Tensor | None = None, *, lr: float, seed: int, epoch: int, epochs: int
    ) -> float:
        """Every edge once in either direction; gives the loss per edge."""
        sampler = NonNeighbours(edge_index.cpu(), self.table.size(0))
        step = self._steps(lr / 10 if epoch <= self.burn_in else lr)
        generator = torch.Generator().manual_seed((seed << 32) + epoch)
        num_edges, total = sampler.edges.size(1), 0.0
        for batch in torch.randperm(num_edges, generator=generator).split(BATCH):
            edges = sampler.edges[:, batch]
            total += step(torch.cat([edges.T, sampler.sample(edges[0], self.negatives, generator)], dim=1))
        self.table.grad = None
        return total / max(num_edges, 1)

    def _steps(self, lr: float) -> Callable[[Tensor], float]:
        """A function that makes a step on edges with their negatives ``(B, 2 + k)`` and gives the sum of losses."""
        if chosen_backend(self.table) == "cpu" and self.table.dtype == torch.float32:
            from hyperboloid.kernels.poincare_step import PoincareSteps

            return PoincareSteps(self.table.detach(), float(self.curvature()), lr, LARGEST_STEP)
        optimizer = RiemannianSGD([self.table], lr, beta=self.curvature)

        def step(together: Tensor) -> float:
            nodes, place, count = together.to(self.table.device).unique(return_inverse=True, return_counts=True)
            rows = F.embedding(nodes, self.table, sparse=True)
            damping = (lr * count / LARGEST_STEP).clamp_min(1).unsqueeze(1)
            rows.register_hook(lambda grad: grad / damping)
            optimizer.zero_grad()
            loss = self.loss(rows, place).sum()
            loss.backward()
            optimizer.step()
            return float(loss.detach())

        return step


class NonNeighbours:
    """Draws nodes that are neither a given node nor its neighbours, each equally likely, without rejection.

    Args:
        edge_index: ``(2, E)`` the graph, each edge once in either direction.
        num_nodes: its nodes.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        adj: Adjacency = cached_adjacency(edge_index, (num_nodes, num_nodes), self_loops=True)
        #: ``(N,)`` how many nodes can be drawn for each
        self.count = num_nodes - adj.rowptr.diff()
        #: ``(2, E)`` the edges without self loops, and without those from nodes for which nothing can be drawn
        self.edges = adj.ends[:, (adj.row != adj.col) & (self.count[adj.row] > 0)]
        # to read the neighbours takes longer than to search them, so they are read in half the bytes
        self._rows = adj.rowptr.numpy(), adj.col.int().numpy()

    def sample(self, nodes: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """``(B, count)`` nodes drawn independently for each of ``nodes`` ``(B,)``, which all must have some."""
        from hyperboloid.kernels.poincare_step import others

        share = torch.rand(nodes.numel(), count, generator=generator, dtype=torch.float64)
        drawn = torch.empty_like(share, dtype=torch.long)
        others(nodes.numpy(), share.numpy(), *self._rows, drawn.numpy())
        return drawn
