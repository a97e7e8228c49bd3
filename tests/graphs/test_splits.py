import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hyperboloid.errors import InputError
from hyperboloid.graphs.generators import disease
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.splits import (
    NegativeSampler,
    NodeSplit,
    NonEdges,
    pair_of_rank,
    pair_rank,
    split_links,
    split_nodes,
)


def graph_of(pairs, num_nodes, *, weighted=False, **rest):
    """A Graph from ``(2, P)`` pairs u < v; an edge's weight tells which edge it is."""
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    edge_index = edge_index[:, (edge_index[0] * num_nodes + edge_index[1]).argsort()]
    weight = (1 + pair_rank(edge_index.sort(0).values)).float() if weighted else None
    return Graph("g", edge_index, num_nodes, edge_weight=weight, **rest)


def random_graph(num_nodes, num_edges, seed=0, **rest):
    ranks = torch.randperm(num_nodes * (num_nodes - 1) // 2, generator=torch.Generator().manual_seed(seed))
    return graph_of(pair_of_rank(ranks[:num_edges]), num_nodes, **rest)


def labelled_graph(sizes, *, unlabelled=0, name="g", masks=None):
    """No edges; ``sizes[c]`` nodes of class c and ``unlabelled`` others, mixed up."""
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(sizes)] + [torch.full((unlabelled,), -1)])
    y = y[torch.randperm(y.numel(), generator=torch.Generator().manual_seed(0))]
    return Graph(name, torch.empty(2, 0, dtype=torch.int64), y.numel(), y=y, masks=masks or {})


def columns(pairs):
    return {tuple(pair) for pair in pairs.t().tolist()}


def tensors(split):
    return [t for t in vars(split).values() if isinstance(t, torch.Tensor)]


def same(a, b):
    return all(torch.equal(s, t) for s, t in zip(tensors(a), tensors(b), strict=True))


@st.composite
def graphs(draw):
    """From nearly empty (hence disconnected) to nearly complete, with isolated nodes."""
    num_nodes = draw(st.integers(4, 40))
    pairs = num_nodes * (num_nodes - 1) // 2
    num_edges = draw(st.integers(3, pairs))
    return random_graph(num_nodes, num_edges, draw(st.integers(0, 99)), weighted=draw(st.booleans()))


def splittable(graph):
    held_out = sum(max(1, int(share * graph.num_edges)) for share in (0.05, 0.10))
    return graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges >= held_out


