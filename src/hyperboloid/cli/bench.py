"""``hyperboloid bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hyperboloid.errors import InputError

from .options import DataDir, Device, Json, integer, interruptible


def command(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARTS]...",
            help="Which: layers, gather, growth, geometry, epochs.",
            show_default="all that make sense on the device",
        ),
    ] = None,
    device: Device = "cpu",
    threads: Annotated[
        int | None, typer.Option(parser=integer, help="Threads on a CPU.", show_default="torch's choice")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see that everything works; written below runs/quick/.")
    ] = False,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Measure nothing: write the page anew from the results.")
    ] = False,
    data_dir: DataDir = None,
    results: Annotated[
        Path | None, typer.Option(help="File of the measured numbers.", show_default="results/bench.jsonl")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page; its picture goes to figures/ beside it.", show_default="docs/performance.md"),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Name of the code's version.", show_default="what git says")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure speed and accuracy beside PyG, geoopt and textbook formulas, and write a page about it.

    A newer measurement of the same thing on the same kind of device takes the place of the older one.
    """
    if page_only and parts:
        raise InputError(f"--page-only measures nothing: leave out {', '.join(parts)}.")

    from hyperboloid.bench.page import write_page

    results = results or Path("runs/quick/bench.jsonl" if quick else "results/bench.jsonl")
    out = out or Path("runs/quick/performance.md" if quick else "docs/performance.md")
    told: dict[str, Any] = {"measured": {}, "skipped": {}, "results": str(results)}
    if not page_only:
        from hyperboloid.bench.run import run_parts

        with interruptible(f"what was measured before is in {results}"):
            session = run_parts(
                parts or [],
                results,
                lambda text: typer.echo(text, err=True),
                device=device,
                threads=threads,
                quick=quick,
                data_dir=data_dir,
                commit=commit,
            )
        told |= {"measured": session.measured, "skipped": session.skipped}
        said = (f"{name} ({count} case{'' if count == 1 else 's'})" for name, count in session.measured.items())
        typer.echo(f"Measured: {', '.join(said)}; numbers: {results}")
    page = write_page(results, out)
    typer.echo(f"Goals: {page.count(True)} reached, {page.count(False)} missed; written: {out}")
    if as_json:
        typer.echo(json.dumps(told | page.as_json()))
