"""Experiments that are one table each, by name; those of cells are in ``cells.py``, drawn ones in ``registry.py``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hyperboloid.errors import InputError

from .cells import CELL_RUNS
from .registry import FIGURES

if TYPE_CHECKING:
    from .table import PaperTable

#: ``module:function`` of each; the function takes the seed
EXPERIMENTS: dict[str, str] = {
    "operations": "hyperboloid.paper.operations:operations",
    "centroids": "hyperboloid.paper.centroids:centroids",
}


def run_experiment(name: str, seed: int = 0) -> PaperTable:
    """Run the experiment called ``name`` on random inputs drawn with ``seed``."""
    if name not in EXPERIMENTS:
        choice = ", ".join((*EXPERIMENTS, *CELL_RUNS, "zinc", *FIGURES))
        raise InputError(f"There is no experiment '{name}'; choose one of: {choice}.")
    if not 0 <= seed < 2**31:
        raise InputError(f"The seed must be a whole number from 0 to {2**31 - 1}, not {seed}.")
    module, function = EXPERIMENTS[name].split(":")
    table: PaperTable = getattr(import_module(module), function)(seed)
    return table
