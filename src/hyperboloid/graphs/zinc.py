"""ZINC: 249,455 drug-like molecules with logP, QED and SAS, as HGNN (Liu et al., NeurIPS '19) uses them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from .files import find
from .molecules import Array, MoleculeSet, smallest, spans
from .tables import in_memory

#: Kind of an atom that HGNN does not know; it drops such molecules.
UNKNOWN = 255
HYDROGEN = "H1(0)"
TARGETS = ("logp", "qed", "sas")
_MD5 = {
    "zinc250k_graphs.npz": "a9621c830e34ff28efdce65e25dba46d",
    "zinc250k.csv.gz": "501990ab900d18682a62b3f9b25a1275",
    "valid_idx_zinc.json": "f8045b49a413c31136a0645d30c0b846",
    "test_idx_zinc.json": "8352c1819c78fc7b6f316a5ff58a0625",
}


def load_zinc(data_dir: str | Path | None = None) -> MoleculeSet:
    """The molecules of HGNN's 14 kinds of atoms, hydrogens included, bonds kekulised, and HGNN's split."""
    with np.load(_find("zinc250k_graphs.npz", data_dir), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    rows = len(arrays["num_atoms"])
    molecule = np.repeat(np.arange(rows), arrays["num_atoms"])
    known = np.ones(rows, dtype=bool)
    known[molecule[arrays["atom_type"] == UNKNOWN]] = False
    names = tuple(str(name) for name in arrays["atom_type_names"])
    whole = MoleculeSet(
        "zinc",
        names,
        ("single", "double", "triple"),
        **_with_hydrogens(arrays, names.index(HYDROGEN)),
        targets=_targets(data_dir),
        target_names=TARGETS,
        lines=np.arange(2, rows + 2),
        masks={"hgnn": _split(rows, data_dir)},
    )
    return whole.only(np.flatnonzero(known))


def _find(name: str, data_dir: str | Path | None) -> Path:
    return find(f"zinc/{name}", _MD5[name], None, data_dir)


def _with_hydrogens(arrays: dict[str, Array], hydrogen: int) -> dict[str, Any]:
    """Atoms and bonds with each molecule's hydrogens behind its other atoms, in the order of those they hang on."""
    heavy, bonds = arrays["num_atoms"].astype(np.int64), arrays["num_bonds"].astype(np.int64)
    first = np.cumsum(heavy) - heavy
    hs = np.add.reduceat(arrays["num_hs"].astype(np.int64), first)
    molecule = np.repeat(np.arange(len(heavy)), heavy)
    # the heavy atoms and the bonds between them come first in each molecule
    num_atoms, num_bonds = heavy + hs, bonds + hs
    start, start_bond = np.cumsum(num_atoms) - num_atoms, np.cumsum(num_bonds) - num_bonds
    atom = np.full(int(num_atoms.sum()), hydrogen, dtype=np.uint8)
    atom[np.repeat(start, heavy) + _count(heavy)] = arrays["atom_type"]
    bond = np.zeros(int(num_bonds.sum()), dtype=np.uint8)  # a hydrogen's bond is single
    ends = np.zeros((2, len(bond)), dtype=np.int64)
    place = np.repeat(start_bond, bonds) + _count(bonds)
    bond[place] = arrays["bond_order"] - 1
    ends[:, place] = arrays["bond_begin"], arrays["bond_end"]
    place = np.repeat(start_bond + bonds, hs) + _count(hs)
    within = np.arange(len(molecule)) - first[molecule]
    ends[0, place] = np.repeat(within, arrays["num_hs"])
    ends[1, place] = np.repeat(heavy, hs) + _count(hs)
    return {
        "num_atoms": num_atoms.astype(np.int32),
        "num_bonds": num_bonds.astype(np.int32),
        "atom": atom,
        "bond": bond,
        "ends": smallest(ends, int(num_atoms.max())),
    }


def _count(sizes: Array) -> Array:
    """0 … n − 1 for each size n, one after the other."""
    everything = spans(sizes, np.arange(len(sizes)))
    return everything - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _targets(data_dir: str | Path | None) -> Array:
    """``(rows, 3)`` logP, QED and SAS."""
    from pyarrow import csv

    with gzip.open(_find("zinc250k.csv.gz", data_dir)) as file:
        table = csv.read_csv(
            in_memory(file.read()), convert_options=csv.ConvertOptions(include_columns=["logP", "qed", "SAS"])
        )
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def _split(rows: int, data_dir: str | Path | None) -> dict[str, Array]:
    """HGNN's validation and test rows; all others train."""
    parts = {
        part: np.array(json.loads(_find(f"{name}_idx_zinc.json", data_dir).read_text(encoding="utf-8")), dtype=np.int64)
        for part, name in (("val", "valid"), ("test", "test"))
    }
    rest = np.ones(rows, dtype=bool)
    rest[np.concatenate(list(parts.values()))] = False
    return {"train": np.flatnonzero(rest), **parts}
