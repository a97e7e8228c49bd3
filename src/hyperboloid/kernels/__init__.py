"""The sparse operations behind the layers: neighbourhoods, Lorentzian attention and aggregation, random masks."""

from .adjacency import Adjacency, cached_adjacency
from .dispatch import lorentz_aggregate, lorentz_attention, use_backend
from .random import dropout, keep_mask, random_stream

__all__ = [
    "Adjacency",
    "cached_adjacency",
    "dropout",
    "keep_mask",
    "lorentz_aggregate",
    "lorentz_attention",
    "random_stream",
    "use_backend",
]
