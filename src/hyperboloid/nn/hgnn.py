r"""HGNN (Liu et al., NeurIPS '19) for properties of whole graphs, in three geometries; HGNN_L is the paper's.

.. math::  v_i' = \sigma\big(\mathrm{agg}_{r,\, j \in N_r(i)}\; W_r v_j\big), \qquad
           y = w^\top \Big(\tfrac{1}{n} \sum_i d_H(v_i, c_k)\Big)_k + b

in normal coordinates, with matrices of their own for every relation r and layer, all relations aggregated together. The
geometries differ in agg and σ:

- ``lorentz`` (HGNN_L): agg is one Lorentz centroid of all messages (Eq. 16), σ acts on normal coordinates (Eq. 21).
  Messages are drawn in, :math:`r \mapsto R \tanh(r/R)`. A centroid weighs points by cosh r, so that a message a few
  units farther out than the others is the centroid, and nothing pulls it back: at width 256 and learning rate 0.003
  radii grew to hundreds, gradients to thousands, and nothing was learned. (HGNN_H's σ draws points in, and the
  published code cuts them off at radius 1.)
- ``lorentz_scaled``: the same, but the centroid of n messages is stretched by √n: a mean forgets how many there were.
- ``hyperboloid`` (HGNN_H): agg is the sum in the tangent space of the origin, σ acts on the coordinates of the Poincaré
  ball, to which points are mapped and back.
- ``ball`` (HGNN_P): the same on the ball. Its tangent coordinates are half as large (λ_0 = 2, see :mod:`.ball`), and
  that is all: HGNN_P is HGNN_H with embeddings and centroids of twice the size, in exact arithmetic. The published
  codes differ by their faults: HGNN_P's logarithm divides by artanh where it should multiply; HGNN_H's exponential map
  cuts tangent vectors to length 1, and its way back from the ball leaves the hyperboloid by 1e-3. None of that is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature
from hyperboloid.geometry.pairwise import pairwise_dist
from hyperboloid.kernels import Adjacency, lorentz_aggregate
from hyperboloid.kernels.sums import sum_aggregate

from .ball_activation import ball_activation
from .graph_batch import GraphBatch
from .graph_model import GraphModel, GraphSizes, NodeEmbedding, RelationalLinear
from .settings import ModelSettings

#: of LeakyReLU, as published
SLOPE = 0.5
#: R of HGNN_L: no message is farther out, in normal coordinates over √β
REACH = 10.0


def drawn_in(u: Tensor, beta: Tensor) -> Tensor:
    """Points of radius r at R tanh(r/R), ``(P, d)``."""
    reach = REACH * beta.sqrt()
    share = torch.linalg.vector_norm(u, dim=-1, keepdim=True) / reach
    tiny = torch.finfo(u.dtype).tiny  # at the origin tanh(0)/0 is 1, and so is its like for any number this small
    return u * (share.tanh() / share.clamp_min(tiny)).where(share > tiny, 1.0)


def centroid(u: Tensor, adj: Adjacency, beta: Tensor) -> Tensor:
    """The Lorentz centroid of each row's messages, drawn in, all of equal weight."""
    return lorentz_aggregate(drawn_in(u, beta), adj, beta)


def scaled_centroid(u: Tensor, adj: Adjacency, beta: Tensor) -> Tensor:
    """√n ⊗ centroid: near the origin the sum of n messages over √n."""
    return adj.rowptr.diff().to(u.dtype).sqrt().unsqueeze(-1) * centroid(u, adj, beta)


def tangent_sum(u: Tensor, adj: Adjacency, beta: Tensor) -> Tensor:
    """exp_0(Σ log_0): in normal coordinates just the sum."""
    return sum_aggregate(u, adj)


def tangent_activation(v: Tensor, beta: Tensor) -> Tensor:
    """LeakyReLU of normal coordinates, σ^⊗ (Eq. 21)."""
    return F.leaky_relu(v, SLOPE)


def on_the_ball(v: Tensor, beta: Tensor) -> Tensor:
    """LeakyReLU of the coordinates of the Poincaré ball."""
    return ball_activation(v, beta, SLOPE)


@dataclass(frozen=True)
class Geometry:
    """What a layer does in one geometry, and how much longer normal coordinates are than its tangent vectors."""

    aggregate: Callable[[Tensor, Adjacency, Tensor], Tensor]
    activation: Callable[[Tensor, Tensor], Tensor]
    size: float = 1.0


GEOMETRIES = {
    "lorentz": Geometry(centroid, tangent_activation),
    "lorentz_scaled": Geometry(scaled_centroid, tangent_activation),
    "hyperboloid": Geometry(tangent_sum, on_the_ball),
    "ball": Geometry(tangent_sum, on_the_ball, size=2.0),
}


