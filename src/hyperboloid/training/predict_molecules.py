"""Predictions of a trained run for new molecules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hyperboloid.errors import InputError
from hyperboloid.graphs.molecule_tables import read_smiles_table
from hyperboloid.graphs.molecules import Array, MoleculeSet
from hyperboloid.graphs.smiles import BONDS, from_smiles

from .experiment import Run
from .graph_task import GraphTask


@dataclass(frozen=True, eq=False)
class MoleculePredictions:
    """One row for each row of the table.

    Attributes:
        smiles: as given.
        lines: of the file.
        names: of the T targets.
        values: ``(n, T)``, NaN where nothing can be said.
        problems: why, by line.
    """

    smiles: list[str]
    lines: list[int]
    names: tuple[str, ...]
    values: Array
    problems: dict[int, str]


def predict_smiles(run: Run, path: Path, smiles: str | None = None) -> MoleculePredictions:
    """Predict the targets of the molecules in a table.

    Args:
        run: trained on molecules that came with the kinds of atoms that SMILES have.
        path: CSV, TSV or Parquet with a column of SMILES.
        smiles: name of that column; None for the one called smiles.

    Raises:
        InputError: something is wrong with the run or the table; a row that is no molecule, or has atoms that the model
            has not been trained on, is only noted.
    """
    task, known = _task(run), run.data
    assert isinstance(known, MoleculeSet)
    if known.bond_names != BONDS:
        raise InputError(f"The run in {run.folder} was not trained on molecules: it knows nothing of SMILES.")
    found = read_smiles_table(path, smiles)
    lines, texts = found.table.line_numbers(), found.texts
    molecules = from_smiles(
        path.name, texts, lines, np.zeros((len(texts), 0)), (), known=known.atom_names, seen=task.split.seen_atoms
    )
    values = np.full((len(texts), len(known.target_names)), np.nan)
    if len(molecules):
        row = {line: k for k, line in enumerate(lines)}
        model = run.encoder
        predicted = task.predict(model, np.arange(len(molecules)), task.batches_of(molecules, model))
        values[[row[int(line)] for line in molecules.lines]] = predicted.cpu().numpy()
    problems = {problem.line: problem.reason for problem in molecules.problems}
    return MoleculePredictions(texts, lines, known.target_names, values, problems)


def _task(run: Run) -> GraphTask:
    if not isinstance(run.task, GraphTask):
        raise InputError(f"The run in {run.folder} was trained for task '{run.config.task}', not on molecules.")
    return run.task
