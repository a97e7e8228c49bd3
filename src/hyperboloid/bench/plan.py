"""The sizes of a run: those that the goals are about, or tiny ones that show that everything works."""

from __future__ import annotations

from dataclasses import dataclass

from hyperboloid.errors import InputError

POWER_LAW = "power law"


@dataclass(frozen=True)
class Plan:
    """What the benchmarks measure on one kind of device.

    Attributes:
        power_law: nodes and directed edges of the generated graph.
        layer_graphs: graphs for whole layers; ``power law`` is the generated one.
        layers: PyG's layers beside ours.
        dims: widths of the layers, and of the aggregation alone.
        growth: numbers of directed edges, of graphs with a twentieth as many nodes.
        points: for the geometry.
        epoch_graphs: graphs for whole epochs.
        every_model_on: the one of them that every model is measured on.
        seconds: for the repetitions of each case.
    """

    power_law: tuple[int, int] = (1_000_000, 20_000_000)
    layer_graphs: tuple[str, ...] = (POWER_LAW,)
    layers: tuple[str, ...] = ("GATConv", "GCNConv")
    dims: tuple[int, ...] = (64, 16)
    growth: tuple[int, ...] = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 20_000_000)
    points: int = 1_000_000
    epoch_graphs: tuple[str, ...] = ("cora",)
    every_model_on: str | None = None
    seconds: float = 10.0


GPU = Plan(
    layers=("GATConv", "GCNConv", "GATv2Conv", "TransformerConv"),
    growth=(100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000, 200_000_000),
    seconds=5.0,
)
CPU = Plan(layer_graphs=("amazon", "pubmed"), epoch_graphs=("cora", "pubmed", "amazon"), every_model_on="cora")
QUICK = Plan(
    power_law=(200, 2_000),
    layer_graphs=("karate", POWER_LAW),
    dims=(4,),
    growth=(1_000, 4_000, 16_000),
    points=800,
    epoch_graphs=("disease",),
    seconds=0.0,
)


def plan_for(device: str, *, quick: bool) -> Plan:
    """The sizes that suit a device, ``cpu`` or ``cuda``."""
    plans = {"cpu": CPU, "cuda": GPU}
    if device not in plans:
        raise InputError(f"--device must be cpu or cuda, not {device!r}.")
    return QUICK if quick else plans[device]
