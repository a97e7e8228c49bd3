"""``hyperboloid evaluate``."""

from __future__ import annotations

import json

import typer

from .options import Json, RunArgument, percent, run_line


def command(run: RunArgument, as_json: Json = False) -> None:
    """Score a trained run again, on its own validation and test parts."""
    from hyperboloid.training.experiment import load, summarize

    experiment = load(run)
    scored = [
        one.summary | {"val": one.score("val").metric, "test": one.score("test").metric} for one in experiment.runs
    ]
    summary = summarize(experiment.config, experiment.folder, scored)
    for one in summary.pop("runs"):
        typer.echo(run_line(one))
    typer.echo(
        f"{summary['model']} on {summary['dataset']}, {summary['task']}: test {summary['metric']} "
        f"{percent(summary['test_mean'], summary['test_std'] if len(scored) > 1 else None)} %"
    )
    if as_json:
        typer.echo(json.dumps(summary))
