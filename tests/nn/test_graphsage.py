"""GraphSAGE: the values of PyG's SAGEConv, with its weights."""

import pytest
import torch
from torch_geometric.nn import SAGEConv

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean
from hyperboloid.nn import GraphSAGE, SAGELayer, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize


def untouched(layer, in_channels, out_channels, bias=True):
    """PyG's own layer with the same weights."""
    conv = SAGEConv(in_channels, out_channels, bias=bias).double()
    conv.lin_l.weight.data, conv.lin_r.weight.data = layer.lin.weight.data, layer.own.weight.data
    if bias:
        conv.lin_l.bias.data = layer.own.bias.data
    return conv


@pytest.mark.parametrize("bias", [True, False])
def test_is_pygs(example, bias):
    layer, x = randomize(SAGELayer(K, D, bias=bias)), features()
    expected = untouched(layer, K, D, bias)(x, example.edges)
    torch.testing.assert_close(layer(x, example.edges), expected, rtol=1e-12, atol=1e-12)


def test_is_the_formula(example):
    """Without self loops, but for the one that was given; an isolated node has itself alone."""
    layer, x, a = randomize(SAGELayer(K, D)), features(), torch.zeros(N, N, dtype=torch.float64)
    a[example.edges[1], example.edges[0]] = 1
    mean = a @ x / a.sum(1, keepdim=True).clamp(min=1)
    expected = mean @ layer.lin.weight.t() + x @ layer.own.weight.t() + layer.own.bias
    torch.testing.assert_close(layer(x, example.edges), expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_pygs(example):
    layer, x = randomize(SAGELayer(K, D)), features()
    conv = untouched(layer, K, D)
    ours = torch.autograd.grad(
        layer(x, example.edges).square().sum(), [layer.lin.weight, layer.own.weight, layer.own.bias]
    )
    theirs = torch.autograd.grad(
        conv(x, example.edges).square().sum(), [conv.lin_l.weight, conv.lin_r.weight, conv.lin_l.bias]
    )
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


def test_edge_weights_are_refused(example):
    layer, x = randomize(SAGELayer(K, D)), features()
    with pytest.raises(InputError, match="no place for edge weights"):
        layer(x, example.edges, torch.rand(example.edges.size(1)))


@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(example, bias):
    one_hot = randomize(SAGELayer(N, D, bias=bias))
    dense = torch.eye(N, dtype=torch.float64)
    expected = untouched(one_hot, N, D, bias)(dense, example.edges)
    torch.testing.assert_close(one_hot(None, example.edges), expected, rtol=1e-12, atol=1e-12)
    layer, x = randomize(SAGELayer(K, D, bias=bias)), features() * (torch.rand(N, K) < 0.3)
    expected = untouched(layer, K, D, bias)(x, example.edges)
    torch.testing.assert_close(layer(SparseFeatures.from_dense(x), example.edges), expected, rtol=1e-12, atol=1e-12)


def test_both_maps_see_the_same_dropped_features():
    """Where every node's only neighbour is itself and W_l = −W_r, nothing is left, unless the two x differ."""
    layer, x = randomize(SAGELayer(K, D, dropout=0.5, bias=False)), features()
    loops = torch.arange(N).repeat(2, 1)
    assert not torch.allclose(layer(x, loops), layer.eval()(x, loops))
    layer.train().own.weight.data = -layer.lin.weight.data
    torch.testing.assert_close(layer(x, loops), torch.zeros(N, D, dtype=torch.float64), rtol=0, atol=1e-12)


def test_both_maps_have_drop_connect():
    layer, x = randomize(SAGELayer(30, 20, drop_connect=0.5)), features(N, 30)
    layer(x, torch.arange(N).repeat(2, 1)).square().sum().backward()
    for weight in (layer.lin.weight, layer.own.weight):
        assert 0.4 < (weight.grad == 0).double().mean() < 0.6
    assert not torch.equal(layer.lin.weight.grad == 0, layer.own.weight.grad == 0)
    assert (layer.own.bias.grad != 0).all()


@pytest.mark.parametrize("name", ["dropout", "drop_connect"])
@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_no_probability(name, value):
    with pytest.raises(InputError, match=f"{name} must be at least 0 and below 1"):
        SAGELayer(K, D, **{name: value})


def test_network_of_pygs_layers(example):
    model, x = randomize(GraphSAGE(K, D, 2, 3, activation="elu")), features()
    first, second = untouched(model.convs[0], K, D), untouched(model.convs[1], D, 3)
    expected = second(torch.nn.functional.elu(first(x, example.edges)), example.edges)
    torch.testing.assert_close(model(x, example.edges), expected, rtol=1e-12, atol=1e-12)
    assert isinstance(model.manifold, Euclidean)


def test_the_layer_has_two_matrices_and_one_bias():
    assert {name: tuple(p.shape) for name, p in SAGELayer(K, D).named_parameters()} == {
        "lin.weight": (D, K),
        "own.weight": (D, K),
        "own.bias": (D,),
    }


def test_settings_reach_the_layers():
    settings = ModelSettings(dim=6, layers=3, activation="elu", bias=False, dropout=0.1, drop_connect=0.3)
    built = GraphSAGE.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(GraphSAGE(K, 6, 3, 2, activation="elu", bias=False, dropout=0.1, drop_connect=0.3))
    for layer in built.convs:
        assert (layer.dropout, layer.lin.drop_connect, layer.own.drop_connect, layer.own.bias) == (0.1, 0.3, 0.3, None)


def test_a_hub_in_half_precision():
    """A thousand ones add up to 256 in bfloat16, where the next number is 258."""
    star = torch.stack([torch.arange(1, 1001), torch.zeros(1000, dtype=torch.long)])
    layer, x = SAGELayer(3, 2, bias=False).bfloat16(), torch.ones(1001, 3, dtype=torch.bfloat16)
    expected = x[0].float() @ (layer.lin.weight + layer.own.weight).float().t()
    torch.testing.assert_close(layer(x, star)[0].float(), expected, rtol=0.02, atol=0.02)
