"""Random graphs with a power law of degrees, as large as a GPU holds."""

from __future__ import annotations

import torch
from torch import Tensor

#: P(degree ≥ k) falls like k^(1 − γ).
EXPONENT = 2.5
#: Pairs drawn at a time: what is needed beside the edges stays small.
CHUNK = 10_000_000


def power_law_graph(nodes: int, edges: int, device: str | torch.device = "cpu", seed: int = 0) -> Tensor:
    """Edges ``(2, edges)`` of a graph whose degrees follow a power law with exponent 2.5 (Chung & Lu 2002).

    Both ends of each of ``edges // 2`` pairs are drawn, independently, with probability ∝ (rank + 1)^(−1/(γ − 1)), and
    each pair is there in both directions. As in any large sparse graph made so, a few pairs come twice and a few are
    loops. Which node has which rank is random, so that memory near a hub is no hub's.

    Args:
        nodes: how many.
        edges: directed edges, an even number.
        device: where it is drawn, and stays; another kind of device draws another graph.
        seed: of the draw.
    """
    generator = torch.Generator(device).manual_seed(seed)
    expected = torch.arange(1, nodes + 1, dtype=torch.float64) ** (-1 / (EXPONENT - 1))
    below = (expected.cumsum(0) / expected.sum()).to(device)
    name = torch.randperm(nodes, generator=generator, device=device)
    pairs = edges // 2
    found = torch.empty(2, 2 * pairs, dtype=torch.long, device=device)
    for start in range(0, pairs, CHUNK):
        stop = min(start + CHUNK, pairs)
        ends = torch.rand(2, stop - start, dtype=torch.float64, generator=generator, device=device)
        drawn = name[torch.searchsorted(below, ends).clamp_max(nodes - 1)]
        found[:, start:stop] = drawn
        found[:, pairs + start : pairs + stop] = drawn.flip(0)
    return found
