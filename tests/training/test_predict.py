"""Predictions, against all pairs scored one by one."""

import networkx
import pytest
import torch
from torch_geometric.data import Data

import hyperboloid
from hyperboloid.errors import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.nn import FermiDirac
from hyperboloid.training import predict, predict_labels, predict_links


@pytest.fixture(scope="module", params=["intrinsic", "lorentz"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "run"
    return hyperboloid.fit("karate", task="link", dim=4, epochs=20, distance=request.param, out=folder).best


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """A run on a graph of four equal parts, so that each pair ties with others."""
    graph = networkx.disjoint_union_all([networkx.path_graph(5)] * 4)
    networkx.set_node_attributes(graph, {n: float(n % 5 + 1) for n in graph}, "a")
    networkx.set_node_attributes(graph, {n: float(n % 5 == 2) for n in graph}, "b")
    folder = tmp_path_factory.mktemp("twins") / "run"
    return hyperboloid.fit(graph, features="a,b", task="link", dim=3, epochs=5, out=folder).best


def all_pairs(run):
    """(probability, u, v) of each pair without an edge, the likeliest first, ties in the order of (u, v)."""
    graph, z = run.graph, run.encode(run.graph)
    edges = {tuple(edge) for edge in graph.edge_index.t().tolist()}
    pairs = [(u, v) for u in range(graph.num_nodes) for v in range(u + 1, graph.num_nodes) if (u, v) not in edges]
    decoder = FermiDirac(run.config.settings.distance)
    with torch.no_grad():
        scored = [(float(decoder(z[u], z[v], run.encoder.manifold)), u, v) for u, v in pairs]
    return sorted(scored, key=lambda link: (-link[0], *link[1:]))


def listed(links):
    return list(zip(links.source.tolist(), links.target.tolist(), strict=True))


def test_the_likeliest_links_are_those_of_all_pairs(run):
    expected = all_pairs(run)
    found = predict_links(run, 10)
    assert listed(found) == [link[1:] for link in expected[:10]]
    assert found.probability.tolist() == pytest.approx([torch.tensor(p).sigmoid().item() for p, *_ in expected[:10]])
    assert (found.probability.diff() <= 0).all()


def test_no_more_links_than_pairs_without_one(run):
    found = predict_links(run, 10_000)
    assert len(listed(found)) == len(set(listed(found))) == 34 * 33 // 2 - 78
    assert all(u < v for u, v in listed(found))
    assert not set(listed(found)) & {tuple(edge) for edge in run.graph.edge_index.t().tolist()}


@pytest.mark.parametrize("at_once", [1, 100, 34 * 7])
@pytest.mark.parametrize("top", [1, 10, 200])
def test_chunks_do_not_matter(run, monkeypatch, at_once, top):
    whole = predict_links(run, top)
    monkeypatch.setattr(predict, "COORDINATES_AT_ONCE", at_once * run.config.settings.dim)
    chunked = predict_links(run, top)
    assert listed(chunked) == listed(whole)
    torch.testing.assert_close(chunked.probability, whole.probability)


@pytest.mark.parametrize("top", [1, 5, 40])
def test_equally_likely_pairs_come_in_their_order_whatever_the_chunks(twins, monkeypatch, top):
    whole = predict_links(twins, top)
    assert top == 1 or (whole.probability.diff() == 0).any()
    for value in set(whole.probability.tolist()):
        tied = [pair for pair, p in zip(listed(whole), whole.probability.tolist(), strict=True) if p == value]
        assert tied == sorted(tied)
    monkeypatch.setattr(predict, "COORDINATES_AT_ONCE", 60 * twins.config.settings.dim)
    assert listed(predict_links(twins, top)) == listed(whole)


def test_held_out_edges_are_known_when_predicting(run):
    hidden = torch.cat([run.task.split.val, run.task.split.test], dim=1)
    assert not {tuple(edge) for edge in hidden.t().tolist()} & set(listed(predict_links(run, 10_000)))


def test_labels_are_the_likeliest_classes(tmp_path):
    run = hyperboloid.fit("karate", task="node", dim=4, epochs=60, out=tmp_path / "run").best
    found = predict_labels(run)
    shares = run.encode().softmax(-1)
    assert torch.equal(found.label, shares.argmax(-1))
    assert torch.equal(found.probability, shares.max(-1).values)
    assert (found.label == run.graph.y).double().mean() > 0.8


def test_a_graph_predicts_the_same_as_one_that_equals_it(tmp_path):
    graph = load_graph("disease")
    run = hyperboloid.fit(graph, task="node", dim=4, epochs=3, out=tmp_path / "run").best
    ours, again = predict_labels(run), predict_labels(run, load_graph("disease"))
    assert torch.equal(ours.probability, again.probability)


@pytest.mark.parametrize("task", ["link", "node"])
def test_a_graph_given_as_an_object_is_read_as_fit_reads_it(tmp_path, task):
    graph = load_graph("disease")
    # each edge in one direction, some twice, and a loop
    one_way = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    edges = torch.cat([one_way, one_way[:, :9], torch.zeros(2, 1, dtype=torch.long)], dim=1)
    data = Data(x=graph.x, y=graph.y, edge_index=edges)
    run = hyperboloid.fit(data, task=task, dim=4, epochs=2, out=tmp_path / "run").best
    assert torch.equal(run.encode(data), run.encode(run.graph))
    if task == "node":
        assert torch.equal(predict_labels(run, data).probability, predict_labels(run).probability)
        assert predict_labels(run, "disease").label.shape == (graph.num_nodes,)
    else:
        assert listed(predict_links(run, 9, data)) == listed(predict_links(run, 9))
        with pytest.raises(InputError, match="trained on 11 features per node, but graph 'graph' has 0"):
            predict_links(run, 9, networkx.karate_club_graph())


def test_refuses_what_the_run_was_not_trained_for(run):
    with pytest.raises(InputError, match="trained for task 'link', not to predict labels"):
        predict_labels(run)
    with pytest.raises(InputError, match="at least 1, not 0"):
        predict_links(run, 0)
    with pytest.raises(InputError, match="knows no other graph"):
        predict_links(run, 3, load_graph("disease"))
