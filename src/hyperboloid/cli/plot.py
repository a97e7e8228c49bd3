"""``hyperboloid plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperboloid.errors import InputError

from .options import RunArgument, check_parent


def command(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/disk.png")] = None,
) -> None:
    """Draw a run's embeddings on the Poincaré disk."""
    from hyperboloid.analysis.disk import draw_disk
    from hyperboloid.training.experiment import load

    path = out or run / "disk.png"
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"The picture must be a .png or .svg file, not {path.name!r}.")
    chosen = load(run).best
    check_parent(path)
    draw_disk(chosen, path)
    typer.echo(f"Picture: {path}")
