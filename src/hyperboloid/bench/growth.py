"""Time of a layer against the number of edges: it should grow linearly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch

from .graphs import power_law_graph
from .layers import BOTH, OURS, layer_calls, random_features
from .numbers import Case, describe
from .plan import POWER_LAW, Plan
from .timing import timed

#: Width of the layer.
DIM = 16
#: Directed edges for each node.
DEGREE = 20
#: The line is fitted to graphs with at least this share of the largest one's edges; below, a GPU waits for launches.
FITTED = 1 / 100
LARGEST_SLOPE = 1.1


def measure(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    """One case for each size; a graph of 200 million edges takes some 40 GiB while it is sorted and aggregated."""
    for edges in plan.growth:
        nodes = edges // DEGREE
        what = {"graph": POWER_LAW, "nodes": nodes, "edges": edges, "dim": DIM}
        say(describe(what))
        edge_index = power_law_graph(nodes, edges, device)
        both = layer_calls(OURS, random_features(nodes, DIM, device), edge_index)[1]
        time = timed({OURS: both}, device, plan.seconds / 2)[OURS]
        del both, edge_index
        if device.type == "cuda":
            torch.cuda.empty_cache()
        yield Case(what, [time.number(OURS, BOTH)])


def slope(times: Mapping[int, float]) -> float:
    """Exponent p of time ∝ edges^p, by least squares on logarithms over the largest graphs; NaN for fewer than two."""
    points = [(math.log(e), math.log(t)) for e, t in times.items() if e >= FITTED * max(times)]
    if len(points) < 2:
        return math.nan
    x, y = (torch.tensor(column, dtype=torch.float64) for column in zip(*points, strict=True))
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x @ x))


def draw_growth(series: Mapping[str, Mapping[int, float]], folder: Path) -> None:
    """Draw milliseconds against edges as ``growth.png`` and ``growth.svg``.

    Args:
        series: milliseconds by number of edges, for each machine by its name.
        folder: where the files go.
    """
    from hyperboloid.analysis.style import COLOURS, GREY, dress, new_figure, plain, save_figure

    figure = new_figure(6.0, 3.8)
    axes = figure.subplots()
    markers = ("o", "s", "^", "D")
    for (machine, times), colour, marker in zip(series.items(), COLOURS, markers, strict=False):
        edges = sorted(times)
        label = plain(f"{machine}, slope {slope(times):.2f}")
        axes.loglog(edges, [times[e] for e in edges], color=colour, marker=marker, markersize=5, label=label)
        last = edges[-1]
        axes.loglog(edges, [times[last] * e / last for e in edges], color=GREY, linestyle=":", linewidth=1)
    axes.plot([], [], color=GREY, linestyle=":", linewidth=1, label="slope 1 through the last point")
    dress(axes, f"One LGCN layer, forward and backward, d = {DIM}, power-law graphs")
    axes.set_xlabel("directed edges")
    axes.set_ylabel("milliseconds")
    axes.legend(frameon=False, fontsize=8)
    for kind in ("png", "svg"):
        save_figure(figure, folder / f"growth.{kind}")
