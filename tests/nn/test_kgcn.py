"""κ-GCN: against geoopt on the Poincaré ball, and against the Lorentz centroid."""

import geoopt
import networkx
import pytest
import torch
from torch.nn import functional as F
from torch_geometric.utils import to_undirected

from hyperboloid import InputError
from hyperboloid.nn import KGCN, KGCNConv
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings

from .helpers import D, K, N, features, randomize


def layer(in_channels=K, out_channels=D, **options):
    return randomize(KGCNConv(in_channels, out_channels, **options))


# ---- the plain computation on the ball, by geoopt


def geoopt_ball(beta):
    return geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))


def normalized(dense):
    """D^(−1/2) A D^(−1/2) with the degrees of the rows."""
    root = dense.sum(1).sqrt()
    return dense / torch.outer(root, root)


def midpoints(points, a_hat, beta):
    """(Σ_j Â_ij) ⊗ midpoint_j(p_j; Â_ij) for every node, one at a time."""
    ball, rows = geoopt_ball(beta), []
    for weight in a_hat:
        hood = weight.nonzero().flatten()
        # geoopt adds 1e-10 to its denominator Σ w (λ − 1); only ratios matter, and large weights make that harmless
        middle = ball.weighted_midpoint(points[hood], 1e6 * weight[hood], reducedim=[0])
        rows.append(ball.mobius_scalar_mul(weight.sum(), middle))
    return torch.stack(rows)


def geoopt_layer(conv, points, a_hat, beta):
    ball = geoopt_ball(beta)
    moved = ball.mobius_matvec(conv.lin.weight, points)
    if conv.lin.bias is not None:
        moved = ball.expmap0(ball.logmap0(moved) + conv.lin.bias)
    return midpoints(moved, a_hat, beta)


# ---- one layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("beta", [0.5, 1.0, 6.0])
def test_layer_on_the_ball(example, bias, beta):
    conv, x, ball = layer(bias=bias, beta=beta), features(), geoopt_ball(beta)
    expected = ball.logmap0(geoopt_layer(conv, ball.expmap0(x), normalized(example.dense), beta))
    torch.testing.assert_close(conv(x, example.edges, example.weight), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 6.0])
def test_rows_normalised_are_midpoints(example, beta):
    conv, x, ball = layer(normalization="rows", beta=beta), features(), geoopt_ball(beta)
    a_hat = example.dense / example.dense.sum(1, keepdim=True)
    expected = ball.logmap0(geoopt_layer(conv, ball.expmap0(x), a_hat, beta))
    torch.testing.assert_close(conv(x, example.edges, example.weight), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [True, False])
