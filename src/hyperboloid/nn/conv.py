"""The skeleton that convolutions on hyperbolic space share: a linear map, the neighbours' weights, their mean."""

from __future__ import annotations

from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature
from hyperboloid.kernels import Adjacency, keep_mask

from .features import DroppedFeatures, Features, drop_features
from .graph_input import GraphInput, resolve_graph
from .means import get_mean


class HyperbolicConv(nn.Module):
    r"""One layer, without its activation: :math:`v_i' = \mathrm{mean}_j(u_j; w_{ij})` with u the transformed nodes.

    A layer is this class with its own :meth:`transform` and, where it has attention, :meth:`weights`. Inputs and
    outputs are normal coordinates.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width d of the output.
        mean: how neighbours are averaged, a name from :mod:`hyperboloid.nn.means`.
        beta: curvature −1/β of this layer to start from.
        train_beta: learn β.
        add_self_loops: let every node be its own neighbour; not done for bipartite graphs.
        dropout: probability of dropping an input feature.
        att_dropout: probability of dropping a neighbour (never the node itself) from the aggregation.

    Shapes:
        - input: nodes ``(N, in_channels)`` or a pair ``(N_src, in_channels), (N_dst, in_channels)`` for a bipartite
          graph, sparse :class:`SparseFeatures`, or None for one-hot features; the graph as edge index ``(2, E)``,
          ``EdgeIndex``, torch.sparse ``adj_t`` or :class:`Adjacency`; edge weights ``(E,)``
        - output: ``(N, out_channels)``, with ``return_attention_weights=True`` also ``((2, E'), (E',))``: the edges
          with self loops, by target and source, and their weights, the given (non-negative) ones multiplied in
    """

    per_model = ("dropout", "att_dropout")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        mean: str,
        beta: float = 1.0,
        train_beta: bool = True,
        add_self_loops: bool = True,
        dropout: float = 0.0,
        att_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_probabilities(dropout=dropout, att_dropout=att_dropout)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.mean = mean
        self._mean = get_mean(mean)
        self.add_self_loops = add_self_loops
        self.dropout = dropout
        self.att_dropout = att_dropout
        self.curvature = Curvature(beta, trainable=train_beta)

    @property
    def attends(self) -> bool:
        """Whether the weights of the neighbours depend on the nodes."""
        return False

    def reset_parameters(self) -> None:
        """Start again: initial weights, the β asked for."""
        for part in self.children():
            part.reset_parameters()  # type: ignore[operator]

    def transform(self, x: DroppedFeatures, beta: Tensor) -> Tensor:
        """Features of nodes ``(N, in_channels)`` to normal coordinates ``(N, out_channels)``.

        What dropout leaves of them may be sparse, or not thinned out yet: :class:`TangentLinear` takes it as it is.
        """
        raise NotImplementedError

    def weights(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None) -> Tensor:
        """Weight ``(E,)`` of each neighbour before the given edge weights; here all equal, and 0 for those not kept.

        Args:
            target: transformed nodes of the rows ``(num_rows, d)``.
            u: transformed nodes of the columns ``(num_cols, d)``.
            adj: the graph.
            beta: scalar.
            keep: which entries dropout keeps ``(E,)``; None for all.
        """
        return adj.ones(u) if keep is None else adj.ones(u) * keep

    def aggregate(self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
        """Mean of each row's neighbours ``(num_rows, d)``."""
        return self._mean(target, u, adj, beta, weight)

    def attend(
        self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, given: Tensor | None
    ) -> Tensor:
        """Mean of each row's neighbours ``(num_rows, d)``, weighted by :meth:`weights` times the given ones.

        A layer whose attention and mean are one operation overrides this.

        Args:
            target, u, adj, beta, keep: as :meth:`weights` has them.
            given: edge weights ``(E,)``, or None.
        """
        return self.aggregate(target, u, adj, beta, self._weighted(target, u, adj, beta, keep, given))

    def _weighted(
        self, target: Tensor, u: Tensor, adj: Adjacency, beta: Tensor, keep: Tensor | None, given: Tensor | None
    ) -> Tensor:
        weight = self.weights(target, u, adj, beta, keep)
        return weight if given is None else weight * given

    def forward(
        self,
        x: Features | tuple[Features, Features],
        edge_index: GraphInput,
        edge_weight: Tensor | None = None,
        *,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        """Aggregate each node's neighbourhood; see the class for shapes."""
        beta = self.curvature()
        if isinstance(x, (tuple, list)):
            if x[0] is None or x[1] is None:
                raise InputError("a bipartite graph needs the features of its source and of its target nodes.")
            u, target = (self._transformed(side, beta) for side in x)
        else:
            u = target = self._transformed(x, beta)
        if u.dim() != 2 or target.dim() != 2:
            raise InputError(f"features must be (N, {self.in_channels}), a row for each node.")
        square = target is u
        size, self_loops = (u.size(0), target.size(0)), self.add_self_loops and square
        adj, given = resolve_graph(edge_index, edge_weight, size, self_loops=self_loops)

        beta = beta.to(u.dtype)
        keep = keep_mask(adj.row.shape, self.att_dropout, u.device) if self.training else None
        if keep is not None and square:
            keep = keep | (adj.row == adj.col)
        given = None if given is None else given.to(u.dtype)
        if not return_attention_weights:
            return self.attend(target, u, adj, beta, keep, given)
        weight = self._weighted(target, u, adj, beta, keep, given)
        return self.aggregate(target, u, adj, beta, weight), (adj.edge_index, weight)

    def _transformed(self, x: Features, beta: Tensor) -> Tensor:
        return self.transform(drop_features(x, self.dropout, self.training, beta, self.in_channels), beta)

    def extra_repr(self) -> str:
        """What distinguishes this layer beyond its parts."""
        return f"mean={self.mean!r}, dropout={self.dropout}, att_dropout={self.att_dropout}"


def check_probabilities(**given: float) -> None:
    """Refuse dropout probabilities outside [0, 1)."""
    for name, p in given.items():
        if not 0 <= p < 1:
            raise InputError(f"{name} must be at least 0 and below 1, not {p}.")
