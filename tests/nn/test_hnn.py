"""HNN: against Möbius operations on the ball and exponential maps on the hyperboloid, both by geoopt."""

import geoopt
import pytest
import torch
from torch.nn import functional as F

from hyperboloid import InputError
from hyperboloid.nn import HNN, HGCNConv, HNNLayer, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


def layer(in_channels=K, out_channels=D, **options):
    return randomize(HNNLayer(in_channels, out_channels, **options))


def on_the_ball(conv, v, beta):
    """(W ⊗ p) ⊕ b; normal coordinates are twice geoopt's log_0."""
    ball = geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))
    p = ball.mobius_matvec(conv.lin.lin.weight, ball.expmap0(v / 2))
    if conv.lin.bias is not None:
        p = ball.mobius_add(p, ball.expmap0(conv.lin.bias / 2))
    return 2 * ball.logmap0(p)


def on_the_hyperboloid(conv, v, beta):
    """exp_x(P_{0→x} b) with x = exp_0(W v)."""
    space = geoopt.Lorentz(k=torch.tensor(beta, dtype=torch.float64))
    x = space.expmap0(F.pad(v @ conv.lin.lin.weight.t(), (1, 0)))
    if conv.lin.bias is not None:
        x = space.expmap(x, space.transp0(x, F.pad(conv.lin.bias, (1, 0)).expand_as(x)))
    return space.logmap0(x)[:, 1:]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("beta", [0.5, 1.0, 6.0])
@pytest.mark.parametrize("plain", [on_the_ball, on_the_hyperboloid])
def test_layer_by_geoopt(plain, beta, bias):
    conv, x = layer(beta=beta, bias=bias), features()
    torch.testing.assert_close(conv(x, EDGES), plain(conv, x, beta), rtol=1e-8, atol=1e-8)


def test_the_bias_moves_every_point_equally_far():
    """d(x, x ⊕ b) = ‖b‖ everywhere; adding b to the coordinates would not do that."""
    conv, x = layer(beta=0.5), features()
    ball = geoopt.PoincareBall(c=torch.tensor(2.0, dtype=torch.float64))
    before = x @ conv.lin.lin.weight.t()
    start, moved, summed = (ball.expmap0(v / 2) for v in (before, conv(x, EDGES), before + conv.lin.bias))
    length = conv.lin.bias.norm().expand(N)
    torch.testing.assert_close(ball.dist(start, moved), length, rtol=1e-8, atol=0)
    assert (ball.dist(start, summed) / length - 1).abs().max() > 0.1


@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_two_layers_of_different_curvature(activation):
    model, x = randomize(HNN(K, D, 2, 3, activation=activation, beta=0.8)), features()
    model.convs[1] = layer(D, 3, beta=3.0)
    hidden = getattr(F, activation)(on_the_hyperboloid(model.convs[0], x, 0.8))  # the activation on normal coordinates
    out = model(x, EDGES)
    torch.testing.assert_close(out, on_the_ball(model.convs[1], hidden, 3.0), rtol=1e-8, atol=1e-8)
    ball = geoopt.PoincareBall(c=torch.tensor(1 / 0.8, dtype=torch.float64))
    p = ball.expmap0(out / 2)
    torch.testing.assert_close(
        model.link_logits(out[:-1], out[1:], "intrinsic"), 2 - ball.dist2(p[:-1], p[1:]), rtol=1e-8, atol=1e-8
    )


def test_it_is_hgcn_without_a_graph():
    conv, x = layer(beta=2.0), features()
    other = randomize(HGCNConv(K, D, beta=2.0))
    other.lin.load_state_dict(conv.lin.state_dict())
    alone = torch.empty(2, 0, dtype=torch.long)
    torch.testing.assert_close(conv(x, EDGES), other(x, alone), rtol=1e-10, atol=1e-10)


def test_the_graph_is_ignored():
    conv, x = layer(), features()
    expected = conv(x, EDGES)
    assert torch.equal(conv(x, EDGES.flip(0)), expected)
    assert torch.equal(conv(x, torch.empty(2, 0, dtype=torch.long)), expected)
    assert torch.equal(conv(x, EDGES, torch.rand(3)), expected)


@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(bias):
    one_hot = layer(N, D, bias=bias)
    dense = torch.eye(N, dtype=torch.float64)
    torch.testing.assert_close(one_hot(None, EDGES), one_hot(dense, EDGES), rtol=1e-12, atol=1e-12)
    conv, x = layer(bias=bias), features() * (torch.rand(N, K) < 0.3)
    torch.testing.assert_close(conv(SparseFeatures.from_dense(x), EDGES), conv(x, EDGES), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["dropout", "drop_connect"])
@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_no_probability(name, value):
    with pytest.raises(InputError, match=f"{name} must be at least 0 and below 1"):
        HNNLayer(K, D, **{name: value})


def test_settings_reach_the_layers():
    settings = ModelSettings(dim=6, layers=3, activation="elu", beta=2.0, bias=False, dropout=0.1, drop_connect=0.3)
    asked = HNN(K, 6, 3, 2, activation="elu", beta=2.0, bias=False, dropout=0.1, drop_connect=0.3)
    built = HNN.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(asked)
    for conv in built.convs:
        assert (conv.dropout, conv.lin.lin.drop_connect, conv.lin.bias) == (0.1, 0.3, None)


def test_gradients_against_differences():
    conv = layer(3, 2, beta=0.7)
    names, parameters = zip(*sorted(conv.named_parameters()), strict=True)

    def output(x, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, EDGES))

    values = [p.detach().clone().requires_grad_() for p in parameters]
    assert torch.autograd.gradcheck(output, (features(N, 3).requires_grad_(), *values))
