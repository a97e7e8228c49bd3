"""``hyperboloid plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import RunArgument, check_picture


def command(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/disk.png")] = None,
) -> None:
    """Draw a run's embeddings on the Poincaré disk."""
    from hyperboloid.analysis.disk import draw_disk
    from hyperboloid.training.experiment import load

    path = out or run / "disk.png"
    chosen = load(run).best
    check_picture(path)
    draw_disk(chosen, path)
    typer.echo(f"Picture: {path}")
