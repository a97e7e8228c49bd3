"""MLP: torch's own linear layers, and nothing of the graph."""

import pytest
import torch
from torch import nn

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean
from hyperboloid.nn import MLP, LinearLayer, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("activation", "between"), [("relu", nn.ReLU), ("elu", nn.ELU), ("tanh", nn.Tanh)])
@pytest.mark.parametrize("last", [True, False])
def test_is_torchs_perceptron(bias, activation, between, last):
    model = randomize(MLP(K, D, 3, 2, bias=bias, activation=activation, last_activation=last))
    plain = nn.Sequential(
        nn.Linear(K, D, bias), between(), nn.Linear(D, D, bias), between(), nn.Linear(D, 2, bias)
    ).double()
    for ours, theirs in zip(model.convs, plain[::2], strict=True):
        theirs.load_state_dict(ours.lin.state_dict())
    if last:
        plain.append(between())
    x = features()
    torch.testing.assert_close(model(x, EDGES), plain(x), rtol=1e-12, atol=1e-12)


def test_the_graph_is_ignored():
    model, x = randomize(MLP(K, D, 2)), features()
    expected = model(x, EDGES)
    assert torch.equal(model(x, EDGES.flip(0)), expected)
    assert torch.equal(model(x, torch.empty(2, 0, dtype=torch.long)), expected)
    assert torch.equal(model(x, EDGES, torch.rand(3)), expected)


def test_embeddings_live_in_flat_space():
    model = randomize(MLP(K, D, 2))
    assert isinstance(model.manifold, Euclidean)
    u, v = features(N, D), features(N, D)
    for distance in ("intrinsic", "lorentz"):  # flat space has one distance
        torch.testing.assert_close(model.link_logits(u, v, distance), 2 - (u - v).square().sum(1))


@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(bias):
    one_hot = randomize(LinearLayer(N, D, bias=bias))
    dense = torch.eye(N, dtype=torch.float64)
    torch.testing.assert_close(one_hot(None, EDGES), one_hot(dense, EDGES), rtol=1e-12, atol=1e-12)
    layer, x = randomize(LinearLayer(K, D, bias=bias)), features() * (torch.rand(N, K) < 0.3)
    torch.testing.assert_close(layer(SparseFeatures.from_dense(x), EDGES), layer(x, EDGES), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["dropout", "drop_connect"])
@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_no_probability(name, value):
    with pytest.raises(InputError, match=f"{name} must be at least 0 and below 1"):
        LinearLayer(K, D, **{name: value})


def test_settings_reach_the_layers():
    settings = ModelSettings(dim=6, layers=3, activation="elu", bias=False, dropout=0.1, drop_connect=0.3, beta=2.0)
    built = MLP.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(MLP(K, 6, 3, 2, activation="elu", bias=False, dropout=0.1, drop_connect=0.3))
    for layer in built.convs:
        assert (layer.dropout, layer.lin.drop_connect, layer.lin.bias) == (0.1, 0.3, None)
    assert built.curvature is None
