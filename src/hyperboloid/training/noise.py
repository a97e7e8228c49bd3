"""How far scores of models lie apart by chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def two_errors(a: Sequence[float], b: Sequence[float], examples: int) -> float:
    """Two standard errors of the difference of the means of two models' scores on the same examples.

    Initialisations give s²/n each. That a part has so many examples gives p(1 − p)/examples for each model; the two
    share the examples, and with a correlation of one half between them that much is left of both. (On Citeseer's test
    edges it makes one point, which is how far scores on different splits lie apart.)
    """
    p = min(0.999, max(0.5, statistics.mean([*a, *b])))
    spread = sum(statistics.variance(scores) / len(scores) for scores in (a, b) if len(scores) > 1)
    return 2 * math.sqrt(spread + p * (1 - p) / examples)
