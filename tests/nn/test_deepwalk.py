"""DeepWalk: its walks against the transition probabilities they should have, its skip-gram against gensim's."""

import math

import networkx
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hyperboloid import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.kernels import Adjacency
from hyperboloid.kernels.skip_gram import alias_table, skip_gram
from hyperboloid.nn import DeepWalk
from hyperboloid.nn.deepwalk import random_walks


def adjacency(edges, nodes):
    pairs = torch.tensor(edges).T
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    return Adjacency.from_edges(*both, (nodes, nodes), self_loops=False)


@pytest.fixture(scope="module")
def karate():
    graph = load_graph("karate")
    return Adjacency.from_edges(*graph.edge_index, (34, 34), self_loops=False)


def test_walks_start_where_they_should_and_follow_edges(karate):
    start = torch.arange(34).repeat(20)
    walks = random_walks(karate, start, 30, key=1)
    assert torch.equal(walks[:, 0], start)
    edges = set(zip(karate.row.tolist(), karate.col.tolist(), strict=True))
    steps = zip(walks[:, :-1].flatten().tolist(), walks[:, 1:].flatten().tolist(), strict=True)
    assert set(steps) == edges  # nothing else, and in 20,000 steps every edge comes up


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_are_as_likely_as_their_weights(karate, weighted):
    weight = torch.rand(karate.col.numel(), generator=torch.Generator().manual_seed(0)) + 0.1 if weighted else None
    walks = random_walks(karate, torch.arange(34).repeat(2000), 2, 7, weight)
    seen = torch.zeros(34, 34).index_put_((walks[:, 0], walks[:, 1]), torch.ones(()), accumulate=True)
    expected = torch.zeros(34, 34)
    expected[karate.row, karate.col] = torch.ones(karate.col.numel()) if weight is None else weight
    expected *= 2000 / expected.sum(1, keepdim=True)
    chi_square = ((seen - expected).square() / expected)[karate.row, karate.col].sum()
    freedom = karate.col.numel() - 34
    assert abs(chi_square - freedom) < 4 * math.sqrt(2 * freedom)


def test_later_steps_are_as_random_as_the_first():
    """On a triangle a step turns left or right; all sequences of four turns are equally likely."""
    walks = random_walks(adjacency([(0, 1), (1, 2), (0, 2)], 3), torch.zeros(16_000, dtype=torch.long), 5, key=3)
    turns = walks.diff(dim=1).remainder(3) - 1
    counts = torch.bincount((turns * torch.tensor([1, 2, 4, 8])).sum(1), minlength=16)
    assert ((counts - 1000).square() / 1000).sum() < 15 + 4 * math.sqrt(30)


def test_same_key_same_walks_other_key_other_walks(karate):
    first, same, other = (random_walks(karate, torch.arange(34), 20, key) for key in (5, 5, 6))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_a_walk_from_an_isolated_node_is_that_node():
    walks = random_walks(adjacency([(0, 2)], 3), torch.tensor([1, 0]), 4, key=0)
    assert walks.tolist() == [[1, -1, -1, -1], [0, 2, 0, 2]]


@pytest.mark.parametrize("count", [1, 2, 5, 1000])
def test_negatives_are_drawn_as_likely_as_their_weights(count):
    weight = np.random.default_rng(count).pareto(0.5, count) + 1e-3  # a few are most of it
    share, alias = alias_table(weight)
    likely = share / 2.0**24
    np.add.at(likely, alias, 1 - share / 2.0**24)
    np.testing.assert_allclose(likely / count, weight / weight.sum(), atol=2.0**-24)


