"""``hyperboloid advise``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DataDir, Device, Features, GraphArgument, GraphTask, Json, Labels, Weight, words
from .starting import starting
from .sweep import chosen_folder, parse_time, show_models

if TYPE_CHECKING:
    from hyperboloid.analysis.advise import Advice


def command(
    graph: GraphArgument,
    task: GraphTask = "link",
    models: Annotated[str, typer.Option(help="Models to compare, separated by commas.")] = "gcn,gat,lgcn",
    budget: Annotated[str, typer.Option(help="Time for all of it, about: 90s, 10m, 2h.")] = "2m",
    features: Features = None,
    labels: Labels = None,
    weight: Weight = None,
    data_dir: DataDir = None,
    device: Device = "cpu",
    out: Annotated[Path | None, typer.Option(help="Folder.", show_default="a new one below runs/")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the search in --out.")] = False,
    as_json: Json = False,
) -> None:
    """Say whether hyperbolic space helps on a graph, and which model and dimension to use."""
    seconds = parse_time(budget)
    out = chosen_folder(out, resume, "advise", graph, task)

    with starting():
        from hyperboloid.analysis.advise import advise

        from .progress import search_display

    with search_display(out, seconds) as watch:
        found = advise(
            graph,
            task=task,
            models=words(models),
            budget=seconds,
            features=features,
            labels=labels,
            weight=weight,
            data_dir=data_dir,
            device=device,
            out=out,
            resume=resume,
            watch=watch,
        )
    _show(found)
    if as_json:
        typer.echo(json.dumps(found.as_json()))


def _show(found: Advice) -> None:
    shape, law = found.shape, found.shape.power_law
    for note in found.notes:
        typer.echo(note)
    typer.echo(
        f"{found.graph}: {shape.nodes:,} nodes, {shape.edges:,} edges, components: {shape.components:,} (the largest "
        f"has {shape.largest:,} nodes), mean degree {shape.mean_degree:.1f}, largest {shape.max_degree}"
    )
    delta = found.delta
    typer.echo(
        "δ_avg: "
        + ("not defined" if delta is None else f"{delta.mean:.3f} ± {delta.half_width:.3f} (0 for a tree)")
        + f"; {100 * shape.forest_share:.0f} % of the edges would do to hold the components together (100 % for a tree)"
    )
    typer.echo(
        "Degrees: "
        + ("too few different ones for a power law" if law is None else f"exponent {law.alpha:.2f} ± {law.error:.2f} ")
        + ("" if law is None else f"from degree {law.xmin} on ({law.tail:,} nodes, KS distance {law.distance:.3f})")
        + f"; clustering {shape.clustering:.3f}"
    )
    show_models(found.found)
    for sentence in found.sentences:
        typer.echo(sentence)
    best, folder = found.found.verdicts[0].model, found.found.folder / "best"
    typer.echo(f"The best on validation, {best}, is a run folder: {folder} ({found.seconds:.0f} s)")
