"""Depth below the centre of a component."""

import networkx
import numpy as np
import pytest
import torch

from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.depth import depths


@pytest.mark.parametrize("seed", range(12))
def test_the_centre_of_a_tree_has_the_least_eccentricity(seed):
    tree = networkx.random_labeled_tree(2 + 7 * seed, seed=seed)
    found, (centre,) = depths(load_graph(tree))
    assert centre in networkx.center(tree)
    expected = networkx.single_source_shortest_path_length(tree, centre)
    assert found.tolist() == [expected[node] for node in range(len(tree))]


def test_in_other_graphs_the_centre_is_nearly_one():
    for seed in range(10):
        graph = networkx.connected_watts_strogatz_graph(60, 4, 0.1, seed=seed)
        _, (centre,) = depths(load_graph(graph))
        assert networkx.eccentricity(graph, int(centre)) <= networkx.radius(graph) + 2


def test_every_component_has_its_own_centre():
    edges = torch.tensor([[0, 1, 1, 2, 4, 5, 4, 6], [1, 0, 2, 1, 5, 4, 6, 4]])
    found, centres = depths(Graph("two and a hermit", edges, 7))
    assert centres.tolist() == [1, 3, 4]
    assert found.tolist() == [1, 0, 1, 0, 0, 1, 1]


def test_the_generated_epidemic_starts_at_its_root():
    found, (centre,) = depths(load_graph("disease"))
    assert centre == 0
    assert np.bincount(found)[0] == 1


def test_no_edges_at_all():
    found, centres = depths(Graph("hermits", torch.empty(2, 0, dtype=torch.long), 3))
    assert (found.tolist(), centres.tolist()) == ([0, 0, 0], [0, 1, 2])
