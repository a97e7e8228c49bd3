"""Shortest paths against networkx."""

import threading

import networkx
import numpy as np
import pytest
import torch

from hyperboloid.graphs import build_graph, read_graph
from hyperboloid.graphs.paths import ROWS_AT_ONCE, Paths, in_threads, largest_component

NETWORKS = {
    "path": networkx.path_graph(300),  # longer than a byte counts
    "cycle": networkx.cycle_graph(61),
    "star": networkx.star_graph(40),
    "sparse": networkx.gnm_random_graph(200, 260, seed=1),
    "dense": networkx.gnm_random_graph(90, 900, seed=2),
}


def lengths(network):
    found = dict(networkx.all_pairs_shortest_path_length(network))
    return np.array([[found[i].get(j, -1) for j in sorted(network)] for i in sorted(network)])


@pytest.mark.parametrize("name", NETWORKS)
def test_lengths_are_those_of_networkx(name):
    network = NETWORKS[name]
    paths = Paths.of(read_graph(network))
    expected = lengths(network)
    assert len(expected) > ROWS_AT_ONCE or name in ("cycle", "star")
    np.testing.assert_array_equal(paths.all_lengths(), expected)
    some = np.array([7, 3, 3])
    np.testing.assert_array_equal(paths.lengths(some), expected[some])
    np.testing.assert_array_equal(paths.all_lengths(some), expected[some])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_diameter_of_the_largest_component(name):
    graph = read_graph(NETWORKS[name])
    nodes, count = largest_component(graph)
    parts = sorted(networkx.connected_components(NETWORKS[name]), key=len, reverse=True)
    assert count == len(parts)
    assert set(nodes.tolist()) == parts[0]
    assert Paths.of(graph, nodes).diameter == networkx.diameter(NETWORKS[name].subgraph(parts[0]))


def test_a_subgraph_is_numbered_as_its_nodes_are_given():
    graph = read_graph(networkx.cycle_graph(6))
    paths = Paths.of(graph, np.array([5, 3, 4, 1]))  # 3 – 4 – 5, and 1 alone
    np.testing.assert_array_equal(paths.all_lengths(), [[0, 2, 1, -1], [2, 0, 1, -1], [1, 1, 0, -1], [-1, -1, -1, 0]])


def test_a_path_longer_than_int16_counts():
    n = 40_000
    graph = build_graph("path", np.arange(n - 1), np.arange(1, n), n)
    assert Paths.of(graph).lengths(np.array([0]))[0, -1] == n - 1


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_threads_as_torch_has(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        meet = threading.Barrier(count, timeout=10)  # which nobody passes before all are there
        threads = set(in_threads(lambda _: (meet.wait(), threading.get_ident())[1], range(4 * count)))
    finally:
        torch.set_num_threads(before)
    assert len(threads) == count


def test_threads_keep_the_order_and_pass_errors_on():
    assert list(in_threads(lambda k: k * k, range(50))) == [k * k for k in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda k: 1 // (k - 5), range(50)))
