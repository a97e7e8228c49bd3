import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hyperboloid.errors import InputError
from hyperboloid.graphs import build_graph

LINKS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.5, 9.0, width=32)), min_size=1, max_size=40
)


@given(LINKS)
def test_agrees_with_a_dictionary_of_edges(links):
    best = {}
    for u, v, w in links:
        if u != v:
            for pair in ((u, v), (v, u)):
                best[pair] = max(w, best.get(pair, 0.0))
    rows, cols, weight = map(list, zip(*links, strict=True))
    if not best:
        with pytest.raises(InputError, match="graph 'toy' has no edges"):
            build_graph("toy", rows, cols, 8, weight=weight)
        return
    graph = build_graph("toy", rows, cols, 8, weight=weight)
    assert list(map(tuple, graph.edge_index.T.tolist())) == sorted(best)
    assert graph.edge_weight.tolist() == [best[pair] for pair in sorted(best)]
    assert graph.num_edges == len(best) // 2


def test_types_and_isolated_nodes():
    graph = build_graph("toy", np.array([2], np.int32), np.array([0], np.int32), 5, x=np.eye(5), y=[0, 1, -1, 0, 0])
    assert graph.edge_index.dtype == torch.int64
    assert graph.x.dtype == torch.float32
    assert graph.y.dtype == torch.int64
    assert graph.num_nodes == 5
    assert graph.edge_weight is None


def test_many_nodes_need_no_square_of_memory():
    n = 3_000_000_000
    graph = build_graph("huge", [0, n - 1, 5], [n - 1, 0, n - 2], n)
    assert graph.edge_index.tolist() == [[0, 5, n - 2, n - 1], [n - 1, n - 2, 5, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [1], "cols": [1]}, "has no edges"),
        ({"rows": [], "cols": []}, "has no edges"),
        ({"rows": [0, 9]}, "3 nodes but an edge to node 9"),
        ({"rows": [0, -1]}, "edge to node -1"),
        ({"rows": [0.5, 1.0]}, "lists of integers"),
        ({"x": [[0.0], [float("nan")], [1.0]]}, "feature 0 of node 1 is not a finite"),
        ({"x": [[0.0], [1e300], [1.0]]}, "feature 0 of node 1 is not a finite"),
        ({"x": [[0.0], [1.0]]}, r"features of shape \(2, 1\)"),
        ({"y": [0, 1]}, r"labels of shape \(2,\)"),
        ({"y": [0.0, 1.0, 0.5]}, "whole numbers"),
        ({"y": [0, 1, -2]}, "-1 where unknown"),
        ({"weight": [1.0, 0.0]}, "link 1: the weight is 0.0"),
        ({"weight": [1.0, float("inf")]}, "link 1: the weight is inf"),
        ({"weight": [1.0, 1e-60]}, "link 1: the weight is 1e-60"),
        ({"weight": [1.0]}, "2 links but weights of shape"),
    ],
)
def test_bad_input_is_one_sentence(change, message):
    arguments = {"rows": [0, 1], "cols": [1, 2], "num_nodes": 3} | change
    with pytest.raises(InputError, match=message):
        build_graph("toy", **arguments)


@pytest.mark.parametrize(
    ("links", "directed", "one_way"),
    [
        ([(0, 1), (1, 2), (3, 2)], False, 0),  # each edge once: nobody can tell
        ([(0, 1), (1, 2), (3, 2)], True, 3),
        ([(0, 1), (1, 0), (1, 2), (1, 2), (3, 2), (2, 2)], False, 2),  # some in both directions: the others go one way
        ([(0, 1), (1, 0), (1, 2), (2, 1)], True, 0),
    ],
)
def test_edges_that_go_one_way_are_counted(links, directed, one_way):
    rows, cols = zip(*links, strict=True)
    assert build_graph("links", rows, cols, 4, directed=directed).one_way == one_way


def test_self_loops_are_counted():
    graph = build_graph("links", [0, 1, 2, 2], [1, 1, 2, 0], 3)
    assert (graph.self_loops, graph.num_edges) == (2, 2)
    assert graph.notes == ["Self loops are left out; the source has 2."]
