"""The linear map whose weights' gradient is taken in parts, against torch's own."""

import pytest
import torch
from torch.func import vmap
from torch.nn import functional as F

from hyperboloid.kernels.linear import BUSY, _Linear, linear, tall_product

F64 = torch.float64


@pytest.mark.parametrize(
    ("models", "nodes", "p", "q", "split"),
    [(1, 5000, 16, 16, True), (3, 1111, 64, 40, True), (BUSY, 1000, 8, 8, False), (2, 300, 5, 7, False)],
)
def test_a_product_of_tall_matrices(models, nodes, p, q, split, monkeypatch):
    a, b = torch.randn(models, nodes, p, dtype=F64), torch.randn(models, nodes, q, dtype=F64)
    padded, pad = [], F.pad
    monkeypatch.setattr(F, "pad", lambda *args: padded.append(args) or pad(*args))
    torch.testing.assert_close(tall_product(a, b), torch.einsum("mnp,mnq->mpq", a, b))
    assert bool(padded) == split
    torch.testing.assert_close(tall_product(a[0], b[0]), a[0].T @ b[0])


def test_nodes_of_all_models_side_by_side():
    """As vmap may leave them; no row has to be added for even parts."""
    a, b = (torch.randn(1024, 2, 8, dtype=F64).movedim(1, 0) for _ in range(2))
    torch.testing.assert_close(tall_product(a, b), torch.einsum("mnp,mnq->mpq", a, b))


@pytest.mark.parametrize("mapped", [(0, 0), (None, 0), (0, None), (1, 1)])
def test_values_and_gradients_of_models(mapped):
    """By the operation of a GPU, which any device can do."""
    x = torch.randn(*(3, 900, 6)[mapped[0] is None :], dtype=F64)
    weight = torch.randn(*(3, 4, 6)[mapped[1] is None :], dtype=F64)
    if mapped == (1, 1):
        x, weight = x.movedim(0, 1), weight.movedim(0, 1)
    probe, found = torch.randn(3, 900, 4, dtype=F64), []
    for function in (_Linear.apply, F.linear):
        own = [t.clone().requires_grad_() for t in (x, weight)]
        out = vmap(function, in_dims=mapped)(*own)
        found.append([out, *torch.autograd.grad((out * probe).sum(), own)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_it_can_be_differentiated_twice():
    x, weight = torch.randn(600, 2, dtype=F64, requires_grad=True), torch.randn(2, 2, dtype=F64, requires_grad=True)
    small = x.detach()[:5].requires_grad_()
    assert torch.autograd.gradgradcheck(_Linear.apply, (small, weight))
    (slope,) = torch.autograd.grad(_Linear.apply(x, weight).square().sum(), weight, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), weight)
    torch.testing.assert_close(bend, 2 * (x.T @ x).sum(0).expand(2, 2))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_computes_what_a_cpu_does():
    x, weight, bias = torch.randn(4, 2000, 16), torch.randn(4, 8, 16), torch.randn(4, 8)
    found = []
    for device in ("cpu", "cuda"):
        own = [t.to(device).requires_grad_() for t in (x, weight, bias)]
        out = vmap(linear)(*own)
        found.append([t.cpu() for t in (out, *torch.autograd.grad(out.square().sum(), own))])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-3)
