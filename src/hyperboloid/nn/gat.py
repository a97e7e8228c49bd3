"""Graph attention network (Veličković et al., ICLR '18), PyG's :class:`~torch_geometric.nn.GATConv`."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import GATConv

from hyperboloid.kernels import Adjacency, dropout

from .conv import check_probabilities
from .encoder import Network
from .features import Features
from .graph_input import GraphInput
from .pyg import PyGLayer, Through, refuse_weights


class _GATConv(GATConv):
    """PyG's, with attention dropout from the reproducible random stream."""

    att_dropout: float | Tensor = 0.0
    per_model = ("att_dropout",)

    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: Tensor | None,
        edge_attr: Tensor | None,
        index: Tensor,
        ptr: Tensor | None,
        dim_size: int | None,
    ) -> Tensor:
        alpha = super().edge_update(alpha_j, alpha_i, edge_attr, index, ptr, dim_size)
        return dropout(alpha, self.att_dropout, self.training)


class GATLayer(PyGLayer):
    r"""One layer :math:`\sum_j \alpha_{ij} W x_j + b`, without its activation.

    .. math::  \alpha_{ij} = \mathrm{softmax}_{j \in N(i) \cup \{i\}}\,
                             \mathrm{LeakyReLU}(a_t^\top W x_i + a_s^\top W x_j)

    It has no place for edge weights.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output, shared by the heads.
        heads: number of heads, whose outputs are concatenated; where they cannot share ``out_channels`` evenly, as a
            last layer with as many outputs as classes, every head has all of them and they are averaged.
        bias: add b.
        att_dropout: probability of dropping an attention weight.
        **common: arguments of every :class:`PyGLayer`, whose shapes hold too.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        bias: bool = True,
        att_dropout: float = 0.0,
        **common: Any,
    ) -> None:
        check_probabilities(att_dropout=att_dropout)
        concat = out_channels % heads == 0
        width = out_channels // heads if concat else out_channels
        conv = _GATConv(width, width, heads, concat=concat, add_self_loops=False, bias=bias)
        conv.lin, conv.att_dropout = Through(), att_dropout
        super().__init__(in_channels, heads * width, conv, self_loops=True, **common)

    attends = True

    def forward(  # type: ignore[override]  # PyG's convention: what is given back depends on what is asked for
        self,
        x: Features,
        edge_index: GraphInput,
        edge_weight: Tensor | None = None,
        *,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        """As every :class:`PyGLayer`; with ``return_attention_weights=True`` also the edges and their weights.

        These are ``((2, E'), (E',))`` with self loops, by target and source, the mean over the heads.
        """
        if not return_attention_weights:
            return super().forward(x, edge_index, edge_weight)
        _, u, adj, weight = self.prepare(x, edge_index, edge_weight)
        refuse_weights(weight, "GAT")
        out, (edges, alpha) = self.conv(u, adj.edge_index, return_attention_weights=True)
        return out, (edges, alpha.mean(-1))

    def convolve(self, x: Features, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Attend to the neighbours."""
        refuse_weights(weight, "GAT")
        out: Tensor = self.conv(u, adj.edge_index)
        return out


class GAT(Network):
    """:class:`GATLayer` layers with activations in between."""

    conv = GATLayer
    layer_settings = ("heads", "bias", "dropout", "att_dropout", "drop_connect")
    hyperbolic = False
    edge_weights = False
