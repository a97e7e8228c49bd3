"""``hyperboloid distortion``."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperboloid.errors import check_seed
from hyperboloid.scores import spread_of

from .options import Json, RunArgument, check_picture, integer

if TYPE_CHECKING:
    from hyperboloid.analysis.distortion import Distortion


def command(
    run: RunArgument,
    seed: Annotated[
        int, typer.Option(parser=integer, help="Seed of the nodes taken where there are too many pairs.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="PNG or SVG file: embedded against graph distances.", show_default="none")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how well a run's embeddings keep the distances of its graph; the picture is of the best run."""
    if out is not None:
        check_picture(out)
    check_seed(seed)
    from hyperboloid.analysis.distortion import OF_LOGITS, draw_distortion, run_distortion
    from hyperboloid.training.experiment import load

    from .progress import status_display

    began = time.perf_counter()
    experiment = load(run)
    found = []
    with status_display() as say:
        for one in experiment.runs:
            say(f"split {one.split} seed {one.seed}")
            found.append(run_distortion(one, seed))
            typer.echo(f"split {one.split} seed {one.seed}: {_sentence(found[-1])}")
    best = found[experiment.runs.index(experiment.best)]
    curvature = experiment.best.encoder.curvature
    space = "Euclidean" if curvature is None else f"Hyperbolic (β = {float(curvature.beta.detach()):.3g})"
    nodes = "nodes" if best.all_pairs else f"nodes, one of them among {best.nodes:,} random ones"
    typer.echo(f"{space} distances against those of the whole graph, {best.pairs:,} pairs of {nodes}.")
    if experiment.config.task == "node":
        typer.echo(OF_LOGITS)
    if out is not None:
        draw_distortion(best, f"{experiment.config.model} on {experiment.config.dataset}", out)
        typer.echo(f"Picture: {out}")
    if as_json:
        runs = [
            {"split": one.split, "seed": one.seed, **dataclasses.asdict(result)}
            for one, result in zip(experiment.runs, found, strict=True)
        ]
        averages = [result.average for result in found]
        summary = {
            "run": str(run),
            "distortion_mean": statistics.mean(averages),
            "distortion_std": spread_of(averages),
            "runs": runs,
            "seconds": time.perf_counter() - began,
        }
        typer.echo(json.dumps(summary))


def _sentence(found: Distortion) -> str:
    error = "" if found.all_pairs else f" ± {found.standard_error:.4f}"
    return (
        f"average distortion {found.average:.4f}{error}, mean average precision {found.mean_average_precision:.3f}, "
        f"correlation of distances {found.correlation:.3f} (of ranks {found.rank_correlation:.3f})"
    )
