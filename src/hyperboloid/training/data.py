"""What a task learns from: one graph, or many molecules; how it is read, stored in a run folder, and read back."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.load_molecules import load_molecules
from hyperboloid.graphs.molecule_store import molecules_to_bytes, read_stored_molecules
from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.graphs.store import graph_to_bytes, read_stored_graph

from .checkpoint import write_atomically

Data = Graph | MoleculeSet
GRAPH, MOLECULES, SKIPPED = "graph.safetensors", "molecules.safetensors", "skipped.csv"


def load_data(
    task: str,
    source: Any,
    *,
    data_dir: str | Path | None = None,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    masks: str | None = None,
    **of_graph: Any,
) -> Data:
    """Read what the task needs.

    Args:
        task: its name.
        source: see :func:`load_graph` and :func:`load_molecules`.
        data_dir: likewise.
        smiles: column of SMILES; only for molecules.
        target: what to predict, a name or several; only for molecules.
        masks: the split; that by scaffolds has to find them.
        **of_graph: features, labels and weight; only for one graph.
    """
    if task == "graph":
        for name, value in of_graph.items():
            if value is not None:
                raise InputError(f"{name} goes with one graph: molecules have none of it, leave out --{name}.")
        targets = [target] if isinstance(target, str) else target
        return load_molecules(source, data_dir=data_dir, smiles=smiles, targets=targets, scaffold=masks == "scaffold")
    if smiles is not None or target is not None:
        raise InputError("smiles and target go with molecules: give --task graph.")
    return load_graph(source, data_dir=data_dir, **of_graph)


def store_data(folder: Path, data: Data) -> None:
    """Write the data into a run folder, unless it is there, and beside molecules the rows that were none."""
    path = folder / (MOLECULES if isinstance(data, MoleculeSet) else GRAPH)
    if path.exists():
        return
    if isinstance(data, MoleculeSet) and data.problems:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("line", "reason"), *map(astuple, data.problems)])
        write_atomically(folder / SKIPPED, text.getvalue().encode())
    write_atomically(path, molecules_to_bytes(data) if isinstance(data, MoleculeSet) else graph_to_bytes(data))


def read_data(folder: Path, task: str) -> tuple[Path, Data]:
    """The data of a run folder, and the file it lies in; a sub-folder of several runs shares its parent's.

    Raises:
        InputError: the file is not there, or damaged.
    """
    name = MOLECULES if task == "graph" else GRAPH
    path = next((p for p in (folder / name, folder.parent / name) if p.is_file()), None)
    if path is None:
        raise InputError(f"{folder} holds no {name}: the run folder is incomplete.")
    return path, read_stored_molecules(path) if task == "graph" else read_stored_graph(path)
