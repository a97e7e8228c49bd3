"""HGCN, node by node with the textbook maps on points of Minkowski space."""

import math

import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from torch_geometric import EdgeIndex

from hyperboloid import InputError
from hyperboloid.kernels import Adjacency, random_stream
from hyperboloid.nn import HGCN, HGCNConv
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.means import get_mean
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize

mp.dps = 30
MEANS = ["tangent", "origin", "centroid", "frechet"]


def layer(in_channels=K, out_channels=D, **options):
    return randomize(HGCNConv(in_channels, out_channels, **options))


# ---- the textbook, one point at a time, with 30 digits: in float64 the ambient maps lose half of theirs


def exact(t):
    """A tensor as an array of mpmath numbers."""
    return np.vectorize(mpf, otypes=[object])(t.detach().numpy())


def inner(x, y):
    return (x[1:] * y[1:]).sum() - x[0] * y[0]


def origin(beta, d):
    return np.array([mp.sqrt(beta), *[mpf(0)] * d])


def exp(x, t, beta):
    """exp_x(t) (Eq. 5)."""
    length = mp.sqrt(inner(t, t))
    if length == 0:
        return x
    r = length / mp.sqrt(beta)
    return mp.cosh(r) * x + mp.sinh(r) / r * t


def log(x, y, beta):
    """log_x(y) (Eq. 6)."""
    if (x == y).all():
        return 0 * x
    across = y + inner(x, y) / beta * x
    return mp.sqrt(beta) * mp.acosh(-inner(x, y) / beta) / mp.sqrt(inner(across, across)) * across


def carry(x, y, t, beta):
    """P_{x→y} t."""
    return t + inner(y, t) / (beta - inner(x, y)) * (x + y)


def at_origin(v):
    return np.array([mpf(0), *v])


def point(v, beta):
    return exp(origin(beta, len(v)), at_origin(v), beta)


def coordinates(x, beta):
    return log(origin(beta, len(x) - 1), x, beta)[1:]


def leaky_relu(score):
    return score if score > 0 else score / 5


def hoods(conv, x, dense, beta):
    """Points of the nodes after Eq. 8, and for each node its neighbours and their weights, which sum to 1."""
    o, bias = origin(beta, conv.out_channels), conv.lin.bias
    points = [point(exact(conv.lin.lin.weight) @ v, beta) for v in x]
    if bias is not None:
        points = [exp(p, carry(o, p, at_origin(exact(bias)), beta), beta) for p in points]
    u = [coordinates(p, beta) for p in points]
    found = []
    for i, row in enumerate(dense):
        hood = row.nonzero().flatten().tolist()
        weight = exact(row[hood])
        if conv.att is not None:
            a = exact(conv.att.weight).flatten()
            weight = weight * [mp.exp(leaky_relu((a * [*u[i], *u[j]]).sum())) for j in hood]
        found.append((hood, weight / weight.sum()))
    return points, found


def textbook_layer(conv, x, dense, beta):
    """Normal coordinates after one layer, by Eq. 8 and 9 of the paper on points."""
    points, found = hoods(conv, x, dense, beta)
    means = [
        textbook_mean(conv.mean, points[i], [points[j] for j in hood], w, beta) for i, (hood, w) in enumerate(found)
    ]
    return np.array([coordinates(p, beta) for p in means])


def textbook_mean(mean, own, points, weight, beta):
    if mean == "centroid":
        s = (weight[:, None] * np.array(points)).sum(0)
        return mp.sqrt(beta) / mp.sqrt(-inner(s, s)) * s
    at = {"tangent": own, "origin": origin(beta, len(own) - 1)}[mean]
    return exp(at, sum(w * log(at, p, beta) for w, p in zip(weight, points, strict=True)), beta)


def assert_equal(ours, expected, tolerance=1e-12):
    torch.testing.assert_close(
        ours.detach(), torch.from_numpy(np.asarray(expected).astype(float)), rtol=tolerance, atol=tolerance
    )


# ---- one layer


@pytest.mark.parametrize("mean", ["tangent", "origin", "centroid"])
@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("beta", [0.5, 1.0, 6.0])
def test_layer_on_points(example, mean, attention, beta):
    conv, x = layer(mean=mean, attention=attention, beta=beta), features()
    expected = textbook_layer(conv, exact(x), example.dense, mpf(beta))
    assert_equal(conv(x, example.edges, example.weight), expected)


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("beta", [0.5, 6.0])
def test_frechet_mean_is_where_the_logarithms_cancel(example, attention, beta):
    conv, x = layer(mean="frechet", attention=attention, beta=beta), features()
    points, found = hoods(conv, exact(x), example.dense, mpf(beta))
    for v, (hood, weight) in zip(exact(conv(x, example.edges, example.weight)), found, strict=True):
        mean = point(v, mpf(beta))
        logs = [log(mean, points[j], mpf(beta)) for j in hood]
        left = (weight[:, None] * np.array(logs)).sum(0)
        # The mean is found by iteration, to 1e-9 √β; where it moves, logarithms of length θ move θ coth θ as far.
        theta = max(mp.sqrt(abs(inner(t, t))) for t in logs) / mp.sqrt(beta)
        assert mp.sqrt(abs(inner(left, left))) < 2e-9 * mp.sqrt(beta) * max(1, theta * mp.coth(theta + 1e-20))


