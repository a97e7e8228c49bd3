"""The linear map of a GPU, and of many models on a CPU, against torch's own in double precision.

Without a GPU its kernels run in Triton's interpreter.
"""

from importlib.util import find_spec

import pytest
import torch
from torch.func import jacrev, vjp, vmap
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hyperboloid.kernels import linear, use_backend

if find_spec("triton") is None:
    pytest.skip("triton is not installed", allow_module_level=True)

from hyperboloid.kernels import gpu_linear
from hyperboloid.kernels.gpu_linear import WORTHWHILE, row_product, tall_product

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
def test_a_product_of_rows(models, nodes, width, columns):
    x, weight = normal(models, nodes, width), normal(models, columns, width)
    assert_accurate(row_product(x, weight), x.double() @ weight.double().mT)
    assert_accurate(row_product(x[0], weight[0]), x[0].double() @ weight[0].double().mT)


@pytest.mark.parametrize(
    ("models", "nodes", "columns", "width", "parts"),
    [
        (1, 5 * WORTHWHILE - 3, 16, 16, 4),
        (3, 1111, 40, 64, 2),
        (13, 2 * WORTHWHILE - 1, 3, 4, 2),  # too long a sum for one
        (1, 300, 40, 150, 1),  # several tiles of the width
        (7, 900, 8, 80, 1),
        (2, 300, 5, 7, 1),
    ],
)
def test_a_product_of_tall_matrices(models, nodes, columns, width, parts, monkeypatch):
    monkeypatch.setattr(gpu_linear, "BUSY", 13)
    monkeypatch.setattr(gpu_linear, "LONG", WORTHWHILE if models == 13 else gpu_linear.LONG)
    a, x, shapes = normal(models, nodes, columns), normal(models, nodes, width), []
    make = torch.Tensor.new_empty
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda t, *a, **kw: shapes.append(a) or make(t, *a, **kw))
    assert_accurate(tall_product(a, x), a.double().mT @ x.double())
    assert shapes[0] == (models, parts, columns, width)
    assert_accurate(tall_product(a[0], x[0]), a[0].double().mT @ x[0].double())


def test_other_orders_in_memory():
    """Nodes of all models side by side, as vmap may leave them; transposed; as columns of a larger matrix."""
    for shape in ((1024, 2, 8), (300, 2, 99)):
        a, x = (normal(*shape).movedim(1, 0) for _ in range(2))
        assert_accurate(tall_product(a, x), a.double().mT @ x.double())
        assert_accurate(row_product(x, a[:, :5]), x.double() @ a[:, :5].double().mT)
    a, x = (normal(2, 8, 50).mT for _ in range(2))
    assert_accurate(tall_product(a, x), a.double().mT @ x.double())
    assert_accurate(row_product(x, a), x.double() @ a.double().mT)


def test_weights_are_read_four_at_a_time():
    """Also those among all parameters of a model, or of a single one."""
    flat = normal(2, 333)
    for weight in (flat[:, 5:325].view(2, 20, 16), flat[:1, 5:325].view(1, 20, 16)):
        copy = gpu_linear._readable(weight, 16)
        assert copy.data_ptr() % 64 == 0
        assert copy.stride() == (320, 16, 1)
        assert torch.equal(copy, weight)
        assert gpu_linear._readable(copy, 16) is copy
    wide = gpu_linear._readable(flat[:, :330].view(2, 10, 33), 48)
    assert wide.stride() == (480, 48, 1)
    assert torch.equal(wide[..., :33].flatten(1), flat[:, :330])
    assert not wide[..., 33:].any()


@pytest.mark.parametrize(("nodes", "width", "columns"), [(0, 5, 3), (4, 0, 3), (4, 5, 0)])
def test_nothing_to_multiply(nodes, width, columns):
    product = row_product(normal(1, nodes, width), normal(1, columns, width))
    assert torch.equal(product, torch.zeros(1, nodes, columns, device=DEVICE))
    product = tall_product(normal(1, nodes, columns), normal(1, nodes, width))
    assert torch.equal(product, torch.zeros(1, columns, width, device=DEVICE))


def test_no_features_of_many_models_on_a_cpu():
    with use_backend("cpu"):
        out = vmap(linear, in_dims=(None, 0))(torch.ones(5, 0), torch.ones(3, 4, 0))
    assert torch.equal(out, torch.zeros(3, 5, 4))


