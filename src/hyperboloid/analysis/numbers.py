"""Scores as they are told, on the command line and in reports."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spread_of(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 of a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def percent(mean: float, spread: float | None = None) -> str:
    """A fraction as the papers print it."""
    return f"{100 * mean:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def score(metric: str, mean: float, spread: float | None = None) -> str:
    """A metric with its unit: fractions in per cent, errors as they are."""
    if metric == "mae":
        return f"{mean:.4g}" + ("" if spread is None else f" ± {spread:.2g}")
    return f"{percent(mean, spread)} %"
