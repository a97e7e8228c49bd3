"""Dropout that a linear map does as it reads its features: the products that dropout beforehand gives.

Without a GPU the kernels run in Triton's interpreter.
"""

from importlib.util import find_spec

import pytest
import torch
from torch.func import jacrev, vmap

from hyperboloid.kernels import DroppedRows, dropout, late_dropout, random_stream, use_backend
from hyperboloid.nn import LGCNConv

if find_spec("triton") is None:
    pytest.skip("triton is not installed", allow_module_level=True)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MODELS, NODES, COLUMNS = 3, 300, 4


@pytest.fixture(autouse=True)
def triton_backend():
    torch.manual_seed(0)
    with use_backend("triton"):
        yield


def normal(*shape):
    return torch.randn(*shape, device=DEVICE)


def late(x, weight, p):
    """The product under test."""
    left = late_dropout(x, p, training=True)
    assert isinstance(left, DroppedRows)
    return left.matmul(weight.t())


def beforehand(x, weight, p):
    """The same in double precision, of features that were dropped before."""
    return dropout(x.detach(), p, training=True).double() @ weight.double().t()


def products(function, x, weight, p, seeds):
    """Products of models that have their own weights, probabilities and masks, and the gradient in the weights."""

    def one(own, share, seed):
        with random_stream(seed, torch.tensor(5, dtype=torch.int32, device=DEVICE)):
            return function(x, own, share)

    weight = weight.clone().requires_grad_()
    out = vmap(one)(weight, p, seeds)
    probe = torch.linspace(-1, 1, out.numel(), device=DEVICE).view_as(out)
    return out, *torch.autograd.grad((out * probe).sum(), weight)


def assert_accurate(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == torch.float32
        assert (mine.double() - theirs.double()).abs().max() <= 1e-6 * theirs.abs().max()


@pytest.mark.parametrize("width", [5, 16, 83])  # rows that begin anywhere, or where four numbers are read at a time
def test_models_that_share_features_and_drop_their_own(width):
    x, weight = normal(NODES, width), normal(MODELS, COLUMNS, width)
    p, seeds = torch.tensor([0.0, 0.3, 0.8], device=DEVICE), torch.arange(MODELS, dtype=torch.int32, device=DEVICE)
    assert_accurate(*(products(f, x, weight, p, seeds) for f in (late, beforehand)))


def test_a_single_model():
    """Alone a model draws the mask that it has among others, whatever its features' order in memory."""
    x, weight = normal(9, NODES).t(), normal(COLUMNS, 9).requires_grad_()
    found = []
    for function in (late, beforehand):
        with random_stream(2, 5):
            out = function(x, weight, 0.4)
        found.append((out, *torch.autograd.grad(out.square().sum(), weight)))
    assert_accurate(*found)
    seeds = torch.tensor([2], dtype=torch.int32, device=DEVICE)
    among, _ = products(late, x, weight.detach().unsqueeze(0), torch.tensor([0.4], device=DEVICE), seeds)
    torch.testing.assert_close(among[0], found[0][0])


def test_models_of_models():
    x, weight, p = normal(20, 5), normal(2, MODELS, COLUMNS, 5), torch.rand(2, MODELS, device=DEVICE)
    seeds = torch.arange(2 * MODELS, dtype=torch.int32, device=DEVICE).view(2, MODELS)

    def one(function, own, share, seed):
        with random_stream(seed, 1):
            return function(x, own, share)

    found = [vmap(vmap(lambda *given, f=f: one(f, *given)))(weight, p, seeds) for f in (late, beforehand)]
    assert_accurate(*([one] for one in found))


@pytest.mark.parametrize("inner", [3, 2])  # as many as there are seeds, or not
def test_models_of_models_that_share_a_mask(inner):
    """Seeds of the outer models only: the inner ones must not take them for theirs."""
    x, weight = normal(20, 5), normal(3, inner, COLUMNS, 5)
    seeds = torch.arange(3, dtype=torch.int32, device=DEVICE)

    def one(function, own, seed):
        with random_stream(seed, 1):
            return function(x, own, 0.5)

    late_ones = vmap(vmap(lambda w, s: one(late, w, s), (0, None)), (0, 0))(weight, seeds)
    alone = torch.stack([torch.stack([one(beforehand, w, s) for w in of_s]) for of_s, s in zip(weight, seeds)])  # noqa: B905
    assert_accurate([late_ones], [alone])
    jacobians = vmap(lambda seed: jacrev(lambda w: one(late, w, seed))(weight[0, 0]))(seeds)
    for found, seed in zip(jacobians, seeds, strict=True):
        expected = jacrev(lambda w, seed=seed: one(beforehand, w, seed))(weight[0, 0])
        torch.testing.assert_close(found, expected.float())


def test_what_does_not_fit_is_said_as_without_dropout():
    x, edges = normal(6, 16), torch.zeros(2, 1, dtype=torch.long, device=DEVICE)
    for width in (9, 20):
        conv = LGCNConv(width, 4, dropout=0.5).to(DEVICE)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            conv(x, edges)
    with pytest.raises(RuntimeError, match="same dtype"):
        LGCNConv(16, 4, dropout=0.5).double().to(DEVICE)(x, edges)


def test_it_can_be_differentiated_twice():
    x, start = normal(60, 7), normal(3, 7)
    found = []
    for function in (late, beforehand):
        weight = start.clone().requires_grad_()
        with random_stream(0, 0):
            (slope,) = torch.autograd.grad(function(x, weight, 0.5).tanh().sum(), weight, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), weight))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_who_drops_at_once():
    """Features that are differentiated, mapped over, of another precision, or of which nothing is dropped."""
    x = normal(6, 5)
    for given in (x.clone().requires_grad_(), x.double(), x.expand(2, 6, 5)):
        assert isinstance(late_dropout(given, 0.5, training=True), torch.Tensor)
    assert late_dropout(x, 0.5, training=False) is x
    assert late_dropout(x, 0.0, training=True) is x
    with random_stream(0, 0):
        assert vmap(lambda own: late_dropout(own, 0.5, training=True))(x.expand(2, 6, 5)).shape == (2, 6, 5)
    with torch.inference_mode():
        made = normal(6, 5)
    assert isinstance(late_dropout(made, 0.5, training=True), torch.Tensor)
    with use_backend("reference"):
        assert isinstance(late_dropout(x, 0.5, training=True), torch.Tensor)
        assert late_dropout(x.to("meta"), 0.5, training=True).shape == x.shape


def test_a_layer_has_the_same_gradients():
    """Where features have a gradient, dropout is done at once: the parameters' gradients do not tell."""
    edges = torch.randint(30, (2, 90), device=DEVICE)
    x, conv = normal(30, 11), LGCNConv(11, 4, dropout=0.5, drop_connect=0.2).to(DEVICE)
    found = []
    for given in (x, x.clone().requires_grad_()):
        with random_stream(3, 1):
            out = conv(given, edges)
        found.append([out, *torch.autograd.grad(out.square().sum(), list(conv.parameters()))])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
