import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from hyperboloid.errors import InputError
from hyperboloid.graphs.generators import disease


def parents(graph):
    """``(N − 1,)``: the parent of each node but the root; numbers are breadth first, so it is the smaller."""
    upper = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    assert torch.equal(upper[1].sort().values, torch.arange(1, graph.num_nodes))
    return upper[0][upper[1].argsort()]


def auc(positive, negative):
    ranks = rankdata(np.concatenate([positive, negative]))
    m, n = len(positive), len(negative)
    return (ranks[:m].sum() - m * (m + 1) / 2) / (m * n)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(32, 1500))
def test_tree_and_epidemic(seed, num_nodes):
    graph = disease(seed, num_nodes=num_nodes)
    assert graph.num_nodes == num_nodes
    assert graph.num_edges == num_nodes - 1
    row, col = graph.edge_index
    assert (row * num_nodes + col).diff().gt(0).all()
    adjacency = coo_array((np.ones(row.numel()), (row.numpy(), col.numpy())), shape=(num_nodes, num_nodes))
    assert connected_components(adjacency)[0] == 1

    parent = parents(graph)
    assert (parent.diff() >= 0).all(), "not numbered breadth first"
    children = parent.bincount()
    assert ((children[:-1] >= 2) & (children[:-1] <= 6)).all()
    assert 1 <= children[-1] <= 6

    assert graph.y[0] == 1
    assert graph.y.unique().tolist() == [0, 1]
    infected = (graph.y[1:] == 1).nonzero().squeeze(1)
    assert (graph.y[parent[infected]] == 1).all()
    assert graph.y[torch.where(parent == 0)[0] + 1].all()


def test_the_published_size_by_default():
    graph = disease()
    assert graph.name == "disease"
    assert (graph.num_nodes, graph.num_edges) == (1044, 1043)
    assert graph.x.shape == (1044, 11)
    assert graph.x.dtype == torch.float32
    assert graph.y.dtype == torch.int64
    assert graph.class_names == ["healthy", "infected"]
    assert graph.x.abs().max() < 4.5


def test_same_seed_same_graph():
    assert disease(3).checksum == disease(3).checksum
    assert disease(3).checksum != disease(4).checksum


def test_global_random_state_is_left_alone():
    before = torch.random.get_rng_state()
    disease()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_shares_of_infected_nodes():
    graphs = [disease(seed) for seed in range(50)]
    exposed = [graph.y[1:][graph.y[parents(graph)] == 1].float().mean().item() for graph in graphs]
    assert np.mean(exposed) == pytest.approx(0.62, abs=0.02)
    assert np.mean([graph.y.float().mean().item() for graph in graphs]) == pytest.approx(0.2, abs=0.04)


@pytest.mark.parametrize("seed", range(5))
def test_links_and_labels_can_be_learned_but_not_read_off(seed):
    graph = disease(seed)
    x, y, parent = graph.x.numpy(), graph.y.numpy(), parents(graph).numpy()
    place = x[:, -1]
    u, v = np.random.default_rng(seed).integers(0, graph.num_nodes, (2, 20_000))
    linked = -np.abs(place[1:] - place[parent])
    assert 0.9 < auc(linked, -np.abs(place[u] - place[v])) < 0.995

    measured = x[:, :-1].mean(1)
    exposed = np.flatnonzero(y[parent] == 1) + 1
    ill = y[exposed] == 1
    assert 0.9 < auc(measured[exposed[ill]], measured[exposed[~ill]]) < 1
    assert auc(measured[y == 1], measured[y == 0]) < 0.85
    single = np.array([auc(column[y == 1], column[y == 0]) for column in x.T])
    assert np.maximum(single, 1 - single).max() < 0.75


def test_places_are_the_middles_of_the_pieces():
    graph = disease(1)
    place, parent = graph.x[:, -1], parents(graph)
    assert place[0] == 0
    siblings = int((parent == 0).sum())
    expected = -1 + (2 * torch.arange(siblings) + 1) / siblings
    torch.testing.assert_close(place[1 : 1 + siblings], expected)
    assert place.abs().max() < 1


def test_sizes_the_user_can_get_wrong():
    with pytest.raises(InputError, match="at least 32 nodes, not 31"):
        disease(num_nodes=31)
    with pytest.raises(InputError, match="at least 2 features, not 1"):
        disease(num_features=1)
    assert disease(num_features=2).x.shape == (1044, 2)
