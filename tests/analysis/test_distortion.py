"""Distortion: formulas written out, embeddings that are known to be good, and samples against all pairs."""

import math

import networkx
import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

import hyperboloid
from hyperboloid import InputError
from hyperboloid.analysis import distortion as module
from hyperboloid.analysis.distortion import distortion, run_distortion
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.graphs import read_graph

SPACES = [Euclidean(), Lorentz(1.0), Lorentz(0.3)]


def cloud(n, d, seed=0):
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def written_out(z, manifold, network):
    """The paper's formula and the mean average precision, pair by pair."""
    n = len(z)
    lengths = dict(networkx.all_pairs_shortest_path_length(network))
    d = {(i, j): float(manifold.normal.dist(z[i], z[j])) for i in range(n) for j in range(n) if i != j}
    pairs = [(i, j) for i, j in d if j in lengths[i]]
    d_avg = sum(d[p] for p in pairs) / len(pairs)
    g_avg = sum(lengths[i][j] for i, j in pairs) / len(pairs)
    average = sum(((d[i, j] / d_avg / (lengths[i][j] / g_avg)) ** 2 - 1) ** 2 for i, j in pairs) / len(pairs)
    precisions = []
    for i in range(n):
        near = [sum(d[i, k] <= d[i, j] for k in network[i]) for j in network[i]]
        all_near = [sum(d[i, k] <= d[i, j] for k in range(n) if k != i) for j in network[i]]
        if near:
            precisions.append(sum(a / b for a, b in zip(near, all_near, strict=True)) / len(near))
    return average, sum(precisions) / len(precisions), len(pairs)


@pytest.mark.parametrize("manifold", SPACES, ids=str)
def test_the_formulas(manifold):
    network = networkx.gnm_random_graph(30, 34, seed=4)  # several components, an isolated node among them
    assert min(dict(network.degree).values()) == 0
    z = cloud(30, 3)
    z[5] = z[6]  # equally far from everyone
    found = distortion(z, manifold, read_graph(network))
    average, precision, pairs = written_out(z, manifold, network)
    assert found.average == pytest.approx(average, rel=1e-10)
    assert found.mean_average_precision == pytest.approx(precision, rel=1e-12)
    assert found.pairs == pairs < 30 * 29
    assert (found.all_pairs, found.standard_error) == (True, 0)
    lengths = dict(networkx.all_pairs_shortest_path_length(network))
    pairs = [(i, j) for i in range(30) for j in lengths[i] if i != j]
    d, g = [float(manifold.normal.dist(z[i], z[j])) for i, j in pairs], [lengths[i][j] for i, j in pairs]
    assert found.correlation == pytest.approx(pearsonr(d, g).statistic)
    assert found.rank_correlation == pytest.approx(spearmanr(d, g).statistic)


@pytest.mark.parametrize("manifold", SPACES, ids=str)
def test_a_path_on_a_geodesic_has_none(manifold):
    """Points at equal steps along a geodesic that does not pass the origin."""
    n = 25
    start, step = torch.tensor([0.3, 0.4], dtype=torch.float64), torch.tensor([0.15, -0.1], dtype=torch.float64)
    times = torch.arange(n, dtype=torch.float64).unsqueeze(1)
    if isinstance(manifold, Lorentz):
        z = manifold.normal.exp_at(start.expand(n, 2), times * step)
    else:
        z = start + times * step
    found = distortion(z, manifold, read_graph(networkx.path_graph(n)))
    assert found.average == pytest.approx(0, abs=1e-12)
    assert found.mean_average_precision == 1
    assert found.correlation == pytest.approx(1)
    assert found.rank_correlation > 0.99  # equal distances are rounded, and then are not equal
    assert found.bands[1] == pytest.approx([1 / found.mean_length] * 5)


def sarkar(tree, edge):
    """Sarkar's embedding of a tree in the hyperbolic plane: around each node its edges at equal angles."""
    plane = Lorentz(1.0).normal
    z = torch.zeros(len(tree), 2, dtype=torch.float64)
    for parent, children in networkx.bfs_successors(tree, 0):
        degree = tree.degree[parent]
        back = 0.0
        if parent != 0:
            above = next(node for node in tree[parent] if node not in children)
            direction = plane.log_at(z[parent], z[above])
            back = math.atan2(direction[1], direction[0])
        for k, child in enumerate(children, start=1 if parent != 0 else 0):
            angle = back + 2 * math.pi * k / degree
            step = edge * torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
            z[child] = plane.exp_at(z[parent], step)
    return z


def test_sarkar_s_trees_tend_to_none_as_their_edges_lengthen():
    tree = networkx.balanced_tree(3, 3)
    found = [distortion(sarkar(tree, edge), Lorentz(1.0), read_graph(tree)) for edge in (1, 2, 4, 8, 16)]
    averages = [one.average for one in found]
    assert averages == sorted(averages, reverse=True)
    assert averages[-1] < 0.01 < averages[0]
    assert found[-1].mean_average_precision == 1
    # in the flat plane the same tree cannot be had, however long its edges
    flat = distortion(sarkar(tree, 8), Euclidean(), read_graph(tree))
    assert flat.average > 10 * averages[-1]


def test_a_sample_says_how_far_it_may_be_off(monkeypatch):
    network = networkx.connected_watts_strogatz_graph(120, 4, 0.1, seed=0)
    z, graph = cloud(120, 4), read_graph(network)
    whole = distortion(z, Lorentz(1.0), graph)
    monkeypatch.setattr(module, "MOST_PAIRS", 120 * 40)
    found = [distortion(z, Lorentz(1.0), graph, seed) for seed in range(40)]
    assert all((one.nodes, one.pairs, one.all_pairs) == (40, 40 * 119, False) for one in found)
    scores = np.array([(one.average - whole.average) / one.standard_error for one in found])
    assert 0.6 < np.sqrt(np.mean(scores**2)) < 1.5
    assert np.mean([one.mean_average_precision for one in found]) == pytest.approx(
        whole.mean_average_precision, abs=0.01
    )


def test_rows_in_pieces_are_the_same(monkeypatch):
    graph, z = read_graph(networkx.cycle_graph(30)), cloud(30, 5)
    whole = distortion(z, Lorentz(1.0), graph)
    monkeypatch.setattr(module, "COORDINATES_AT_ONCE", 7 * 30 * 5)
    assert distortion(z, Lorentz(1.0), graph) == whole


def test_a_point_for_all_is_refused():
    with pytest.raises(InputError, match="All embeddings of graph 'graph' are the same"):
        distortion(torch.ones(10, 3), Lorentz(1.0), read_graph(networkx.path_graph(10)))


@pytest.mark.parametrize(("model", "task"), [("hat", "link"), ("gcn", "link"), ("poincare_emb", "node")])
def test_a_run_is_measured_in_its_own_space(tmp_path, model, task):
    run = hyperboloid.fit("karate", task=task, model=model, dim=4, epochs=5, out=tmp_path / "run").best
    z = run.encoder.embedding.detach() if model == "poincare_emb" else run.encode()
    assert isinstance(run.encoder.manifold, Euclidean if model == "gcn" else Lorentz)
    network = networkx.Graph(run.graph.edge_index.T.tolist())
    with torch.no_grad():
        average, _, _ = written_out(z.double(), run.encoder.manifold, network)
    assert run_distortion(run).average == pytest.approx(average, rel=1e-6)
