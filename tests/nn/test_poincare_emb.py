"""Poincaré embeddings and their optimiser, against geoopt's and gensim's."""

import math

import geoopt
import networkx
import numpy as np
import pytest
import torch

from hyperboloid.geometry import Lorentz, PoincareBall
from hyperboloid.graphs import load_graph
from hyperboloid.nn import PoincareEmbedding, RiemannianSGD
from hyperboloid.nn.poincare_emb import NonNeighbours

F64 = torch.float64


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.5])
def test_the_optimiser_makes_the_steps_of_geoopt(beta):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(6, 3, generator=generator, dtype=F64)
    target = torch.randn(6, 3, generator=generator, dtype=F64)
    ours, ball = PoincareBall(beta), geoopt.PoincareBallExact(c=torch.tensor(1 / beta, dtype=F64))
    v = start.clone().requires_grad_()
    p = geoopt.ManifoldParameter(ours.from_normal(start), manifold=ball)
    mine, theirs = RiemannianSGD([v], 0.3, beta=beta), geoopt.optim.RiemannianSGD([p], 0.3)
    for _ in range(8):
        mine.zero_grad()
        Lorentz(beta).normal.sqdist(v, target).sum().backward()
        mine.step()
        theirs.zero_grad()
        ball.dist2(p, ours.from_normal(target)).sum().backward()
        theirs.step()
        torch.testing.assert_close(ours.from_normal(v.detach()), p.detach(), rtol=1e-9, atol=1e-10)
    assert not torch.allclose(v.detach(), start, atol=0.1)


def test_only_rows_with_a_gradient_move():
    table = torch.randn(10, 4, dtype=F64).requires_grad_()
    before = table.detach().clone()
    rows = torch.tensor([[2, 7], [7, 3]])
    torch.nn.functional.embedding(rows, table, sparse=True).square().sum().backward()
    assert table.grad.is_sparse
    dense = before.clone().requires_grad_()
    dense.grad = table.grad.to_dense()
    for parameter in (table, dense):
        RiemannianSGD([parameter], 0.1).step()
    moved = (table.detach() != before).any(1)
    assert moved.nonzero().squeeze(1).tolist() == [2, 3, 7]
    torch.testing.assert_close(table.detach(), dense.detach())


def test_a_step_goes_where_the_gradient_says_and_as_far():
    """The gradient of a distance is a unit vector that points away: a step of η comes nearer by η."""
    v, u = torch.randn(2, 5, 3, dtype=F64) * 3
    v.requires_grad_()
    space = Lorentz(2.0).normal
    before = space.dist(v, u)
    before.sum().backward()
    RiemannianSGD([v], 0.25, beta=2.0).step()
    torch.testing.assert_close(space.dist(v, u), before - 0.25)


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float32, 1e-5), (F64, 1e-6)])
def test_the_loss_is_the_papers_formula(dtype, rel):
    model = PoincareEmbedding(10, 3, beta=1.5).to(dtype)
    points, place = torch.randn(10, 3, dtype=F64), torch.randint(10, (4, 7))
    place[:, 1:] = (place[:, :1] + torch.arange(1, 7)) % 10  # a point itself is no negative
    distance = Lorentz(1.5).dist
    x = Lorentz(1.5).exp0(points)
    for loss, row in zip(model.loss(points.to(dtype), place), x[place], strict=True):
        near = math.exp(-distance(row[0], row[1]))
        others = sum(math.exp(-distance(row[0], other)) for other in row[2:])
        assert float(loss) == pytest.approx(-math.log(near / (near + others)), rel=rel)


def test_points_that_coincide_do_not_push_each_other():
    points = torch.zeros(5, 3, requires_grad=True)
    loss = PoincareEmbedding(5, 3).loss(points, torch.randint(5, (4, 12)))
    (grad,) = torch.autograd.grad(loss.sum(), points)
    assert grad.abs().max() == 0


