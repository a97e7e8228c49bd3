"""Scores of several runs: how far they lie apart, and how they are told on the command line and in reports."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def spread_of(values: Sequence[float]) -> float:
    """Sample standard deviation; 0 of a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def two_errors(a: Sequence[float], b: Sequence[float], examples: int) -> float:
    """Two standard errors of the difference of the means of two models' scores on the same examples.

    Initialisations give s²/n each. That a part has so many examples gives p(1 − p)/examples for each model; the two
    share the examples, and with a correlation of one half between them that much is left of both. (On Citeseer's test
    edges it makes one point, which is how far scores on different splits lie apart.)
    """
    p = min(0.999, max(0.5, statistics.mean([*a, *b])))
    spread = sum(spread_of(scores) ** 2 / len(scores) for scores in (a, b))
    return 2 * math.sqrt(spread + p * (1 - p) / examples)


def percent(mean: float, spread: float | None = None) -> str:
    """A fraction as the papers print it."""
    return f"{100 * mean:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def score(metric: str, mean: float, spread: float | None = None) -> str:
    """A metric with its unit: fractions in per cent, errors as they are."""
    if metric == "mae":
        return f"{mean:.4g}" + ("" if spread is None else f" ± {spread:.2g}")
    return f"{percent(mean, spread)} %"
