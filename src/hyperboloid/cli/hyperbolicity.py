"""``hyperboloid hyperbolicity``."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DataDir, GraphArgument, Json, check_picture, integer

if TYPE_CHECKING:
    from hyperboloid.graphs import Graph
    from hyperboloid.graphs.hyperbolicity import Hyperbolicity


def command(
    graph: GraphArgument,
    precision: Annotated[
        float, typer.Option(help="Half width of the 95 % confidence interval of δ_avg, at most.")
    ] = 0.005,
    seed: Annotated[int, typer.Option(parser=integer, help="Seed of the sampled quadruples.")] = 0,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="PNG or SVG file for the distribution of δ⁺.", show_default="none")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how tree-like a graph is: δ_avg and δ_worst of its largest component, 0 for a tree."""
    if out is not None:
        check_picture(out)
    from hyperboloid.graphs import load_graph
    from hyperboloid.graphs.hyperbolicity import hyperbolicity

    from .progress import status_display

    loaded = load_graph(graph, data_dir=data_dir)
    began = time.perf_counter()
    with status_display() as say:
        found = hyperbolicity(loaded, precision=precision, seed=seed, watch=say)
    seconds = time.perf_counter() - began
    notes = _notes(loaded, found)
    _show(found, notes)
    if out is not None:
        from hyperboloid.analysis.hyperbolicity import draw_hyperbolicity

        draw_hyperbolicity(found, loaded.name, out)
        typer.echo(f"Picture: {out}")
    if as_json:
        typer.echo(json.dumps({"graph": graph, **found.as_json(), "seed": seed, "seconds": seconds, "notes": notes}))


def _notes(graph: Graph, found: Hyperbolicity) -> list[str]:
    """What was done to the graph."""
    notes = []
    if found.components > 1:
        notes.append(
            f"The largest of {found.components} components is measured: {found.nodes} of {found.graph_nodes} nodes."
        )
    notes += graph.notes
    if graph.edge_weight is not None:
        notes.append("Paths are as long as they have edges; weights do not count.")
    return notes


def _show(found: Hyperbolicity, notes: list[str]) -> None:
    for note in notes:
        typer.echo(note)
    whole = found.quadruples == math.comb(found.nodes, 4) or (found.delta_worst_exact and found.delta_worst == 0)
    typer.echo(
        f"δ_avg   {found.delta_avg:.4f}"
        + ("" if whole else f" ± {found.delta_avg_half_width:.4f}, 95 % confidence")
        + f", {found.quadruples:,} quadruples of {found.nodes:,} nodes"
    )
    bound = "exact" if found.delta_worst_exact else "at least"
    typer.echo(f"δ_worst {found.delta_worst:g} ({bound})")
    typer.echo(f"2 δ_worst/diameter = {found.delta_relative:.3f}, diameter {found.diameter}")
    shares = (f"{k / 2:g}: {100 * count / found.quadruples:.3g}" for k, count in enumerate(found.counts))
    typer.echo(f"Share of the quadruples by δ⁺, in %: {', '.join(shares)}")
