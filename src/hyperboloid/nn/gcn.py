"""Graph convolutional network (Kipf & Welling, ICLR '17), PyG's :class:`~torch_geometric.nn.GCNConv`."""

from __future__ import annotations

from typing import Any

from torch_geometric.nn import GCNConv

from .encoder import Network
from .pyg import PyGLayer, Through


class GCNLayer(PyGLayer):
    r"""One layer :math:`\tilde D^{-1/2} (A + I) \tilde D^{-1/2} X W + b`, without its activation.

    Args:
        in_channels: width of the input; for a graph without features the number of its nodes.
        out_channels: width of the output.
        bias: add b.
        **common: arguments of every :class:`PyGLayer`, whose shapes hold too.
    """

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True, **common: Any) -> None:
        conv = GCNConv(out_channels, out_channels, add_self_loops=False, bias=bias)
        conv.lin = Through()
        super().__init__(in_channels, out_channels, conv, self_loops=True, **common)


class GCN(Network):
    """:class:`GCNLayer` layers with activations in between."""

    conv = GCNLayer
    hyperbolic = False
