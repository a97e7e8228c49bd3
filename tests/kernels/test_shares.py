"""Softmax and shares over a graph's rows, against torch on every row by itself."""

import pytest
import torch
from torch.func import vmap

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency, additive_attention, row_normalize, row_softmax

pytestmark = pytest.mark.usefixtures("backend")


def expected(score, adj, keep):
    """Row by row."""
    out = torch.zeros_like(score)
    for i in range(adj.num_rows):
        kept = ((adj.row == i) & keep).nonzero().squeeze(1)
        out[kept] = score[kept].softmax(0)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_values_and_gradients_of_many_models(dtype, scale):
    """One row is empty, one has nothing that is kept, one is much longer than the others."""
    torch.manual_seed(0)
    target = torch.cat([torch.randint(8, (40,)), torch.full((70,), 3)])
    adj = Adjacency.from_edges(torch.randint(100, (110,)), target, (100, 9), self_loops=False)
    keep = (torch.rand(110) < 0.7) & (adj.row != 5)
    score = (scale * torch.randn(3, 110, dtype=dtype)).requires_grad_()
    found = vmap(lambda s: row_softmax(s, adj, keep))(score)
    exact = torch.stack([expected(s, adj, keep) for s in score])
    torch.testing.assert_close(found, exact)
    torch.testing.assert_close(row_softmax(score[1], adj, keep), exact[1])
    grad = torch.randn(3, 110, dtype=dtype)
    torch.testing.assert_close(*(torch.autograd.grad(out, score, grad)[0] for out in (found, exact)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kept", [True, False])
def test_attention_by_sums_of_two_numbers(dtype, kept):
    """Values and gradients for many models; one row is empty, one is much longer than the others."""
    torch.manual_seed(0)
    row = torch.cat([torch.randint(8, (40,)), torch.full((70,), 3)])
    adj = Adjacency.from_edges(torch.randint(100, (110,)), row, (100, 9), self_loops=False)
    keep = torch.rand(110) < 0.7 if kept else torch.ones(110, dtype=torch.bool)
    target, source = (3 * torch.randn(3, n, dtype=dtype) for n in (9, 100))
    target[0, 3], source[0, adj.col[adj.row == 3]] = 1.5, -1.5  # their sum is 0, where the slope is that below
    target[1] += 300  # e^300 is no float32, and belongs to no entry
    source[1] -= 300
    inputs = target.requires_grad_(), source.requires_grad_()
    found = vmap(lambda t, s: additive_attention(t, s, adj, slope=0.2, keep=keep if kept else None))(*inputs)
    score = target[:, adj.row] + source[:, adj.col]
    exact = torch.stack([expected(s, adj, keep) for s in torch.where(score > 0, score, 0.2 * score)])
    torch.testing.assert_close(found, exact)
    grad = torch.randn(3, 110, dtype=dtype)
    for ours, theirs in zip(*(torch.autograd.grad(out, inputs, grad) for out in (found, exact)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_attention_of_the_wrong_nodes():
    adj = Adjacency.from_edges(torch.arange(6), torch.tensor([0, 0, 1, 1, 2, 2]), (6, 3), self_loops=False)
    with pytest.raises(InputError, match="3 rows and 6 columns, not of 6 and 6"):
        additive_attention(torch.zeros(6), torch.zeros(6), adj, slope=0.2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_of_weights_and_their_gradients(dtype):
    """One row is empty, one has no weight, one is much longer than the others."""
    torch.manual_seed(0)
    target = torch.cat([torch.randint(8, (40,)), torch.full((70,), 3)])
    adj = Adjacency.from_edges(torch.randint(100, (110,)), target, (100, 9), self_loops=False)
    weight = (torch.rand(3, 110, dtype=dtype) * (torch.rand(110) < 0.7) * (adj.row != 5)).requires_grad_()
    found = vmap(lambda w: row_normalize(w, adj))(weight)
    members = (adj.row == torch.arange(9).unsqueeze(1)).to(dtype)  # (9, 110)
    total = weight @ members.T
    exact = weight / torch.where(total > 0, total, 1)[:, adj.row]
    torch.testing.assert_close(found, exact)
    torch.testing.assert_close(row_normalize(weight[1], adj), exact[1])
    grad = torch.randn(3, 110, dtype=dtype)
    torch.testing.assert_close(*(torch.autograd.grad(out, weight, grad)[0] for out in (found, exact)))


def test_shares_of_tiny_weights():
    """One over their sum is no float32; a sum that is not positive divides nothing."""
    adj = Adjacency.from_edges(torch.arange(6), torch.tensor([0, 0, 1, 1, 2, 2]), (6, 3), self_loops=False)
    weight = torch.tensor([1e-40, 0.0, 0.0, 0.0, 1.0, -2.0])
    assert row_normalize(weight, adj).tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, -2.0]


def test_very_large_scores():
    adj = Adjacency.from_edges(torch.arange(6), torch.tensor([0, 0, 0, 1, 1, 2]), (6, 3), self_loops=False)
    score = torch.tensor([1e30, 1e30, -torch.inf, -1e30, 0.0, -1e30])
    assert row_softmax(score, adj).tolist() == [0.5, 0.5, 0.0, 0.0, 1.0, 1.0]


def test_what_is_no_number_shows():
    adj = Adjacency.from_edges(torch.arange(4), torch.tensor([0, 0, 1, 1]), (4, 2), self_loops=False)
    found = row_softmax(torch.tensor([torch.nan, 0.0, 0.0, 0.0]), adj)
    assert found[0].isnan()
    assert found[2:].tolist() == [0.5, 0.5]