def test_layer_without_bias_on_points(example):
    conv, x = layer(bias=False, beta=2.0), features()
    assert conv.lin.bias is None
    assert_equal(conv(x, example.edges, example.weight), textbook_layer(conv, exact(x), example.dense, mpf(2)))


def test_the_default_is_equal_weights_in_each_nodes_tangent_space():
    conv = HGCNConv(K, D)
    assert conv.mean == "tangent"
    assert conv.att is None


def test_the_means_differ(example):
    x, conv = features(), layer()
    outs = []
    for mean in MEANS:
        other = layer(mean=mean)
        other.load_state_dict(conv.state_dict())
        outs.append(other(x, example.edges, example.weight).detach())
    for i in range(len(outs)):
        for j in range(i):
            assert (outs[i] - outs[j]).abs().max() > 1e-3, (MEANS[i], MEANS[j])


@pytest.mark.parametrize(("radius", "beyond"), [(1.0, 0.14), (8.0, 0.46)])
def test_the_mean_in_a_node_s_own_tangent_space_oversteps(radius, beyond):
    """Of four points around the origin it lies on the node's far side, as docs/models.md tells; other means are 0."""
    u = radius * torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    every = torch.cartesian_prod(torch.arange(4), torch.arange(4)).t()
    adj = Adjacency.from_edges(every[0], every[1], (4, 4), self_loops=False)
    beta, weight = torch.ones((), dtype=torch.float64), torch.ones(16, dtype=torch.float64)
    means = {name: get_mean(name)(u, u, adj, beta, weight) for name in MEANS}
    torch.testing.assert_close(means.pop("tangent"), -beyond * u, rtol=0, atol=0.005 * radius)
    for mean in means.values():
        torch.testing.assert_close(mean, torch.zeros_like(u), rtol=0, atol=1e-6)


def test_an_unknown_mean_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="no mean 'median'; choose one of: centroid, frechet, tangent, origin"):
        HGCNConv(K, D, mean="median")


def test_attention_depends_on_the_node_that_looks():
    """Two nodes weigh the same two neighbours differently, which a score without LeakyReLU could not do."""
    conv = layer(attention=True, bias=False)
    conv.lin.lin.weight.data = torch.eye(D, K, dtype=torch.float64)
    conv.att.weight.data = torch.ones_like(conv.att.weight)
    x = torch.zeros(N, K, dtype=torch.float64)
    x[:4, 0] = torch.tensor([2.0, -2.0, 1.0, -1.0])
    edges = torch.tensor([[2, 3, 2, 3], [0, 0, 1, 1]])
    _, (index, alpha) = conv(x, edges, return_attention_weights=True)
    weight = {tuple(e): a for e, a in zip(index.t().tolist(), alpha.tolist(), strict=True)}
    # scores 2 ± 1 and −2 ± 1, the latter shrunk to a fifth
    assert weight[2, 0] / weight[3, 0] == pytest.approx(math.exp(2.0))
    assert weight[2, 1] / weight[3, 1] == pytest.approx(math.exp(0.4))
    total = torch.zeros(N, dtype=torch.float64).index_add(0, index[1], alpha)
    torch.testing.assert_close(total, torch.ones(N, dtype=torch.float64))


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("attention", [True, False])
def test_an_isolated_node_keeps_its_own_point(example, mean, attention):
    conv, x = layer(mean=mean, attention=attention), features()
    own = conv.lin(x, conv.curvature())
    torch.testing.assert_close(conv(x, example.edges, example.weight)[-1], own[-1], rtol=1e-9, atol=1e-9)


def test_without_loops_an_isolated_node_stays_where_its_tangent_space_is(example):
    """Nothing to add: exp_x(0) = x, with a finite gradient."""
    conv, x = layer(add_self_loops=False), features().requires_grad_()
    out = conv(x, example.edges, example.weight)
    torch.testing.assert_close(out[-1], conv.lin(x, conv.curvature())[-1], rtol=1e-9, atol=1e-9)
    out.sum().backward()
    assert torch.isfinite(x.grad).all()


