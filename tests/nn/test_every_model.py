"""What every registered model promises: equivariance, settings, state, masks, finite gradients, the flat limit."""

import math

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv

from hyperboloid.geometry import Curvature, Lorentz
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.kernels import random_stream
from hyperboloid.nn import HATConv, HGCNConv, HNNLayer, KGCNConv, LGCNConv, SparseFeatures
from hyperboloid.nn.encoder import Network, Sizes
from hyperboloid.nn.registry import MODELS
from hyperboloid.nn.settings import ModelSettings
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import LinkTask

N, K = 30, 6


#: these see the features alone
WITHOUT_GRAPH = {"hnn", "mlp"}
#: 300 steps on disease_lp take them more than six seconds
HEAVY = {"lgcn_no_att_no_centroid", "lgcn_f", "hgcn", "hgcn_c", "hat", "hnn"}


def model(name, *values, marks=()):
    """A model as a parameter; a table of embeddings is skipped, and pytest's summary says why."""
    shallow = pytest.mark.skip(reason="a table of embeddings of one graph, no function of features and edges")
    return pytest.param(name, *values, marks=marks if MODELS[name].load().inductive else shallow)


every_model = pytest.mark.parametrize("name", [model(name) for name in MODELS])


def build(name, sizes=None, **settings):
    """The model with its fixed settings, in float64."""
    line = MODELS[name]
    chosen = line.settle(ModelSettings(**{"dim": 4, **settings}))
    model = line.load().from_settings(Sizes(N, K, None) if sizes is None else sizes, chosen).double()
    model.reset_parameters()  # β as float64 holds it
    return model


def randomize(model):
    """All parameters far from their start, where attention is uniform and biases are 0."""
    for name, p in model.named_parameters():
        if not name.endswith("raw"):
            p.data.normal_(0, 0.5)
    return model


def features(n=N, k=K):
    return torch.randn(n, k, dtype=torch.float64)


def edge_list(n=N):
    """Directed, without duplicates, in no order, with loops and an isolated node n − 1."""
    return torch.randint(n - 1, (2, 4 * n)).unique(dim=1)[:, torch.randperm(100)]


# ---- nodes have no order


@every_model
@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_renaming_the_nodes_renames_the_output(name, activation):
    model, x, edges = randomize(build(name, activation=activation)), features(), edge_list()
    out = model(x, edges)
    new = torch.randperm(N)
    shuffled = torch.randperm(edges.size(1))
    renamed = torch.empty_like(x)
    renamed[new] = x
    torch.testing.assert_close(model(renamed, new[edges][:, shuffled])[new], out, rtol=1e-10, atol=1e-10)
    assert torch.allclose(model(renamed, edges)[new], out) == (name in WITHOUT_GRAPH)


@every_model
def test_renaming_the_nodes_keeps_the_weights_with_their_edges(name):
    model, x, edges = randomize(build(name)), features(), edge_list()
    if name in ("gat", "graphsage"):
        pytest.skip("takes no edge weights; that it says so is tested in its own file")
    weight, new, shuffled = torch.rand(edges.size(1)).double() + 0.1, torch.randperm(N), torch.randperm(edges.size(1))
    renamed = torch.empty_like(x)
    renamed[new] = x
    again = model(renamed, new[edges][:, shuffled], weight[shuffled])[new]
    torch.testing.assert_close(again, model(x, edges, weight), rtol=1e-10, atol=1e-10)


# ---- forms of the input


@every_model
def test_every_form_of_the_graph_is_the_same_graph(name):
    model, x, edges = randomize(build(name)), features(), edge_list()
    expected = model(x, edges)
    ones = torch.ones(edges.size(1), dtype=torch.float64)
    adj_t = torch.sparse_coo_tensor(edges.flip(0), ones, (N, N), check_invariants=True).coalesce()
    for graph in (EdgeIndex(edges, sparse_size=(N, N)), adj_t.to_sparse_csr(), edges.int()):
        torch.testing.assert_close(model(x, graph), expected, rtol=1e-12, atol=1e-12)


@every_model
@pytest.mark.parametrize("bias", [True, False])
def test_one_hot_and_sparse_features_are_dense_ones(name, bias):
    edges = edge_list()
    model = randomize(build(name, Sizes(N, None, 3), bias=bias))
    dense = torch.eye(N, dtype=torch.float64)
    torch.testing.assert_close(model(None, edges), model(dense, edges), rtol=1e-12, atol=1e-12)
    model, x = randomize(build(name, bias=bias)), features() * (torch.rand(N, K) < 0.3)
    torch.testing.assert_close(model(SparseFeatures.from_dense(x), edges), model(x, edges), rtol=1e-12, atol=1e-12)


@every_model
def test_without_any_edges(name):
    model, x = randomize(build(name)), features().requires_grad_()
    out = model(x, torch.empty(2, 0, dtype=torch.long))
    assert out.shape == (N, 4)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()


