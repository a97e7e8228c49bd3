"""Attention: weights against the layers' own formulas, and the numbers across a graph against hand-made cases."""

import dataclasses
import math

import pytest
import torch

import hyperboloid
from hyperboloid import InputError
from hyperboloid.analysis.attention import Attention, attention_weights, neighbours, summarize
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.ids import node_number
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.registry import MODELS, get_model
from hyperboloid.nn.settings import ModelSettings

ATTENDING = {"lgcn", "lgcn_no_beta", "lgcn_f", "hat", "gat"}


def star(weights):
    """Node 0 with neighbours 1 …, given its weights (itself first); the others attend to themselves and to it alike."""
    leaves = len(weights) - 1
    pairs = [(j, 0) for j in range(leaves + 1)] + [(j, i) for i in range(1, leaves + 1) for j in (0, i)]
    source, target = torch.tensor(pairs).T
    values = torch.tensor([*weights, *[0.5] * (2 * leaves)], dtype=torch.float64)
    return Attention(source, target, values, leaves + 1)


@pytest.mark.parametrize("name", MODELS)
def test_attention_is_what_the_layers_compute(name):
    torch.manual_seed(0)
    settings = MODELS[name].settle(ModelSettings(dim=6, heads=2 if name == "gat" else 1))
    model = get_model(name).load().from_settings(Sizes(10, 5, None), settings).eval()
    assert model.attends == (name in ATTENDING)
    if not model.attends:
        return
    x, edges = torch.randn(10, 5), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 1, 1, 0, 2]])
    found = model.attention(x, edges)
    assert len(found) == 2
    for (_, target), weight in found:  # each row's sums to 1, with a self loop for every node
        assert weight.shape == (16,)
        torch.testing.assert_close(torch.zeros(10).index_add_(0, target, weight), torch.ones(10))
    # the second layer sees the first one's activated output
    second = model.convs[1](model.activation(model.convs[0](x, edges)), edges, return_attention_weights=True)[1][1]
    torch.testing.assert_close(found[1][1], second)


def test_hgcn_attends_where_it_is_asked_to():
    model = get_model("hgcn").load().from_settings(Sizes(10, 5, None), ModelSettings(dim=6, attention=True))
    assert model.attends


def test_the_numbers_of_a_star():
    layer = star([0.4, 0.3, 0.2, 0.1])
    y = torch.tensor([1, 1, 0, 0])
    (found,) = summarize([layer], y)
    centre = -sum(w * math.log(w) for w in (0.4, 0.3, 0.2, 0.1)) / math.log(4)
    assert found.entropy == pytest.approx((centre + 3) / 4)
    assert found.self_share == pytest.approx((0.4 + 3 * 0.5) / 4)
    assert found.self_uniform == pytest.approx((1 / 4 + 3 / 2) / 4)
    # only the centre can choose: 0.3 of the 0.6 that leave it go to the one neighbour of three
    assert found.same_label is not None
    assert (found.same_label.nodes, found.same_label.attention) == (1, pytest.approx(0.5))
    assert found.same_label.share == pytest.approx(1 / 3)


def test_unlabelled_nodes_are_left_out_and_one_class_leaves_no_choice():
    layer = star([0.4, 0.3, 0.2, 0.1])
    with_gap = summarize([layer], torch.tensor([1, 1, 0, -1]))[0].same_label
    assert with_gap is not None
    assert (with_gap.attention, with_gap.share) == (pytest.approx(0.6), pytest.approx(0.5))
    assert summarize([layer], torch.tensor([1, 1, 1, 1]))[0].same_label is None
    assert summarize([layer], None)[0].same_label is None


@pytest.mark.parametrize("pull", [0.0, 2.0, -2.0])
def test_attention_that_follows_labels_is_told_from_chance(pull):
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(3, (300,), generator=generator)
    source, target = torch.randint(300, (2, 2400), generator=generator)
    score = pull * (y[source] == y[target]) + torch.randn(2400, generator=generator)
    weight = score.double().exp()
    weight = weight / torch.zeros(300, dtype=torch.float64).index_add_(0, target, weight)[target]
    same = summarize([Attention(source, target, weight, 300)], y)[0].same_label
    assert same is not None
    assert abs(same.control) < 3 * same.control_std  # shuffled labels: nothing
    assert same.beyond_chance == (pull > 0)
    assert (same.excess > 5 * same.control_std) == (pull > 0)
    assert (same.excess < -5 * same.control_std) == (pull < 0)


def test_rounding_is_not_taken_for_attention():
    y = torch.tensor([1, 1, 0, 0])
    (found,) = summarize([star([0.25, 0.25 + 1e-7, 0.25 - 5e-8, 0.25 - 5e-8])], y)
    assert found.same_label is not None
    assert found.same_label.excess > 0
    assert not dataclasses.replace(found.same_label, control=0.0, control_std=0.0).beyond_chance


@pytest.mark.parametrize("model", ["lgcn", "hat", "gat"])
def test_a_run_attends_along_the_edges_that_it_was_evaluated_on(tmp_path, model):
    run = hyperboloid.fit("karate", task="link", model=model, dim=4, epochs=3, out=tmp_path / model).best
    layers = attention_weights(run)
    edges = {tuple(pair) for pair in run.task.edge_index.T.tolist()} | {(i, i) for i in range(34)}
    for layer in layers:
        assert {(int(j), int(i)) for j, i in zip(layer.source, layer.target, strict=True)} == edges
        torch.testing.assert_close(layer.sum(layer.weight), torch.ones(34, dtype=torch.float64), rtol=1e-6, atol=0)
    around, weights = neighbours(layers, 5)
    assert around[0] == 5
    assert set(around.tolist()) == {j for j, i in edges if i == 5}
    assert around[1:].tolist() == sorted(around[1:].tolist())
    torch.testing.assert_close(weights.sum(1), torch.ones(2, dtype=torch.float64), rtol=1e-6, atol=0)


def test_a_model_without_attention_is_refused(tmp_path):
    run = hyperboloid.fit("karate", model="gcn", dim=4, epochs=2, out=tmp_path / "run").best
    with pytest.raises(InputError, match="model 'gcn', which weighs neighbours without attention"):
        attention_weights(run)


def test_edge_weights_are_part_of_the_attention(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b,w\n" + "".join(f"n{i},n{(i + 1) % 20},{1 + i % 3}\n" for i in range(20)))
    run = hyperboloid.fit(str(tmp_path / "edges.csv"), weight="w", dim=4, epochs=2, out=tmp_path / "run").best
    for layer in attention_weights(run):
        torch.testing.assert_close(layer.sum(layer.weight), torch.ones(20, dtype=torch.float64))


def test_the_papers_node(data_dir):
    graph = load_graph("disease_nc", data_dir=data_dir)
    others = graph.edge_index[1][graph.edge_index[0] == node_number(graph, "3")]
    assert others.tolist() == [0, 12, 13, 14, 15, 16]
    assert graph.y[others].tolist() == [1, 0, 0, 1, 1, 1]


def test_ids_are_the_users(data_dir):
    usa = load_graph("usa", data_dir=data_dir)
    assert usa.id_of(node_number(usa, "13487")) == "13487"
    with pytest.raises(InputError, match="has no node '3'; its 1190 nodes"):
        node_number(usa, "3")
