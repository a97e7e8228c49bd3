"""The skeleton that all graph encoders share: layers, activations in between, and the space the output lives in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature, Euclidean, Lorentz

from .decoders import Distance, FermiDirac
from .features import Features
from .graph_input import GraphInput
from .settings import ModelSettings


@dataclass(frozen=True)
class Sizes:
    """What the graph and the task ask of an encoder.

    Attributes:
        nodes: number of nodes.
        features: number of features of a node; None for a graph without.
        classes: number of classes, whose logits are the output; None where the output are the embeddings.
    """

    nodes: int
    features: int | None
    classes: int | None

    @property
    def in_channels(self) -> int:
        """Width of the input, one-hot where there are no features."""
        return self.nodes if self.features is None else self.features


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

    #: whether it can embed nodes it has not been trained on
    inductive: ClassVar[bool] = True
    #: whether its embeddings lie in hyperbolic space, and its layers have a curvature
    hyperbolic: ClassVar[bool] = True
    #: whether it has a use for edge weights, or at least no other use for edges than to ignore them
    edge_weights: ClassVar[bool] = True
    #: squared distances that its links may be decoded by
    distances: ClassVar[tuple[Distance, ...]] = ("intrinsic",)

    @classmethod
    def from_settings(cls, sizes: Sizes, settings: ModelSettings) -> Encoder:
        """The encoder that a training run asks for; each architecture picks what it has a use for."""
        raise NotImplementedError

    @classmethod
    def takes(cls) -> frozenset[str]:
        """Names in :class:`ModelSettings` that it has a use for."""
        raise NotImplementedError

    @property
    def manifold(self) -> Lorentz | Euclidean:
        """The space whose distance compares two embeddings."""
        return Euclidean() if self.curvature is None else Lorentz(self.curvature)

    def link_logits(self, u: Tensor, v: Tensor, distance: Distance) -> Tensor:
        """Logits ``(…)`` of links between embeddings ``(…, d)``, by the decoder that goes with their geometry."""
        out: Tensor = FermiDirac(distance)(u, v, self.manifold)
        return out

    def pair_logits(self, z: Tensor, pairs: Tensor, distance: Distance) -> Tensor:
        """The same for pairs ``(2, P)`` of embedded nodes ``(N, d)``: ``(P,)``."""
        return FermiDirac(distance).of_pairs(z, pairs, self.manifold)

    def reset_parameters(self) -> None:
        """Start again."""
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]
        if self.curvature is not None:
            self.curvature.reset_parameters()

    def forward(self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None) -> Tensor:
        """Normal coordinates of the nodes ``(N, out_channels)``; for arguments see the layers."""
        v = self._enter(x)
        for i, conv in enumerate(self.convs):
            v = self._activated(conv(v, edge_index, edge_weight), i)
        assert isinstance(v, Tensor)
        return v

    @property
    def attends(self) -> bool:
        """Whether its layers weigh neighbours by attention."""
        return all(getattr(conv, "attends", False) for conv in self.convs)

    def attention(
        self, x: Features, edge_index: GraphInput, edge_weight: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Edges ``(2, E')``, self loops among them, and their weights ``(E',)`` in each layer that :attr:`attends`."""
        found = []
        v = self._enter(x)
        for i, conv in enumerate(self.convs):
            out, weights = conv(v, edge_index, edge_weight, return_attention_weights=True)
            found.append(weights)
            v = self._activated(out, i)
        return found

    def _activated(self, v: Tensor, layer: int) -> Tensor:
        """The output of a layer as the next one takes it."""
        if not self.last_activation and layer + 1 == len(self.convs):
            return v
        out: Tensor = self.activation(v)
        return out

    def _enter(self, x: Features) -> Features:
        """The features as the first layer takes them."""
        if self.input_beta is None:
            return x
        if not isinstance(x, Tensor):
            raise InputError("features on a hyperboloid must be a dense tensor of points.")
        return Lorentz(self.input_beta).log0(x)


class Network(Encoder):
    """An architecture: layers of one kind. Subclasses name the layer and the settings it takes.

    Args:
        in_channels: width of the features; for a graph without features the number of its nodes.
        hidden_channels: width of the hidden layers.
        num_layers: number of layers.
        out_channels: width of the output; ``hidden_channels`` by default.
        activation: name of a torch activation (``relu``, ``elu``, …).
        last_activation: apply it after the last layer too, as published codes do for link prediction. With ReLU that
            confines all embeddings to one orthant, so it is off by default.
        beta: β of every layer and of the output to start from; hyperbolic networks only.
        train_beta: learn them.
        input_beta: the features are points ``(N, in_channels + 1)`` of H^{in_channels,β'} with this β' (section 4.1);
            None for Euclidean features.
        **layer: further arguments of the layers.
    """

    conv: ClassVar[Callable[..., nn.Module]]
    #: names in :class:`ModelSettings` that are arguments of the layer too
    layer_settings: ClassVar[tuple[str, ...]] = ("bias", "dropout", "drop_connect")

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
        hidden = [hidden_channels] * (num_layers - 1)
        widths = [in_channels, *hidden, hidden_channels if out_channels is None else out_channels]
        if self.hyperbolic:
            layer |= {"beta": beta, "train_beta": train_beta}
        super().__init__(
            [type(self).conv(k, d, **layer) for k, d in pairwise(widths)],
            activation=activation,
            last_activation=last_activation,
            curvature=Curvature(beta, trainable=train_beta) if self.hyperbolic else None,
            input_beta=input_beta,
        )

    @classmethod
    def takes(cls) -> frozenset[str]:
        """The network's own settings and its layers'."""
        own = {"dim", "layers", "activation", "last_activation", *cls.layer_settings}
        return frozenset(own | ({"beta", "train_beta"} if cls.hyperbolic else set()))

    @classmethod
    def from_settings(cls, sizes: Sizes, settings: ModelSettings) -> Network:
        """The network that a training run asks for; a setting left at None is the layer's own choice."""
        chosen = {name: getattr(settings, name) for name in cls.layer_settings}
        return cls(
            sizes.in_channels,
            settings.dim,
            settings.layers,
            settings.dim if sizes.classes is None else sizes.classes,
            activation=settings.activation,
            last_activation=settings.last_activation,
            beta=settings.beta,
            train_beta=settings.train_beta,
            **{name: value for name, value in chosen.items() if value is not None},
        )