# ---- settings


@every_model
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_settings_are_honoured(name, layers):
    x, edges = features(), edge_list()
    settings = {"dim": 7, "layers": layers}
    for sizes, width in ((Sizes(N, K, None), 7), (Sizes(N, K, 3), 3)):
        model = build(name, sizes, **settings)
        assert model(x, edges).shape == (N, width)
        assert len(model.convs) == layers
    model = build(name, Sizes(N, None, 3), **settings)
    assert model(None, edges).shape == (N, 3)


@every_model
def test_the_curvature_is_the_one_asked_for(name):
    for train in (True, False):
        model = build(name, beta=2.5, train_beta=train)
        curvatures = [m for m in model.modules() if isinstance(m, Curvature)]
        assert bool(curvatures) == type(model).hyperbolic
        for curvature in curvatures:
            assert curvature().item() == pytest.approx(2.5)
            assert curvature.raw.requires_grad == MODELS[name].fixed.get("train_beta", train)


@every_model
@pytest.mark.parametrize("last", [True, False])
def test_the_last_activation_is_an_option(name, last):
    out = randomize(build(name, last_activation=last))(features(), edge_list())
    assert bool((out >= 0).all()) == last


@every_model
@pytest.mark.parametrize("kind", ["dropout", "att_dropout", "drop_connect"])
def test_each_kind_of_dropout_reaches_the_model_that_has_it(name, kind):
    model, x, edges = randomize(build(name, **{kind: 0.5})), features(), edge_list()
    assert isinstance(model, Network)
    with random_stream(0, 1):
        out = model(x, edges)
    assert torch.allclose(out, model.eval()(x, edges)) == (kind not in type(model).layer_settings)


# ---- state


@every_model
def test_state_dict_round_trip(name, tmp_path):
    x, edges = features(), edge_list()
    model = randomize(build(name, beta=2.0))
    for p in model.parameters():
        p.data += 0.1
    torch.save(model.state_dict(), tmp_path / "state.pt")
    twin = randomize(build(name))
    twin.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(twin(x, edges), model(x, edges))
    u, v = features(2, 4)
    assert torch.equal(twin.link_logits(u, v, "intrinsic"), model.link_logits(u, v, "intrinsic"))


@every_model
def test_reset_parameters_restores_the_start(name):
    line = MODELS[name]
    settings = line.settle(ModelSettings(dim=40, attention=line.fixed.get("attention", True), heads=2, beta=2.0))
    model = line.load().from_settings(Sizes(N, 60, 40), settings)
    fresh = {key: value.clone() for key, value in model.state_dict().items()}
    resets = []
    for noise in (3.0, 30.0):  # what was there before leaves no trace
        for p in model.parameters():
            p.data += noise
        torch.manual_seed(1)
        model.reset_parameters()
        resets.append({key: value.clone() for key, value in model.state_dict().items()})
    for key, value in fresh.items():
        assert torch.equal(resets[0][key], resets[1][key]), key
        if value.numel() == 1 or value.std() == 0:  # biases and β
            torch.testing.assert_close(resets[0][key], value)
        else:  # drawn anew, from the same distribution: 40 entries or more have its spread to a third
            assert not torch.equal(resets[0][key], value), key
            assert float(resets[0][key].std()) == pytest.approx(float(value.std()), rel=0.34), key
            assert abs(resets[0][key].mean()) < 0.5 * value.std(), key


@every_model
def test_masks_come_from_the_stream_alone(name):
    model, x, edges = randomize(build(name, dropout=0.3, att_dropout=0.3, drop_connect=0.3)), features(), edge_list()
    outs = []
    for seed, epoch in ((5, 1), (5, 1), (5, 2), (6, 1)):
        torch.manual_seed(len(outs))  # the global generator has no say
        before = torch.get_rng_state()
        with random_stream(seed, epoch):
            outs.append(model(x, edges))
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(outs[0], outs[1])
    assert not torch.allclose(outs[0], outs[2])
    assert not torch.allclose(outs[0], outs[3])
    model.eval()
    assert torch.equal(model(x, edges), model(x, edges))


# ---- float32 training stays finite: step() raises at the first number that is not


def train(name, graph, steps, **settings):
    chosen = Settings(dim=8, scaling="none", **settings)
    training = Training(name, LinkTask(graph, chosen, 0, torch.float32, "cpu"), chosen, 0)
    losses = [training.step()["loss"] for _ in range(steps)]
    assert all(torch.isfinite(p).all() for p in training.encoder.parameters())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("name", "steps", "distance"),
    [
        *(model(name, 60 if name in HEAVY else 300, "intrinsic") for name in MODELS),
        *(model(name, 300, "intrinsic", marks=pytest.mark.slow) for name in MODELS if name in HEAVY),
        *(model(name, 300, "lorentz", marks=pytest.mark.slow) for name in MODELS),
    ],
)
def test_training_on_the_raw_features_of_disease(name, steps, distance, data_dir):
    train(name, load_graph("disease_lp", data_dir=data_dir), steps, distance=distance)


