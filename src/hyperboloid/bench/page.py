"""``docs/performance.md``: what was measured, and for each goal whether it is reached."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hyperboloid.paper.markdown import table
from hyperboloid.training.checkpoint import write_atomically

from . import epochs, gather, geometry, growth, layers, tables
from .goals import GOALS, Finding, Goal, growth_times, verdict
from .results import Measured, read_lines

DEVICES = {"cuda": "GPU", "cpu": "CPU"}


@dataclass(frozen=True)
class Page:
    """A written page, and what it says about the goals."""

    path: Path
    findings: tuple[tuple[Goal, Finding | None], ...]

    def count(self, reached: bool) -> int:
        """How many goals are reached, or missed."""
        return sum(finding is not None and finding.reached is reached for _, finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """In types that JSON has."""
        goals = [
            {
                "device": goal.device,
                "goal": goal.text,
                "needed": goal.needed,
                "measured": None if found is None else found.text,
                "reached": None if found is None else found.reached,
            }
            for goal, found in self.findings
        ]
        return {"page": str(self.path), "reached": self.count(True), "missed": self.count(False), "goals": goals}


def write_page(results: Path, out: Path) -> Page:
    """Write the page, and its picture into ``figures/`` beside it."""
    measured = Measured(read_lines(results))
    found = Page(out, tuple((goal, goal.find(measured)) for goal in GOALS))
    series = {
        measured.select("growth", device).machines: times
        for device in DEVICES
        if (times := growth_times(measured, device))
    }
    figures = out.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    if series and find_spec("matplotlib") is not None:  # a machine that measures may have no use for pictures
        growth.draw_growth(series, figures)
    source = Path(os.path.relpath(results, out.parent))
    write_atomically(out, _text(measured, found, source, grown=bool(series)).encode())
    return found


def _text(measured: Measured, page: Page, source: Path, *, grown: bool) -> str:
    parts = [
        "# Performance",
        f"Written by `hyperboloid bench` from [{source.name}]({source.as_posix()}); not to be edited by hand. "
        "Times are medians of calls that take turns in one process, after warming up; ratios are within one run. "
        '"CPU ms" is the time that all threads together were at work. A load beside a number says that other programs '
        "wanted more cores than the machine has while it was measured; where several threads are no more CPU ms than "
        "ms, those programs had the other cores.",
        "## Goals",
        _goals(measured, page),
        "## One whole layer",
        "Linear maps, attention, aggregation and ReLU, d → d, float32; PyG's layers as PyG has them (`GCNConv` with a "
        'cached norm), ours beside them. "Forward" is without gradients, "forward + backward" with those of the input '
        "and of all parameters.",
        "### GPU",
        tables.graph_in_words(measured, "layers", "cuda"),
        tables.gpu_layers(measured),
        _where("LGCN's time", measured.select("layers", "cuda"), layers.PROFILE),
        "### CPU",
        tables.cpu_layers(measured),
        "On Linux, PyG's times on a CPU hang on the memory allocator. Its layers write tensors with a row for each "
        "edge; glibc hands such large pieces back to the system when they are freed, so that every call has to be "
        'given cleared pages anew. That is what users get by default, and what the goals are about. The columns "kept" '
        "are the same, measured in a process that was started with "
        f"`{' '.join(f'{name}={value}' for name, value in layers.ALLOCATORS['kept'].items())}`, where glibc keeps the "
        "memory; ours write no such tensors, so it is PyG's layers that gain at d = 64. What we gain comes from those "
        "tensors: nodes of Amazon have 37 neighbours on average, those of Pubmed 4.5. On Pubmed PyG's tensors are "
        "small too, and what remains is ours: a second matrix product for the attention, and what each row costs "
        "whatever its length (sinh of two vectors, a logarithm, sums in double precision).",
        _where("LGCN's time", measured.select("layers", "cpu", memory="handed back"), layers.PROFILE),
        "## The aggregation against memory bandwidth",
        _first_paragraphs(gather),
        tables.gathers(measured),
        _where("the aggregation's time", measured.select("gather", "cuda"), gather.PROFILE),
        "## Time against edges",
        f"One LGCN layer, forward + backward, d = {growth.DIM}, on power-law graphs with {growth.DEGREE} directed "
        "edges for each node; ms (ns for each edge). The slope is fitted on the logarithms, from "
        f"1/{1 / growth.FITTED:.0f} of the largest graph up. Neighbours are read in no order, so on a CPU an edge "
        "costs more where the vectors of all nodes, d doubles and 2 d floats for each, are larger than the caches.",
        f"{tables.growths(measured)}\n\n![time against edges](figures/growth.png)" if grown else tables.NOT_MEASURED,
        "## One epoch",
        _first_paragraphs(epochs),
        f'"{epochs.DENSE_GAT}" is the network as users of PyG write it; `gat` and `gcn` are ours, with the values of '
        "PyG's convolutions; they take sparse features, and share everything but the layer with LGCN, the compiled "
        "loops of dropout, negatives and distances included. Rows measured before commit 016a3f1 have PyG's own "
        "convolutions behind our linear map instead. In brackets what the code published with the paper takes, where "
        "it is known.",
        "### CPU",
        tables.all_epochs(measured, "cpu"),
        _where("LGCN's epoch", measured.select("epochs", "cpu"), epochs.PROFILE),
        "### GPU",
        tables.all_epochs(measured, "cuda"),
        "## Geometry",
        _first_paragraphs(geometry),
        *(text for device in ("cpu", "cuda") for text in _geometry(measured, device)),
        "## Where the numbers come from",
        tables.provenance(measured) if measured.lines else tables.NOT_MEASURED,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _goals(measured: Measured, page: Page) -> str:
    parts = []
    for device, title in DEVICES.items():
        own = Measured(line for line in measured.lines if line["device"] == device)
        rows = [
            [goal.text, goal.needed, tables.NONE if found is None else found.text, verdict(found)]
            for goal, found in page.findings
            if goal.device == device
        ]
        where = own.machines or "nothing measured yet"
        parts.append(f"**{title}** ({where})\n\n{table(['goal', 'needed', 'measured', ''], rows)}")
    return "\n\n".join(parts)


def _where(what: str, measured: Measured, quantity: str) -> str:
    """Where the time goes."""
    found = tables.profiles(measured, quantity)
    return f"Where {what} goes (torch's profiler, which costs a little itself):\n\n{found}" if found else ""


def _geometry(measured: Measured, device: str) -> tuple[str, ...]:
    own = measured.select("geometry", device)
    if not own.lines:
        return (f"### {DEVICES[device]}", tables.NOT_MEASURED)
    without = any(name.startswith(geometry.GEOOPT) for name in own.names(geometry.TIME))
    remark = "" if without else "geoopt was not installed there."
    return (f"### {DEVICES[device]}", tables.geometries(measured, device), remark)


def _first_paragraphs(module: Any) -> str:
    """What a benchmark's own file says about it, below its title."""
    return (inspect.getdoc(module) or "").partition("\n\n")[2]
