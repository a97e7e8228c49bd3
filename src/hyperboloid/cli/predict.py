"""``hyperboloid predict``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperboloid.errors import InputError

from .options import DataDir, Features, Json, RunArgument, Smiles, Weight, check_parent, integer

if TYPE_CHECKING:
    from hyperboloid.graphs import Graph
    from hyperboloid.training.experiment import Run


def command(
    run: RunArgument,
    molecules: Annotated[
        Path | None, typer.Argument(metavar="[NEW]", help="New molecules, a table of SMILES; for runs on molecules.")
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="Links that are not there yet, the likeliest first.")] = False,
    labels_: Annotated[bool, typer.Option("--labels", help="The class of every node.")] = False,
    top: Annotated[
        int, typer.Option(parser=integer, help="How many links, or how many nodes or molecules to print.")
    ] = 10,
    graph: Annotated[
        str | None, typer.Option(metavar="NEW", help="Predict on another graph with the same kind of features.")
    ] = None,
    features: Features = None,
    weight: Weight = None,
    smiles: Smiles = None,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Write all predictions to this CSV file.")] = None,
    as_json: Json = False,
) -> None:
    """Predict links, labels or properties from a run folder; of several runs the best on validation is used."""
    from hyperboloid.graphs import load_graph
    from hyperboloid.training.experiment import load

    if out is not None and out.exists():
        raise InputError(f"{out} exists already: choose another --out.")
    if out is not None:
        check_parent(out)
    if top < 1:
        raise InputError(f"--top must be at least 1, not {top}.")
    if graph is None and (features is not None or weight is not None):
        raise InputError("--features and --weight go with --graph.")
    chosen = load(run).best
    if molecules is not None or chosen.config.task == "graph":
        if links or labels_ or graph is not None:
            raise InputError("--links, --labels and --graph go with runs on one graph, not with molecules.")
        _properties(chosen, run, molecules, smiles, top, out, as_json)
        return
    if smiles is not None:
        raise InputError("--smiles goes with a table of new molecules.")
    if not links and not labels_:
        links, labels_ = chosen.config.task == "link", chosen.config.task == "node"
    if links and labels_:
        raise InputError("Choose one of --links and --labels.")
    target = chosen.graph
    if graph is not None:
        target = load_graph(graph, data_dir=data_dir, features=features, weight=weight)
    header, rows = _links(chosen, target, top) if links else _labels(chosen, target)
    _give(run, header, rows, top, out, as_json)


def _give(
    run: Path, header: list[str], rows: list[list[Any]], top: int, out: Path | None, as_json: bool, **more: Any
) -> None:
    """Print the first predictions, and write all to a file if one is named."""
    if out is not None:
        _write(out, header, rows)
    for row in [header, *rows[:top]]:
        cells = ("" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else f"{cell}" for cell in row)
        typer.echo("  ".join(cells).rstrip())
    if out is not None:
        typer.echo(f"{len(rows) - more.get('skipped', 0)} predictions in {out}")
    if as_json:
        predictions = [dict(zip(header, row, strict=True)) for row in rows]
        typer.echo(json.dumps({"run": str(run), **more, "predictions": predictions}))


def _properties(
    chosen: Run, run: Path, table: Path | None, smiles: str | None, top: int, out: Path | None, as_json: bool
) -> None:
    """Predict the properties of new molecules; a row about which nothing can be said stays empty."""
    from hyperboloid.graphs.molecules import Problem, tell_problems
    from hyperboloid.training.predict_molecules import predict_smiles

    if table is None:
        raise InputError(f"The run in {run} predicts properties of molecules: name a table of SMILES behind it.")
    found = predict_smiles(chosen, table, smiles)
    header = ["line", "smiles", *found.names, "problem"]
    rows: list[list[Any]] = []
    for line, text, values in zip(found.lines, found.smiles, found.values.tolist(), strict=True):
        problem = found.problems.get(line)
        rows.append([line, text, *([None for _ in values] if problem else values), problem])
    for sentence in tell_problems([Problem(*item) for item in found.problems.items()], table.name, "left empty"):
        typer.echo(sentence, err=True)
    if found.problems:
        typer.echo(f"{len(found.problems)} of {len(rows)} rows left empty.", err=True)
    _give(run, header, rows, top, out, as_json, skipped=len(found.problems))


def _links(run: Run, graph: Graph, top: int) -> tuple[list[str], list[list[Any]]]:
    from hyperboloid.training.predict import predict_links

    found = predict_links(run, top, graph)
    pairs = zip(found.source.tolist(), found.target.tolist(), found.probability.tolist(), strict=True)
    return ["source", "target", "probability"], [[graph.id_of(i), graph.id_of(j), p] for i, j, p in pairs]


def _labels(run: Run, graph: Graph) -> tuple[list[str], list[list[Any]]]:
    from hyperboloid.training.predict import predict_labels

    found = predict_labels(run, graph)
    cells = zip(found.label.tolist(), found.probability.tolist(), strict=True)
    return ["node", "label", "probability"], [
        [graph.id_of(i), run.graph.class_name(c), p] for i, (c, p) in enumerate(cells)
    ]


def _write(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    from hyperboloid.training.checkpoint import write_atomically

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
