"""``hyperboloid plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import RunArgument, check_picture


def command(
    run: RunArgument,
    colour: Annotated[
        str | None,
        typer.Option(help="What colours say: label, degree, depth or split.", show_default="label, else degree"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/disk.png")] = None,
) -> None:
    """Draw a run's embeddings on the Poincaré disk; of several runs the best on validation is used."""
    from hyperboloid.analysis.disk_picture import draw_disk
    from hyperboloid.analysis.style import save_figure
    from hyperboloid.training.experiment import load

    path = out or run / "disk.png"
    chosen = load(run).best
    check_picture(path)
    save_figure(draw_disk(chosen, colour), path)
    typer.echo(f"Picture: {path}")
