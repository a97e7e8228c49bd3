"""Compressed rows: the same graph as the edge list, in order, built once for as long as the list lives unchanged."""

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hyperboloid.kernels import Adjacency, cached_adjacency
from hyperboloid.kernels.adjacency import _cache


def entries(adj):
    """(target, source) of each entry, read through ``rowptr`` as the kernels read them."""
    ptr = adj.rowptr.tolist()
    return [(i, j) for i in range(adj.num_rows) for j in adj.col[ptr[i] : ptr[i + 1]].tolist()]


def from_pairs(pairs, size, *, self_loops):
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return Adjacency.from_edges(edges[:, 0], edges[:, 1], size, self_loops=self_loops)


square_graphs = st.integers(1, 7).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
)


@given(square_graphs)
def test_rows_hold_every_edge_once_and_the_missing_loops(graph):
    n, pairs = graph
    expected = [(target, source) for source, target in pairs]
    expected += [(i, i) for i in range(n) if (i, i) not in expected]
    adj = from_pairs(pairs, (n, n), self_loops=True)
    assert entries(adj) == sorted(expected)
    assert list(zip(adj.row.tolist(), adj.col.tolist(), strict=True)) == sorted(expected)
    assert adj.edge_index.tolist() == [adj.col.tolist(), adj.row.tolist()]
    ends, which = adj.unordered
    assert ends.T.tolist() == sorted(map(list, {tuple(sorted(pair)) for pair in expected}))
    assert [tuple(ends[:, k].tolist()) for k in which.tolist()] == [tuple(sorted(pair)) for pair in sorted(expected)]


@given(square_graphs)
def test_weights_follow_their_edges(graph):
    n, pairs = graph
    adj = from_pairs(pairs, (n, n), self_loops=True)
    weight = torch.arange(2.0, 2.0 + len(pairs))
    for entry, w in zip(entries(adj), adj.sort_weights(weight).tolist(), strict=True):
        if w == 1:  # an added loop
            assert entry[0] == entry[1]
            assert entry not in pairs
        else:
            assert pairs[int(w) - 2] == (entry[1], entry[0])


def test_perm_is_a_stable_permutation():
    # the edge 2 → 0 comes twice; its copies keep their order
    adj = from_pairs([(2, 0), (1, 0), (2, 0), (0, 2)], (3, 3), self_loops=False)
    assert adj.perm.tolist() == [1, 0, 2, 3]
    assert adj.num_given == 4


def test_given_loops_keep_their_weight_even_when_doubled():
    adj = from_pairs([(1, 1), (0, 1), (1, 1)], (3, 3), self_loops=True)
    assert entries(adj) == [(0, 0), (1, 0), (1, 1), (1, 1), (2, 2)]
    assert adj.sort_weights(torch.tensor([5.0, 6.0, 7.0])).tolist() == [1, 6, 5, 7, 1]


def test_weights_keep_their_gradient():
    adj = from_pairs([(1, 0), (0, 1)], (2, 2), self_loops=True)
    weight = torch.tensor([3.0, 4.0], requires_grad=True)
    (adj.sort_weights(weight) * torch.tensor([10.0, 20.0, 30.0, 40.0])).sum().backward()
    assert weight.grad.tolist() == [20, 30]


def test_directed_edges_stay_directed():
    assert entries(from_pairs([(0, 1), (1, 2)], (3, 3), self_loops=False)) == [(1, 0), (2, 1)]


def test_bipartite_sizes_and_isolated_nodes():
    adj = from_pairs([(4, 0), (1, 2), (0, 2)], (5, 4), self_loops=False)
    assert (adj.num_cols, adj.num_rows) == (5, 4)
    assert adj.rowptr.tolist() == [0, 1, 1, 3, 3]
    assert entries(adj) == [(0, 4), (2, 0), (2, 1)]


@pytest.mark.parametrize("n", [0, 3])
def test_no_edges(n):
    assert entries(from_pairs([], (n, n), self_loops=True)) == [(i, i) for i in range(n)]
    assert from_pairs([], (n, n), self_loops=False).rowptr.tolist() == [0] * (n + 1)


# ---- the cache


def random_edges(n=6, e=12, seed=0):
    return torch.randint(n, (2, e), generator=torch.Generator().manual_seed(seed))


def test_the_second_call_returns_the_same_object():
    edges = random_edges()
    first = cached_adjacency(edges, (6, 6), self_loops=True)
    assert cached_adjacency(edges, (6, 6), self_loops=True) is first
    assert cached_adjacency(edges.clone(), (6, 6), self_loops=True) is not first


def test_other_sizes_and_loops_are_other_entries():
    edges = random_edges()
    with_loops = cached_adjacency(edges, (6, 6), self_loops=True)
    without = cached_adjacency(edges, (6, 6), self_loops=False)
    larger = cached_adjacency(edges, (6, 9), self_loops=False)
    assert without.row.numel() == 12 < with_loops.row.numel()
    assert larger.num_rows == 9
    assert cached_adjacency(edges, (6, 6), self_loops=True) is with_loops


def test_a_change_in_place_is_noticed():
    edges = torch.tensor([[0, 1], [1, 2]])
    assert entries(cached_adjacency(edges, (3, 3), self_loops=False)) == [(1, 0), (2, 1)]
    edges[1, 1] = 0
    assert entries(cached_adjacency(edges, (3, 3), self_loops=False)) == [(0, 1), (1, 0)]


def test_the_entry_dies_with_the_tensor():
    gc.collect()
    before = len(_cache)
    edges = random_edges()
    adj = weakref.ref(cached_adjacency(edges, (6, 6), self_loops=True))
    assert adj() is not None
    assert len(_cache) == before + 1
    del edges
    gc.collect()
    assert adj() is None
    assert len(_cache) == before


def test_an_inference_tensor_is_read_anew_each_time():
    with torch.inference_mode():
        edges = torch.tensor([[0, 1], [1, 2]])
        assert entries(cached_adjacency(edges, (3, 3), self_loops=False)) == [(1, 0), (2, 1)]
        edges[1, 1] = 0
        assert entries(cached_adjacency(edges, (3, 3), self_loops=False)) == [(0, 1), (1, 0)]


def test_what_inference_cached_can_be_trained_with():
    edges = random_edges()
    with torch.inference_mode():
        adj = cached_adjacency(edges, (6, 6), self_loops=True)
    assert cached_adjacency(edges, (6, 6), self_loops=True) is adj
    x = torch.ones(6, requires_grad=True)
    # squaring saves the gathered values and index_select its index: neither may be an inference tensor
    x.index_select(0, adj.col).square().sum().backward()
    assert torch.equal(x.grad, 2.0 * torch.bincount(adj.col, minlength=6))
