"""A graph's shape against networkx, and the power law against samples of a known one."""

import networkx
import numpy as np
import pytest
import torch

from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.statistics import SHORTEST_TAIL, fit_power_law, statistics


@pytest.mark.parametrize("seed", range(3))
def test_clustering_and_components_are_networkxs(seed):
    graph = networkx.disjoint_union(
        networkx.powerlaw_cluster_graph(700, 3, 0.6, seed=seed), networkx.gnp_random_graph(60, 0.05, seed=seed)
    )
    found = statistics(load_graph(graph))
    clustering = networkx.clustering(graph)
    expected = [clustering[node] for node, degree in graph.degree if degree > 1]
    assert found.clustering == pytest.approx(np.mean(expected))
    parts = list(networkx.connected_components(graph))
    assert (found.components, found.largest) == (len(parts), max(map(len, parts)))
    assert (found.nodes, found.edges) == (760, graph.number_of_edges())
    assert found.max_degree == max(degree for _, degree in graph.degree)
    forest = networkx.minimum_spanning_tree(graph)
    assert found.forest_share == pytest.approx(forest.number_of_edges() / graph.number_of_edges())


def test_a_tree_is_one():
    tree = statistics(load_graph("disease"))
    assert (tree.forest_share, tree.clustering, tree.components) == (1.0, 0.0, 1)


@pytest.mark.parametrize(("alpha", "xmin"), [(2.2, 1), (2.8, 1), (2.5, 6), (3.5, 4)])
def test_the_exponent_of_a_power_law_is_found(alpha, xmin):
    rng = np.random.default_rng(0)
    values = rng.zipf(alpha, 400_000)
    tail = values[values >= xmin][:20_000]
    bulk = rng.integers(1, xmin, 8000) if xmin > 1 else np.empty(0, dtype=np.int64)  # flat below xmin: no power law
    found = fit_power_law(np.concatenate([tail, bulk]).clip(max=10**6))
    assert found is not None
    assert abs(found.alpha - alpha) < 4 * found.error
    assert xmin <= found.xmin <= 4 * xmin
    assert found.distance < 0.02


def test_too_few_or_equal_degrees_have_no_power_law():
    assert fit_power_law(np.full(1000, 4)) is None
    assert fit_power_law(np.arange(1, SHORTEST_TAIL)) is None
    assert fit_power_law(np.empty(0, dtype=np.int64)) is None


def test_a_graph_without_edges():
    found = statistics(Graph("hermits", torch.empty(2, 0, dtype=torch.long), 3))
    assert (found.components, found.largest, found.clustering, found.power_law) == (3, 1, 0.0, None)


def test_cora(data_dir):
    found = statistics(load_graph("cora", data_dir=data_dir))
    assert (found.components, found.largest, found.max_degree) == (78, 2485, 168)
    assert found.power_law is not None
    assert 2.5 < found.power_law.alpha < 3.5
