"""Many small graphs in memory, laid end to end: atoms, bonds, and numbers to predict for each molecule."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperboloid.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A row of the user's table that could not become a molecule.

    Attributes:
        line: of the file, counted from 1 (for Parquet: the row).
        reason: in words.
    """

    line: int
    reason: str


#: Problems that are told one by one; the others are counted.
TOLD = 10


def tell_problems(problems: Sequence[Problem], name: str, done: str) -> list[str]:
    """A sentence for each of the first problems, and for how many more there are.

    Args:
        problems: the rows.
        name: of the table, which says whether it has lines or rows.
        done: what was done with such a row.
    """
    word = "Row" if name.endswith(".parquet") else "Line"
    told = [f"{word} {problem.line} {done}: {problem.reason}." for problem in problems[:TOLD]]
    return [*told, f"… and {len(problems) - TOLD} more."] if len(problems) > TOLD else told


@dataclass(frozen=True, eq=False)
class MoleculeSet:
    """Molecules, or any other small graphs whose nodes and edges are of a few kinds.

    Attributes:
        name: what the user called it (``zinc``), or the file's name with its ending.
        atom_names: the kinds of atoms.
        bond_names: the kinds of bonds.
        num_atoms: ``(G,)`` atoms of each molecule, hydrogens included.
        num_bonds: ``(G,)`` bonds of each molecule, each counted once.
        atom: ``(A,)`` kind of each atom, molecule after molecule.
        bond: ``(B,)`` kind of each bond.
        ends: ``(2, B)`` the two atoms of each bond, counted from 0 within their molecule.
        targets: ``(G, T)`` float64, what is to be predicted.
        target_names: of the T columns.
        lines: ``(G,)`` where each molecule stood in its file: the line, for Parquet or objects the row from 1.
        x: ``(A, k)`` float32 features of the atoms, or None: their kind says it all.
        masks: splits that came with the data, by name: each maps ``train``, ``val`` and ``test`` to molecules.
        scaffold: ``(G,)`` number of each molecule's scaffold, or None.
        problems: rows that were skipped.
    """

    name: str
    atom_names: tuple[str, ...]
    bond_names: tuple[str, ...]
    num_atoms: Array
    num_bonds: Array
    atom: Array
    bond: Array
    ends: Array
    targets: Array
    target_names: tuple[str, ...]
    lines: Array
    x: Array | None = None
    masks: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    scaffold: Array | None = None
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.num_atoms)

    @cached_property
    def structure(self) -> str:
        """SHA-256 of the graphs alone: atoms, bonds, features."""
        digest = hashlib.sha256(repr((self.atom_names, self.bond_names)).encode())
        for array in (self.num_atoms, self.num_bonds, self.atom, self.bond, self.ends, self.x):
            if array is not None:
                digest.update(f"{array.shape}{array.dtype}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of everything a run depends on: graphs, targets, given splits, scaffolds."""
        digest = hashlib.sha256(self.structure.encode() + repr(self.target_names).encode())
        digest.update(np.ascontiguousarray(self.targets).tobytes())
        for mask, parts in sorted(self.masks.items()):
            for part, chosen in sorted(parts.items()):
                digest.update(f"{mask}.{part}".encode() + np.ascontiguousarray(chosen).tobytes())
        if self.scaffold is not None:
            digest.update(self.scaffold.tobytes())
        return digest.hexdigest()

    def only(self, chosen: Array) -> MoleculeSet:
        """The molecules numbered ``chosen``, in that order; given splits keep those of theirs that are chosen."""
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        masks = {
            name: {part: there[there >= 0] for part, there in ((p, place[m]) for p, m in parts.items())}
            for name, parts in self.masks.items()
        }
        atoms, bonds = (spans(count, chosen) for count in (self.num_atoms, self.num_bonds))
        return replace(
            self,
            num_atoms=self.num_atoms[chosen],
            num_bonds=self.num_bonds[chosen],
            atom=self.atom[atoms],
            bond=self.bond[bonds],
            ends=self.ends[:, bonds],
            targets=self.targets[chosen],
            lines=self.lines[chosen],
            x=None if self.x is None else self.x[atoms],
            masks=masks,
            scaffold=None if self.scaffold is None else self.scaffold[chosen],
        )

    def with_targets(self, names: Sequence[str] | None) -> MoleculeSet:
        """The same molecules with these targets only, found whatever their case; None keeps all.

        Raises:
            InputError: there is no such target; the message lists those there are.
        """
        if names is None:
            return self
        places = [find_name(self.target_names, name) for name in names]
        for name, place in zip(names, places, strict=True):
            if place is None:
                raise InputError(f"'{self.name}' has no target '{name}'; choose among: {', '.join(self.target_names)}.")
        chosen = [place for place in places if place is not None]
        if not chosen or len(set(chosen)) < len(chosen):
            raise InputError(f"Name each target once, at least one of: {', '.join(self.target_names)}.")
        return replace(self, targets=self.targets[:, chosen], target_names=tuple(self.target_names[k] for k in chosen))


def find_name(names: Sequence[str], wanted: str) -> int | None:
    """Where a name stands among others: as it is written, else whatever its case; None where it does not."""
    if wanted in names:
        return list(names).index(wanted)
    lower = [name.lower() for name in names]
    return lower.index(wanted.lower()) if wanted.lower() in lower else None


def spans(count: Array, chosen: Array) -> NDArray[np.int64]:
    """Places in a flat array of the members of some groups, group after group.

    Args:
        count: ``(G,)`` members of every group.
        chosen: ``(C,)`` groups.
    """
    start = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])[:-1][chosen]
    size = count[chosen].astype(np.int64)
    before = np.cumsum(size) - size
    return np.repeat(start - before, size) + np.arange(int(size.sum()))


def smallest(values: Array, most: int) -> Array:
    """Whole numbers from 0 to ``most`` in the smallest type that holds them."""
    kind = np.uint8 if most < 2**8 else np.int16 if most < 2**15 else np.int32
    return np.asarray(values).astype(kind)
