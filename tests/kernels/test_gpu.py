"""The compiled kernels on a GPU against the CPU; skipped where there is none."""

import pytest
import torch

from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import (
    Adjacency,
    frechet_aggregate,
    lorentz_aggregate,
    lorentz_attention,
    tangent_aggregate,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def outputs_and_gradients(device, dtype, d):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(500, (2, 3000), generator=generator).to(device)
    adj = Adjacency.from_edges(edges[0], edges[1], (500, 500), self_loops=True)
    u = (1.5 / d**0.5 * torch.randn(500, d, generator=generator, dtype=torch.float64)).to(device, dtype)
    weight = torch.rand(adj.row.numel(), generator=generator).to(device, dtype)
    beta = torch.tensor(1.2, device=device, dtype=dtype)
    inputs = [t.requires_grad_() for t in (u, weight, beta)]
    space, alpha = Lorentz(beta).normal, lorentz_attention(0.3 * u, 0.3 * u, adj, beta)
    outputs = [
        lorentz_aggregate(u, adj, beta, alpha * weight),
        tangent_aggregate(u, u.roll(1, 0), adj, beta, weight),
        frechet_aggregate(u, adj, beta, weight),
        space.exp_at(u, u.roll(2, 0)),
        space.dist(u, u.roll(3, 0)),
    ]
    probes = [torch.linspace(-1, 1, o.numel(), device=device, dtype=dtype).view(o.shape) for o in outputs]
    total = sum((o * p).sum() for o, p in zip(outputs, probes, strict=True))
    return [t.detach().cpu() for t in (*outputs, *torch.autograd.grad(total, inputs))]


@pytest.mark.parametrize("d", [1, 5, 16, 64, 200])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_same_values_and_gradients_as_on_the_cpu(d, dtype, tolerance):
    # the gradient in β, the last one, is a sum that cancels: at d = 1 space is flat, and it is next to nothing
    pairs = list(zip(outputs_and_gradients("cuda", dtype, d), outputs_and_gradients("cpu", dtype, d), strict=True))
    for ours, theirs in pairs[:-1]:
        assert (ours - theirs).abs().max() < tolerance * theirs.abs().max()
    scale = max(1.0, pairs[-2][1].abs().sum().item())
    assert (pairs[-1][0] - pairs[-1][1]).abs() < tolerance * scale
