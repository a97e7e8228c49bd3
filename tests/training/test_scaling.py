"""How features are scaled before a model sees them."""

import dataclasses

import torch

import hyperboloid
from hyperboloid.graphs import load_graph
from hyperboloid.training.features import scaled_features
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import LinkTask

F32 = torch.float32
GRAPH = load_graph("disease")


def with_features(x):
    return dataclasses.replace(GRAPH, x=x)


def features_of(graph, **settings):
    return LinkTask(graph, Settings(**settings), 0, F32, "cpu").x


def test_counts_are_scaled_by_node():
    x = torch.where(GRAPH.x > 0.5, GRAPH.x, 0).index_fill(1, torch.tensor(0), 0.5)
    sums = features_of(with_features(x)).sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_measurements_are_scaled_by_column_whatever_their_units():
    units = torch.tensor([1.0, 1000.0, 0.001] + [1.0] * 8)
    metric, imperial = (features_of(with_features(x)) for x in (GRAPH.x, GRAPH.x * units + 40))
    torch.testing.assert_close(metric.mean(0), torch.zeros(11), atol=1e-5, rtol=0)
    torch.testing.assert_close(metric.std(0, correction=0), torch.ones(11))
    torch.testing.assert_close(metric, imperial, atol=0.05, rtol=0)


def test_a_column_that_never_changes_becomes_0():
    x = features_of(with_features(torch.cat([GRAPH.x, torch.full((GRAPH.num_nodes, 1), 7.0)], dim=1)))
    assert torch.equal(x[:, -1], torch.zeros(GRAPH.num_nodes))


def test_none_leaves_them():
    assert torch.equal(features_of(GRAPH, scaling="none"), GRAPH.x)


def test_another_graph_is_scaled_like_the_one_trained_on(tmp_path):
    run = hyperboloid.fit(GRAPH, task="node", dim=4, epochs=2, out=tmp_path / "run", scaling="columns").best
    shifted = with_features(GRAPH.x + 5)
    expected = scaled_features(GRAPH, "columns", F32, GRAPH) + 5 / GRAPH.x.std(0, correction=0)
    torch.testing.assert_close(scaled_features(shifted, "columns", F32, GRAPH), expected)
    assert not torch.equal(run.encode(shifted), run.encode(GRAPH))
