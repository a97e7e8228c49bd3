"""The user's molecules: a CSV or Parquet table with a column of SMILES and columns of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hyperboloid.errors import InputError

from .molecule_store import cached_file, molecules_to_bytes, read_stored_molecules
from .molecules import Array, MoleculeSet, find_name
from .smiles import PROPERTIES, from_smiles, rdkit
from .tables import TABLE_SUFFIXES, Table, check_file, read_table


@dataclass(frozen=True)
class SmilesTable:
    """A table with a header, and which of its columns holds SMILES."""

    table: Table
    names: tuple[str, ...]
    smiles: int

    @property
    def texts(self) -> list[str]:
        """The SMILES; an empty cell is an empty text."""
        return [text or "" for text in self.table.strings(self.smiles, "SMILES", optional=True).to_pylist()]


def read_smiles_table(path: Path, smiles: str | None) -> SmilesTable:
    """A table whose first line names the columns.

    Args:
        path: CSV, TSV or Parquet.
        smiles: name of the column of SMILES; None for the one called smiles.

    Raises:
        InputError: the file is empty or no table, or there is no such column.
    """
    check_file(path)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(f"cannot tell what {path} is; give a table of SMILES: {', '.join(TABLE_SUFFIXES)}")
    table = read_table(path)
    if table.is_text:
        table = table.with_header()
    assert table.names is not None
    if len(table) == 0:
        raise InputError(f"{path} has a header but no molecules")
    place = find_name(table.names, smiles or "smiles")
    if place is None:
        wanted = f"no column '{smiles}'" if smiles else "no column called smiles; name it by --smiles"
        raise InputError(f"{path} has {wanted}; its columns are: {', '.join(table.names)}")
    return SmilesTable(table, table.names, place)


def read_molecules(
    path: Path, *, smiles: str | None = None, targets: Sequence[str] | None = None, scaffold: bool = False
) -> MoleculeSet:
    """Molecules and their targets from a table; the conversion is kept in the user's cache.

    Args:
        path: the table.
        smiles: see :func:`read_smiles_table`.
        targets: names of numeric columns; logp, qed and sas are computed where there is no such column.
        scaffold: find scaffolds too, for a split that keeps them together.

    Raises:
        InputError: anything is wrong with what was given; rows that are no molecules are only noted.
    """
    found = read_smiles_table(path, smiles)
    given, values, computed = _columns(found, targets)
    key = {
        "table": hashlib.sha256(path.read_bytes()).hexdigest(),
        "columns": [found.smiles, *given, *computed],
        "scaffold": scaffold,
        "rdkit": rdkit("rdBase").rdkitVersion,
        "name": path.name,
    }

    def make() -> bytes:
        molecules = from_smiles(
            path.name, found.texts, found.table.line_numbers(), values, given, computed, scaffold=scaffold
        )
        if len(molecules) == 0:
            first = molecules.problems[0]
            where = f"{'line' if found.table.is_text else 'row'} {first.line}"
            raise InputError(f"{path} has no molecule that can be read; the first one, in {where}: {first.reason}")
        return molecules_to_bytes(molecules)

    return read_stored_molecules(cached_file(key, make)).with_targets(targets)


def _columns(found: SmilesTable, targets: Sequence[str] | None) -> tuple[list[str], Array, list[str]]:
    """Names and values of the targets that are columns, and names of those to be computed."""
    path, names = found.table.path, found.names
    others = [name for k, name in enumerate(names) if k != found.smiles]
    if not targets:
        raise InputError(
            f"name what to predict by --target: a column of {path} ({', '.join(others)}) or logp, qed, sas"
        )
    given: list[str] = []
    values: list[Array] = []
    computed: list[str] = []
    for target in targets:
        place = find_name(names, target)
        if place is None and target.lower() in PROPERTIES:
            computed.append(target.lower())
            continue
        if place is None:
            raise InputError(f"{path} has no column '{target}'; its columns are: {', '.join(names)}")
        column = found.table.numbers(place, "target")
        if not np.isfinite(column).all():
            row = int(np.flatnonzero(~np.isfinite(column))[0])
            raise InputError(f"{found.table.where(row)}: the target '{names[place]}' is {column[row]}, not a number")
        given.append(names[place])
        values.append(column)
    if len({*given, *computed}) < len(targets):
        raise InputError(f"Name each target once, not {', '.join(targets)}.")
    return given, np.stack(values, axis=1) if values else np.zeros((len(found.table), 0)), computed
