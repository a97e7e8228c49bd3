"""The skeleton that all graph encoders share: layers, activations in between, and the space the output lives in."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature, Euclidean, Lorentz

from .features import Features
from .graph_input import GraphInput
from .settings import ModelSettings


class Encoder(nn.Module):
    """Convolutions stacked in normal coordinates.

    Args:
        convs: layers with the signature ``conv(x, edge_index, edge_weight)``.
        activation: name of a torch activation, applied between the layers.
        last_activation: apply it after the last layer too.
        curvature: β of the hyperboloid that the output lives on; None for Euclidean space.
        input_beta: the features are points ``(N, k+1)`` of H^{k,β'} with this β'; None for Euclidean features.
    """

    def __init__(
        self,
        convs: Sequence[nn.Module],
        *,
        activation: str,
        last_activation: bool = False,
        curvature: Curvature | None = None,
        input_beta: float | None = None,
    ) -> None:
        super().__init__()
        if not convs:
            raise InputError("an encoder needs at least one layer.")
        self.convs = nn.ModuleList(convs)
        self.activation = activation_resolver(activation)
        self.last_activation = last_activation
        self.curvature = curvature
        self.input_beta = input_beta

    @classmethod
    def from_settings(cls, in_channels: int, out_channels: int, settings: ModelSettings) -> Encoder:
        """The encoder that a training run asks for; each architecture picks what it has a use for."""
        raise NotImplementedError

    @property
    def manifold(self) -> Lorentz | Euclidean:
        """The space whose distance compares two embeddings."""
        return Euclidean() if self.curvature is None else Lorentz(self.curvature)

    def reset_parameters(self) -> None:
        """Start again."""
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]
        if self.curvature is not None:
            self.curvature.reset_parameters()

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Normal coordinates of the nodes ``(N, out_channels)``; for arguments see the layers."""
        if self.input_beta is not None:
            if not isinstance(x, Tensor):
                raise InputError("features on a hyperboloid must be a dense tensor of points.")
            x = Lorentz(self.input_beta).log0(x)
        v: Features = x
        for i, conv in enumerate(self.convs):
            v = conv(v, edge_index, edge_weight)
            if self.last_activation or i + 1 < len(self.convs):
                v = self.activation(v)
        assert isinstance(v, Tensor)
        return v
