"""What torch does with any layer: half precision, autocast, checkpoints, torch.func, the default compiler."""

import shutil

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from hyperboloid.kernels import Adjacency, lorentz_aggregate
from hyperboloid.nn import GCN, HATConv, HGCNConv, KGCNConv, LGCNConv
from hyperboloid.nn.means import MEANS

LAYERS = {f"lgcn, {mean}": lambda mean=mean: LGCNConv(4, 3, mean=mean) for mean in MEANS}
LAYERS |= {f"hgcn, {mean}": lambda mean=mean: HGCNConv(4, 3, mean=mean, attention=True) for mean in MEANS}
LAYERS |= {"hat": lambda: HATConv(4, 3), "kgcn": lambda: KGCNConv(4, 3)}
HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(0)
    return LAYERS[request.param]()


def nodes():
    return torch.randn(12, 4, generator=torch.Generator().manual_seed(1))


EDGES = torch.randint(12, (2, 40), generator=torch.Generator().manual_seed(2))


def gradients(out, *inputs):
    slopes = torch.linspace(0.5, 1.5, out.numel()).view_as(out)
    return torch.autograd.grad((out.float() * slopes).sum(), inputs)


@pytest.mark.parametrize("dtype", HALVES)
def test_autocast_is_the_same_but_for_rounding(layer, dtype):
    x = nodes().requires_grad_()
    with torch.autocast("cpu", dtype):
        out, (_, weight) = layer(x, EDGES), layer(x, EDGES, return_attention_weights=True)[1]
    expected = layer(x, EDGES)
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.05)
    assert torch.isfinite(weight).all()
    torch.testing.assert_close(gradients(out, x), gradients(expected, x), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_layer_may_be_of_half_precision(layer, dtype):
    expected = layer(nodes(), EDGES)
    x = nodes().to(dtype).requires_grad_()
    out = layer.to(dtype)(x, EDGES)
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.1)
    assert torch.isfinite(gradients(out, x)[0]).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_nodes_without_features_are_finite_in_half_precision(layer, dtype):
    with torch.autocast("cpu", dtype):
        assert torch.isfinite(layer(torch.zeros(12, 4), EDGES)).all()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_changes_nothing(layer, reentrant):
    x = nodes().requires_grad_()
    out = checkpoint(layer, x, EDGES, use_reentrant=reentrant)
    expected = layer(x, EDGES)
    assert torch.equal(out, expected)
    out.sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(expected.sum(), x)[0])


@pytest.mark.parametrize("name", [name for name in LAYERS if "frechet" not in name])
def test_torch_func_differentiates(name):
    torch.manual_seed(0)
    layer, x = LAYERS[name](), nodes().requires_grad_()
    found = torch.func.grad(lambda x: layer(x, EDGES).sin().sum())(x.detach())
    torch.testing.assert_close(found, torch.autograd.grad(layer(x, EDGES).sin().sum(), x)[0], rtol=1e-4, atol=1e-5)


def test_torch_func_differentiates_flat_ones():
    model, x = GCN(4, 3, 2), nodes().requires_grad_()
    found = torch.func.grad(lambda x: model(x, EDGES).sin().sum())(x.detach())
    torch.testing.assert_close(found, torch.autograd.grad(model(x, EDGES).sin().sum(), x)[0], rtol=1e-4, atol=1e-5)


def test_torch_func_differentiates_over_models():
    layer, x, scale = LGCNConv(4, 3), nodes(), torch.tensor([0.5, 1.0, 2.0])

    def total(x):
        return torch.func.vmap(lambda s: layer(x * s, EDGES))(scale).sum()

    expected = sum(torch.func.grad(lambda x, s=s: layer(x * s, EDGES).sum())(x) for s in scale)
    torch.testing.assert_close(torch.func.grad(total)(x), expected, rtol=1e-4, atol=1e-5)


def test_torch_func_differentiates_what_is_not_looked_at_first():
    adj = Adjacency.from_edges(*EDGES, (12, 12), self_loops=True)
    x, weight = nodes(), torch.rand(adj.row.numel(), requires_grad=True)

    def total(weight):
        return lorentz_aggregate(x, adj, torch.ones(()), weight).sin().sum()

    found = torch.func.grad(total)(weight.detach())
    torch.testing.assert_close(found, torch.autograd.grad(total(weight), weight)[0], rtol=1e-4, atol=1e-5)


# torch's compiler itself warns of things that it will do otherwise one day
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's compiler needs one of C++")
def test_what_the_compiler_makes_of_logarithms_has_their_gradient():
    """Seen into, it has another one (torch 2.13, on CPUs)."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    conv = HGCNConv(16, 16)
    x, edges = torch.randn(200, 16).requires_grad_(), torch.randint(200, (2, 900))
    expected = gradients(conv(x, edges), x, *conv.lin.parameters())
    found = gradients(torch.compile(conv)(x, edges), x, *conv.lin.parameters())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item())
