"""The goals that the numbers are held to, and whether they are reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import epochs, gather, geometry, growth, layers
from .plan import CPU, GPU, POWER_LAW
from .results import Measured

#: The generated graph that the goals on a GPU are about.
GRAPH = {"graph": POWER_LAW, "nodes": GPU.power_law[0], "edges": GPU.power_law[1]}
EPOCH_MS = 0.6
WORDS = {True: "reached", False: "**missed**"}


@dataclass(frozen=True)
class Finding:
    """What was measured for a goal.

    Attributes:
        text: the number.
        reached: whether it is good enough.
        load: of the machine, where it was busy with other things.
        remark: what else there is to say.
    """

    text: str
    reached: bool
    load: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class Goal:
    """One number to reach.

    Attributes:
        device: where.
        text: what.
        needed: how much.
        find: the number among what was measured; None where it has not been.
    """

    device: str
    text: str
    needed: str
    find: Callable[[Measured], Finding | None]


def verdict(finding: Finding | None) -> str:
    """In one word, with what there is to say, and a warning where the machine was busy."""
    if finding is None:
        return "not measured"
    busy = "" if finding.load is None else f"load {finding.load:.1f}"
    return ", ".join(part for part in (WORDS[finding.reached], finding.remark, busy) if part)


def _faster(device: str, rival: str, least: float, **case: Any) -> Goal:
    """A whole layer, so many times faster than PyG's; on a CPU both ways of glibc are shown, its usual one counts."""

    def find(measured: Measured) -> Finding | None:
        usual = measured.select("layers", device, **case, **({} if device == "cuda" else {"memory": "handed back"}))
        ratio = usual.ratio(rival, layers.OURS, layers.BOTH)
        if ratio is None:
            return None
        kept = measured.select("layers", device, **case, memory="kept").ratio(rival, layers.OURS, layers.BOTH)
        if kept is None:
            return Finding(f"{ratio:.1f} times", ratio >= least, usual.load)
        remark = "" if (kept >= least) == (ratio >= least) else f"{WORDS[kept >= least]} where memory is kept"
        return Finding(f"{ratio:.1f} times; {kept:.1f} where memory is kept", ratio >= least, usual.load, remark)

    text = f"{case['graph']}, d = {case['dim']}: faster than {rival}"
    return Goal(device, text, "no slower" if least == 1 else f"{least:g} times", find)


def _memory(most: float, **case: Any) -> Goal:
    def find(measured: Measured) -> Finding | None:
        value = measured.select("layers", "cuda", **case).value(layers.OURS, layers.MEMORY)
        return None if value is None else Finding(f"{value:.2f} GiB", value < most)

    return Goal("cuda", f"{case['graph']}, d = {case['dim']}: peak extra memory", f"under {most:g} GiB", find)


def _share(quantity: str, least: float, **case: Any) -> Goal:
    def find(measured: Measured) -> Finding | None:
        share = bound_share(measured.select("gather", "cuda", **case), quantity)
        return None if share is None else Finding(f"{100 * share:.0f} %", share >= least)

    text = f"{case['graph']}, d = {case['dim']}: aggregation {quantity}, of the gather bound"
    return Goal("cuda", text, f"{100 * least:.0f} %", find)


def bound_share(case: Measured, quantity: str) -> float | None:
    """The gather bound as a share of the time."""
    bound = case.value(gather.NAME, f"{gather.BOUND} {quantity}")
    time = case.value(gather.NAME, quantity)
    return None if bound is None or time is None else bound / time


def _epoch(graph: str, rival: str, most: float) -> Goal:
    def find(measured: Measured) -> Finding | None:
        case = measured.select("epochs", "cpu", graph=graph)
        ratio = case.ratio(epochs.OURS, rival, epochs.EPOCH)
        return None if ratio is None else Finding(f"{ratio:.2f} times", ratio <= most, case.load)

    return Goal("cpu", f"{graph}: LGCN's epoch against {rival.upper()}'s", f"at most {most:g} times", find)


def _recorded_epoch(graph: str) -> Goal:
    def find(measured: Measured) -> Finding | None:
        value = measured.select("epochs", "cuda", graph=graph).value(epochs.OURS, epochs.EPOCH)
        return None if value is None else Finding(f"{value:.2f} ms", value < EPOCH_MS)

    return Goal("cuda", f"{graph}: an epoch of LGCN", f"under {EPOCH_MS:g} ms", find)


def growth_times(measured: Measured, device: str, clock: str = "value") -> dict[int, float]:
    """Milliseconds by number of edges, by the clock (``value``) or on all threads of a CPU (``busy``)."""
    lines = measured.select("growth", device).lines
    found = {line["case"]["edges"]: line[clock] for line in lines if line[clock] is not None}
    return dict(sorted(found.items()))


def _linear(device: str, to: int) -> Goal:
    def find(measured: Measured) -> Finding | None:
        times = growth_times(measured, device)
        exponent = growth.slope(times) if times else math.nan
        if math.isnan(exponent) or max(times) < to:
            return None
        load = measured.select("growth", device).load
        return Finding(f"edges^{exponent:.2f}", exponent <= growth.LARGEST_SLOPE, load)

    text = f"time grows linearly up to {to:,} edges"
    return Goal(device, text, f"at most edges^{growth.LARGEST_SLOPE}", find)


def _geometry() -> Goal:
    def find(measured: Measured) -> Finding | None:
        found = {line["name"] for line in measured.select("geometry", "cpu").lines}
        missing = {geometry.OURS, geometry.GEOOPT, geometry.TEXTBOOK} - found
        text = "in the table below" if not missing else f"without {', '.join(sorted(missing))}"
        return Finding(text, not missing) if found else None

    return Goal("cpu", "geometry beside geoopt and textbook formulas", "speed and error in one table", find)


GOALS: tuple[Goal, ...] = (
    _faster("cuda", "GATConv", 4.5, **GRAPH, dim=64),
    _faster("cuda", "GCNConv", 3, **GRAPH, dim=64),
    _memory(3, **GRAPH, dim=64),
    _share(gather.FORWARD, 0.75, **GRAPH, dim=64),
    _share(gather.BACKWARD, 0.65, **GRAPH, dim=64),
    _faster("cuda", "GATConv", 5, **GRAPH, dim=16),
    _linear("cuda", GPU.growth[-1]),
    _recorded_epoch("cora"),
    _faster("cpu", "GATConv", 7, graph="amazon", dim=64),
    _faster("cpu", "GATConv", 4, graph="amazon", dim=16),
    _faster("cpu", "GATConv", 2.2, graph="pubmed", dim=64),
    _faster("cpu", "GATConv", 2, graph="pubmed", dim=16),
    _faster("cpu", "GCNConv", 5, graph="amazon", dim=64),
    _faster("cpu", "GCNConv", 1.7, graph="amazon", dim=16),
    _faster("cpu", "GCNConv", 1, graph="pubmed", dim=64),
    _faster("cpu", "GCNConv", 1, graph="pubmed", dim=16),
    *(_epoch(graph, rival, most) for graph in CPU.epoch_graphs for rival, most in (("gat", 1.0), ("gcn", 1.5))),
    _linear("cpu", CPU.growth[-1]),
    _geometry(),
)
