"""The generated graph: its degrees follow the law, whatever the pieces it is drawn in."""

import pytest
import torch

from hyperboloid.bench import graphs
from hyperboloid.bench.graphs import power_law_graph

NODES, EDGES = 20_000, 400_000


@pytest.fixture(params=[None, 12_345], ids=["at once", "in pieces"])
def edge_index(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(graphs, "CHUNK", request.param)
    return power_law_graph(NODES, EDGES)


def test_every_edge_has_its_reverse_and_every_end_is_a_node(edge_index):
    assert edge_index.shape == (2, EDGES)
    assert edge_index.min() >= 0
    assert edge_index.max() < NODES
    there, back = ((a * NODES + b).sort().values for a, b in (edge_index, edge_index.flip(0)))
    assert torch.equal(there, back)


def test_degrees_follow_the_power_law(edge_index):
    degree = edge_index[0].bincount(minlength=NODES).double().sort(descending=True).values
    # P(degree ≥ k) ∝ k^(1 − 2.5): between two ranks the logarithms lie on a line of slope −1/1.5
    first, last = 20, 5_000
    slope = (degree[last].log() - degree[first].log()) / torch.tensor((last + 1) / (first + 1)).log()
    assert float(slope) == pytest.approx(-1 / 1.5, abs=0.02)
    # the largest hub has the share of the edges that its rank says
    share = 1 / sum((r + 1) ** (-2 / 3) for r in range(NODES))
    assert float(degree[0]) == pytest.approx(share * EDGES, abs=5 * (2 * share * EDGES) ** 0.5)


def test_hubs_are_anywhere(edge_index):
    hubs = edge_index[0].bincount(minlength=NODES).topk(100).indices.double()
    assert float(hubs.mean()) == pytest.approx(NODES / 2, abs=NODES / 2 * 0.3)


def test_the_seed_decides():
    assert torch.equal(power_law_graph(50, 200, seed=3), power_law_graph(50, 200, seed=3))
    assert not torch.equal(power_law_graph(50, 200, seed=3), power_law_graph(50, 200, seed=4))