def test_negatives_are_all_nodes_but_neighbours_each_as_likely():
    graph = load_graph("karate")
    edges = {tuple(e) for e in graph.edge_index.T.tolist()}
    sampler = NonNeighbours(graph.edge_index, 34)
    node = torch.arange(34)
    drawn = sampler.sample(node, 4000, torch.Generator().manual_seed(0))
    for u in range(34):
        counts = torch.bincount(drawn[u], minlength=34)
        allowed = torch.tensor([v != u and (u, v) not in edges for v in range(34)])
        assert counts[~allowed].sum() == 0
        assert int(sampler.count[u]) == int(allowed.sum())
        mean = 4000 / int(allowed.sum())
        assert (counts[allowed] - mean).abs().max() < 5 * math.sqrt(mean)


def test_a_node_linked_to_all_has_no_negatives_and_does_no_harm():
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    model = PoincareEmbedding(4, 2, burn_in=0)
    losses = [model.train_epoch(star, lr=0.1, seed=0, epoch=k, epochs=60) for k in range(1, 61)]
    assert losses[-1] < losses[0]
    complete = torch.tensor([[0, 1], [1, 0]])
    assert PoincareEmbedding(2, 2).train_epoch(complete, lr=0.1, seed=0, epoch=1, epochs=1) == 0.0


def test_hubs_are_not_thrown_about():
    """The gradients of 3000 edges of one batch, simply added up, would throw both hubs far out."""
    hubs = torch.arange(3000) % 2
    edges = torch.stack([hubs, torch.arange(2, 3002)])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    torch.manual_seed(0)
    model = PoincareEmbedding(3002, 4, burn_in=0)
    losses = [model.train_epoch(edges, lr=0.3, seed=0, epoch=k, epochs=10) for k in range(1, 11)]
    assert max(losses) < 2 * math.log(11)
    assert losses[-1] < 0.8 * losses[0]


def test_burn_in_takes_a_tenth_of_the_learning_rate():
    graph = load_graph("karate")
    torch.manual_seed(0)
    slow, quick = PoincareEmbedding(34, 3, burn_in=1), PoincareEmbedding(34, 3, burn_in=0)
    quick.load_state_dict(slow.state_dict())
    for model, lr in ((slow, 0.1), (quick, 0.01)):
        model.train_epoch(graph.edge_index, lr=lr, seed=0, epoch=1, epochs=2)
    assert torch.equal(slow.table, quick.table)
    for model in (slow, quick):
        model.train_epoch(graph.edge_index, lr=0.1, seed=0, epoch=2, epochs=2)
    assert torch.equal(slow.table, quick.table)


def precision(distance, graph):
    """Mean average precision of each node's neighbours among all nodes by distance."""
    scores = []
    for u in graph:
        order = [v for v in np.argsort(distance[u]) if v != u]
        hits = np.array([graph.has_edge(u, v) for v in order])
        ranks = np.flatnonzero(hits) + 1
        scores.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    return float(np.mean(scores))


def test_a_tree_is_reconstructed_as_well_as_by_gensim():
    from gensim.models.poincare import PoincareModel

    tree = networkx.balanced_tree(3, 3)
    edges = list(tree.to_directed().edges())
    torch.manual_seed(0)
    ours = PoincareEmbedding(len(tree), 5, burn_in=10)
    for epoch in range(1, 201):
        ours.train_epoch(torch.tensor(edges).T, lr=0.1, seed=0, epoch=epoch, epochs=200)
    theirs = PoincareModel(edges, size=5, negative=10, burn_in=10, seed=0)
    theirs.train(epochs=200)
    points = torch.from_numpy(np.stack([theirs.kv[u] for u in range(len(tree))])).double()
    table = ours.table.detach().double()
    found = [Lorentz().normal.dist(v.unsqueeze(0), v.unsqueeze(1)) for v in (table, PoincareBall().to_normal(points))]
    mine, gensims = (precision(d.numpy(), tree) for d in found)
    assert mine > gensims - 0.02
    assert mine > 0.9
    assert table[0].norm() == table.norm(dim=1).min()  # the root lies innermost
