"""Molecules from SMILES, by RDKit: graphs with explicit hydrogens, properties that can be computed, scaffolds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from hyperboloid.errors import InputError

from .molecules import Array, MoleculeSet, Problem, smallest

BONDS = ("single", "double", "triple")


def rdkit(module: str) -> Any:
    """A module of RDKit, whose own messages are switched off."""
    try:
        import_module("rdkit.RDLogger").DisableLog("rdApp.*")
    except ImportError as error:
        raise InputError("Reading SMILES needs RDKit: pip install 'hyperboloid[molecules]'.") from error
    return import_module(f"rdkit.{module}")


def logp(mol: Any) -> float:
    """Crippen's logP, a sum over atoms."""
    return float(rdkit("Chem.Crippen").MolLogP(mol))


def qed(mol: Any) -> float:
    """Quantitative estimate of drug-likeness, with RDKit's constants; those behind ``zinc`` are older ones."""
    return float(rdkit("Chem.QED").qed(mol))


def sas(mol: Any) -> float:
    """Synthetic accessibility score, 1 (easy) to 10, from RDKit's contributed code."""
    try:
        scorer = rdkit("Contrib.SA_Score.sascorer")
    except ImportError as error:
        raise InputError("This RDKit came without its Contrib folder, which computes SAS; install another.") from error
    return float(scorer.calculateScore(mol))


#: What can be computed where the data has no such column.
PROPERTIES: dict[str, Callable[[Any], float]] = {"logp": logp, "qed": qed, "sas": sas}


@dataclass(frozen=True)
class _Parsed:
    atoms: list[str]
    ends: list[tuple[int, int]]
    bonds: list[int]
    computed: list[float]
    scaffold: str


class Unreadable(ValueError):
    """A SMILES that cannot become a graph, and why."""


def parse(smiles: str, properties: Sequence[str] = (), *, scaffold: bool = False) -> _Parsed:
    """One molecule: kinds of atoms (symbol, valence, charge: ``C4(0)``), kekulised bonds, properties.

    Raises:
        Unreadable: RDKit cannot read it, or it has no atoms or an unusual bond.
    """
    if not smiles:
        raise Unreadable("there is no SMILES")
    chem = rdkit("Chem")
    mol = chem.MolFromSmiles(smiles)
    if mol is None:
        raise Unreadable(f"'{smiles}' is not a SMILES that RDKit can read")
    if mol.GetNumAtoms() == 0:
        raise Unreadable("there is no atom in it")
    computed = [PROPERTIES[name](mol) for name in properties]
    core = _scaffold(mol) if scaffold else ""
    mol = chem.AddHs(mol)
    chem.Kekulize(mol, clearAromaticFlags=True)
    atoms = [f"{a.GetSymbol()}{a.GetTotalValence()}({a.GetFormalCharge()})" for a in mol.GetAtoms()]
    ends, bonds = [], []
    for bond in mol.GetBonds():
        kind = bond.GetBondType().name.lower()
        if kind not in BONDS:
            raise Unreadable(f"'{smiles}' has a {kind} bond, which is not supported")
        ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        bonds.append(BONDS.index(kind))
    return _Parsed(atoms, ends, bonds, computed, core)


def _scaffold(mol: Any) -> str:
    module = rdkit("Chem.Scaffolds.MurckoScaffold")
    return str(module.MurckoScaffoldSmiles(mol=mol, includeChirality=False))


def from_smiles(
    name: str,
    smiles: Sequence[str],
    lines: Iterable[int],
    targets: Array,
    target_names: Sequence[str],
    computed: Sequence[str] = (),
    *,
    scaffold: bool = False,
    known: Sequence[str] | None = None,
    seen: Array | None = None,
) -> MoleculeSet:
    """Molecules from SMILES; those that cannot be read are listed among the problems and left out.

    Args:
        name: of the set.
        smiles: one for each molecule.
        lines: where each stands in its file.
        targets: ``(G, T)`` given targets.
        target_names: of the T columns.
        computed: further targets, computed by :data:`PROPERTIES`.
        scaffold: find scaffolds too.
        known: the kinds of atoms of a trained model, in its order; a molecule with another one is left out.
        seen: ``(len(known),)`` which of them it was trained on; None for all.
    """
    kinds: dict[str, int] = {atom: k for k, atom in enumerate(known or ())}
    familiar = {atom for atom, k in kinds.items() if seen is None or seen[k]}
    found: list[_Parsed] = []
    kept: list[int] = []
    problems: list[Problem] = []
    numbers = list(lines)
    for row, text in enumerate(smiles):
        try:
            one = parse(text, computed, scaffold=scaffold)
            if known is not None and (strange := sorted(set(one.atoms) - familiar)):
                raise Unreadable(f"the model was not trained on atoms like {', '.join(strange)}")
        except Unreadable as error:
            problems.append(Problem(numbers[row], str(error)))
            continue
        for atom in one.atoms:
            kinds.setdefault(atom, len(kinds))
        found.append(one)
        kept.append(row)
    scaffolds = {core: k for k, core in enumerate(dict.fromkeys(one.scaffold for one in found))}
    largest = max((len(one.atoms) for one in found), default=0)
    return MoleculeSet(
        name,
        tuple(kinds),
        BONDS,
        num_atoms=np.array([len(one.atoms) for one in found], dtype=np.int32),
        num_bonds=np.array([len(one.bonds) for one in found], dtype=np.int32),
        atom=smallest(np.array([kinds[a] for one in found for a in one.atoms], dtype=np.int64), len(kinds)),
        bond=np.array([b for one in found for b in one.bonds], dtype=np.uint8),
        ends=smallest(np.array([e for one in found for e in one.ends], dtype=np.int64).reshape(-1, 2).T, largest),
        targets=np.concatenate(
            [targets[kept], np.array([one.computed for one in found]).reshape(len(found), len(computed))], axis=1
        ),
        target_names=(*target_names, *computed),
        lines=np.array(numbers, dtype=np.int64)[kept],
        scaffold=np.array([scaffolds[one.scaffold] for one in found], dtype=np.int64) if scaffold else None,
        problems=tuple(problems),
    )
