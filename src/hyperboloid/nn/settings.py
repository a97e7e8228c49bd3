"""The choices that make up one model: everything a run may vary but the graph, the task and the optimiser."""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from dataclasses import dataclass, field
from typing import Any

from hyperboloid.errors import InputError

#: Probabilities that may differ between models trained as one program. A module that has some as attributes of its own
#: lists them as ``per_model``; in such a program they are tensors, one number for each model.
PER_MODEL = ("dropout", "att_dropout", "drop_connect")
#: Whole numbers are below this one, which is more than any memory holds.
LARGEST = 2**40


def ranged(default: Any, low: float, high: float = math.inf) -> Any:
    """A dataclass field whose number must lie in [low, high)."""
    return field(default=default, metadata={"low": low, "high": high})


def one_of(default: str | None, *names: str) -> Any:
    """A dataclass field whose value must be one of ``names``."""
    return field(default=default, metadata={"names": names})


@dataclass(frozen=True)
class ModelSettings:
    """Hyper-parameters of an encoder; a model that has no use for one ignores it.

    Attributes:
        dim: width of the hidden layers, and of the embeddings.
        layers: number of layers.
        activation: between the layers.
        last_activation: after the last layer too.
        attention: learn aggregation weights; None for what the model does by itself.
        mean: how a neighbourhood is averaged: ``centroid`` (Lorentzian), ``frechet``, ``tangent`` (at each node) or
            ``origin`` (in the tangent space of the origin); None for the model's own.
        normalization: of the sums over neighbours in ``gcn`` and ``kgcn``: ``symmetric`` (Kipf's) or ``rows`` (means).
        heads: of the attention of ``gat``; they share ``dim`` among them.
        att_dim: width of the attention features; None for the layer's own.
        att_cap: where LGCN's attention cuts squared distances off; None for nowhere, 1 as in its published code.
        beta: curvature −1/β to start from.
        train_beta: learn it.
        bias: add biases.
        dropout: on input features of each layer.
        att_dropout: on neighbours.
        drop_connect: on weights.
        walks: of ``deepwalk``, from every node in each epoch.
        walk_length: number of nodes of a walk.
        window: how far apart on a walk two nodes count as neighbours.
        negatives: random nodes that a shallow model compares each neighbour with; None for the model's own.
        burn_in: first epochs of ``poincare_emb``, with a tenth of the learning rate.
        geometry: of ``hgnn_l`` and its kin, see :mod:`hyperboloid.nn.hgnn`.
        centroids: of their read-out.
    """

    dim: int = ranged(16, 1)
    layers: int = ranged(2, 1)
    activation: str = one_of("relu", "relu", "elu", "leaky_relu", "tanh")
    last_activation: bool = False
    attention: bool | None = None
    mean: str | None = one_of(None, "centroid", "frechet", "tangent", "origin")
    normalization: str = one_of("symmetric", "symmetric", "rows")
    heads: int = ranged(1, 1)
    att_dim: int | None = ranged(None, 1)
    att_cap: float | None = ranged(None, 1e-3)
    beta: float = ranged(1.0, 1e-3, 1e3)
    train_beta: bool = True
    bias: bool = True
    dropout: float = ranged(0.0, 0.0, 1.0)
    att_dropout: float = ranged(0.0, 0.0, 1.0)
    drop_connect: float = ranged(0.0, 0.0, 1.0)
    walks: int = ranged(10, 1)
    walk_length: int = ranged(80, 2, 10_001)
    window: int = ranged(10, 1)
    negatives: int | None = ranged(None, 1)
    burn_in: int = ranged(5, 0)
    geometry: str = one_of("lorentz", "lorentz", "lorentz_scaled", "hyperboloid", "ball")
    centroids: int = ranged(20, 1)

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            object.__setattr__(self, f.name, _checked(f, value))


def _checked(f: dataclasses.Field[Any], value: Any) -> Any:
    """The value in its field's own type, or one sentence about what is wrong with it."""
    kind = str(f.type)
    if value is None and "None" in kind:
        return None
    if kind.startswith(("int", "float")):
        whole = kind.startswith("int")
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or (whole and value % 1 != 0):
            raise InputError(f"{f.name} must be a {'whole ' if whole else ''}number, not {value!r}.")
        low, high = f.metadata["low"], f.metadata["high"]
        if whole and math.isinf(high) and value >= LARGEST:
            high = LARGEST
        if not low <= value < high:
            limits = f"at least {low:g}" + ("" if math.isinf(high) else f" and below {high:.14g}")
            told = f"{value:g}" if abs(value) <= sys.float_info.max else "a number that large"
            raise InputError(f"{f.name} must be {limits}, not {told}.")
        return int(value) if whole else float(value)
    if kind.startswith("bool") and not isinstance(value, bool):
        raise InputError(f"{f.name} must be true or false, not {value!r}.")
    names = f.metadata.get("names")
    if names is not None and value not in names:
        raise InputError(f"{f.name} must be one of {', '.join(names)}, not {value!r}.")
    if kind.startswith("str") and not isinstance(value, str):
        raise InputError(f"{f.name} must be a name, not {value!r}.")
    return value
