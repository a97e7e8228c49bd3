"""The tables of the page: every measured number, by benchmark."""

from __future__ import annotations

from typing import Any

from hyperboloid.paper.markdown import table

from . import epochs, gather, geometry, growth, layers
from .goals import bound_share, growth_times
from .numbers import describe
from .plan import POWER_LAW
from .results import Measured

NONE = "–"
NOT_MEASURED = "Not measured."
#: CPU seconds of an epoch on Cora's links, d = 16, by the codes that were published with the papers.
PUBLISHED = {"lgcn": 0.5, "hgcn": 0.19}


def short(value: float | None) -> str:
    """A number to three digits."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(value: float | None) -> str:
    """A ratio."""
    return NONE if value is None else f"{value:.2f}"


def profile(case: Measured, quantity: str, whole: str) -> str:
    """Where the time goes, in one sentence."""
    parts = [f"{name} {short(case.value(name, quantity))}" for name in case.names(quantity)]
    return f"- {whole}, ms: {', '.join(parts)}" if parts else ""


def profiles(measured: Measured, quantity: str) -> str:
    """Where the time of each case goes, as a list."""
    found = (profile(case, quantity, describe(what)) for what, case in measured.cases())
    return "\n".join(line for line in found if line)


def gpu_layers(measured: Measured) -> str:
    """Whole layers on a GPU."""
    rows = [
        [
            f"{what['dim']}",
            name,
            short(case.value(name, layers.FORWARD)),
            short(case.value(name, layers.BOTH)),
            times(case.ratio(name, layers.OURS, layers.BOTH)),
            short(case.value(name, layers.MEMORY)),
        ]
        for what, case in measured.select("layers", "cuda").cases()
        for name in case.names(layers.BOTH)
    ]
    header = ["d", "layer", "forward, ms", "forward + backward, ms", f"× {layers.OURS}", "peak extra memory, GiB"]
    return table(header, rows) if rows else NOT_MEASURED


def cpu_layers(measured: Measured) -> str:
    """Whole layers on a CPU, beside each other with the two ways of the allocator."""
    own = measured.select("layers", "cpu")
    rows = []
    for what, case in own.cases():
        if what["memory"] == "handed back":
            other = own.select("layers", "cpu", **what | {"memory": "kept"})
            graph = describe({key: value for key, value in what.items() if key not in ("memory", "dim")})
            rows += [
                [graph, f"{what['dim']}", name, *_cpu_columns(case, name), *_cpu_columns(other, name)]
                for name in case.names(layers.BOTH)
            ]
    columns = ["forward, ms", "f + b, ms", f"× {layers.OURS}", "f + b, CPU ms"]
    header = ["graph", "d", "layer", *columns, *(f"{column}, kept" for column in columns)]
    return table(header, rows) if rows else NOT_MEASURED


def _cpu_columns(case: Measured, name: str) -> list[str]:
    line = case.line(name, layers.BOTH)
    return [
        short(case.value(name, layers.FORWARD)),
        short(case.value(name, layers.BOTH)),
        times(case.ratio(name, layers.OURS, layers.BOTH)),
        short(None if line is None else line["busy"]),
    ]


def gathers(measured: Measured) -> str:
    """The aggregation against its bound."""
    rows = [
        [
            f"{what['dim']}",
            quantity,
            short(case.value(gather.NAME, quantity)),
            short(case.value(gather.NAME, f"{gather.BOUND} {quantity}")),
            f"{100 * share:.0f} %",
            short(case.value("copy", gather.BANDWIDTH)),
        ]
        for what, case in measured.select("gather", "cuda").cases()
        for quantity in gather.VECTORS
        if (share := bound_share(case, quantity)) is not None
    ]
    header = ["d", "", "ms", "bound, ms", "share of the bound", "copy bandwidth, TB/s"]
    return table(header, rows) if rows else NOT_MEASURED


def growths(measured: Measured) -> str:
    """Time against edges, a row for each machine, and on a CPU one for the time of all threads."""
    named = {
        f"{measured.select('growth', device).machines}{words}": growth_times(measured, device, clock)
        for device in ("cuda", "cpu")
        for words, clock in (("", "value"), (": CPU time", "busy"))
    }
    sizes = sorted({edges for found in named.values() for edges in found})
    rows = [
        [
            name,
            *(f"{short(found[e])} ({short(1e6 * found[e] / e)})" if e in found else NONE for e in sizes),
            f"{growth.slope(found):.2f}",
        ]
        for name, found in named.items()
        if found
    ]
    return table(["directed edges", *(f"{e:.0e}".replace("e+0", "e") for e in sizes), "slope"], rows)


def all_epochs(measured: Measured, device: str) -> str:
    """Epochs, a row for each model."""
    cases = [(what["graph"], case) for what, case in measured.select("epochs", device).cases()]
    if not cases:
        return NOT_MEASURED
    names = dict.fromkeys(name for _, case in cases for name in case.names(epochs.EPOCH))
    rows = []
    for name in names:
        row = [name]
        for graph, case in cases:
            row += [short(case.value(name, epochs.EPOCH)), times(case.ratio(name, epochs.OURS, epochs.EPOCH))]
            if device == "cpu":
                row.append(_busy(case, name, PUBLISHED.get(name) if graph == "cora" else None))
        rows.append(row)
    columns = ["ms", f"× {epochs.OURS}", *(["CPU ms"] if device == "cpu" else [])]
    return table(["model", *(f"{graph}, {column}" for graph, _ in cases for column in columns)], rows)


def _busy(case: Measured, name: str, published: float | None) -> str:
    """CPU time, beside that of the published code where there is one."""
    line = case.line(name, epochs.EPOCH)
    busy = None if line is None else line["busy"]
    return short(busy) if busy is None or published is None else f"{short(busy)} (published {1e3 * published:.0f})"


def geometries(measured: Measured, device: str) -> str:
    """Speed and error of the geometry, a row for each operation and way."""
    rows = [
        [
            what["operation"],
            name,
            short(case.value(name, geometry.TIME)),
            *(_error(case, name, radius) for radius in geometry.RADII),
        ]
        for what, case in measured.select("geometry", device).cases()
        for name in case.names(geometry.TIME)
    ]
    errors = [f"largest relative error at radius {radius} (not finite)" for radius in geometry.RADII]
    return table(["operation", "by", "ms for a million points", *errors], rows) if rows else NOT_MEASURED


def _error(case: Measured, name: str, radius: int) -> str:
    error, lost = case.value(name, geometry.error_at(radius)), case.value(name, geometry.nan_at(radius))
    return NONE if error is None or lost is None else f"{error:.1e} ({100 * lost:.2g} %)"


def provenance(measured: Measured) -> str:
    """Who computed what."""
    rows: dict[tuple[str, ...], float | None] = {}
    for line in measured.lines:
        versions = ", ".join(f"{name} {version}" for name, version in line["versions"].items() if name != "hyperboloid")
        key = (line["part"], line["device"], line["machine"], versions, line["commit"])
        loads = [load for load in (rows.get(key), line.get("load")) if load is not None]
        rows[key] = max(loads, default=None)
    header = ["benchmark", "device", "machine", "versions", "code", "load, where above the cores"]
    return table(header, ([*key, NONE if load is None else f"{load:.1f}"] for key, load in rows.items()))


def graph_in_words(measured: Measured, part: str, device: str) -> str:
    """The generated graph of a benchmark."""
    found: dict[str, Any] | None = next((w for w, _ in measured.select(part, device, graph=POWER_LAW).cases()), None)
    return "" if found is None else f"A power-law graph with {found['nodes']:,} nodes and {found['edges']:,} edges."
