"""Features as a model gets them: on a scale that suits a space in which distances grow exponentially."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from hyperboloid.graphs import Graph


def suitable_scaling(graph: Graph) -> str:
    """``rows`` for features like words in a document, never negative and mostly 0; ``columns`` for any others."""
    x = graph.x
    counts = x is not None and bool((x >= 0).all()) and int(x.count_nonzero()) < x.numel() / 2
    return "rows" if counts else "columns"


def scaled_features(graph: Graph, scaling: str, dtype: torch.dtype, trained_on: Graph) -> Tensor | None:
    """The features of a graph ``(N, k)``, scaled.

    Args:
        graph: whose features.
        scaling: ``rows``: each node's sum to 1; ``columns``: each feature has mean 0 and standard deviation 1 over the
            nodes of ``trained_on``; ``none``.
        dtype: of the result.
        trained_on: the graph that the model was, or will be, trained on.
    """
    x = graph.x
    if x is None:
        return None
    if scaling == "rows":
        x = F.normalize(x, p=1.0, dim=-1)
    elif scaling == "columns":
        assert trained_on.x is not None  # a model without features is shown no other graph
        spread, mean = torch.std_mean(trained_on.x, dim=0, correction=0)
        x = (x - mean) / torch.where(spread > 0, spread, 1)
    # a copy in torch's own, aligned memory: where rows start decides how a matrix product rounds
    return x.to(dtype, copy=True)
