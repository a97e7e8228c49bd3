"""``hyperboloid paper``: the paper's tables and figures, measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json

if TYPE_CHECKING:
    from hyperboloid.paper.table import PaperTable

app = typer.Typer(help="Measure the paper's tables and figures again.", no_args_is_help=True)


@app.callback()
def options() -> None:
    """Measure the paper's tables and figures again."""


@app.command()
def run(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Which one: operations (Table 1) or centroids (Table 2).")
    ],
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    as_json: Json = False,
) -> None:
    """Run one of the paper's experiments."""
    from hyperboloid.paper.experiments import run_experiment

    table = run_experiment(name.lower(), seed)
    show(table)
    if as_json:
        typer.echo(json.dumps(table.as_json()))


def show(table: PaperTable) -> None:
    """Print a table and its remarks."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(title=table.title, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for key, heading in table.columns.items():
        shown.add_column(heading, overflow="fold", no_wrap=key == next(iter(table.columns)))
    for cells in table.texts():
        shown.add_row(*cells)
    console = Console(highlight=False)
    console.print(shown)
    for remark in table.remarks:
        console.print(f"• {remark}", markup=False)