def test_normalisation_is_that_of_the_laplacian(weighted):
    """Â = I − L for the symmetrically normalised Laplacian L of the graph with its loops, as networkx has it."""
    graph = networkx.les_miserables_graph()
    nodes = list(graph)
    if not weighted:
        for *_, data in graph.edges(data=True):
            data["weight"] = 1
    links = torch.tensor([(nodes.index(u), nodes.index(v)) for u, v in graph.edges]).t()
    weight = torch.tensor([w for *_, w in graph.edges(data="weight")], dtype=torch.float64)
    edges, weight = to_undirected(links, weight)
    graph.add_weighted_edges_from((v, v, 1) for v in nodes)
    a_hat = torch.eye(len(nodes), dtype=torch.float64) - torch.from_numpy(
        networkx.normalized_laplacian_matrix(graph).toarray()
    )
    conv, x, ball = layer(beta=2.0), features(len(nodes)), geoopt_ball(2.0)
    expected = ball.logmap0(geoopt_layer(conv, ball.expmap0(x), a_hat.clamp(min=0), 2.0))
    torch.testing.assert_close(conv(x, edges, weight if weighted else None), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("beta", [0.5, 6.0])
def test_the_gyromidpoint_is_the_lorentz_centroid(example, beta):
    """√β s/‖s‖_L with s = Σ Â x, in normal coordinates times ΣÂ, is twice what the layer gives: λ_0 = 2."""
    conv, x, root = layer(beta=beta), features(), beta**0.5
    v = 2 * (x @ conv.lin.weight.t() + conv.lin.bias)
    length = v.norm(dim=1, keepdim=True)
    points = torch.cat([root * torch.cosh(length / root), root * torch.sinh(length / root) * v / length], dim=1)
    a_hat = normalized(example.dense)
    s = a_hat @ points
    c = root * s / (s[:, :1].square() - s[:, 1:].square().sum(1, keepdim=True)).sqrt()
    size = c[:, 1:].norm(dim=1, keepdim=True)
    expected = a_hat.sum(1, keepdim=True) * root * torch.asinh(size / root) * c[:, 1:] / size
    torch.testing.assert_close(2 * conv(x, example.edges, example.weight), expected, rtol=1e-9, atol=1e-9)


def test_scaling_all_weights_is_not_free_here(example):
    """Unlike a mean's, because self loops keep weight 1; without them the normalisation takes the factor out."""
    conv, x = layer(), features()
    weight = torch.ones(example.edges.size(1), dtype=torch.float64)
    assert not torch.allclose(conv(x, example.edges, 3 * weight), conv(x, example.edges, weight))
    conv.add_self_loops = False
    torch.testing.assert_close(conv(x, example.edges, 3 * weight), conv(x, example.edges, weight))


def test_an_isolated_node_keeps_its_own_point(example):
    conv, x = layer(), features()
    torch.testing.assert_close(conv(x, example.edges, example.weight)[-1], conv.lin(x)[-1], rtol=1e-12, atol=1e-12)


def test_without_loops_an_isolated_node_is_the_origin(example):
    conv, x = layer(add_self_loops=False), features().requires_grad_()
    out = conv(x, example.edges, example.weight)
    assert torch.equal(out[-1], torch.zeros(D, dtype=torch.float64))
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


def test_dropping_all_neighbours_leaves_the_node_itself(example):
    conv, x = layer(att_dropout=0.5), features()
    conv.att_dropout = 1.0
    # a self loop alone has Â_ii = w/w = 1, whatever its weight
    torch.testing.assert_close(conv(x, example.edges, example.weight), conv.lin(x), rtol=1e-12, atol=1e-12)


def test_a_bipartite_graph_has_rows_only(example):
    both = features(), features()
    with pytest.raises(InputError, match="not a bipartite graph"):
        layer()(both, example.edges)
    conv = layer(normalization="rows", add_self_loops=False)
    torch.testing.assert_close(conv(both, example.edges, example.weight), conv(both[0], example.edges, example.weight))


def test_gradients_against_differences(example):
    conv = layer(3, 2, beta=0.7)
    names, parameters = zip(*sorted(conv.named_parameters()), strict=True)

    def output(x, *values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(conv, state, (x, example.edges, example.weight))

    values = [p.detach().clone().requires_grad_() for p in parameters]
    assert torch.autograd.gradcheck(output, (features(N, 3).requires_grad_(), *values))


# ---- the network, and its convention of the ball


def two_layers(activation, *, beta=0.8, second=3.0, **options):
    model = randomize(KGCN(K, D, 2, 3, activation=activation, beta=beta, **options))
    model.convs[1] = layer(D, 3, beta=second, **options)
    return model


@pytest.mark.parametrize("activation", ["relu", "elu"])
@pytest.mark.parametrize("bias", [True, False])
def test_two_layers_on_the_ball(example, activation, bias):
    """Points of the ball all the way; the output is their normal coordinates, 2 log_0."""
    model, x, a_hat = two_layers(activation, bias=bias), features(), normalized(example.dense)
    first, second, last = geoopt_ball(0.8), geoopt_ball(3.0), geoopt_ball(0.8)
    h = geoopt_layer(model.convs[0], first.expmap0(x), a_hat, 0.8)
    h = first.mobius_fn_apply(getattr(F, activation), h)
    h = second.expmap0(first.logmap0(h))  # to the next layer's curvature
    h = geoopt_layer(model.convs[1], h, a_hat, 3.0)
    h = last.expmap0(second.logmap0(h))
    out = model(x, example.edges, example.weight)
    assert out.shape == (N, 3)
    torch.testing.assert_close(out, 2 * last.logmap0(h), rtol=1e-9, atol=1e-9)
    # so that the space's own distance of normal coordinates is the ball's
    torch.testing.assert_close(
        model.manifold.normal.dist(out[:-1], out[1:]), last.dist(h[:-1], h[1:]), rtol=1e-8, atol=0
    )


@pytest.mark.parametrize(
    ("activation", "same"), [("relu", True), ("leaky_relu", True), ("elu", False), ("tanh", False)]
)
def test_homogeneous_activations_know_no_scale(example, activation, same):
    """Everything twice as large on a ball of twice the radius: the condition of Theorem 4.3, and what fails it."""
    small = two_layers(activation, bias=False, beta=0.8, second=0.8)
    large = two_layers(activation, bias=False, beta=3.2, second=3.2)
    for a, b in zip(large.convs, small.convs, strict=True):
        a.lin.load_state_dict(b.lin.state_dict())
    x = features()
    out, twice = small(x, example.edges), large(2 * x, example.edges)
    assert torch.allclose(twice, 2 * out, rtol=1e-10, atol=1e-10) == same


def test_last_activation_acts_on_the_balls_tangent_coordinates(example):
    model, x = randomize(KGCN(K, D, 1, activation="elu", last_activation=True)), features()
    expected = 2 * F.elu(model.convs[0](x, example.edges))
    torch.testing.assert_close(model(x, example.edges), expected, rtol=0, atol=0)


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=6, layers=3, activation="elu", beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3, normalization="rows",
    )  # fmt: skip
    asked = KGCN(
        K, 6, 3, 2, activation="elu", beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3, normalization="rows",
    )  # fmt: skip
    built = KGCN.from_settings(Sizes(40, K, 2), settings)
    assert repr(built) == repr(asked)
    assert all(conv.lin.drop_connect == 0.3 and conv.dropout == 0.1 for conv in built.convs)
