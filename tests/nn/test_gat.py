"""GAT: the values of PyG's GATConv, with its weights."""

import pytest
import torch
from torch_geometric.nn import GATConv

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean
from hyperboloid.kernels import random_stream
from hyperboloid.nn import GAT, GATLayer, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import K, N, features, randomize

D = 6
#: outputs and heads: one, several whose outputs are concatenated, several whose outputs are averaged
HEADS = [(6, 1), (6, 2), (6, 3), (6, 4), (7, 3), (2, 3)]


def untouched(layer, in_channels, out_channels, heads=1, bias=True):
    """PyG's own layer with the same weights."""
    concat = out_channels % heads == 0
    width = out_channels // heads if concat else out_channels
    conv = GATConv(in_channels, width, heads, concat=concat, bias=bias).double()
    conv.lin.weight.data = layer.lin.weight.data
    conv.att_src.data, conv.att_dst.data = layer.att_src.data[None], layer.att_dst.data[None]
    if bias:
        conv.bias.data = layer.bias.data
    return conv


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("width", "heads"), HEADS)
def test_is_pygs(example, width, heads, bias):
    layer, x = randomize(GATLayer(K, width, heads=heads, bias=bias)), features()
    out = layer(x, example.edges)
    assert out.shape == (N, width)
    expected = untouched(layer, K, width, heads, bias)(x, example.edges)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("width", "heads"), HEADS)
def test_gradients_are_pygs(example, width, heads):
    layer, x = randomize(GATLayer(K, width, heads=heads)), features()
    conv = untouched(layer, K, width, heads)
    ours = torch.autograd.grad(
        layer(x, example.edges).square().sum(),
        [layer.lin.weight, layer.att_src, layer.att_dst, layer.bias],
    )
    theirs = torch.autograd.grad(
        conv(x, example.edges).square().sum(), [conv.lin.weight, conv.att_src, conv.att_dst, conv.bias]
    )
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b.view(a.shape), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("heads", [1, 2])
def test_edge_weights_are_refused(example, heads):
    layer, x = randomize(GATLayer(K, D, heads=heads)), features()
    with pytest.raises(InputError, match="no place for edge weights"):
        layer(x, example.edges, torch.rand(example.edges.size(1)))


@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(example, bias):
    one_hot = randomize(GATLayer(N, D, heads=2, bias=bias))
    dense = torch.eye(N, dtype=torch.float64)
    expected = untouched(one_hot, N, D, 2, bias)(dense, example.edges)
    torch.testing.assert_close(one_hot(None, example.edges), expected, rtol=1e-12, atol=1e-12)
    layer, x = randomize(GATLayer(K, D, heads=2, bias=bias)), features() * (torch.rand(N, K) < 0.3)
    expected = untouched(layer, K, D, 2, bias)(x, example.edges)
    torch.testing.assert_close(layer(SparseFeatures.from_dense(x), example.edges), expected, rtol=1e-12, atol=1e-12)


# ---- attention dropout


def test_attention_dropout_follows_the_stream_and_ends_with_training(example):
    layer, x = randomize(GATLayer(K, D, heads=2, att_dropout=0.5)), features()
    outs = []
    for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0)):
        torch.manual_seed(len(outs))  # the global generator has no say
        with random_stream(seed, epoch):
            outs.append(layer(x, example.edges))
    assert torch.equal(outs[0], outs[1])
    assert not torch.allclose(outs[0], outs[2])
    assert not torch.allclose(outs[0], outs[3])
    expected = untouched(layer, K, D, 2)(x, example.edges)
    torch.testing.assert_close(layer.eval()(x, example.edges), expected, rtol=1e-12, atol=1e-12)


def test_attention_dropout_zeroes_single_weights_and_keeps_their_mean():
    """Node 0 and its neighbours all look the same, so its output counts the neighbours that a head has kept."""
    n, p, runs = 40, 0.4, 600
    layer = randomize(GATLayer(K, D, heads=3, att_dropout=p, bias=False))
    x = features(1).expand(n, K)
    edges = torch.stack([torch.arange(n), torch.zeros(n, dtype=torch.long)])
    samples = []
    for epoch in range(runs):
        with torch.no_grad(), random_stream(0, epoch):
            samples.append(layer(x, edges)[0])
    share = (torch.stack(samples) / layer.eval()(x, edges)[0].detach()).view(runs, 3, 2)
    torch.testing.assert_close(share[..., 0], share[..., 1])  # a head has one weight for all its outputs
    kept = share[..., 0] * (1 - p) * n
    torch.testing.assert_close(kept, kept.round(), rtol=0, atol=1e-9)
    variance = p * (1 - p) * n
    assert abs(kept.mean() - (1 - p) * n) < 5 * (variance / kept.numel()) ** 0.5
    assert 0.8 < kept.var() / variance < 1.2
    assert (kept[:, 0] != kept[:, 1]).any()  # heads drop independently


@pytest.mark.parametrize("name", ["dropout", "att_dropout", "drop_connect"])
@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_no_probability(name, value):
    with pytest.raises(InputError, match=f"{name} must be at least 0 and below 1"):
        GATLayer(K, D, **{name: value})


# ---- the network


def test_network_of_pygs_layers(example):
    """Heads share the hidden width, and each has all the classes, which 4 heads cannot share."""
    model, x = randomize(GAT(K, 8, 2, 3, activation="elu", heads=4)), features()
    first, second = untouched(model.convs[0], K, 8, 4), untouched(model.convs[1], 8, 3, 4)
    assert first.concat
    assert not second.concat
    expected = second(torch.nn.functional.elu(first(x, example.edges)), example.edges)
    torch.testing.assert_close(model(x, example.edges), expected, rtol=1e-12, atol=1e-12)
    assert isinstance(model.manifold, Euclidean)


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=6, layers=3, activation="elu", heads=3, bias=False, dropout=0.1, att_dropout=0.2, drop_connect=0.3
    )
    built = GAT.from_settings(Sizes(40, K, 2), settings)
    assert [layer.heads for layer in built.convs] == [3, 3, 3]
    assert [layer.concat for layer in built.convs] == [True, True, False]
    for layer in built.convs:
        assert (layer.dropout, layer.att_dropout, layer.lin.drop_connect) == (0.1, 0.2, 0.3)
        assert layer.bias is None


def test_a_hub_in_half_precision():
    """Equal neighbours have equal weights, whose sum is 1; in bfloat16 a thousand of them would not be."""
    star = torch.stack([torch.arange(1, 1001), torch.zeros(1000, dtype=torch.long)])
    layer, x = GATLayer(3, 2, bias=False).bfloat16(), torch.ones(1001, 3, dtype=torch.bfloat16)
    expected = x[0].float() @ layer.lin.weight.float().t()
    torch.testing.assert_close(layer(x, star)[0].float(), expected, rtol=0.02, atol=0.02)
