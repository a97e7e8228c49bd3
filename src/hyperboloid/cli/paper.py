"""``hyperboloid paper``: the paper's tables and figures, measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperboloid.errors import InputError
from hyperboloid.paper.registry import FIGURES

from .options import Json, check_parent, check_runs, integer, interruptible, numbers, words
from .paper_table import show
from .starting import starting
from .sweep import parse_time

if TYPE_CHECKING:
    from hyperboloid.paper.figures import Asked

app = typer.Typer(help="Measure the paper's tables and figures again.", no_args_is_help=True)

CELLS = "Tables 4 to 7 (link, node, ablation or all three: tables; zinc) and figures"
ZINC = "Table 7 (zinc)"
ON = "the same command goes on where it stopped"
#: Options of the experiments that are made of cells, and of those on molecules.
COMMON = {"dims", "models", "seeds", "epochs", "budget", "data_dir", "device", "dtype", "results", "work", "commit"}
CELL_OPTIONS = {*COMMON, "datasets", "tries", "halving", "splits", "masks", "layers", "mean", "workers", "again"}
ZINC_OPTIONS = {*COMMON, "properties", "lrs", "trial_epochs", "batch_size", "molecules"}


@app.callback()
def options() -> None:
    """Measure the paper's tables and figures again."""


def _cells_option(**words: Any) -> Any:
    return typer.Option(rich_help_panel=CELLS, **words)


