"""``hyperboloid datasets``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from hyperboloid.errors import InputError

from .options import DataDir, Json


def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List the named data sets: what was loaded beside the paper's Table 3, and why they differ."""
    from rich.console import Console
    from rich.table import Table

    from hyperboloid.graphs import DATASETS
    from hyperboloid.graphs.load_molecules import MOLECULE_SETS

    chosen = [name.lower() for name in names] if names else list(DATASETS)
    for name in chosen:
        if name not in DATASETS:
            raise InputError(f"There is no data set '{name}'; choose one of: {', '.join(DATASETS)}.")
    table = Table("data set", "nodes", "edges", "classes", "features", "note", title="loaded (the paper's Table 3)")
    rows = [_row(name, data_dir) for name in chosen]
    for row in rows:
        cells = [_cell(row["loaded"], row["paper"], k) for k in range(4)]
        table.add_row(row["name"], *cells, row["note"])
    Console().print(table)
    if not names:
        typer.echo(f"Sets of molecules, for --task graph: {', '.join(MOLECULE_SETS)}")
    if as_json:
        typer.echo(json.dumps({"datasets": rows}))


def _row(name: str, data_dir: Any) -> dict[str, Any]:
    """What is there, or why it is not."""
    from hyperboloid.graphs import DATASETS, load_dataset

    dataset = DATASETS[name]
    row: dict[str, Any] = {"name": name, "paper": dataset.paper, "note": dataset.note or dataset.description}
    try:
        graph = load_dataset(name, data_dir)
    except InputError as error:
        return row | {"loaded": None, "note": str(error)}
    return row | {"loaded": [graph.num_nodes, graph.num_edges, graph.num_classes, graph.num_features or None]}


def _cell(loaded: list[Any] | None, paper: Any, k: int) -> str:
    own = "absent" if loaded is None else "none" if loaded[k] is None else str(loaded[k])
    if paper is None:
        return own
    printed = "none" if paper[k] is None else str(paper[k])
    return own if own == printed else f"{own} ({printed})"
