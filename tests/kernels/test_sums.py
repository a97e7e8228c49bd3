"""Sums over rows by sparse matrices, against the reference that gathers every entry."""

import pytest
import torch

from hyperboloid.kernels import Adjacency, row_sum
from hyperboloid.kernels.sums import sum_aggregate


@pytest.fixture
def adj():
    """Seven rows over five columns; a row and a column are empty."""
    torch.manual_seed(0)
    source, target = torch.randint(4, (20,)), torch.randint(6, (20,))
    return Adjacency.from_edges(source, target, (5, 7), self_loops=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_those_of_the_reference(adj, dtype):
    u = torch.randn(5, 3, dtype=dtype, requires_grad=True)
    grad = torch.randn(7, 3, dtype=dtype)
    found, expected = sum_aggregate(u, adj), row_sum(u.index_select(0, adj.col), adj)
    torch.testing.assert_close(found, expected)
    assert (found[6] == 0).all()
    torch.testing.assert_close(*(torch.autograd.grad(out, u, grad)[0] for out in (found, expected)))
