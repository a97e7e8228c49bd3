"""``hyperboloid sweep``."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperboloid.errors import InputError
from hyperboloid.scores import percent

from .options import (
    DataDir,
    Device,
    Dtype,
    Epochs,
    Features,
    GraphArgument,
    GraphTask,
    Json,
    Labels,
    Weight,
    check_runs,
    integer,
    numbers,
    settings_from,
    words,
)
from .starting import starting

if TYPE_CHECKING:
    from hyperboloid.training.sweep import Sweep


def command(
    graph: GraphArgument,
    task: GraphTask = "link",
    models: Annotated[str, typer.Option(help="Models to compare, separated by commas.")] = "lgcn,hgcn,gcn,gat",
    dim: Annotated[
        int | None, typer.Option(parser=integer, help="Width of the embeddings.", show_default="16, or those of --grid")
    ] = None,
    seeds: Annotated[int, typer.Option(parser=integer, help="Fresh initialisations for the test.")] = 5,
    split: Annotated[str, typer.Option(help="Seed of the split.")] = "0",
    tries: Annotated[
        int | None, typer.Option(parser=integer, help="Settings per model.", show_default="the whole grid")
    ] = None,
    grid: Annotated[
        Path | None,
        typer.Option(help='JSON file with values to try instead, like {"lr": [0.01, 0.001], "dropout": [0, 0.5]}.'),
    ] = None,
    halving: Annotated[bool, typer.Option(help="Stop the worse half of the search now and then.")] = True,
    budget: Annotated[str | None, typer.Option(help="Stop in time with the best so far: 90s, 10m, 2h.")] = None,
    epochs: Epochs = None,
    features: Features = None,
    labels: Labels = None,
    weight: Weight = None,
    data_dir: DataDir = None,
    device: Device = "cpu",
    dtype: Dtype = "float32",
    out: Annotated[Path | None, typer.Option(help="Folder.", show_default="a new one below runs/")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the sweep in --out.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting that is the same for all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search settings for several models, and say which model and geometry suits the graph."""
    settings = settings_from(set_ or [], epochs=epochs, dim=dim)
    width = settings.pop("dim", None)
    check_runs(seeds)
    splits = numbers(split, "--split")
    if len(splits) > 1:
        raise InputError(f"A sweep looks at one split: give --split one number, not {split!r}.")
    seconds = math.inf if budget is None else parse_time(budget)
    out = chosen_folder(out, resume, "sweep", graph, task)

    with starting():
        from hyperboloid.training.settings import check_names
        from hyperboloid.training.sweep import sweep

        from .progress import search_display

    check_names(settings)
    with search_display(out, seconds) as watch:
        found = sweep(
            graph,
            task=task,
            models=words(models),
            dim=width,
            seeds=seeds,
            split=splits[0],
            tries=tries,
            grid=grid,
            halving=halving,
            budget=seconds,
            features=features,
            labels=labels,
            weight=weight,
            data_dir=data_dir,
            device=device,
            dtype=dtype,
            out=out,
            resume=resume,
            watch=watch,
            **settings,
        )
    _show(found)
    if as_json:
        typer.echo(json.dumps(found.as_json()))


def parse_time(text: str) -> float:
    """Seconds in ``90s``, ``10m`` or ``2h``."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh])\s*", text)
    if match is None or float(match[1]) == 0:
        raise InputError(f"--budget must be a time like 90s, 10m or 2h, not {text!r}.")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def chosen_folder(out: Path | None, resume: bool, kind: str, graph: str, task: str) -> Path:
    """The folder that was asked for, or one below ``runs`` that is not there yet."""
    if out is not None:
        return out
    if resume:
        raise InputError("Resuming needs the folder: give it by --out.")
    number = 1
    while (path := Path("runs") / f"{kind}-{Path(graph).stem}-{task}{'' if number == 1 else f'-{number}'}").exists():
        number += 1
    return path


def _show(found: Sweep) -> None:
    from rich.console import Console

    show_models(found)
    console = Console(highlight=False)
    console.print(found.advice, markup=False)
    console.print(f"Folder: {found.folder}; the best model is a run folder: {found.folder / 'best'}", markup=False)


def show_models(found: Sweep) -> None:
    """A table of the models, which fits into 80 columns, and why some are not in it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = f"{found.dataset}, {found.task}, {found.metric} in %"
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("model", "geometry", "validation", "test", "tried", "epochs", "seconds", ""):
        table.add_column(heading, no_wrap=True)
    for v in found.verdicts:
        table.add_row(
            v.model,
            "hyperbolic" if v.hyperbolic else "Euclidean",
            percent(v.val),
            percent(v.test_mean, v.test_spread),
            f"{v.tried}",
            f"{v.epochs}",
            f"{v.seconds:.0f}",
            "" if v.complete else "cut short",
        )
    console = Console(highlight=False)
    console.print(table)
    for v in found.verdicts:
        if v.failures:
            console.print(f"{v.model}: {v.failures} diverged.", markup=False)
    for model, reason in found.skipped.items():
        console.print(f"Without {model}: {reason}", markup=False)
