"""The aggregation alone, attention and centroid, against the time that reading its operands takes.

An entry (i, j) of the graph needs two vectors of d floats on the way forward, the attention feature and the point of
node j, and four on the way back, which gathers along the rows and along the columns. Reading them once per entry at the
speed at which this device copies memory is the gather bound. Caches can beat it, since every node comes more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from hyperboloid.kernels import Adjacency

from .graphs import power_law_graph
from .layers import random_features
from .numbers import Case, Number, describe
from .plan import POWER_LAW, Plan
from .timing import profiled, timed

NAME = "aggregation"
FORWARD, BACKWARD, BANDWIDTH, BOUND, PROFILE = "forward", "backward", "copy bandwidth", "bound", f"part of {NAME}"
#: Vectors of d floats that an entry needs.
VECTORS = {FORWARD: 2, BACKWARD: 4}
#: Floats that are copied to measure the bandwidth.
COPIED = 64_000_000


def measure(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    """Times and bounds of the aggregation on the generated graph, for each width."""
    nodes, edges = plan.power_law
    source, target = power_law_graph(nodes, edges, device)
    adj = Adjacency.from_edges(source, target, (nodes, nodes), self_loops=True)
    del source, target
    for d in plan.dims:
        what = {"graph": POWER_LAW, "nodes": nodes, "edges": edges, "dim": d}
        say(describe(what))
        yield Case(what, _numbers(adj, d, device, plan.seconds))


def _numbers(adj: Adjacency, d: int, device: torch.device, seconds: float) -> list[Number]:
    if device.type == "cuda":
        from hyperboloid.kernels import gpu as backend
    else:
        from hyperboloid.kernels import cpu_fused as backend  # type: ignore[no-redef]

    u, index = random_features(adj.num_cols, d, device).unsqueeze(0), adj.index
    key, grad, beta, cap = 0.3 * u, u.flip(1).contiguous(), torch.ones(1, device=device), 1e30
    _, *needed = backend.aggregate(u, None, key, beta, None, None, index, cap)
    read = torch.empty(COPIED if device.type == "cuda" else 64 * adj.num_cols, device=device)
    written = torch.empty_like(read)
    calls = {
        FORWARD: lambda: backend.aggregate(u, None, key, beta, None, None, index, cap),
        BACKWARD: lambda: backend.aggregate_backward(grad, u, None, key, beta, None, None, index, cap, needed, False),
        BANDWIDTH: lambda: written.copy_(read),
    }
    times = timed(calls, device, seconds)
    bandwidth = 2 * 4 * read.numel() / (1e-3 * times[BANDWIDTH].ms)
    found = [Number("copy", BANDWIDTH, bandwidth / 1e12, "TB/s", repeats=times[BANDWIDTH].repeats)]
    for quantity, vectors in VECTORS.items():
        bound = 1e3 * vectors * 4 * d * adj.row.numel() / bandwidth
        found += [times[quantity].number(NAME, quantity), Number(NAME, f"{BOUND} {quantity}", bound, "ms")]

    def both() -> None:
        calls[FORWARD]()
        calls[BACKWARD]()

    return found + profiled(both, device, PROFILE)
