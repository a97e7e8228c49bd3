"""torch.compile, torch.func.vmap, any batch shape, and either precision: the same numbers as plain eager calls."""

import pytest
import torch

from hyperboloid.geometry import Lorentz

from . import reference

MATRIX = torch.tensor([[0.5, -1.0, 0.3, 0.2], [0.1, 0.4, -0.2, 0.9], [1.0, 0.0, 0.7, -0.6]], dtype=torch.float64)

#: every operation as a function of (space, u, v): two batches of normal coordinates with four coordinates
OPERATIONS = {
    "normal.dist": lambda space, u, v: space.normal.dist(u, v),
    "normal.sqdist": lambda space, u, v: space.normal.sqdist(u, v),
    "normal.lorentz_sqdist": lambda space, u, v: space.normal.lorentz_sqdist(u, v),
    "normal.centroid": lambda space, u, v: space.normal.centroid(torch.stack([u, v], -2), u[..., :2].square()),
    "normal.log_at": lambda space, u, v: space.normal.log_at(u, v),
    "normal.exp_at": lambda space, u, v: space.normal.exp_at(u, v),
    "exp0": lambda space, u, v: space.exp0(u * v),
    "log0": lambda space, u, v: space.log0(torch.cat([u[..., :1], u * v], -1)),
    "dist": lambda space, u, v: space.dist(space.exp0(u), space.exp0(v)),
    "centroid": lambda space, u, v: space.centroid(torch.stack([space.exp0(u), space.exp0(v)], -2)),
    "matvec": lambda space, u, v: space.matvec(MATRIX.to(u.dtype), space.exp0(u + v)),
}


@pytest.fixture(params=OPERATIONS)
def operation(request):
    return OPERATIONS[request.param]


def inputs(n=6, dtype=torch.float64):
    """Pairs near and far, equal, and at the origin; and β."""
    u = torch.linspace(0, 4, n, dtype=torch.float64).unsqueeze(-1) * reference.sphere(n, 4, 1)
    v = torch.linspace(3, 0.5, n, dtype=torch.float64).unsqueeze(-1) * reference.sphere(n, 4, 2)
    v[-1] = u[-1]
    return [x.to(dtype).requires_grad_() for x in (u, v)]


def value_and_gradients(function, *args):
    value = function(*args)
    # uneven slopes, so that no two entries of a gradient can cancel or be swapped unseen
    slopes = torch.linspace(0.5, 1.5, value.numel(), dtype=value.dtype).view_as(value)
    return value, *torch.autograd.grad((value * slopes).sum(), args, allow_unused=True)


def assert_same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        if a is not None or b is not None:
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


def leaf_beta(beta=0.7):
    return torch.tensor(beta, dtype=torch.float64, requires_grad=True)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch's own tracer
def test_compiled(operation):
    def function(u, v, beta):
        return operation(Lorentz(beta), u, v)

    torch._dynamo.reset()
    args = (*inputs(), leaf_beta())
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert_same(value_and_gradients(compiled, *args), value_and_gradients(function, *args))


def test_vmap_is_a_loop(operation):
    """Over points and β together, as a sweep over many models runs it: Lorentz(β) is made inside."""

    def function(u, v, beta):
        return operation(Lorentz(beta), u, v)

    def loop(u, v, beta):
        return torch.stack([function(*one) for one in zip(u, v, beta, strict=True)])

    u, v = inputs(6)
    u, v = (x.detach().view(3, 2, 4).requires_grad_() for x in (u, v))
    beta = torch.tensor([0.2, 1.0, 30.0], dtype=torch.float64, requires_grad=True)
    expected = value_and_gradients(loop, u, v, beta)
    assert_same(value_and_gradients(torch.func.vmap(function), u, v, beta), expected)