@every_model
@pytest.mark.parametrize("steps", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_training_on_a_star_with_10000_leaves(name, steps):
    leaves = torch.arange(1, 10_001)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([hub, leaves]), torch.cat([leaves, hub])])
    train(name, Graph("star", edges, 10_001, x=torch.randn(10_001, 4)), steps)


# ---- the flat limit: with β the error falls like 1/β


def slope(layer, expected, x, edges):
    """−d log(error)/d log(β) between β = 1e2 and 1e4."""
    errors = []
    for beta in (1e2, 1e4):
        layer.curvature.initial_beta = beta
        layer.curvature.reset_parameters()
        assert layer.curvature().item() == pytest.approx(beta)
        errors.append(float((layer(x, edges) - expected).detach().norm() / expected.detach().norm()))
    assert errors[0] < 0.1
    return math.log(errors[0] / errors[1]) / math.log(1e4 / 1e2)


def flat_graph():
    """Edges, and the rows of A + I."""
    edges = edge_list()
    dense = torch.eye(N, dtype=torch.float64)
    dense[edges[1], edges[0]] = 1
    return edges, dense


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        pytest.param(LGCNConv, {"attention": False}, id="lgcn_no_att"),
        pytest.param(LGCNConv, {"attention": False, "mean": "tangent"}, id="lgcn_no_att_no_centroid"),
        pytest.param(LGCNConv, {"attention": False, "mean": "frechet"}, id="lgcn_f"),
        pytest.param(HGCNConv, {}, id="hgcn"),
        pytest.param(HGCNConv, {"mean": "origin"}, id="hgcn_origin"),
        pytest.param(HGCNConv, {"mean": "centroid"}, id="hgcn_c"),
    ],
)
def test_a_mean_becomes_the_flat_mean(layer, options):
    """D⁻¹ (A + I) X W + b."""
    conv, x, (edges, dense) = randomize(layer(K, 4, **options).double()), features(), flat_graph()
    linear = conv.lin.lin if layer is HGCNConv else conv.lin
    expected = dense @ (x @ linear.weight.t() + conv.lin.bias) / dense.sum(1, keepdim=True)
    assert 0.8 < slope(conv, expected, x, edges) < 1.2


def test_kgcn_becomes_kipfs_gcn():
    conv, x, (edges, _) = randomize(KGCNConv(K, 4, bias=False).double()), features(), flat_graph()
    gcn = GCNConv(K, 4, bias=False).double()
    gcn.lin.weight.data = conv.lin.weight.data
    assert 0.8 < slope(conv, gcn(x, edges), x, edges) < 1.2


def test_lgcn_becomes_attention_by_euclidean_distance():
    conv, x, (edges, dense) = randomize(LGCNConv(K, 4).double()), features(), flat_graph()
    u = x @ conv.lin.weight.t() + conv.lin.bias
    a = u @ conv.att.weight.t()
    alpha = torch.softmax((-torch.cdist(a, a).square()).masked_fill(dense == 0, -math.inf), 1)
    assert 0.8 < slope(conv, alpha @ u, x, edges) < 1.2


def test_hat_becomes_attention_by_euclidean_distance():
    conv, x, (edges, dense) = randomize(HATConv(K, 4).double()), features(), flat_graph()
    u = x @ conv.lin.weight.t()
    # on the ball with λ_0 = 2 two points are twice as far apart as their coordinates
    alpha = torch.softmax((-2 * torch.cdist(u, u)).masked_fill(dense == 0, -math.inf), 1)
    assert 0.8 < slope(conv, alpha @ u + conv.bias, x, edges) < 1.2


def test_hnn_becomes_a_linear_map():
    conv, x, (edges, _) = randomize(HNNLayer(K, 4).double()), features(), flat_graph()
    expected = x @ conv.lin.lin.weight.t() + conv.lin.bias
    assert 0.8 < slope(conv, expected, x, edges) < 1.2


@pytest.mark.parametrize("name", ["lgcn", "hgcn", "kgcn", "hat", "hnn"])
def test_points_of_a_hyperboloid_enter_where_they_are(name):
    """With W = 1, no bias and no edges a layer leaves points where they are."""
    v = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = MODELS[name].load()(3, 3, 1, bias=False, input_beta=2.5).double()
    with torch.no_grad():
        lin = model.convs[0].lin
        getattr(lin, "lin", lin).weight.copy_(torch.eye(3))
    out = model(Lorentz(2.5).exp0(v), torch.empty(2, 0, dtype=torch.long))
    torch.testing.assert_close(out, v, rtol=1e-9, atol=1e-9)
