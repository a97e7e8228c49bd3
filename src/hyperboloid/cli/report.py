"""``hyperboloid report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hyperboloid.errors import InputError

from .options import Json, RunArgument, check_parent


def command(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="HTML file.", show_default="RUN/report.html")] = None,
    as_json: Json = False,
) -> None:
    """Write everything about a run to one HTML file that needs no network."""
    from hyperboloid.analysis.report import report
    from hyperboloid.training.checkpoint import write_atomically
    from hyperboloid.training.experiment import load

    from .progress import status_display

    path = out or run / "report.html"
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"The report must be an .html file, not {path.name!r}.")
    experiment = load(run)
    check_parent(path)
    with status_display() as say:
        text = report(experiment, say)
    write_atomically(path, text.encode())
    typer.echo(f"Report: {path}")
    if as_json:
        summary = {key: value for key, value in experiment.summary.items() if key != "runs"}
        typer.echo(json.dumps({**summary, "report": str(path), "bytes": path.stat().st_size}))
