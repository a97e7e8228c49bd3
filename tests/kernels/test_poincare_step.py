"""Compiled steps of Poincaré embeddings against the same steps by torch in double precision."""

import math

import numpy as np
import pytest
import torch

from hyperboloid.graphs import load_graph
from hyperboloid.nn import PoincareEmbedding, poincare_emb
from hyperboloid.nn.poincare_emb import NonNeighbours

F64 = torch.float64


def twins(table, beta=1.0):
    """Two models with one table: in float32, which steps by compiled loops, and in double precision."""
    models = [PoincareEmbedding(*table.shape, burn_in=0, beta=beta).to(dtype) for dtype in (torch.float32, F64)]
    for model in models:
        with torch.no_grad():
            model.table.copy_(table.float())
    return models


def step(model, nodes, lr):
    loss = model._steps(lr)(nodes)
    return loss, model.table.detach().double()


def assert_same_step(table, nodes, *, lr, beta=1.0):
    ours, theirs = (step(model, nodes, lr) for model in twins(table, beta))
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-6, atol=1e-7)
    assert not torch.allclose(ours[1], table.double(), atol=1e-4)


def points(radii, d, seed=0):
    """Points ``(N, d)`` at given radii."""
    direction = torch.randn(len(radii), d, generator=torch.Generator().manual_seed(seed), dtype=F64)
    return direction / direction.norm(dim=1, keepdim=True) * radii.unsqueeze(1)


def edges(num_nodes, count, negatives=5):
    """Random nodes, no two of an edge alike."""
    order = torch.rand(count, num_nodes, generator=torch.Generator().manual_seed(1)).argsort(1)
    return order[:, : 2 + negatives].contiguous()


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("beta", [0.01, 1.0, 2.5])
def test_a_step_is_that_of_torch(beta, d):
    """With lr·count below and above the largest step; for β = 0.01 steps are many times longer than √β."""
    table = points(torch.linspace(0, 3, 40, dtype=F64), d)
    for lr in (0.01, 0.5):
        assert_same_step(table, edges(40, 30), lr=lr, beta=beta)


def test_far_out_and_close_together():
    """Up to r = 30, every other node beside the one before it: there the sums would cancel."""
    table = points(torch.linspace(0, 30, 20, dtype=F64), 4).repeat_interleave(2, 0)
    table[1::2] += 1e-4 * torch.randn(20, 4, generator=torch.Generator().manual_seed(2), dtype=F64)
    nodes = torch.cat([torch.arange(40).view(20, 2), edges(40, 20)[:, 2:]], dim=1)
    assert_same_step(table.float(), nodes, lr=0.05)


def test_a_step_to_the_origin_from_far_out():
    """From r = 32 towards a neighbour on the other side: the way in cancels all but a hundredth of the radius."""
    table = torch.tensor([[1.0, 0.0], [-1.0, 0.001], [2.0, 0.0]])
    assert_same_step(table, torch.tensor([[0, 1, 2]]), lr=0.68, beta=0.001)


def test_points_that_coincide_are_moved_by_others_only():
    zero = torch.zeros(6, 3)
    loss, moved = step(twins(zero)[0], edges(6, 4, 4), 0.1)
    assert loss == pytest.approx(4 * math.log(5))
    assert moved.abs().max() == 0
    for radius in (1.0, 20.0):
        table = points(torch.full((3,), radius, dtype=F64), 3)[torch.tensor([0, 0, 1, 1, 2, 2])]
        assert_same_step(table, edges(6, 4, 4), lr=0.1)


def test_nothing_overflows():
    table = points(torch.tensor([0.0, 1e-30, 1e-10, 1, 30, 80, 300, 1e4, 1e30, 1e38], dtype=F64), 3)
    model = twins(table)[0]
    for _ in range(3):
        loss, moved = step(model, edges(10, 50), 0.5)
        assert math.isfinite(loss)
        assert moved.isfinite().all()


@pytest.mark.parametrize("epochs", [1, 10])
def test_epochs_are_those_of_torch(monkeypatch, epochs):
    monkeypatch.setattr(poincare_emb, "BATCH", 50)  # of karate's 156
    graph = load_graph("karate")
    models = twins(points(torch.full((34,), 1e-3, dtype=F64), 4))
    for epoch in range(1, epochs + 1):
        ours, theirs = (m.train_epoch(graph.edge_index, lr=0.1, seed=0, epoch=epoch, epochs=epochs) for m in models)
        assert ours == pytest.approx(theirs, rel=1e-5)
    torch.testing.assert_close(models[0].table.double(), models[1].table, rtol=1e-4, atol=1e-5)


def test_every_other_node_has_its_place():
    """In the middle of the k-th of equal shares lies the k-th node that is no neighbour."""
    from hyperboloid.kernels.poincare_step import others

    graph = load_graph("karate")
    sampler = NonNeighbours(graph.edge_index, 34)
    linked = torch.eye(34, dtype=torch.bool)
    linked[graph.edge_index[0], graph.edge_index[1]] = True
    for u in range(34):
        expected = (~linked[u]).nonzero().squeeze(1).numpy()
        share = (np.arange(len(expected)) + 0.5)[None] / len(expected)
        found = np.empty(share.shape, np.int64)
        others(np.array([u]), share, *sampler._rows, found)
        assert (found[0] == expected).all()
