"""Gradients by hand are refused a gradient of their own; torch's decorator lets some pass, and is silently wrong."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from hyperboloid.geometry import Lorentz
from hyperboloid.geometry.pairwise import pairwise_dist
from hyperboloid.kernels import (
    Adjacency,
    lorentz_aggregate,
    pair_sqdist,
    tangent_aggregate,
    use_backend,
    weighted_sum,
)

EDGES = torch.tensor([[0, 0, 1, 2, 3, 3], [1, 2, 0, 3, 2, 1]])
#: without self loops: where two points coincide distances and logarithms have no second derivative by these formulas
ADJ = Adjacency.from_edges(EDGES[0], EDGES[1], (4, 4), self_loops=False)
BETA = torch.tensor(1.3)
OPERATIONS = {
    "lorentz_aggregate": lambda u, w: lorentz_aggregate(u, ADJ, BETA.to(u), w, attention=(u, u)),
    "tangent_aggregate": lambda u, w: tangent_aggregate(u, u, ADJ, BETA.to(u), w),
    "weighted_sum": lambda u, w: weighted_sum(u, ADJ, w),
    "pair_sqdist": lambda u, w: pair_sqdist(u, EDGES, BETA.to(u)) * w.sum(),
}


def inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    weight = torch.rand(ADJ.row.numel(), generator=generator, dtype=torch.float64)
    return u.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_second_derivative_is_refused(name):
    u, weight = inputs()
    plain = torch.autograd.grad(OPERATIONS[name](u, weight).sum(), (u, weight))
    slopes = torch.autograd.grad(OPERATIONS[name](u, weight).sum(), (u, weight), create_graph=True)
    torch.testing.assert_close(slopes, plain, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="computed by hand and cannot be differentiated once more"):
        torch.autograd.grad(slopes[0].square().sum(), u)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_reference_has_one(name):
    with use_backend("reference"):
        assert torch.autograd.gradgradcheck(OPERATIONS[name], inputs(torch.float64))


@pytest.mark.parametrize(
    "points",
    [
        [[0.3, 0.4], [-0.6, 0.8], [1.2, -1.6]],
        [[0.3, 0.4]] * 3,
        [[0.3, 0.4], [0.6, 0.8], [1.2, 1.6]],  # in one direction
    ],
)
def test_centroids_have_one(points):
    def mean(u, weight, beta):
        return Lorentz(beta).normal.centroid(u, weight)

    given = (torch.tensor(t, dtype=torch.float64).requires_grad_() for t in (points, [1.0, 2.0, 3.0], 0.7))
    assert torch.autograd.gradgradcheck(mean, tuple(given))


def test_what_is_checkpointed_may_be_kept_for_a_second_derivative():
    """Tensors of a checkpoint are unpacked once only."""
    u, weight = inputs()
    out = checkpoint(lambda *given: weighted_sum(given[0], ADJ, given[1]), u, weight, use_reentrant=False)
    slopes = torch.autograd.grad(out.sum(), (u, weight), create_graph=True)
    torch.testing.assert_close(slopes, torch.autograd.grad(weighted_sum(u, ADJ, weight).sum(), (u, weight)))


def test_means_and_distances_by_hand_have_none():
    u, weight = inputs(torch.float64)
    (slope,) = torch.autograd.grad(Lorentz(BETA.double()).normal.frechet(u, weight[:4]).sum(), u, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated once more"):
        slope.sum().backward()

    u, c = (torch.randn(5, 3, generator=torch.Generator().manual_seed(k)).requires_grad_() for k in (0, 1))
    (slope,) = torch.autograd.grad(pairwise_dist(u, c, BETA).sum(), u, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated once more"):
        slope.sum().backward()