class TestPairs:
    def test_order(self):
        assert pair_of_rank(torch.arange(6)).t().tolist() == [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]

    @pytest.mark.parametrize("num_nodes", [2, 3, 1_000, 10_000_000, 94_906_267, 1_000_000_000])
    def test_round_trip(self, num_nodes):
        generator = torch.Generator().manual_seed(0)
        last = num_nodes * (num_nodes - 1) // 2 - 1
        v = torch.randint(1, num_nodes, (20_000,), generator=generator)
        first_of_row = v * (v - 1) // 2
        rank = torch.cat(
            [
                torch.randint(last + 1, (20_000,), generator=generator),
                # Where the square root is an integer, or just misses one.
                first_of_row,
                first_of_row + v - 1,
                torch.tensor([0, last]),
            ]
        )
        pairs = pair_of_rank(rank)
        assert torch.equal(pair_rank(pairs), rank)
        assert (pairs[0] >= 0).all()
        assert (pairs[0] < pairs[1]).all()
        assert pairs[1].max() == num_nodes - 1

    @settings(max_examples=50, deadline=None)
    @given(graphs())
    def test_non_edges_are_the_complement(self, graph):
        edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
        non_edges = NonEdges(edges, graph.num_nodes)
        listed = non_edges[torch.arange(non_edges.count)]
        every = columns(pair_of_rank(torch.arange(graph.num_nodes * (graph.num_nodes - 1) // 2)))
        assert listed.size(1) == non_edges.count
        assert columns(listed) == every - columns(edges)


class TestSplitLinks:
    @settings(max_examples=150, deadline=None)
    @given(graphs().filter(splittable), st.integers(0, 2**31))
    def test_properties(self, graph, seed):
        split = split_links(graph, seed)
        edges = columns(graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]])
        train, val, test = columns(split.train), columns(split.val), columns(split.test)

        assert split.val.size(1) == max(1, int(0.05 * len(edges)))
        assert split.test.size(1) == max(1, int(0.10 * len(edges)))
        assert split.train.size(1) >= 1
        assert len(train) + len(val) + len(test) == len(edges)
        assert train | val | test == edges

        message_passing = split.edge_index.t().tolist()
        assert message_passing == sorted([[u, v] for u, v in train] + [[v, u] for u, v in train])

        val_neg, test_neg = columns(split.val_neg), columns(split.test_neg)
        assert split.val_neg.shape == split.val.shape
        assert split.test_neg.shape == split.test.shape
        assert len(val_neg | test_neg) == split.val_neg.size(1) + split.test_neg.size(1)
        assert not (val_neg | test_neg) & edges
        assert all(0 <= u < v < graph.num_nodes for u, v in val_neg | test_neg)

        if graph.edge_weight is None:
            assert split.edge_weight is None
        else:
            assert torch.equal(split.edge_weight, (1 + pair_rank(split.edge_index.sort(0).values)).float())

    def test_seed_decides_and_global_state_is_left_alone(self):
        graph = random_graph(100, 400)
        torch.manual_seed(1)
        before = torch.random.get_rng_state()
        first = split_links(graph, 7)
        assert torch.equal(torch.random.get_rng_state(), before)
        torch.manual_seed(2)
        assert same(split_links(graph, 7), first)
        other = split_links(graph, 8)
        assert columns(other.test) != columns(first.test)
        assert columns(other.test_neg) != columns(first.test_neg)

    def test_shares(self):
        split = split_links(random_graph(100, 400), val_share=0.2, test_share=0.3)
        assert (split.train.size(1), split.val.size(1), split.test.size(1)) == (200, 80, 120)

    def test_dense_graphs(self):
        """Of 15 nodes all linked and one alone, the 15 non-edges must be the 5 + 10 negatives."""
        split = split_links(graph_of(pair_of_rank(torch.arange(105)), 16))
        negatives = columns(split.val_neg) | columns(split.test_neg)
        assert negatives == {(u, 15) for u in range(15)}

    def test_huge_sparse_graph(self):
        num_nodes = 10_000_000
        generator = torch.Generator().manual_seed(0)
        ranks = torch.randint(num_nodes * (num_nodes - 1) // 2, (50_000,), generator=generator).unique()
        graph = graph_of(pair_of_rank(ranks), num_nodes)
        started = time.perf_counter()
        split = split_links(graph)
        assert time.perf_counter() - started < 2
        negatives = pair_rank(torch.cat([split.val_neg, split.test_neg], dim=1))
        assert not torch.isin(negatives, ranks).any()
        assert negatives.unique().numel() == negatives.numel()
        assert split.test_neg.max() > num_nodes // 2

    def test_negatives_are_uniform(self):
        graph = random_graph(8, 10)
        counts = torch.zeros(28)
        for seed in range(3000):
            split = split_links(graph, seed)
            counts[pair_rank(torch.cat([split.val_neg, split.test_neg], dim=1))] += 1
        drawn = counts[counts > 0]
        assert drawn.numel() == 18
        assert stats.chisquare(drawn.numpy()).pvalue > 1e-4

    @pytest.mark.parametrize("num_edges", [0, 1, 2])
    def test_too_few_edges(self, num_edges):
        with pytest.raises(InputError, match=f"graph 'g' has {num_edges} edges, too few to split"):
            split_links(random_graph(10, num_edges))

    def test_three_edges_are_enough(self):
        split = split_links(random_graph(10, 3))
        assert split.train.shape == split.val.shape == split.test.shape == (2, 1)

    @pytest.mark.parametrize("missing", [0, 60])
    def test_too_few_negatives(self, missing):
        with pytest.raises(InputError, match=f"only {missing} pairs without one, too few to split"):
            split_links(random_graph(50, 1225 - missing))

    @pytest.mark.parametrize(("val", "test"), [(0.0, 0.1), (0.1, 0.0), (0.5, 0.5), (-0.1, 0.2), (float("nan"), 0.1)])
    def test_bad_shares(self, val, test):
        with pytest.raises(InputError, match="sum to less than 1"):
            split_links(random_graph(20, 40), val_share=val, test_share=test)

    def test_pubmed_is_quick(self, data_dir):
        from hyperboloid.graphs.datasets import load_dataset

        graph = load_dataset("pubmed", data_dir)
        started = time.perf_counter()
        split = split_links(graph)
        assert time.perf_counter() - started < 2
        assert split.val.size(1) == int(0.05 * graph.num_edges)
        assert split.test.size(1) == int(0.10 * graph.num_edges)


class TestNegativeSampler:
    @settings(max_examples=50, deadline=None)
    @given(graphs().filter(splittable), st.integers(0, 2**31))
    def test_never_a_training_edge(self, graph, seed):
        split = split_links(graph)
        pairs = NegativeSampler(split.train, graph.num_nodes).sample(seed, 500)
        assert pairs.shape == (2, 500)
        assert pairs.dtype == torch.int64
        assert not columns(pairs) & columns(split.train)
        assert all(0 <= u < v < graph.num_nodes for u, v in columns(pairs))

    def test_uniform_and_blind_to_held_out_edges(self):
        graph = random_graph(12, 30)
        split = split_links(graph)
        pairs = NegativeSampler(split.train, 12).sample(0, 40_000)
        counts = pair_rank(pairs).bincount(minlength=66)
        possible = torch.ones(66, dtype=torch.bool)
        possible[pair_rank(split.train)] = False
        assert not counts[~possible].any()
        assert stats.chisquare(counts[possible].numpy()).pvalue > 1e-4
        assert columns(split.val) | columns(split.test) <= columns(pairs)

    def test_a_batch_is_its_rows(self):
        sampler = NegativeSampler(split_links(random_graph(100, 400)).train, 100)
        keys = torch.tensor([0, -1, 123456789], dtype=torch.int32)
        pairs = sampler.sample(keys, 50)
        assert pairs.shape == (3, 2, 50)
        for k in range(3):
            assert torch.equal(pairs[k], sampler.sample(int(keys[k]) & 0xFFFFFFFF, 50))

    def test_one_pair_left(self):
        pairs = pair_of_rank(torch.arange(1225))
        sampler = NegativeSampler(pairs[:, torch.arange(1225) != 700], 50)
        assert columns(sampler.sample(0, 20)) == columns(pairs[:, 700:701])

    def test_nothing_left(self):
        with pytest.raises(InputError, match="no negatives to draw"):
            NegativeSampler(pair_of_rank(torch.arange(15)), 6)


class TestSplitNodes:
    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.integers(0, 200), min_size=2, max_size=6),
        st.integers(0, 30),
        st.integers(0, 2**31),
    )
    def test_properties(self, sizes, unlabelled, seed):
        graph = labelled_graph(sizes, unlabelled=unlabelled)
        present = sum(size > 0 for size in sizes)
        if present < 2 or sum(sizes) < present + 2:
            with pytest.raises(InputError):
                split_nodes(graph, seed)
            return
        split = split_nodes(graph, seed)
        parts = [split.train, split.val, split.test]
        everything = torch.cat(parts)
        assert everything.unique().numel() == everything.numel()
        assert (graph.y[everything] >= 0).all()
        assert all(part.numel() >= 1 for part in parts)
        assert all(torch.equal(part, part.sort().values) for part in parts)
        assert all(part.dtype == torch.int64 for part in parts)
        assert graph.y[split.train].unique().numel() == present
        assert f"seed {seed}" in split.name
        if split.name.startswith("20 per class"):
            assert (graph.y[split.train].bincount(minlength=len(sizes)) == 20).sum() == present
        else:
            assert everything.numel() == sum(sizes)

    @pytest.mark.parametrize(
        ("sizes", "train", "val", "test"),
        [
            ([1000, 2000, 3000], 60, 500, 1000),
            ([300, 300, 300, 290], 80, 500, 610),
            ([100, 100], 40, 80, 80),
            ([60, 60], 40, 40, 40),
        ],
    )
    def test_twenty_per_class(self, sizes, train, val, test):
        split = split_nodes(labelled_graph(sizes), 3)
        assert (split.train.numel(), split.val.numel(), split.test.numel()) == (train, val, test)
        assert split.name == f"20 per class, {val} and {test} at random, seed 3"

    def test_all_parts_but_the_first_are_random_samples_of_the_rest(self):
        """A class of 1 in 50: the first 1000 nodes of an order of which 20 of each class were taken had none of it."""
        graph = labelled_graph([9800, 200])
        splits = [split_nodes(graph, seed) for seed in range(20)]
        for part in ("val", "test"):
            nodes = torch.cat([getattr(split, part) for split in splits])
            rare, n, p = int(graph.y[nodes].sum()), nodes.numel(), 180 / 9960
            assert abs(rare - n * p) < 4 * (n * p * (1 - p)) ** 0.5

    @pytest.mark.parametrize(
        ("sizes", "train", "val", "test"),
        [
            ([17, 17], 10, 3, 21),  # karate
            ([59, 60], 36, 12, 71),  # 40 of 119 nodes would be more than a third
            ([1000, 19], 306, 102, 611),  # a class of fewer than 20
            ([2, 2], 2, 1, 1),
            ([1, 3], 2, 1, 1),
        ],
    )
    def test_small_graphs(self, sizes, train, val, test):
        split = split_nodes(labelled_graph(sizes))
        assert (split.train.numel(), split.val.numel(), split.test.numel()) == (train, val, test)
        assert split.name == "30/10/60, seed 0"

    @pytest.mark.parametrize("name", ["disease", "disease_lp", "disease_nc"])
    def test_disease(self, name):
        split = split_nodes(labelled_graph([833, 211], name=name), 1)
        assert (split.train.numel(), split.val.numel(), split.test.numel()) == (313, 104, 627)
        assert split.name == "30/10/60, seed 1"

    def test_generated_disease(self):
        assert split_nodes(disease()).name == "30/10/60, seed 0"

    def test_seed_decides_and_global_state_is_left_alone(self):
        graph = labelled_graph([500, 700])
        before = torch.random.get_rng_state()
        first = split_nodes(graph, 5)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert same(split_nodes(graph, 5), first)
        assert not same(split_nodes(graph, 6), first)

    def test_masks_that_came_with_the_data(self):
        def masks(*parts):
            return dict(zip(("train", "val", "test"), map(torch.tensor, parts), strict=True))

        graph = labelled_graph(
            [50, 50],
            masks={"public": masks([3, 1], [5, 4], [9, 7, 8]), "authors": masks([0], [2], [6])},
        )
        public = NodeSplit(torch.tensor([1, 3]), torch.tensor([4, 5]), torch.tensor([7, 8, 9]), "public")
        for seed in (0, 1):
            assert same(split_nodes(graph, seed), public)
        assert split_nodes(graph).name == "public"
        assert split_nodes(graph, masks="authors").test.tolist() == [6]
        assert split_nodes(graph, masks="authors").name == "authors"
        with pytest.raises(InputError, match=r"no node split named 'mine' \(it came with: authors, public\)"):
            split_nodes(graph, masks="mine")

    def test_authors_masks_are_not_taken_unasked(self):
        nodes = {part: torch.tensor([i]) for i, part in enumerate(("train", "val", "test"))}
        assert split_nodes(labelled_graph([100, 100], masks={"authors": nodes})).name.startswith("20 per class")

    def test_unlabelled_nodes_leave_the_masks(self):
        graph = labelled_graph([5, 5], unlabelled=10)
        everyone = torch.arange(20)
        graph.masks["public"] = {"train": everyone[:7], "val": everyone[7:14], "test": everyone[14:]}
        split = split_nodes(graph)
        assert sorted(torch.cat([split.train, split.val, split.test]).tolist()) == [
            node for node in range(20) if graph.y[node] >= 0
        ]

    def test_classes_without_a_node_do_not_count(self):
        graph = labelled_graph([100, 0, 100])
        assert split_nodes(graph).train.numel() == 40

    def test_no_labels(self):
        for graph in (random_graph(5, 4), labelled_graph([], unlabelled=5)):
            with pytest.raises(InputError, match="graph 'g' has no labels to learn from: give --labels"):
                split_nodes(graph)

    def test_one_class(self):
        with pytest.raises(InputError, match="one class"):
            split_nodes(labelled_graph([50], unlabelled=5))

    def test_too_few_labelled_nodes(self):
        with pytest.raises(InputError, match="3 labelled nodes in 2 classes, too few"):
            split_nodes(labelled_graph([2, 1], unlabelled=100))