def test_a_pass_descends_pair_by_pair():
    """Of walks along an edge and back, without negatives, so that nothing is drawn; against autograd."""
    walks = torch.tensor([[0, 1, 0], [2, 1, -1], [3, -1, -1]])
    generator = torch.Generator().manual_seed(0)
    v, c = (torch.randn(4, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    mine = v.float().numpy(), c.float().numpy()
    loss, visited = skip_gram(walks.numpy(), *mine, *alias_table(np.ones(4)), 1, 0, 0.3, 0.0, key=1)
    expected = 0.0
    for lr, pairs in ((0.3, [(0, 1), (1, 0), (1, 0), (0, 1)]), (0.2, [(2, 1), (1, 2)])):
        for here, other in pairs:
            x, y = v[other].clone().requires_grad_(), c[here].clone().requires_grad_()
            own = -F.logsigmoid(x @ y)
            own.backward()
            v[other] -= lr * x.grad
            c[here] -= lr * y.grad
            expected += own.item()
    assert visited == 6
    assert loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(mine[0], v, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(mine[1], c, rtol=1e-4, atol=1e-6)


def by_gensim(walks, width, seed):
    """Scores of all pairs after one pass of gensim's skip-gram."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=width, window=4, negative=5, seed=seed, workers=1, sg=1, hs=0, sample=0, min_count=1, sorted_vocab=0
    )
    model.build_vocab_from_freq(dict(enumerate(torch.bincount(walks.flatten()).tolist())))
    model.train(walks.tolist(), total_examples=len(walks), epochs=1, start_alpha=0.05, end_alpha=0.01)
    return model.wv.vectors @ model.syn1neg.T


def by_us(walks, width, seed):
    """The same, by ours."""
    count = torch.bincount(walks.flatten())
    vectors = (np.random.default_rng(seed).random((len(count), width), np.float32) - 0.5) / width
    contexts = np.zeros_like(vectors)
    skip_gram(walks.numpy(), vectors, contexts, *alias_table(count.double().pow(0.75).numpy()), 4, 5, 0.05, 0.01, seed)
    return vectors @ contexts.T


def test_it_learns_what_gensim_learns(karate):
    """The mean scores of eight starts differ about as little from those of gensim as gensim's do among themselves."""
    walks = random_walks(karate, torch.arange(34).repeat(60), 40, key=1)
    mine, gensims, others = (
        np.mean([learn(walks, 8, seed) for seed in range(first, first + 8)], 0)
        for learn, first in ((by_us, 1), (by_gensim, 1), (by_gensim, 9))
    )
    assert gensims.std() > 0.5  # it has learned something
    assert np.abs(mine - gensims).mean() < 1.5 * np.abs(others - gensims).mean()


def trained(edge_index, nodes, epochs=5, edge_weight=None, **settings):
    torch.manual_seed(0)
    model = DeepWalk(nodes, 8, **settings)
    for epoch in range(1, epochs + 1):
        model.train_epoch(edge_index, edge_weight, lr=0.025, seed=0, epoch=epoch, epochs=epochs)
    return model


def scores(model):
    z = model(None, torch.empty(2, 0, dtype=torch.long)).detach()
    return model.link_logits(z.unsqueeze(0), z.unsqueeze(1), "intrinsic")


def test_a_link_is_scored_by_the_inner_products_of_vectors_and_context_vectors():
    model = DeepWalk(5, 6)
    torch.nn.init.normal_(model.table)
    torch.nn.init.normal_(model.context)
    assert model.table.shape == model.context.shape == (5, 3)
    v, c = model.table.detach(), model.context
    torch.testing.assert_close(scores(model), v @ c.T + c @ v.T)


def test_an_odd_width_is_refused():
    with pytest.raises(InputError, match="must be even"):
        DeepWalk(5, 7)


def two_cliques(weight_of_bridges):
    """Two cliques of eight, every node linked to its like in the other one."""
    clique = networkx.complete_graph(8)
    graph = networkx.disjoint_union(clique, clique)
    networkx.set_edge_attributes(graph, 1.0, "weight")
    graph.add_weighted_edges_from((i, i + 8, weight_of_bridges) for i in range(8))
    edges = torch.tensor([(u, v, w) for u, v, w in graph.to_directed().edges(data="weight")]).T
    return edges[:2].long(), edges[2]


def contrast(model):
    """How much higher the mean score within the cliques is than that between them."""
    part = torch.arange(16) < 8
    same = part.unsqueeze(0) == part.unsqueeze(1)
    score = scores(model)
    return float(score[same & ~torch.eye(16, dtype=torch.bool)].mean() - score[~same].mean())


def test_nodes_of_a_clique_score_higher_among_themselves():
    clique = networkx.complete_graph(8)
    graph = networkx.disjoint_union(clique, clique)
    graph.add_edge(0, 8)
    edge_index = torch.tensor(list(graph.to_directed().edges())).T
    assert contrast(trained(edge_index, 16)) > 1


def test_weak_edges_hold_nodes_together_less():
    edge_index, weak = two_cliques(0.01)
    assert contrast(trained(edge_index, 16, edge_weight=weak)) > 1.5 * contrast(trained(edge_index, 16))


def test_the_two_clubs_of_karate_lie_apart():
    graph = load_graph("karate")
    score = scores(trained(graph.edge_index, 34, window=5))
    same = graph.y.unsqueeze(0) == graph.y.unsqueeze(1)
    score.fill_diagonal_(-math.inf)
    assert same.gather(1, score.argmax(1, keepdim=True)).double().mean() > 0.9


def test_an_epoch_is_determined_by_the_tables_before_it_and_by_seed_and_epoch():
    graph = load_graph("karate")
    whole = trained(graph.edge_index, 34, 2, walks=2)
    torch.manual_seed(0)
    half = DeepWalk(34, 8, walks=2)
    half.train_epoch(graph.edge_index, lr=0.025, seed=0, epoch=1, epochs=2)
    other = DeepWalk(34, 8, walks=2)
    other.load_state_dict(half.state_dict())
    losses = [m.train_epoch(graph.edge_index, lr=0.025, seed=0, epoch=2, epochs=2) for m in (half, other)]
    assert losses[0] == losses[1]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, half.state_dict()[name]), name
        assert torch.equal(tensor, other.state_dict()[name]), name


def test_an_isolated_node_has_an_embedding_of_its_own():
    graph = networkx.path_graph(5)
    edge_index = torch.tensor(list(graph.to_directed().edges())).T
    model = trained(edge_index, 6, 2)
    out = model(None, edge_index)
    assert out.shape == (6, 8)
    assert torch.isfinite(out).all()


def test_training_starts_like_word2vec():
    """Context vectors 0, so the first losses are those of a coin, log 2 for each of 1 + negatives comparisons."""
    edge_index = torch.tensor([[0, 1], [1, 0]])
    model = DeepWalk(2, 4, walks=1, walk_length=2, window=1, negatives=1)
    assert model.context.abs().max() == 0
    loss = model.train_epoch(edge_index, lr=1e-4, seed=0, epoch=1, epochs=1)
    # a negative that is the neighbour itself is left out, so between one and two comparisons of each node
    assert math.log(2) * 0.99 < loss < 2 * math.log(2) * 1.01