class HGNNConv(nn.Module):
    """One layer with its activation, in normal coordinates.

    Args:
        channels: width d.
        relations: kinds of edges R, each with a matrix of its own and no bias.
        geometry: one of :data:`GEOMETRIES`.
        beta: curvature −1/β.
        train_beta: learn β.

    Shapes:
        - input: nodes ``(N, d)``, the batch
        - output: ``(N, d)``
    """

    def __init__(
        self, channels: int, relations: int, *, geometry: str = "lorentz", beta: float = 1.0, train_beta: bool = False
    ) -> None:
        super().__init__()
        self.geometry = get_geometry(geometry)
        self.lin = RelationalLinear(channels, relations)
        self.curvature = Curvature(beta, trainable=train_beta)

    def reset_parameters(self) -> None:
        """Start again."""
        self.lin.reset_parameters()
        self.curvature.reset_parameters()

    def forward(self, v: Tensor, batch: GraphBatch) -> Tensor:
        """Aggregate all relations together; see the class for shapes."""
        beta = self.curvature().to(v.dtype)
        return self.geometry.activation(self.geometry.aggregate(self.lin(v, batch), batch.adj, beta), beta)


class CentroidReadout(nn.Module):
    """Distances of a graph's nodes to K learned points, averaged over its nodes, then a linear map.

    Args:
        channels: width d.
        centroids: K.
        targets: width of the output.
        size: normal coordinates of a centroid over its parameter.
        beta: curvature −1/β.
        train_beta: learn β.
    """

    def __init__(
        self, channels: int, centroids: int, targets: int, *, size: float, beta: float, train_beta: bool
    ) -> None:
        super().__init__()
        self.size = size
        self.centroids = nn.Parameter(torch.empty(centroids, channels))
        self.lin = nn.Linear(centroids, targets)
        self.curvature = Curvature(beta, trainable=train_beta)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform."""
        nn.init.xavier_uniform_(self.centroids)
        nn.init.xavier_uniform_(self.lin.weight)
        nn.init.zeros_(self.lin.bias)
        self.curvature.reset_parameters()

    def forward(self, v: Tensor, batch: GraphBatch) -> Tensor:
        """Nodes ``(N, d)`` to ``(B, targets)``."""
        distance = pairwise_dist(v, self.size * self.centroids, self.curvature())
        out: Tensor = self.lin(batch.mean(distance))
        return out


class HGNN(GraphModel):
    """The whole network: embedding, :class:`HGNNConv` layers, :class:`CentroidReadout`.

    Args:
        sizes: of data and task.
        channels: width d of all layers.
        num_layers: number of layers.
        geometry: one of :data:`GEOMETRIES`.
        centroids: of the read-out.
        beta: curvature −1/β; 1 and fixed, as published, unless said otherwise.
        train_beta: learn it, one for each layer and one for the read-out.
    """

    hyperbolic = True
    self_loops = virtual_node = True

    def __init__(
        self,
        sizes: GraphSizes,
        channels: int,
        num_layers: int = 4,
        *,
        geometry: str = "lorentz",
        centroids: int = 20,
        beta: float = 1.0,
        train_beta: bool = False,
    ) -> None:
        super().__init__()
        self.size = get_geometry(geometry).size
        self.embedding = NodeEmbedding(sizes, channels)
        self.convs = nn.ModuleList(
            HGNNConv(channels, sizes.relations, geometry=geometry, beta=beta, train_beta=train_beta)
            for _ in range(num_layers)
        )
        self.readout = CentroidReadout(
            channels, centroids, sizes.targets, size=self.size, beta=beta, train_beta=train_beta
        )

    @classmethod
    def takes(cls) -> frozenset[str]:
        """Its own settings."""
        return super().takes() | {"geometry", "centroids", "beta", "train_beta"}

    @classmethod
    def from_settings(cls, sizes: GraphSizes, settings: ModelSettings) -> HGNN:
        """The network that a training run asks for."""
        names = ("geometry", "centroids", "beta", "train_beta")
        return cls(sizes, settings.dim, settings.layers, **{name: getattr(settings, name) for name in names})

    def forward(self, batch: GraphBatch) -> Tensor:
        """Predictions ``(B, targets)``."""
        v = self.size * self.embedding(batch)
        for conv in self.convs:
            v = conv(v, batch)
        out: Tensor = self.readout(v, batch)
        return out


def get_geometry(name: str) -> Geometry:
    """The geometry called ``name``."""
    if name not in GEOMETRIES:
        raise InputError(f"There is no geometry '{name}'; choose one of: {', '.join(GEOMETRIES)}.")
    return GEOMETRIES[name]
