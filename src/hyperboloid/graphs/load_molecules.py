"""One way in: molecules from a data set's name, a table of SMILES, or PyG objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError

from .datasets import DATASETS
from .molecule_objects import from_data_list
from .molecule_store import cached_file, molecules_to_bytes, read_stored_molecules
from .molecule_tables import read_molecules
from .molecules import MoleculeSet
from .zinc import load_zinc

#: Named sets of molecules; each is given the data folder or None.
MOLECULE_SETS: dict[str, Callable[[str | Path | None], MoleculeSet]] = {"zinc": load_zinc}


def load_molecules(
    source: Any,
    *,
    data_dir: str | Path | None = None,
    smiles: str | None = None,
    targets: Sequence[str] | None = None,
    scaffold: bool = False,
) -> MoleculeSet:
    """The molecules that ``source`` stands for.

    Args:
        source: the name of a set (``zinc``); a path to a table of SMILES; a PyG data set or list of ``Data`` with
            ``y``; or a :class:`MoleculeSet`.
        data_dir: the folder that holds the named data sets' files.
        smiles: column of SMILES, for a table of the user's.
        targets: what to predict; None for all there are, but a table needs their names.
        scaffold: find scaffolds, for a table of the user's.

    Raises:
        InputError: no such set or file, or something is wrong with it.
    """
    is_name = isinstance(source, str) and source.lower() in MOLECULE_SETS
    if isinstance(source, str | Path) and not is_name:
        if isinstance(source, str) and source.lower() in DATASETS:
            raise InputError(f"'{source}' is one graph, not a set of graphs: give --task link or --task node.")
        path = Path(source).expanduser()
        if not path.suffix and not path.exists():
            known = ", ".join(MOLECULE_SETS)
            raise InputError(f"there is no set of molecules '{source}': choose {known}, or give a table of SMILES")
        return read_molecules(path, smiles=smiles, targets=targets, scaffold=scaffold)
    if smiles is not None:
        raise InputError("smiles names a column of a table of your own; these molecules come with what they have.")
    if is_name:
        found = _named(source.lower(), data_dir)
    elif isinstance(source, MoleculeSet):
        found = source
    elif isinstance(source, Iterable):
        found = from_data_list(source)
    else:
        raise InputError(
            f"cannot read molecules from a {type(source).__name__}; give a name, a table, or a list of PyG Data"
        )
    if scaffold and found.scaffold is None:
        raise InputError(
            f"'{found.name}' came without SMILES, so that its scaffolds are unknown: choose another split."
        )
    if targets is None and is_name:
        raise InputError(f"name what to predict by --target: {', '.join(found.target_names)}")
    return found.with_targets(targets)


def _named(name: str, data_dir: str | Path | None) -> MoleculeSet:
    """A named set, converted once."""
    load = MOLECULE_SETS[name]
    return read_stored_molecules(cached_file({"set": name, "version": 1}, lambda: molecules_to_bytes(load(data_dir))))