@pytest.mark.parametrize("backend", ["triton", "cpu"] if DEVICE == "cpu" else ["triton"])
@pytest.mark.parametrize("mapped", [(0, 0), (None, 0), (0, None), (1, 1), None])
def test_values_and_gradients(mapped, backend):
    sizes = (3, 300, 6), (3, 4, 6)
    if mapped is None:
        (x, weight), probe = (normal(*size[1:]) for size in sizes), normal(300, 4)
    else:
        x, weight = (normal(*size[dim is None :]) for size, dim in zip(sizes, mapped, strict=True))
        probe = normal(3, 300, 4)
        if mapped == (1, 1):
            x, weight = (t.movedim(0, 1).contiguous() for t in (x, weight))
    found = []
    for function, dtype in ((linear, torch.float32), (F.linear, torch.float64)):
        own = [t.to(dtype).requires_grad_() for t in (x, weight)]
        with use_backend(backend):
            out = function(*own) if mapped is None else vmap(function, in_dims=mapped)(*own)
            found.append([out, *torch.autograd.grad((out * probe).sum(), own)])
    for mine, theirs in zip(*found, strict=True):
        assert_accurate(mine, theirs)


def test_who_multiplies():
    """Kernels take float32 matrices that fit; torch all else, and says what does not fit."""
    x, weight = normal(4, 5), normal(3, 5).requires_grad_()
    assert type(linear(x, weight).grad_fn).__name__ == "_LinearBackward"
    assert type(linear(x.double(), weight.double()).grad_fn).__name__ != "_LinearBackward"
    with pytest.raises(RuntimeError, match="4x5 and 7x3"):
        linear(x, normal(3, 7))
    with use_backend("reference"):
        assert linear(x.to("meta"), weight.to("meta")).shape == (4, 3)
    with torch.autocast(DEVICE, torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU has its own products")
def test_models_on_a_cpu_multiply_what_they_share_once():
    """Then they are one product, there and back, and no gradient is the transpose of Xᵀ G, which takes longer."""
    x, weights = normal(50, 6), normal(3, 4, 6).requires_grad_()
    products = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
                products.append([tuple(t.shape) for t in args])
            return function(*args, **(kwargs or {}))

    with use_backend("cpu"), Seen():
        vmap(linear, in_dims=(None, 0))(x, weights).sum().backward()
    assert products == [[(50, 6), (6, 12)], [(12, 50), (50, 6)]]
    products.clear()
    with use_backend("cpu"), Seen():
        vmap(linear)(x.expand(3, -1, -1).clone(), weights).sum().backward()
    assert products == [[(3, 50, 6), (3, 6, 4)], [(3, 4, 50), (3, 50, 6)]]


def test_models_of_models():
    x, weight = normal(2, 3, 7, 5), normal(2, 3, 4, 5)
    together = torch.einsum("abnk,abck->abnc", x, weight)
    torch.testing.assert_close(vmap(vmap(linear))(x, weight), together)
    one = vmap(vmap(linear), in_dims=(0, None))(x, weight[0])
    torch.testing.assert_close(one, torch.einsum("abnk,bck->abnc", x, weight[0]))
    one = vmap(vmap(linear), in_dims=(None, 0))(x[0], weight)
    torch.testing.assert_close(one, torch.einsum("bnk,abck->abnc", x[0], weight))


def test_many_gradients_at_once():
    x, weight, probes = normal(7, 5), normal(4, 5), normal(6, 7, 4)
    found = [vmap(vjp(function, x, weight)[1])(probes) for function in (linear, F.linear)]
    with torch.no_grad():
        found += [(jacrev(function, 0)(x, weight), jacrev(function, 1)(x, weight)) for function in (linear, F.linear)]
    for mine, theirs in zip(found[0] + found[2], found[1] + found[3], strict=True):
        torch.testing.assert_close(mine, theirs)


def test_it_can_be_differentiated_twice():
    x, weight = (t.requires_grad_() for t in (normal(60, 2), normal(3, 2)))
    found = []
    for function in (linear, F.linear):
        slopes = torch.autograd.grad(function(x, weight).tanh().sum(), (x, weight), create_graph=True)
        bent = sum(slope.square().sum() for slope in slopes)
        found.append(torch.autograd.grad(bent, (x, weight)))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(DEVICE == "cpu", reason="tensor cores are a GPU's")
def test_tensor_cores_are_as_exact_as_float32():
    """Products of 11 bits would be wrong by 1e-4 or more."""
    a, x = normal(2, 20_000, 64), normal(2, 20_000, 64)
    exact = a.double().mT @ x.double()

    def error(found):
        return ((found.double() - exact).abs().max() / exact.abs().max()).item()

    assert error(tall_product(a, x)) <= 2 * error(a.mT @ x)
