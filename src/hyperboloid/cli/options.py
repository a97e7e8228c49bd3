"""Options that several commands share, declared once."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hyperboloid.errors import InputError
from hyperboloid.scores import score
from hyperboloid.signals import ignored


def integer(value: str | int) -> int:
    """Parse ``-3``; what typer makes of ``int`` takes ``0-4`` for -4 and ``1_0`` for 10. It is given defaults too."""
    if re.fullmatch(r"\s*[+-]?[0-9]{1,400}\s*", str(value)) is None:
        raise typer.BadParameter(f"{value!r} is not a whole number.")
    return int(value)


GraphArgument = Annotated[
    str, typer.Argument(metavar="GRAPH", help="Name of a data set, or a file: CSV, TSV, Parquet, GraphML, GML, NPZ.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder written by `train`.")]
Features = Annotated[
    str | None, typer.Option(metavar="FILE", help="Node features: CSV, Parquet or NPZ, joined by node id.")
]
Labels = Annotated[str | None, typer.Option(metavar="FILE", help="Node labels: CSV or Parquet, joined by node id.")]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the edge list that holds weights.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Where the named data sets lie (default: $HYPERBOLOID_DATA, then the cache).")
]
Task = Annotated[str, typer.Option(help="What to learn: link, node or graph.")]
GraphTask = Annotated[str, typer.Option(help="What to learn: link or node.")]
Smiles = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of SMILES, for molecules.", show_default="smiles")
]
Epochs = Annotated[
    int | None,
    typer.Option(parser=integer, help="At most so many.", show_default="2000; molecules 300, shallow models fewer"),
]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Dtype = Annotated[str, typer.Option(help="float32 or float64.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on the last line of stdout.")]

#: More runs than anyone has time for: a slip of the fingers.
MOST = 10_000


def numbers(text: str, name: str) -> list[int]:
    """Parse ``0``, ``0,3`` or ``0-4`` into whole numbers."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})(?:-([0-9]{1,10}))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InputError(f"{name} must be a number, a list like 0,3 or a range like 0-4, not {text!r}.")
        chosen = range(int(match[1]), int(match[2] or match[1]) + 1)
        if len(chosen) > MOST:
            raise InputError(f"{name} must name at most {MOST} numbers, not {len(chosen)}.")
        found += chosen
    return found


def words(text: str) -> list[str]:
    """Parse ``cora, usa`` into its names."""
    return [word.strip() for word in text.split(",") if word.strip()]


@contextmanager
def interruptible(how: str) -> Iterator[None]:
    """Ctrl-C ends the command with exit code 130 and a sentence on ``how`` to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise interrupted(how) from interrupt


def interrupted(how: str) -> typer.Exit:
    """Say what Ctrl-C has done and ``how`` to go on; to be raised."""
    with ignored(signal.SIGINT):
        typer.echo(f"Interrupted; {how}.", err=True)
    return typer.Exit(130)


def check_parent(path: Path) -> None:
    """Refuse to write a file into a folder that is not there, or in place of one that is."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} into.")


def check_picture(path: Path) -> None:
    """Refuse a picture that is no PNG or SVG file, or has no folder to go to."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"The picture must be a .png or .svg file, not {path.name!r}.")
    check_parent(path)


def check_runs(seeds: int | None) -> None:
    """Refuse numbers of initialisations that nobody can mean."""
    if seeds is not None and not 1 <= seeds <= MOST:
        raise InputError(f"--seeds must be at least 1 and at most {MOST}, not {seeds}.")


def settings_from(pairs: list[str], **options: Any) -> dict[str, Any]:
    """Parse ``name=value`` settings, and join those that have options of their own, if they are given.

    Values are JSON where they can be, else text. ``.5`` is a number too. Of several values the last one counts.
    """
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"A setting is written name=value, not {pair!r}.")
        name = name.replace("-", "_")
        try:
            given[name] = json.loads(re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", value))
        except ValueError:
            given[name] = value
    for name, value in options.items():
        if value is None:
            continue
        if name in given:
            raise InputError(f"{name} was given twice, by --{name} and by --set: leave one of them out.")
        given[name] = value
    return given


def run_line(run: dict[str, Any], metric: str) -> str:
    """One run of several, for lists."""
    test, val = (score(metric, run[part]) for part in ("test", "val"))
    return f"  split {run['split']} seed {run['seed']}: test {test}, validation {val}"


def target_lines(summary: dict[str, Any]) -> list[str]:
    """Test MAE, RMSE and R² of each target of molecules, with their spread over several runs; nothing otherwise."""
    names = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}

    def told(found: dict[str, float]) -> str:
        spread = {key: f" ± {found[f'{key}_std']:.2g}" if len(summary["runs"]) > 1 else "" for key in names}
        return ", ".join(f"{name} {found[f'{key}_mean']:.4g}{spread[key]}" for key, name in names.items())

    return [f"  {name}: test {told(found)}" for name, found in summary.get("targets", {}).items()]


def unit(summary: dict[str, Any]) -> str:
    """What an error that is the mean over several targets is measured in."""
    several = len(summary.get("targets", {})) > 1
    return ", the targets' mean in their standard deviations" if several else ""
