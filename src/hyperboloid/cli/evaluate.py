"""``hyperboloid evaluate``."""

from __future__ import annotations

import json

import typer

from hyperboloid.scores import score

from .options import Json, RunArgument, run_line, target_lines, unit


def command(run: RunArgument, as_json: Json = False) -> None:
    """Score a trained run again, on its own validation and test parts."""
    from hyperboloid.training.experiment import load, summarize

    experiment = load(run)
    scored = [one.summary | one.evaluate() for one in experiment.runs]
    summary = summarize(experiment.config, experiment.folder, scored)
    metric = summary["metric"]
    for line in (*(run_line(one, metric) for one in scored), *target_lines(summary)):
        typer.echo(line)
    typer.echo(
        f"{summary['model']} on {summary['dataset']}, {summary['task']}: test {metric} "
        f"{score(metric, summary['test_mean'], summary['test_std'] if len(scored) > 1 else None)}{unit(summary)}"
    )
    if as_json:
        del summary["runs"]
        typer.echo(json.dumps(summary))
