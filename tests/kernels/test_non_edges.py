"""Training negatives are the same pairs whichever backend draws them."""

import math

import pytest
import torch

from hyperboloid.graphs.splits import NegativeSampler, pair_of_rank
from hyperboloid.kernels import random_numbers, use_backend


def sampler_of(num_nodes, num_edges):
    """Some random edges, and the last pairs, which no non-edge follows."""
    pairs = num_nodes * (num_nodes - 1) // 2
    drawn = torch.randint(pairs, (max(num_edges - 3, 0),), generator=torch.Generator().manual_seed(0))
    ranks = torch.cat([drawn, pairs - 1 - torch.arange(min(num_edges, 3))]).unique()
    return NegativeSampler(pair_of_rank(ranks), num_nodes)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("num_nodes", "num_edges"), [(2, 0), (5, 1), (5, 8), (60, 1500), (60, 1024), (3000, 5000), (1_000_000_000, 2047)]
)
@pytest.mark.parametrize("count", [1, 1024, 1500])
def test_every_backend_draws_the_same_pairs(num_nodes, num_edges, count):
    sampler = sampler_of(num_nodes, num_edges)
    keys = torch.tensor([0, -1, 123456789, -(2**31)], dtype=torch.int32)
    with use_backend("reference"):
        expected = [sampler.sample(int(key) & 0xFFFFFFFF, count) for key in keys]
    assert torch.equal(sampler.sample(keys, count), torch.stack(expected))
    assert torch.equal(sampler.sample(0xFFFFFFFF, count), expected[1])


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("num_edges", [1, 700])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_edges_come_first(num_edges, dtype):
    edges = pair_of_rank(torch.arange(num_edges)).to(dtype)
    sampler = NegativeSampler(edges, 60)
    for key in (7, torch.tensor([7, -7], dtype=torch.int32)):
        pairs = sampler.with_edges(key)
        assert pairs.dtype == dtype
        assert torch.equal(pairs[..., :num_edges], edges.expand(*pairs.shape[:-1], -1))
        assert torch.equal(pairs[..., num_edges:].long(), sampler.sample(key, num_edges).long())


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("key", [4825088, 11758592])
def test_a_square_root_that_rounds_up_is_corrected(key):
    # one in 20 million pairs of this many nodes; the keys were searched for
    num_nodes, count = 1_000_000_000, 1024
    rank = random_numbers(key, count, torch.device("cpu")) % (num_nodes * (num_nodes - 1) // 2)
    v = [(1 + math.isqrt(8 * r + 1)) // 2 for r in rank.tolist()]
    assert (torch.tensor(v) != ((1 + (8 * rank + 1).double().sqrt()) / 2).long()).any()
    u = [r - b * (b - 1) // 2 for r, b in zip(rank.tolist(), v, strict=True)]
    assert sampler_of(num_nodes, 0).sample(key, count).tolist() == [u, v]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("key", [3, torch.tensor([3, 4], dtype=torch.int32)])
def test_nothing_is_drawn_where_nothing_is_asked_for(key):
    shape = (*(key.shape if isinstance(key, torch.Tensor) else ()), 2, 0)
    sampler = NegativeSampler(torch.empty(2, 0, dtype=torch.long), 5)
    assert sampler.with_edges(key).shape == shape
    assert sampler_of(60, 8).sample(key, 0).shape == shape