def test_vmapped_losses_summed_and_differentiated(operation):
    """One loss per model, .sum().backward(): each model's gradient is its own."""
    u, v = inputs(6)
    beta = torch.tensor([0.2, 1.0, 30.0], dtype=torch.float64, requires_grad=True)

    def loss(b):
        return operation(Lorentz(b), u, v).square().mean()

    torch.func.vmap(loss)(beta).sum().backward()
    batched, beta.grad = beta.grad, None
    for i in range(3):
        b = leaf_beta(beta[i].item())
        (alone,) = torch.autograd.grad(loss(b), b)
        torch.testing.assert_close(batched[i], alone, rtol=1e-12, atol=1e-13)
    loop = sum(torch.autograd.grad(loss(b), u)[0] for b in beta.detach())
    torch.testing.assert_close(u.grad, loop, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0, 3)])
def test_any_batch_shape(operation, shape):
    """A batch is its members, one by one; and an empty one is empty, forward and backward."""
    n = int(torch.tensor(shape).prod()) if shape else 1
    u, v = (x.detach()[:n].reshape(*shape, 4).requires_grad_() for x in inputs(6))
    value = operation(Lorentz(0.7), u, v)
    single = [operation(Lorentz(0.7), a, b) for a, b in zip(u.reshape(-1, 4), v.reshape(-1, 4), strict=True)]
    assert value.shape[: len(shape)] == shape
    if n:
        torch.testing.assert_close(value, torch.stack(single).view_as(value), rtol=1e-13, atol=1e-14)
    gradient_u, gradient_v = torch.autograd.grad(value.sum(), (u, v), allow_unused=True)
    assert gradient_u.shape == u.shape
    assert gradient_v is None or gradient_v.shape == v.shape


@pytest.mark.parametrize("name", ["dist", "sqdist", "lorentz_sqdist", "log_at", "exp_at"])
def test_broadcasting(name):
    """All pairs at once, as (n, 1, d) against (m, d); gradients are summed back."""
    u, v = inputs(6)
    v = v.detach()[:4].requires_grad_()
    beta = leaf_beta()
    function = getattr(Lorentz(beta).normal, name)
    wide = function(u.unsqueeze(1), v)
    full = function(u.unsqueeze(1).expand(6, 4, 4), v.expand(6, 4, 4))
    assert wide.shape[:2] == (6, 4)
    assert torch.equal(wide, full)
    slopes = torch.linspace(0.5, 1.5, wide.numel(), dtype=torch.float64).view_as(wide)
    assert_same(*(torch.autograd.grad((x * slopes).sum(), (u, v, beta)) for x in (wide, full)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_that_of_the_input(operation, dtype):
    u, v = inputs(dtype=dtype)
    for beta in (0.7, 1, torch.tensor(0.7), torch.tensor(0.7, dtype=torch.float64)):
        value = operation(Lorentz(beta), u, v)
        assert value.dtype == dtype
        assert torch.autograd.grad(value.sum(), u)[0].dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(operation, dtype):
    """At the origin too, whose neighbourhood has no half numbers; far out points have none either."""
    u, v = ((x.detach() / 3).to(dtype).requires_grad_() for x in inputs())
    expected = operation(Lorentz(0.7), u.float(), v.float())
    found = operation(Lorentz(0.7), u, v)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(found.float().sum(), (u, v)))


def test_one_half_among_others_halves_nothing():
    normal, (u, v) = Lorentz(0.7).normal, (x.detach() for x in inputs())
    assert normal.dist(u, v.half()).dtype == torch.float64
    assert normal.centroid(torch.stack([u, v], -2).float(), torch.ones(6, 2).half()).dtype == torch.float32


def test_the_compiler_is_told_the_layout_of_gyrovector_sums():
    u, beta = torch.randn(8, 3, 5).transpose(0, 1), torch.tensor(1.3)
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.hyperboloid.gyro_sum.default, (u, u.flip(0), beta), test_utils=tests)
    torch.library.opcheck(torch.ops.hyperboloid.gyro_gradients.default, (u, u.flip(0), beta, u), test_utils=tests)


def test_float32_is_float64_rounded(operation):
    """With a Python float for β, too: nothing is computed in a lower precision than the input's."""
    u, v = inputs(dtype=torch.float32)
    wide = operation(Lorentz(torch.tensor(0.7).double()), u.double(), v.double())
    torch.testing.assert_close(operation(Lorentz(0.7), u, v).double(), wide, rtol=1e-5, atol=1e-6)