@app.command()
def run(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Which one: operations (Table 1), centroids (2), link (4), node (5), ablation (6), tables (what is "
            f"missing of these three), zinc (7), or a figure: {', '.join(FIGURES)}.",
        ),
    ],
    seed: Annotated[int, typer.Option(parser=integer, help="Seed of what is drawn at random.")] = 0,
    datasets: Annotated[str | None, _cells_option(help="Only these graphs, like cora,usa.")] = None,
    dims: Annotated[str | None, _cells_option(help="Only these dimensions, like 8,16.")] = None,
    models: Annotated[str | None, _cells_option(help="Only these models, like lgcn,gcn.")] = None,
    seeds: Annotated[
        int | None,
        _cells_option(
            parser=integer, help="Fresh initialisations.", show_default="10 for tables, zinc 1, else 3 to 10"
        ),
    ] = None,
    tries: Annotated[
        int | None, _cells_option(parser=integer, help="Settings to try.", show_default="the whole grid")
    ] = None,
    halving: Annotated[bool, _cells_option(help="Stop the worse half of a search now and then.")] = True,
    epochs: Annotated[
        int | None, _cells_option(parser=integer, help="At most so many epochs.", show_default="2000, for zinc 300")
    ] = None,
    properties: Annotated[
        str | None, typer.Option(rich_help_panel=ZINC, help="Only these properties, like logp,qed.")
    ] = None,
    lrs: Annotated[
        str | None,
        typer.Option(rich_help_panel=ZINC, help="Learning rates, chosen among by validation.", show_default="0.001"),
    ] = None,
    trial_epochs: Annotated[
        int | None,
        typer.Option(
            parser=integer,
            rich_help_panel=ZINC,
            help="Length of the runs that try learning rates.",
            show_default="epochs",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(parser=integer, rich_help_panel=ZINC, help="Molecules in a batch.", show_default="128")
    ] = None,
    molecules: Annotated[
        int | None,
        typer.Option(
            parser=integer, rich_help_panel=ZINC, help="Train on so many only, to try it out.", show_default="all"
        ),
    ] = None,
    splits: Annotated[
        str | None, _cells_option(help="Also test the chosen setting over these splits, like 0-9.")
    ] = None,
    masks: Annotated[
        str | None, _cells_option(help="Split of nodes that came with the data: authors, for amazon.")
    ] = None,
    layers: Annotated[
        int | None,
        _cells_option(parser=integer, help="Of the models of Tables 4 to 6; 1 is measured beside.", show_default="2"),
    ] = None,
    mean: Annotated[
        str | None,
        _cells_option(
            help="How HGCN or LGCN average neighbours; origin, as HGCN's published code does, is measured beside.",
            show_default="each its own",
        ),
    ] = None,
    budget: Annotated[
        str | None, _cells_option(help="Stop in time, like 90s, 10m, 2h; unfinished cells go on the next time.")
    ] = None,
    data_dir: Annotated[
        Path | None, _cells_option(help="Where the named data sets lie (default: $HYPERBOLOID_DATA, then the cache).")
    ] = None,
    device: Annotated[str, _cells_option(help="cpu or cuda.")] = "cpu",
    workers: Annotated[
        int, _cells_option(parser=integer, help="Processes that measure cells of Tables 4 to 6 at the same time.")
    ] = 1,
    again: Annotated[bool, _cells_option(help="Also what other code has measured of Tables 4 to 6.")] = False,
    dtype: Annotated[str, _cells_option(help="float32 or float64.")] = "float32",
    results: Annotated[Path, _cells_option(help="Folder that a line for each cell is added to.")] = Path("results"),
    figures: Annotated[Path, _cells_option(help="Folder for the picture of a figure.")] = Path("docs/figures"),
    work: Annotated[Path, _cells_option(help="Folder for what is not finished.")] = Path("runs/paper"),
    commit: Annotated[
        str | None, _cells_option(help="Name of the code's version.", show_default="what git says")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one of the paper's experiments; cells of Tables 4 to 7 and lines of figures that are there stay."""
    from hyperboloid.paper.cells import CELL_RUNS, cells

    name = name.lower()
    _refuse(context, name)
    check_runs(seeds)
    if name in FIGURES:
        with starting(ON):
            from hyperboloid.paper.figures import Asked

        asked = Asked(
            results=results,
            datasets=_words(datasets),
            models=_words(models),
            seed=seed,
            seeds=seeds,
            epochs=epochs,
            data_dir=data_dir,
            device=device,
            dtype=dtype,
            work=work,
        )
        _run_figure(name, asked, figures, commit, as_json)
        return
    seconds = math.inf if budget is None else parse_time(budget)
    if name == "zinc":
        made: dict[str, Any] = {"seeds": seeds, "epochs": epochs, "dtype": dtype}
        made |= {"molecules": molecules, "batch_size": batch_size, "lrs": _rates(lrs), "dim": _one(dims)}
        made |= {"trial_epochs": trial_epochs}
        where = {"results": results, "work": work, "budget": seconds, "data_dir": data_dir, "device": device}
        _zinc(_words(models), _words(properties), made, {**where, "code": commit}, as_json)
        return
    if name not in CELL_RUNS:
        from hyperboloid.paper.experiments import run_experiment

        table = run_experiment(name, seed)
        show(table)
        if as_json:
            typer.echo(json.dumps(table.as_json()))
        return

    chosen = cells(
        name,
        datasets=_words(datasets),
        dims=None if dims is None else numbers(dims, "--dims"),
        models=_words(models),
    )
    ten = [] if splits is None else numbers(splits, "--splits")
    with starting(ON):
        from hyperboloid.paper.cell_runs import measure_cells
        from hyperboloid.paper.protocol import RunProtocol

        from .progress import cell_display

    limits = {
        key: value for key, value in (("epochs", epochs), ("seeds", seeds), ("layers", layers)) if value is not None
    }
    protocol = RunProtocol(tries=tries, halving=halving, dtype=dtype, mean=mean, **limits)
    with interruptible(ON), cell_display(seconds) as display:
        session = measure_cells(
            chosen,
            display,
            results=results,
            work=work,
            protocol=protocol,
            budget=seconds,
            splits=ten,
            masks=masks,
            data_dir=data_dir,
            device=device,
            code=commit,
            workers=workers,
            again=again,
        )
    show(session.table(name))
    if as_json:
        typer.echo(json.dumps({"experiment": name, **session.as_json(), "results": str(results)}))


def _zinc(
    models: list[str] | None,
    properties: list[str] | None,
    protocol: dict[str, Any],
    where: dict[str, Any],
    as_json: bool,
) -> None:
    """Measure cells of Table 7."""
    with starting(ON):
        from hyperboloid.paper.zinc import ZincProtocol, measure_zinc, zinc_cells

        from .progress import cell_display, now_and_then

    asked = zinc_cells(models, properties)
    made = ZincProtocol(**{key: value for key, value in protocol.items() if value is not None})
    with interruptible(ON), cell_display(where["budget"]) as display:
        session = measure_zinc(asked, display, protocol=made, tell=now_and_then(display.note), **where)
    show(session.table("zinc"))
    if as_json:
        typer.echo(json.dumps({"experiment": "zinc", **session.as_json(), "results": str(where["results"])}))


def _rates(text: str | None) -> tuple[float, ...] | None:
    """Learning rates separated by commas."""
    if text is None:
        return None
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError as error:
        raise InputError(f"--lrs must be numbers separated by commas, like 0.0005,0.001, not {text!r}.") from error


def _one(text: str | None) -> int | None:
    """The only width in a list of them."""
    dims = [None] if text is None else numbers(text, "--dims")
    if len(dims) != 1:
        raise InputError(f"--dims must be one width for 'zinc', not {len(dims)}.")
    return dims[0]


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="Folder of the measured numbers.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The page; its pictures go to figures/ beside it.")] = Path(
        "docs/reproduction.md"
    ),
    as_json: Json = False,
) -> None:
    """Write a page that has every measured number beside the printed one, and a verdict on each claim."""
    check_parent(out)

    from hyperboloid.paper.report import write_report

    written = write_report(results, out)
    typer.echo(f"{written.measured} of {written.cells} cells measured; written: {out}")
    if as_json:
        typer.echo(json.dumps(written.as_json()))


