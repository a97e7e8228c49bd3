"""The LGCN encoder: layers in a row, and what it promises on real graphs."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.nn import GCNConv, Sequential

from hyperboloid import InputError
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.graphs import load_graph
from hyperboloid.nn import LGCN, Encoder, FermiDirac, LGCNConv, SparseFeatures
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.settings import ModelSettings


def example(n=40, k=6):
    return torch.randn(n, k), torch.randint(n, (2, 3 * n))


def same_parameters(model, *args, **options):
    twin = LGCN(*args, **options)
    twin.load_state_dict(model.state_dict())
    return twin


# ---- how the layers are put together


@pytest.mark.parametrize(
    ("depth", "widths"),
    [
        (1, [(6, 3)]),
        (2, [(6, 8), (8, 3)]),
        (3, [(6, 8), (8, 8), (8, 3)]),
        (4, [(6, 8), (8, 8), (8, 8), (8, 3)]),
    ],
)
def test_depth(depth, widths):
    x, edges = example()
    model = LGCN(6, 8, depth, 3, activation="elu")
    assert [(c.in_channels, c.out_channels) for c in model.convs] == widths
    out = model(x, edges)
    expected = x
    for i, conv in enumerate(model.convs):
        expected = conv(expected, edges)
        if i + 1 < depth:
            expected = torch.nn.functional.elu(expected)
    assert torch.equal(out, expected)
    # every layer learns: weights, biases, attention and β
    FermiDirac()(out[edges[0]], out[edges[1]], model.manifold).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad.abs().max() > 0, name


def test_no_layers_are_refused():
    with pytest.raises(InputError, match="at least one layer"):
        Encoder([], activation="relu")


def test_edge_weights_reach_every_layer():
    x, edges = example()
    model, weight = LGCN(6, 8, 2), torch.rand(edges.size(1))
    expected = model.convs[1](torch.relu(model.convs[0](x, edges, weight)), edges, weight)
    assert torch.equal(model(x, edges, weight), expected)


def test_the_last_activation_is_off_by_default():
    x, edges = example()
    model = LGCN(6, 8, 2)
    free = model(x, edges)
    confined = same_parameters(model, 6, 8, 2, last_activation=True)(x, edges)
    assert (free < 0).any()
    assert (confined >= 0).all()  # with ReLU all embeddings lie in one orthant
    assert torch.equal(confined, free.relu())


def test_points_of_a_hyperboloid_enter_by_their_logarithm():
    v, edges = example()
    v, model = v.double(), LGCN(6, 8, 2).double()
    curved = same_parameters(model, 6, 8, 2, input_beta=2.5).double()
    curved.load_state_dict(model.state_dict())
    points = Lorentz(2.5).exp0(v)
    assert points.shape == (40, 7)
    torch.testing.assert_close(curved(points, edges), model(v, edges), rtol=1e-10, atol=1e-10)
    with pytest.raises(InputError, match="dense tensor of points"):
        curved(SparseFeatures.from_dense(points), edges)


def test_the_manifold_is_that_of_the_output():
    model = LGCN(6, 8, 2, beta=2.0)
    u, v = torch.randn(2, 5, 8)
    torch.testing.assert_close(model.manifold.normal.dist(u, v), Lorentz(2.0).normal.dist(u, v))
    for conv in model.convs:
        conv.curvature.raw.data += 3
    torch.testing.assert_close(model.manifold.normal.dist(u, v), Lorentz(2.0).normal.dist(u, v))
    model.curvature.raw.data += 3
    assert not torch.allclose(model.manifold.normal.dist(u, v), Lorentz(2.0).normal.dist(u, v))
    model.curvature = None
    assert isinstance(model.manifold, Euclidean)


def test_fixed_beta_is_fixed_everywhere():
    model = LGCN(6, 8, 3, train_beta=False)
    assert not any(p.requires_grad for name, p in model.named_parameters() if name.endswith("curvature.raw"))


def test_state_dict_round_trip():
    x, edges = example()
    model = LGCN(6, 8, 2, beta=0.7)
    for p in model.parameters():
        p.data += 0.1
    twin = same_parameters(model, 6, 8, 2)
    assert torch.equal(twin(x, edges), model(x, edges))
    assert torch.equal(twin.curvature(), model.curvature())


def test_reset_parameters_starts_again():
    model = LGCN(6, 8, 2, beta=0.7)
    for p in model.parameters():
        p.data.fill_(5.0)
    model.reset_parameters()
    for curvature in (model.curvature, model.convs[0].curvature, model.convs[1].curvature):
        assert curvature().item() == pytest.approx(0.7)
    assert all(conv.lin.weight.abs().max() < 1 for conv in model.convs)


def test_composes_in_a_pyg_sequential():
    x, edges = example()
    model = LGCN(6, 8, 2)
    mixed = Sequential(
        "x, edge_index",
        [
            (model.convs[0], "x, edge_index -> x"),
            torch.nn.ReLU(),
            (model.convs[1], "x, edge_index -> x"),
        ],
    )
    assert torch.equal(mixed(x, edges), model(x, edges))
    # normal coordinates are plain vectors: any layer of PyG or torch may stand in between
    hybrid = Sequential(
        "x, edge_index",
        [
            (GCNConv(6, 8), "x, edge_index -> x"),
            torch.nn.LayerNorm(8),
            (LGCNConv(8, 4), "x, edge_index -> x"),
        ],
    )
    hybrid(x, edges).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in hybrid.parameters())


def test_settings_reach_the_layers():
    settings = ModelSettings(
        dim=8, layers=3, activation="elu", last_activation=True, att_dim=5, beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    asked = LGCN(
        6, 8, 3, 4, activation="elu", last_activation=True, att_dim=5, beta=2.0, train_beta=False, bias=False,
        dropout=0.1, att_dropout=0.2, drop_connect=0.3,
    )  # fmt: skip
    built = LGCN.from_settings(Sizes(40, 6, 4), settings)
    assert repr(built) == repr(asked)
    assert built.last_activation
    assert all(conv.lin.drop_connect == conv.att.drop_connect == 0.3 for conv in built.convs)
    flat = LGCN.from_settings(Sizes(40, 6, 4), ModelSettings(attention=False))
    assert all(conv.att is None for conv in flat.convs)


# ---- float32 training stays finite


def train_links(model, x, edges, *, distance, steps=300, batch=2000):
    """Adam on some edges against as many random pairs; the loss of each step."""
    decoder, adam, losses = FermiDirac(distance), torch.optim.Adam(model.parameters(), lr=0.01), []
    truth = torch.cat([torch.ones(batch), torch.zeros(batch)])
    for _ in range(steps):
        out = model(x, edges)
        some = edges[:, torch.randint(edges.size(1), (batch,))]
        i, j = torch.cat([some, torch.randint(x.size(0), (2, batch))], dim=1)
        logits = decoder(out[i], out[j], model.manifold)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth)
        adam.zero_grad()
        loss.backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters())
        adam.step()
        losses.append(loss.item())
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert torch.isfinite(model(x, edges)).all()
    return losses


def test_training_on_a_star_with_10000_leaves():
    leaves = torch.arange(1, 10_001)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([leaves, hub]), torch.cat([hub, leaves])])
    losses = train_links(LGCN(4, 4, 2), torch.randn(10_001, 4), edges, distance="intrinsic")
    assert losses[-1] < losses[0]


def test_training_on_disease_with_large_features():
    graph = load_graph("disease")
    losses = train_links(LGCN(graph.num_features, 16, 2), 3 * graph.x, graph.edge_index, distance="lorentz")
    assert losses[-1] < losses[0]


# ---- memory

MEASURE = """
import resource, torch
from hyperboloid.nn import LGCN
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
torch.set_num_threads(1)
model = LGCN(64, 64, 2)
model(torch.randn(10, 64), torch.randint(10, (2, 20))).sum().backward()
x, edges = torch.randn(20_000, 64, requires_grad=True), torch.randint(20_000, (2, 100_000))
before = peak()
model(x, edges).square().sum().backward()
assert x.grad.abs().sum() > 0
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_memory_grows_with_the_edges_not_the_pairs_of_nodes():
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1e9  # one N × N matrix of float32 is 1.6e9