# ---- neighbour dropout


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("attention", [True, False])
def test_dropping_all_neighbours_leaves_the_node_itself(example, mean, attention):
    conv, x = layer(mean=mean, attention=attention, att_dropout=0.5), features()
    conv.att_dropout = 1.0
    own = conv.lin(x, conv.curvature())
    loops = torch.arange(N).repeat(2, 1)  # node 0 may have its loop twice: once given, never added again
    torch.testing.assert_close(conv(x, example.edges), own, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(conv(x, torch.cat([example.edges, loops], 1)), own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attention", [True, False])
def test_dropped_neighbours_are_as_if_they_were_not_there(attention):
    n = 60
    conv = randomize(HGCNConv(K, D, attention=attention, att_dropout=0.5))
    x, edges = features(n), torch.randint(n, (2, 4 * n))
    with random_stream(0, 0):
        out, (index, alpha) = conv(x, edges, return_attention_weights=True)
    others, kept = index[0] != index[1], alpha > 0
    assert kept[~others].all()
    assert 0.4 < kept[others].double().mean() < 0.6
    torch.testing.assert_close(out, conv.eval()(x, index[:, kept]), rtol=1e-9, atol=1e-9)


# ---- forms of the input


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("mean", MEANS)
def test_every_form_of_the_graph_is_the_same_graph(example, mean, attention):
    conv, x, (edges, weight, _) = layer(mean=mean, attention=attention), features(), example
    expected = conv(x, edges, weight)
    ones = torch.ones(edges.size(1), dtype=torch.float64)
    adj_t = torch.sparse_coo_tensor(edges.flip(0), ones if weight is None else weight, (N, N), check_invariants=True)
    torch.testing.assert_close(conv(x, adj_t.coalesce().to_sparse_csr()), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(conv(x, EdgeIndex(edges, sparse_size=(N, N)), weight), expected, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(conv(x, edges.flip(0), weight), expected)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("attention", [True, False])
def test_a_bipartite_graph_is_half_of_its_union(mean, attention):
    conv = layer(mean=mean, attention=attention, add_self_loops=False)
    source, target = features(6), features(4)
    edges, weight = torch.tensor([[0, 5, 2, 3, 5], [1, 1, 0, 3, 3]]), torch.rand(5, dtype=torch.float64) + 0.1
    union = conv(torch.cat([source, target]), edges + torch.tensor([[0], [6]]), weight)[6:]
    conv.add_self_loops = True  # a bipartite graph gets none: node i of one side is not node i of the other
    out = conv((source, target), edges, weight)
    assert out.shape == (4, D)
    torch.testing.assert_close(out, union, rtol=1e-12, atol=1e-12)


def test_a_bipartite_graph_needs_both_sides(example):
    with pytest.raises(InputError, match="target nodes"):
        layer()((features(), None), example.edges)


# ---- the network


@pytest.mark.parametrize("activation", ["relu", "elu"])
@pytest.mark.parametrize(("mean", "attention"), [("tangent", False), ("centroid", False), ("origin", True)])
def test_two_layers_of_different_curvature_on_points(example, activation, mean, attention):
    model = randomize(HGCN(K, D, 2, activation=activation, mean=mean, attention=attention, beta=0.8, train_beta=False))
    second = layer(D, D, mean=mean, attention=attention, beta=3.0)
    model.convs[1] = second
    x, act = features(), {"relu": lambda a: max(a, 0), "elu": lambda a: a if a > 0 else mp.expm1(a)}[activation]
    # log_0 at one β, the activation, exp_0 at the next β: normal coordinates carry over
    hidden = np.vectorize(act, otypes=[object])(textbook_layer(model.convs[0], exact(x), example.dense, mpf(0.8)))
    expected = textbook_layer(second, hidden, example.dense, mpf(3))
    out = model(x, example.edges, example.weight)
    assert_equal(out, expected, 1e-11)
    # links are decoded with the network's own β
    cosh = -inner(point(expected[0], mpf(0.8)), point(expected[1], mpf(0.8))) / mpf(0.8)
    assert_equal(model.link_logits(out[0], out[1], "intrinsic"), 2 - mpf(0.8) * mp.acosh(cosh) ** 2, 1e-10)


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=6, layers=3, activation="elu", last_activation=True, attention=True, mean="origin", beta=2.0,
        train_beta=False, bias=False, dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    asked = HGCN(
        K, 6, 3, 2, activation="elu", last_activation=True, attention=True, mean="origin", beta=2.0,
        train_beta=False, bias=False, dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    built = HGCN.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(asked)
    assert "mean='origin'" in repr(built)
    assert all(conv.att is not None and conv.lin.lin.drop_connect == 0.3 for conv in built.convs)
    by_itself = HGCN.from_settings(Sizes(40, K, 2), ModelSettings())
    assert all(conv.att is None and conv.mean == "tangent" for conv in by_itself.convs)


def test_every_parameter_learns(example):
    model = randomize(HGCN(K, D, 2, attention=True))
    out = model(features(), example.edges, example.weight)
    model.link_logits(out[0], out[1:4], "intrinsic").sum().backward()
    for name, p in model.named_parameters():
        assert p.grad.abs().max() > 0, name


@pytest.mark.parametrize("mean", ["tangent", "origin", "centroid"])
def test_gradients_against_differences(example, mean):
    conv = layer(3, 2, mean=mean, attention=True, beta=0.7)
    names, parameters = zip(*sorted(conv.named_parameters()), strict=True)

    def output(x, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(conv, state, (x, example.edges, example.weight))

    values = [p.detach().clone().requires_grad_() for p in parameters]
    assert torch.autograd.gradcheck(output, (features(N, 3).requires_grad_(), *values))