def _words(text: str | None) -> list[str] | None:
    return None if text is None else words(text)


def _run_figure(name: str, asked: Asked, figures: Path, commit: str | None, as_json: bool) -> None:
    """Measure and draw an experiment that is a figure."""
    from hyperboloid.paper.claims import verdict
    from hyperboloid.paper.figures import get_figure, run_figure

    from .progress import status_display

    figure = get_figure(name)
    with interruptible(ON), status_display() as say:
        done = run_figure(figure, asked, figures, code=commit, say=say)
    show(figure.table(done.lines))
    for claim in figure.claims:
        typer.echo(f"{claim.name}: {verdict(claim.judge(done.lines))}.")
    typer.echo(f"{done.measured} new lines; pictures: {', '.join(map(str, done.pictures))}")
    if as_json:
        typer.echo(json.dumps({"experiment": name, **done.as_json(), "results": str(asked.results)}))


def _options_of(name: str) -> set[str]:
    """Options that mean something to an experiment."""
    from hyperboloid.paper.cells import CELL_RUNS

    if name in FIGURES:
        with starting(ON):
            from hyperboloid.paper.figures import COMMON_OPTIONS, get_figure

            return {*COMMON_OPTIONS, *get_figure(name).options}
    if name == "zinc":
        return ZINC_OPTIONS
    return CELL_OPTIONS if name in CELL_RUNS else {"seed"}


def _refuse(context: typer.Context, name: str) -> None:
    """An option that means nothing for this experiment is a mistake; one that nobody knows is refused elsewhere."""
    from hyperboloid.paper.cells import CELL_RUNS
    from hyperboloid.paper.experiments import EXPERIMENTS

    everyone = (*EXPERIMENTS, *CELL_RUNS, "zinc", *FIGURES)
    sources = {option: context.get_parameter_source(option) for option in context.params}
    given = {option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    for option in sorted(given - {"name", "as_json"} - _options_of(name)):
        if name in everyone:
            others = ", ".join(other for other in everyone if option in _options_of(other))
            raise InputError(f"--{option.replace('_', '-')} means nothing for '{name}'; it belongs to: {others}.")
