"""Which molecules are for training, which for validation, which for the test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyperboloid.errors import InputError

from .molecules import Array, MoleculeSet

#: Shares of validation and test in a split that did not come with the data.
VAL, TEST = 0.1, 0.1
KINDS = ("random", "scaffold")


@dataclass(frozen=True, eq=False)
class MoleculeSplit:
    """Molecules in three parts.

    Attributes:
        train, val, test: their numbers.
        name: the split in words.
        seen_atoms: ``(kinds,)`` which kinds of atoms the training part has.
        left_out: how many validation and test molecules have others.
    """

    train: Array
    val: Array
    test: Array
    name: str
    seen_atoms: Array
    left_out: int


def split_molecules(molecules: MoleculeSet, seed: int = 0, *, kind: str | None = None) -> MoleculeSplit:
    """Split at random, by scaffold, or as the data came.

    Validation and test molecules with an atom of a kind that no training molecule has are left out.

    Args:
        molecules: the data.
        seed: of the split; a split that came with the data has none.
        kind: ``random``; ``scaffold``: molecules with the same scaffold stay together; the name of a split that came
            with the data; None for that, or else ``random``.

    Raises:
        InputError: there is no such split, or there are too few molecules.
    """
    given = tuple(molecules.masks)
    kind = kind or (given[0] if given else "random")
    if kind in given:
        parts = molecules.masks[kind]
        found = [parts[part] for part in ("train", "val", "test")]
        name = f"the split '{kind}' of the data"
    elif kind in KINDS:
        found = _drawn(molecules, seed, kind)
        name = f"{1 - VAL - TEST:.0%}/{VAL:.0%}/{TEST:.0%} {kind}, seed {seed}".replace("%", "")
    else:
        raise InputError(f"'{molecules.name}' has no split '{kind}'; choose one of: {', '.join((*given, *KINDS))}.")
    seen_atoms, fine = _seen(molecules, found[0])
    val, test = (members[fine[members]] for members in found[1:])
    left_out = len(found[1]) + len(found[2]) - len(val) - len(test)
    if not (len(found[0]) and len(val) and len(test)):
        what, count = "molecules", len(molecules)
        if kind == "scaffold" and molecules.scaffold is not None:
            what, count = "scaffolds", len(np.unique(molecules.scaffold))
        raise InputError(
            f"'{molecules.name}' has too few {what} for a training, a validation and a test part: {count}."
        )
    name += f"; left out with kinds of atoms unseen in training: {left_out}" if left_out else ""
    return MoleculeSplit(found[0], val, test, name, seen_atoms, left_out)


def _drawn(molecules: MoleculeSet, seed: int, kind: str) -> list[Array]:
    total = len(molecules)
    random = np.random.default_rng(seed)
    if kind == "random":
        order = random.permutation(total)
        num_val, num_test = max(1, int(VAL * total)), max(1, int(TEST * total))
        return [np.sort(part) for part in np.split(order, [total - num_val - num_test, total - num_test])]
    if molecules.scaffold is None:
        raise InputError("A scaffold split needs SMILES: ask for it when the molecules are read.")
    _, group, size = np.unique(molecules.scaffold, return_inverse=True, return_counts=True)
    # groups in random order, but those that would fill half of a small part go to training
    shuffled = random.permutation(len(size))
    shuffled = shuffled[np.argsort(size[shuffled] <= VAL * total / 2, kind="stable")]
    before = np.zeros(len(size))
    before[shuffled] = np.cumsum(size[shuffled]) - size[shuffled]
    part = np.digitize(before / total, [1 - VAL - TEST, 1 - TEST])[group]
    return [np.flatnonzero(part == k) for k in range(3)]


def _seen(molecules: MoleculeSet, train: Array) -> tuple[Array, Array]:
    """Which kinds of atoms the training molecules have ``(kinds,)``, and which molecules have no others ``(G,)``."""
    owner = np.repeat(np.arange(len(molecules)), molecules.num_atoms)
    in_train = np.zeros(len(molecules), dtype=bool)
    in_train[train] = True
    seen = np.zeros(len(molecules.atom_names), dtype=bool)
    seen[molecules.atom[in_train[owner]]] = True
    fine = np.ones(len(molecules), dtype=bool)
    fine[owner[~seen[molecules.atom]]] = False
    return seen, fine
