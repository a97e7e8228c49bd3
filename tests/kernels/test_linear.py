"""The linear map of a GPU against torch's own in double precision.

Without a GPU the kernels run in Triton's interpreter.
"""

from importlib.util import find_spec

import pytest
import torch
from torch.func import vmap
from torch.nn import functional as F

from hyperboloid.kernels import linear, use_backend

if find_spec("triton") is None:
    pytest.skip("triton is not installed", allow_module_level=True)

from hyperboloid.kernels import gpu_linear
from hyperboloid.kernels.gpu_linear import LONG, WORTHWHILE, row_product, tall_product

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
#: of the largest number of a product; float32 units of a GPU stay below it too
ERROR = 1e-6


@pytest.fixture(autouse=True)
def triton_backend():
    torch.manual_seed(0)
    with use_backend("triton"):
        yield


def normal(*shape):
    return torch.randn(*shape, device=DEVICE)


def assert_accurate(found, expected):
    assert found.shape == expected.shape
    assert (found.double() - expected).abs().max() <= ERROR * expected.abs().max()


@pytest.mark.parametrize(
    ("models", "nodes", "width", "columns"), [(2, 300, 5, 7), (1, 129, 767, 64), (3, 64, 100, 33), (2, 77, 16, 128)]
)
@pytest.mark.parametrize("transposed", [True, False])
def test_a_product_of_rows(models, nodes, width, columns, transposed):
    x, weight = normal(models, nodes, width), normal(models, width, columns)
    given = weight.mT.contiguous() if transposed else weight
    assert_accurate(row_product(x, given, transposed=transposed), x.double() @ weight.double())
    assert_accurate(row_product(x[0], given[0], transposed=transposed), x[0].double() @ weight[0].double())


@pytest.mark.parametrize(
    ("models", "nodes", "columns", "width", "split"),
    [
        (1, 5 * WORTHWHILE - 3, 16, 16, True),
        (3, 1111, 40, 64, True),
        (1, 300, 40, 90, False),
        (13, 2 * LONG, 3, 4, True),
        (7, 900, 8, 8, False),
        (2, 300, 5, 7, False),
    ],
)
def test_a_product_of_tall_matrices(models, nodes, columns, width, split, monkeypatch):
    a, x, parts = normal(models, nodes, columns), normal(models, nodes, width), []
    monkeypatch.setattr(gpu_linear, "BUSY", 13)
    add = torch.Tensor.sum
    monkeypatch.setattr(torch.Tensor, "sum", lambda t, *args: parts.append(t) or add(t, *args))
    found = tall_product(a, x)
    monkeypatch.undo()
    assert bool(parts) == split
    assert_accurate(found, a.double().mT @ x.double())
    assert_accurate(tall_product(a[0], x[0]), a[0].double().mT @ x[0].double())


def test_other_orders_in_memory():
    """Nodes of all models side by side, as vmap may leave them; rows that begin at multiples of 16, as of dropout."""
    a, x = (normal(1024, 2, 8).movedim(1, 0) for _ in range(2))
    flat = normal(2, 333)[:, 5:325].view(2, 20, 16)  # among all parameters of a model
    assert_accurate(row_product(flat, flat, transposed=True), flat.double() @ flat.double().mT)
    weight, wide = normal(2, 8, 5), normal(2, 50, 112)[..., :99]
    assert_accurate(row_product(wide, wide[:, :9], transposed=True), wide.double() @ wide[:, :9].double().mT)
    assert_accurate(tall_product(a, x), a.double().mT @ x.double())
    assert_accurate(row_product(x, weight, transposed=False), x.double() @ weight.double())


@pytest.mark.parametrize(("nodes", "width", "columns"), [(0, 5, 3), (4, 0, 3), (4, 5, 0)])
def test_nothing_to_multiply(nodes, width, columns):
    assert torch.equal(
        row_product(normal(1, nodes, width), normal(1, width, columns), transposed=False),
        torch.zeros(1, nodes, columns, device=DEVICE),
    )
    assert torch.equal(
        tall_product(normal(1, nodes, columns), normal(1, nodes, width)), torch.zeros(1, columns, width, device=DEVICE)
    )


@pytest.mark.parametrize("mapped", [(0, 0), (None, 0), (0, None), (1, 1), None])
def test_values_and_gradients(mapped):
    sizes = (3, 300, 6), (3, 4, 6)
    if mapped is None:
        (x, weight), probe = (normal(*size[1:]) for size in sizes), normal(300, 4)
    else:
        x, weight = (normal(*size[dim is None :]) for size, dim in zip(sizes, mapped, strict=True))
        probe = normal(3, 300, 4)
        if mapped == (1, 1):
            x, weight = x.movedim(0, 1), weight.movedim(0, 1)
    found = []
    for function, dtype in ((linear, torch.float32), (F.linear, torch.float64)):
        own = [t.detach().to(dtype).requires_grad_() for t in (x, weight)]
        out = function(*own) if mapped is None else vmap(function, in_dims=mapped)(*own)
        found.append([out, *torch.autograd.grad((out * probe).sum(), own)])
    for mine, theirs in zip(*found, strict=True):
        assert_accurate(mine, theirs)


def test_it_can_be_differentiated_twice():
    x, weight = normal(60, 2), normal(2, 2).requires_grad_()
    (slope,) = torch.autograd.grad(linear(x, weight).square().sum(), weight, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), weight)
    torch.testing.assert_close(bend, 2 * (x.T @ x).sum(0).expand(2, 2))


@pytest.mark.skipif(DEVICE == "cpu", reason="tensor cores are a GPU's")
def test_tensor_cores_are_as_exact_as_float32():
    """Products of 11 bits would be wrong by 1e-4 or more."""
    a, x = normal(2, 20_000, 64), normal(2, 20_000, 64)
    exact = a.double().mT @ x.double()

    def error(found):
        return ((found.double() - exact).abs().max() / exact.abs().max()).item()

    assert error(tall_product(a, x)) <= 2 * error(a.mT @ x)
