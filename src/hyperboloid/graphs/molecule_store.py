"""Molecules in one file that can be read without running anything, and a cache of what took long to convert."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hyperboloid.errors import InputError

from .files import cache_dir
from .molecules import Array, MoleculeSet, Problem

#: Part of every key: a change of what is stored makes the files of older versions invisible.
FORMAT = 1
_ARRAYS = ("num_atoms", "num_bonds", "atom", "bond", "ends", "targets", "lines")


def molecules_to_bytes(molecules: MoleculeSet) -> bytes:
    """Serialise a set."""
    from safetensors.numpy import save

    arrays = {name: getattr(molecules, name) for name in _ARRAYS}
    for name in ("x", "scaffold"):
        if getattr(molecules, name) is not None:
            arrays[name] = getattr(molecules, name)
    for mask, parts in molecules.masks.items():
        arrays |= {f"mask.{mask}.{part}": chosen for part, chosen in parts.items()}
    about = {
        "name": molecules.name,
        "atom_names": molecules.atom_names,
        "bond_names": molecules.bond_names,
        "target_names": molecules.target_names,
        "problems": [[problem.line, problem.reason] for problem in molecules.problems],
    }
    return save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, metadata={"molecules": json.dumps(about)})


def read_stored_molecules(stored: Path | bytes) -> MoleculeSet:
    """Inverse of :func:`molecules_to_bytes`, from a file or its content."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = stored if isinstance(stored, bytes) else stored.read_bytes()
        length = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["molecules"])
        arrays: dict[str, Any] = load(content)
        masks: dict[str, dict[str, Array]] = {}
        for key in [key for key in arrays if key.startswith("mask.")]:
            _, mask, part = key.split(".")
            masks.setdefault(mask, {})[part] = arrays.pop(key)
        names: dict[str, Any] = {key: tuple(about[key]) for key in ("atom_names", "bond_names", "target_names")}
        problems = tuple(Problem(int(line), str(reason)) for line, reason in about["problems"])
        return MoleculeSet(about["name"], **names, **arrays, masks=masks, problems=problems)
    except (OSError, SafetensorError, LookupError, TypeError, ValueError) as error:
        where = "This" if isinstance(stored, bytes) else stored
        raise InputError(f"{where} does not hold molecules: {error}.") from error


def cached_file(key: Mapping[str, Any], make: Callable[[], bytes]) -> Path | bytes:
    """The file in the user's cache that was made for this key, or is made now; its content where it cannot be kept.

    Args:
        key: all that the content depends on.
        make: gives the content.
    """
    digest = hashlib.sha256(json.dumps({"format": FORMAT, **key}, sort_keys=True).encode()).hexdigest()
    path = cache_dir() / "molecules" / f"{digest[:32]}.safetensors"
    if path.is_file():
        return path
    content = make()
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError:  # a full or read-only disk: then it is converted again the next time
        with contextlib.suppress(OSError):
            partial.unlink()
        return content
    return path
