"""Graph attention network (Veličković et al., ICLR '18); its values are those of PyG's ``GATConv``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from hyperboloid.kernels import Adjacency, additive_attention, dropout, weighted_sum

from .conv import check_probabilities
from .encoder import Network
from .features import DroppedFeatures, Features
from .flat import FlatConv, refuse_weights
from .graph_input import GraphInput

#: Slope of the LeakyReLU below 0.
SLOPE = 0.2


class GATLayer(FlatConv):
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
        **common: arguments of every :class:`FlatConv`, whose shapes hold too.
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
        super().__init__(in_channels, heads * width, self_loops=True, bias=out_channels if bias else None, **common)
        self.heads = heads
        self.concat = concat
        self.att_dropout = att_dropout
        self.att_src = nn.Parameter(torch.empty(heads, width))
        self.att_dst = nn.Parameter(torch.empty(heads, width))
        self._reset_attention()

    per_model = ("dropout", "att_dropout")
    attends = True

    def forward(  # type: ignore[override]  # PyG's convention: what is given back depends on what is asked for
        self,
        x: Features,
        edge_index: GraphInput,
        edge_weight: Tensor | None = None,
        *,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        """As every :class:`FlatConv`; with ``return_attention_weights=True`` also the edges and their weights.

        These are ``((2, E'), (E',))`` with self loops, by target and source, the mean over the heads.
        """
        if not return_attention_weights:
            return super().forward(x, edge_index, edge_weight)
        _, u, adj, weight = self.prepare(x, edge_index, edge_weight)
        refuse_weights(weight, "GAT")
        alpha = self._weights(u, adj)
        return self.shifted(self._attended(u, adj, alpha)), (adj.edge_index, alpha.mean(0))

    def convolve(self, x: DroppedFeatures, u: Tensor, adj: Adjacency, weight: Tensor | None) -> Tensor:
        """Attend to the neighbours."""
        refuse_weights(weight, "GAT")
        return self._attended(u, adj, self._weights(u, adj))

    def _weights(self, u: Tensor, adj: Adjacency) -> Tensor:
        """α of each head ``(heads, E)``."""
        found = []
        for own, source, target in zip(u.chunk(self.heads, 1), self.att_src, self.att_dst, strict=True):
            found.append(additive_attention(own @ target, own @ source, adj, slope=SLOPE))
        alpha = torch.stack(found) if self.heads > 1 else found[0].unsqueeze(0)  # one need not be copied
        return dropout(alpha.to(u.dtype), self.att_dropout, self.training)

    def _attended(self, u: Tensor, adj: Adjacency, alpha: Tensor) -> Tensor:
        """The heads' sums over neighbours, side by side or averaged."""
        if self.heads == 1:
            return weighted_sum(u, adj, alpha.squeeze(0))  # a gradient of chunks would be put together again
        sums = [weighted_sum(own, adj, a) for own, a in zip(u.chunk(self.heads, 1), alpha, strict=True)]
        return torch.cat(sums, 1) if self.concat else torch.stack(sums).mean(0)

    def reset_parameters(self) -> None:
        """Start again."""
        super().reset_parameters()
        self._reset_attention()

    def _reset_attention(self) -> None:
        glorot(self.att_src)
        glorot(self.att_dst)


class GAT(Network):
    """:class:`GATLayer` layers with activations in between."""

    conv = GATLayer
    layer_settings = ("heads", "bias", "dropout", "att_dropout", "drop_connect")
    hyperbolic = False
    edge_weights = False
