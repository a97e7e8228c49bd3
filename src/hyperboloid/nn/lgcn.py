"""Lorentzian graph convolution (Zhang et al., WWW '21), section 4 of the paper."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature
from hyperboloid.kernels import Adjacency, dropout, keep_mask, lorentz_aggregate, lorentz_attention

from .encoder import Encoder
from .features import Features, SparseFeatures
from .graph_input import GraphInput, resolve_graph
from .linear import TangentLinear
from .settings import ModelSettings

#: M_att starts this much smaller than Xavier: attention is then near uniform at first and learns from there. At full
#: size softmax(−d_L²) falls onto the self loop as soon as radii grow, and stays there.
ATTENTION_GAIN = 0.01


class LGCNConv(nn.Module):
    r"""One LGCN layer, without its activation.

    In normal coordinates v = log_0(x), where the Lorentzian version of a map is the map itself (Eq. 12):

    .. math::
        u &= v W^\top + b                                                              & \text{(Eq. 14)} \\
        a &= u M_{att}^\top                                                            & \\
        \mu_{ij} &= -d_L^2(\exp_0 a_i, \exp_0 a_j), \quad j \in N(i) \cup \{i\}        & \text{(Eq. 19)} \\
        v_i' &= \log_0 \mathrm{centroid}(\exp_0 u_j;\ e_{ij}\, \mathrm{softmax}_j\,\mu_{ij}) & \text{(Eq. 16, 20)}

    where :math:`e_{ij}` are given edge weights, or 1. Inputs and outputs are normal coordinates, so moving to the
    next layer's curvature (Eq. 11) is the identity and the activation (Eq. 21) is applied as it is. The bias b and the
    small start of :math:`M_{att}` are not in the paper.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        attention: learn the weights; False aggregates with equal (or the given) weights.
        att_dim: rows of :math:`M_{att}`; ``out_channels`` by default, as in the paper.
        beta: curvature −1/β of this layer to start from.
        train_beta: learn β.
        bias: add b.
        add_self_loops: let every node be its own neighbour; not done for bipartite graphs.
        dropout: probability of dropping an input feature.
        att_dropout: probability of dropping a neighbour (never the node itself) from the aggregation.
        drop_connect: probability of dropping an entry of W or :math:`M_{att}`.

    Shapes:
        - input: nodes ``(N, in_channels)`` or a pair ``(N_src, in_channels), (N_dst, in_channels)`` for a bipartite
          graph, sparse :class:`SparseFeatures`, or None for one-hot features; the graph as edge index ``(2, E)``,
          ``EdgeIndex``, torch.sparse ``adj_t`` or :class:`Adjacency`; edge weights ``(E,)``
        - output: ``(N, out_channels)``, with ``return_attention_weights=True`` also ``((2, E'), (E',))``: the edges
          with self loops, by target and source, and their weights, the given (non-negative) ones multiplied in
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        attention: bool = True,
        att_dim: int | None = None,
        beta: float = 1.0,
        train_beta: bool = True,
        bias: bool = True,
        add_self_loops: bool = True,
        dropout: float = 0.0,
        att_dropout: float = 0.0,
        drop_connect: float = 0.0,
    ) -> None:
        super().__init__()
        for name, p in (("dropout", dropout), ("att_dropout", att_dropout), ("drop_connect", drop_connect)):
            if not 0 <= p < 1:
                raise InputError(f"{name} must be at least 0 and below 1, not {p}.")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.add_self_loops = add_self_loops
        self.dropout = dropout
        self.att_dropout = att_dropout
        self.curvature = Curvature(beta, trainable=train_beta)
        self.lin = TangentLinear(in_channels, out_channels, bias=bias, drop_connect=drop_connect)
        self.att: TangentLinear | None = None
        if attention:
            self.att = TangentLinear(
                out_channels,
                out_channels if att_dim is None else att_dim,
                bias=False,
                gain=ATTENTION_GAIN,
                drop_connect=drop_connect,
            )

    def reset_parameters(self) -> None:
        """Start again: Xavier weights, zero bias, the β asked for."""
        self.curvature.reset_parameters()
        self.lin.reset_parameters()
        if self.att is not None:
            self.att.reset_parameters()

    def forward(
        self,
        x: Features | tuple[Features, Features],
        edge_index: GraphInput,
        edge_weight: Tensor | None = None,
        *,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        """Aggregate each node's neighbourhood; see the class for shapes."""
        if isinstance(x, tuple):
            if x[0] is None or x[1] is None:
                raise InputError("a bipartite graph needs the features of its source and of its target nodes.")
            u, u_target = (self.lin(self._drop(side)) for side in x)
        else:
            u = u_target = self.lin(self._drop(x))
        size, self_loops = (u.size(0), u_target.size(0)), self.add_self_loops and u_target is u
        adj, weight = resolve_graph(edge_index, edge_weight, size, self_loops=self_loops)

        beta = self.curvature().to(u.dtype)
        alpha = self._attention(u_target, u, adj, beta)
        if weight is not None:
            alpha = alpha * weight.to(alpha.dtype)
        out = lorentz_aggregate(u, adj, beta, alpha)
        return (out, (adj.edge_index, alpha)) if return_attention_weights else out

    def _drop(self, x: Features) -> Features:
        if isinstance(x, SparseFeatures):
            return x.dropout(self.dropout, self.training)
        return None if x is None else dropout(x, self.dropout, self.training)

    def _attention(self, u_target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor) -> Tensor:
        """Weights ``(E,)`` before the given ones; the centroid does not mind that dropout leaves sums below 1."""
        square = u_target is u
        keep = keep_mask(adj.row.shape, self.att_dropout, u.device) if self.training else None
        if keep is not None and square:
            keep = keep | (adj.row == adj.col)
        if self.att is None:
            ones = u.new_ones(adj.row.shape)
            return ones if keep is None else ones * keep
        key = self.att(u)
        query = key if square else self.att(u_target)
        return lorentz_attention(query, key, adj, beta, keep=keep)

    def extra_repr(self) -> str:
        """What distinguishes this layer beyond its parts."""
        return f"dropout={self.dropout}, att_dropout={self.att_dropout}"


class LGCN(Encoder):
    """The Lorentzian graph convolutional network: :class:`LGCNConv` layers with activations in between.

    Args:
        in_channels: width of the features; for a graph without features the number of its nodes.
        hidden_channels: width of the hidden layers.
        num_layers: number of layers.
        out_channels: width of the output; ``hidden_channels`` by default.
        activation: name of a torch activation (``relu``, ``elu``, …).
        last_activation: apply it after the last layer too, as the published code does for link prediction. With ReLU
            that confines all embeddings to one orthant, so it is off by default.
        beta: β of every layer and of the output to start from.
        train_beta: learn them.
        input_beta: the features are points ``(N, in_channels + 1)`` of H^{in_channels,β'} with this β' (section 4.1);
            None for Euclidean features.
        **layer: further arguments of :class:`LGCNConv`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        activation: str = "relu",
        last_activation: bool = False,
        beta: float = 1.0,
        train_beta: bool = True,
        input_beta: float | None = None,
        **layer: Any,
    ) -> None:
        if num_layers < 1:
            raise InputError(f"num_layers must be at least 1, not {num_layers}.")
        widths = (
            [in_channels]
            + [hidden_channels] * (num_layers - 1)
            + [hidden_channels if out_channels is None else out_channels]
        )
        super().__init__(
            [LGCNConv(k, d, beta=beta, train_beta=train_beta, **layer) for k, d in pairwise(widths)],
            activation=activation,
            last_activation=last_activation,
            curvature=Curvature(beta, trainable=train_beta),
            input_beta=input_beta,
        )

    @classmethod
    def from_settings(cls, in_channels: int, out_channels: int, settings: ModelSettings) -> LGCN:
        """The encoder that a training run asks for."""
        return cls(
            in_channels,
            settings.dim,
            settings.layers,
            out_channels,
            activation=settings.activation,
            last_activation=settings.last_activation,
            beta=settings.beta,
            train_beta=settings.train_beta,
            bias=settings.bias,
            attention=settings.attention,
            att_dim=settings.att_dim,
            dropout=settings.dropout,
            att_dropout=settings.att_dropout,
            drop_connect=settings.drop_connect,
        )
