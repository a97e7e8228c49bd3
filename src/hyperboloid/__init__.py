"""Hyperbolic graph neural networks for PyTorch Geometric.

    import hyperboloid
    experiment = hyperboloid.fit("cora", task="link", model="lgcn", dim=16)
    experiment.summary["test_mean"]

Layers live in :mod:`hyperboloid.nn`, the mathematics in :mod:`hyperboloid.geometry`, data in :mod:`hyperboloid.graphs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InputError, TrainingError
from .version import __version__

if TYPE_CHECKING:
    from .training.experiment import load
    from .training.fitting import fit

__all__ = ["InputError", "TrainingError", "__version__", "fit", "load"]

_LAZY = {"fit": "hyperboloid.training.fitting", "load": "hyperboloid.training.experiment"}


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
