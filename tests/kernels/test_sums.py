"""Sums over rows by sparse matrices, against the reference that gathers every entry."""

import pytest
import torch
from torch.func import vmap

from hyperboloid.kernels import Adjacency, row_sum, weighted_sum
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


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weighted_sums_of_many_models_are_matrix_products(adj, dtype):
    u = torch.randn(3, 5, 6, dtype=dtype, requires_grad=True)
    weight = torch.rand(3, adj.row.numel(), dtype=dtype)
    weight[:, ::3] = 0
    weight.requires_grad_()
    grad = torch.randn(3, 7, 6, dtype=dtype)
    found = vmap(lambda u, w: weighted_sum(u, adj, w))(u, weight)
    places = (torch.arange(3)[:, None], adj.row, adj.col)
    expected = torch.zeros(3, 7, 5, dtype=dtype).index_put(places, weight, accumulate=True) @ u
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found[1], weighted_sum(u[1], adj, weight[1]))
    for ours, theirs in zip(*(torch.autograd.grad(out, (u, weight), grad) for out in (found, expected)), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("n", "k", "own_values"), [(1100, 3, True), (3, 1100, False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_products_of_many_models_have_the_values_of_dense_ones(dtype, n, k, own_values):
    """A row or a column is so long that the kernel takes it in several pieces."""
    x = torch.randn(n, k, dtype=dtype)
    x[1:, 1:] *= torch.rand(n - 1, k - 1) < 0.1
    row, col = x.nonzero(as_tuple=True)
    pattern = Adjacency.from_edges(col, row, (k, n), self_loops=False)
    value = torch.randn(2, row.numel(), dtype=dtype) if own_values else x[row, col]
    w, grad = torch.randn(2, k, 3, dtype=dtype, requires_grad=True), torch.randn(2, n, 3, dtype=dtype)
    found = vmap(lambda v, w: weighted_sum(w, pattern, v), (0 if own_values else None, 0))(value, w)
    expected = torch.zeros(2, n, k, dtype=dtype).index_put((torch.arange(2)[:, None], row, col), value) @ w
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
    torch.testing.assert_close(found, expected, **tolerance)
    torch.testing.assert_close(*(torch.autograd.grad(out, w, grad)[0] for out in (found, expected)), **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_in_the_weights_does_not_look_at_them(dtype):
    """Also where there are more parallel edges than a matrix has places."""
    adj = Adjacency.from_edges(torch.zeros(5).long(), torch.ones(5).long(), (2, 2), self_loops=False)
    u = torch.tensor([[1.0, 2.0], [5.0, 5.0]], dtype=dtype)
    weight = torch.tensor([torch.inf, 1, 0, torch.nan, -1], dtype=dtype, requires_grad=True)
    (grad,) = torch.autograd.grad(weighted_sum(u, adj, weight), weight, torch.ones(2, 2, dtype=dtype))
    assert grad.tolist() == [3] * 5


def test_torch_func_differentiates_in_the_weights(adj):
    u, weight = torch.randn(5, 3), torch.rand(adj.row.numel())
    found = torch.func.grad(lambda w: weighted_sum(u, adj, w).square().sum())(weight)
    weight.requires_grad_()
    (expected,) = torch.autograd.grad(weighted_sum(u, adj, weight).square().sum(), weight)
    torch.testing.assert_close(found, expected)
