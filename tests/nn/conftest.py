"""A small graph with everything in it, for the tests of single layers."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor


class Example(NamedTuple):
    """A directed graph of 8 nodes: no order, no duplicates; node 7 is isolated, node 0 has a loop of its own.

    Attributes:
        edges: ``(2, E)`` source and target.
        weight: ``(E,)`` or None.
        dense: ``(8, 8)`` weight of neighbour j in row i; every node is its own neighbour, with weight 1 where no
            loop was given.
    """

    edges: Tensor
    weight: Tensor | None
    dense: Tensor


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(params=["unweighted", "weighted"])
def example(request) -> Example:
    pairs = [(0, 0), (3, 1), (2, 1), (1, 2), (0, 3), (5, 4), (4, 5), (6, 5), (2, 6), (5, 0), (6, 1), (0, 6)]
    weight = torch.rand(len(pairs), generator=torch.Generator().manual_seed(9), dtype=torch.float64) + 0.1
    dense = torch.eye(8, dtype=torch.float64)
    for e, (source, target) in enumerate(pairs):
        dense[target, source] = weight[e] if request.param == "weighted" else 1
    return Example(torch.tensor(pairs).t().contiguous(), weight if request.param == "weighted" else None, dense)
