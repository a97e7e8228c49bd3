"""``hyperboloid plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperboloid.errors import InputError

from .options import RunArgument, check_parent


def command(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/disk.png or RUN/parity.png")
    ] = None,
) -> None:
    """Draw a run's embeddings on the Poincaré disk, or for molecules what it predicts against what is true."""
    from hyperboloid.analysis.disk import draw_disk
    from hyperboloid.analysis.parity import draw_parity
    from hyperboloid.training.experiment import load

    if out is not None and out.suffix not in (".png", ".svg"):
        raise InputError(f"The picture must be a .png or .svg file, not {out.name!r}.")
    chosen = load(run).best
    molecules = chosen.config.task == "graph"
    path = out or run / ("parity.png" if molecules else "disk.png")
    check_parent(path)
    (draw_parity if molecules else draw_disk)(chosen, path)
    typer.echo(f"Picture: {path}")
