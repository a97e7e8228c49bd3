"""HAT: against geoopt's distance on the Poincaré ball, node by node."""

import geoopt
import pytest
import torch
from torch.nn import functional as F

from hyperboloid.kernels import random_stream
from hyperboloid.nn import HAT, HATConv
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize


def layer(in_channels=K, out_channels=D, **options):
    return randomize(HATConv(in_channels, out_channels, **options))


def geoopt_ball(beta):
    return geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))


def geoopt_layer(conv, points, dense, beta):
    """Points after one layer: softmax of −d over each neighbourhood, times the given weights, summed in log_0."""
    ball = geoopt_ball(beta)
    moved, rows = ball.mobius_matvec(conv.lin.weight, points), []
    for i, row in enumerate(dense):
        hood = row.nonzero().flatten()
        alpha = row[hood] * torch.softmax(-ball.dist(moved[i].expand(len(hood), -1), moved[hood]), 0)
        mean = (alpha / alpha.sum()) @ ball.logmap0(moved[hood])
        rows.append(mean if conv.bias is None else mean + conv.bias)
    return ball.expmap0(torch.stack(rows))


# ---- one layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("beta", [0.5, 1.0, 6.0])
@pytest.mark.parametrize("width", [1, 2, 7])  # the published Möbius addition is right for 2 only
def test_layer_on_the_ball(example, width, bias, beta):
    # geoopt moves points with tanh(‖w‖/√β) > 1 − 1e-5 inwards: keep away from the edge of the ball
    conv, x, ball = layer(out_channels=width, bias=bias, beta=beta), 0.5 * features(), geoopt_ball(beta)
    expected = ball.logmap0(geoopt_layer(conv, ball.expmap0(x), example.dense, beta))
    torch.testing.assert_close(conv(x, example.edges, example.weight), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 6.0])
def test_attention_by_moebius_addition(beta):
    """d(p, q) = 2√β artanh(‖−p ⊕ q‖/√β), written out."""
    conv, x = layer(beta=beta), features()
    w = x @ conv.lin.weight.t()
    length = w.norm(dim=1, keepdim=True)
    points = beta**0.5 * torch.tanh(length / beta**0.5) * w / length
    edges = torch.tensor([[1, 2, 3], [0, 0, 0]])
    _, (index, alpha) = conv(x, edges, return_attention_weights=True)
    distances = []
    for j in range(4):
        p, q = -points[0], points[j]
        pq, pp, qq = p @ q / beta, p @ p / beta, q @ q / beta
        total = ((1 + 2 * pq + qq) * p + (1 - pp) * q) / (1 + 2 * pq + pp * qq)
        distances.append(2 * beta**0.5 * torch.atanh(total.norm() / beta**0.5))
    assert index[:, :4].tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]
    torch.testing.assert_close(alpha[:4], torch.softmax(-torch.stack(distances), 0), rtol=1e-10, atol=1e-12)


def test_an_isolated_node_keeps_its_own_point(example):
    conv, x = layer(), features()
    own = conv.lin(x) + conv.bias
    torch.testing.assert_close(conv(x, example.edges, example.weight)[-1], own[-1], rtol=1e-12, atol=1e-12)


def test_dropping_all_neighbours_leaves_the_node_itself(example):
    conv, x = layer(att_dropout=0.5), features()
    conv.att_dropout = 1.0
    own = conv.lin(x) + conv.bias
    torch.testing.assert_close(conv(x, example.edges, example.weight), own, rtol=1e-12, atol=1e-12)


def test_dropped_neighbours_are_as_if_they_were_not_there():
    n, conv = 60, layer(att_dropout=0.5)
    x, edges = features(n), torch.randint(n, (2, 4 * n))
    with random_stream(0, 0):
        out, (index, alpha) = conv(x, edges, return_attention_weights=True)
    others, kept = index[0] != index[1], alpha > 0
    assert kept[~others].all()
    assert 0.4 < kept[others].double().mean() < 0.6
    torch.testing.assert_close(out, conv.eval()(x, index[:, kept]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_works_after_inference_on_the_same_graph(dtype):
    x, edge_index = torch.randn(3, 4, dtype=dtype), torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv = HATConv(4, 2).to(dtype)
    with torch.inference_mode():
        conv(x, edge_index)
    conv(x, edge_index).sum().backward()
    assert conv.lin.weight.grad.abs().max() > 0


def test_a_bipartite_graph_is_half_of_its_union():
    conv = layer(add_self_loops=False)
    source, target = features(6), features(4)
    edges, weight = torch.tensor([[0, 5, 2, 3, 5], [1, 1, 0, 3, 3]]), torch.rand(5, dtype=torch.float64) + 0.1
    union = conv(torch.cat([source, target]), edges + torch.tensor([[0], [6]]), weight)[6:]
    conv.add_self_loops = True  # a bipartite graph gets none
    torch.testing.assert_close(conv((source, target), edges, weight), union, rtol=1e-12, atol=1e-12)


def test_gradients_against_differences(example):
    """Self loops included, where the distance has a kink at 0 but always the value 0."""
    conv = layer(3, 2, beta=0.7)
    names, parameters = zip(*sorted(conv.named_parameters()), strict=True)

    def output(x, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(conv, state, (x, example.edges, example.weight))

    values = [p.detach().clone().requires_grad_() for p in parameters]
    assert torch.autograd.gradcheck(output, (features(N, 3).requires_grad_(), *values))


def test_reset_parameters_takes_the_bias_back_to_zero():
    conv = layer()
    assert conv.bias.abs().max() > 0
    conv.reset_parameters()
    assert torch.equal(conv.bias, torch.zeros_like(conv.bias))


# ---- the network


@pytest.mark.parametrize("activation", ["relu", "elu"])
@pytest.mark.parametrize("bias", [True, False])
def test_two_layers_on_the_ball(example, activation, bias):
    """Points of the ball all the way; the output is their normal coordinates, 2 log_0."""
    model, x = randomize(HAT(K, D, 2, 3, activation=activation, bias=bias, beta=0.8)), features()
    model.convs[1] = layer(D, 3, bias=bias, beta=3.0)
    first, second, last = geoopt_ball(0.8), geoopt_ball(3.0), geoopt_ball(0.8)
    h = geoopt_layer(model.convs[0], first.expmap0(x), example.dense, 0.8)
    h = first.mobius_fn_apply(getattr(F, activation), h)
    h = second.expmap0(first.logmap0(h))  # to the next layer's curvature
    h = geoopt_layer(model.convs[1], h, example.dense, 3.0)
    h = last.expmap0(second.logmap0(h))
    out = model(x, example.edges, example.weight)
    assert out.shape == (N, 3)
    torch.testing.assert_close(out, 2 * last.logmap0(h), rtol=1e-9, atol=1e-9)
    # so that links are decoded by the ball's own distance
    logits = model.link_logits(out[:-1], out[1:], "intrinsic")
    torch.testing.assert_close(logits, 2 - last.dist2(h[:-1], h[1:]), rtol=1e-8, atol=1e-8)


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=6, layers=3, activation="elu", beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    asked = HAT(
        K, 6, 3, 2, activation="elu", beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    built = HAT.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(asked)
    assert all(conv.lin.drop_connect == 0.3 and conv.bias is None for conv in built.convs)
