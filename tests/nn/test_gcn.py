"""GCN: the values of PyG's GCNConv, with its weights."""

import copy

import pytest
import torch
from torch.func import grad
from torch_geometric.nn import GCNConv

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean
from hyperboloid.kernels import Adjacency, use_backend
from hyperboloid.nn import GCN, GCNLayer, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.gcn import row_weights, symmetric_weights
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize


def untouched(layer, in_channels, out_channels, bias=True):
    """PyG's own layer with the same weights."""
    conv = GCNConv(in_channels, out_channels, bias=bias).double()
    conv.lin.weight.data = layer.lin.weight.data
    if bias:
        conv.bias.data = layer.bias.data
    return conv


@pytest.mark.parametrize("bias", [True, False])
def test_is_pygs(example, bias):
    layer, x = randomize(GCNLayer(K, D, bias=bias)), features()
    expected = untouched(layer, K, D, bias)(x, example.edges, example.weight)
    torch.testing.assert_close(layer(x, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)


def test_is_kipfs_formula(example):
    layer, x = randomize(GCNLayer(K, D)), features()
    root = example.dense.sum(1).sqrt()
    a_hat = example.dense / torch.outer(root, root)
    expected = a_hat @ x @ layer.lin.weight.t() + layer.bias
    torch.testing.assert_close(layer(x, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)


def test_rows_normalised_are_means(example):
    layer, x = randomize(GCNLayer(K, D, normalization="rows")), features()
    mean = example.dense / example.dense.sum(1, keepdim=True)
    expected = mean @ x @ layer.lin.weight.t() + layer.bias
    torch.testing.assert_close(layer(x, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_hub_has_a_mean_in_half_precision_too(dtype):
    leaves = torch.arange(1, 3001)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    layer = GCNLayer(1, 1, bias=False, normalization="rows").to(dtype)
    torch.nn.init.ones_(layer.lin.weight)
    assert layer(torch.ones(3001, 1, dtype=dtype), star)[0].item() == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("normalization", ["symmetric", "rows"])
def test_edge_weights_of_other_kinds(example, normalization):
    layer, x = randomize(GCNLayer(K, D, normalization=normalization)), features()
    counts = torch.arange(1, example.edges.size(1) + 1)
    torch.testing.assert_close(layer(x, example.edges, counts), layer(x, example.edges, counts.double()))
    with pytest.raises(InputError, match="edge_weight must have one axis"):
        layer(x, example.edges, counts.unsqueeze(1))


@pytest.mark.parametrize("weights", [symmetric_weights, row_weights])
def test_what_follows_from_the_graph_alone_is_computed_once(weights):
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adj, other = (Adjacency.from_edges(*edges, (3, 3), self_loops=loops) for loops in (True, False))
    with torch.inference_mode():
        first = weights(adj, None, torch.float32)
    assert weights(adj, None, torch.float32) is first
    assert not first.is_inference()  # it must serve training later
    assert weights(other, None, torch.float32).numel() == 4
    torch.testing.assert_close(weights(adj, None, torch.float64).float(), first)
    torch.testing.assert_close(weights(adj, torch.full((7,), 2.0), torch.float32), first)


def test_what_torch_func_wraps_is_not_remembered():
    adj = Adjacency.from_edges(*torch.tensor([[0, 1], [1, 0]]), (2, 2), self_loops=True)
    with use_backend("reference"):
        grad(lambda x: (row_weights(adj, None, torch.float32) * x).sum())(torch.ones(()))
    assert row_weights(copy.deepcopy(adj), None, torch.float32).tolist() == [0.5] * 4


def test_an_unknown_normalisation():
    with pytest.raises(InputError, match="normalization must be one of symmetric, rows, not 'columns'"):
        GCNLayer(K, D, normalization="columns")


@pytest.mark.parametrize("normalization", ["symmetric", "rows"])
def test_edge_weights_matter_and_one_is_none(example, normalization):
    layer, x, edges = randomize(GCNLayer(K, D, normalization=normalization)), features(), example.edges
    ones = torch.ones(edges.size(1), dtype=torch.float64)
    torch.testing.assert_close(layer(x, edges, ones), layer(x, edges), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(layer(x, edges, 3 * ones), layer(x, edges))
    with pytest.raises(InputError, match="edge_weight has 3 entries but the graph has 12 edges"):
        layer(x, edges, ones[:3])


def test_gradients_are_pygs(example):
    layer, x = randomize(GCNLayer(K, D)), features()
    conv = untouched(layer, K, D)
    ours = torch.autograd.grad(layer(x, example.edges, example.weight).square().sum(), [layer.lin.weight, layer.bias])
    theirs = torch.autograd.grad(conv(x, example.edges, example.weight).square().sum(), [conv.lin.weight, conv.bias])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(example, bias):
    one_hot = randomize(GCNLayer(N, D, bias=bias))
    dense = torch.eye(N, dtype=torch.float64)
    expected = untouched(one_hot, N, D, bias)(dense, example.edges, example.weight)
    torch.testing.assert_close(one_hot(None, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)
    layer, x = randomize(GCNLayer(K, D, bias=bias)), features() * (torch.rand(N, K) < 0.3)
    expected = untouched(layer, K, D, bias)(x, example.edges, example.weight)
    sparse = SparseFeatures.from_dense(x)
    torch.testing.assert_close(layer(sparse, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)


def test_network_of_pygs_layers(example):
    model, x = randomize(GCN(K, D, 2, 3, activation="elu")), features()
    first, second = untouched(model.convs[0], K, D), untouched(model.convs[1], D, 3)
    hidden = torch.nn.functional.elu(first(x, example.edges, example.weight))
    expected = second(hidden, example.edges, example.weight)
    torch.testing.assert_close(model(x, example.edges, example.weight), expected, rtol=1e-12, atol=1e-12)
    assert isinstance(model.manifold, Euclidean)


def test_the_layer_has_no_second_matrix():
    assert {name: tuple(p.shape) for name, p in GCNLayer(K, D).named_parameters()} == {
        "lin.weight": (D, K),
        "bias": (D,),
    }


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=6, layers=3, activation="elu", bias=False, dropout=0.1, drop_connect=0.3, normalization="rows"
    )
    built = GCN.from_settings(Sizes(40, K, 2), settings)
    layers = {"bias": False, "dropout": 0.1, "drop_connect": 0.3, "normalization": "rows"}
    assert repr(built) == repr(GCN(K, 6, 3, 2, activation="elu", **layers))
    for layer in built.convs:
        assert (layer.dropout, layer.lin.drop_connect, layer.bias) == (0.1, 0.3, None)
