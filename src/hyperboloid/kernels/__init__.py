"""The sparse operations behind the layers: neighbourhoods, Lorentzian attention and aggregation, random masks."""

from .adjacency import Adjacency, cached_adjacency
from .backend import use_backend
from .dispatch import (
    additive_attention,
    frechet_aggregate,
    lorentz_aggregate,
    lorentz_attention,
    pair_sqdist,
    row_normalize,
    row_softmax,
    tangent_aggregate,
    weighted_sum,
)
from .dropped import DroppedRows, late_dropout
from .edge_loss import edge_loss
from .linear import linear
from .random import Key, dropout, fold, keep_mask, random_numbers, random_stream
from .reference import row_sum

__all__ = [
    "Adjacency",
    "DroppedRows",
    "Key",
    "additive_attention",
    "cached_adjacency",
    "dropout",
    "edge_loss",
    "fold",
    "frechet_aggregate",
    "keep_mask",
    "late_dropout",
    "linear",
    "lorentz_aggregate",
    "lorentz_attention",
    "pair_sqdist",
    "random_numbers",
    "random_stream",
    "row_normalize",
    "row_softmax",
    "row_sum",
    "tangent_aggregate",
    "use_backend",
    "weighted_sum",
]
