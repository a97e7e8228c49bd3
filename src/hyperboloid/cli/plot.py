"""``hyperboloid plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperboloid.errors import InputError

from .options import RunArgument, check_picture


def command(
    run: RunArgument,
    colour: Annotated[
        str | None,
        typer.Option(help="What colours say: label, degree, depth or split.", show_default="label, else degree"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/disk.png or RUN/parity.png")
    ] = None,
) -> None:
    """Draw a run's embeddings on the Poincaré disk, or for molecules what it predicts against what is true.

    Of several runs the best on validation is used.
    """
    from hyperboloid.analysis.disk_picture import draw_disk
    from hyperboloid.analysis.parity import draw_parity
    from hyperboloid.analysis.style import save_figure
    from hyperboloid.training.experiment import load

    chosen = load(run).best
    molecules = chosen.config.task == "graph"
    path = out or run / ("parity.png" if molecules else "disk.png")
    check_picture(path)
    if molecules:
        if colour is not None:
            raise InputError("--colour means nothing for molecules: their picture is predicted against true values.")
        save_figure(draw_parity(chosen), path)
    else:
        save_figure(draw_disk(chosen, colour), path)
    typer.echo(f"Picture: {path}")
