"""Molecules as a batch wants them: for every node the (source, relation) pairs it aggregates, row after row.

Rows are compressed and nothing is padded, so that molecules of any sizes share a batch without waste.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numba import njit

from hyperboloid.errors import InputError

from .molecule_store import cached_file
from .molecules import Array, MoleculeSet, smallest


@dataclass(frozen=True, eq=False)
class Packed:
    """Flat arrays, molecule after molecule; a molecule's virtual node, if it has one, is its last node.

    Attributes:
        nodes: ``(G,)`` nodes of each molecule.
        entries: ``(G,)`` entries of its rows.
        pairs: ``(G, R)`` different sources of each relation in it.
        kind: ``(N,)`` kind of each node; the virtual node's comes after all atoms'.
        degree: ``(N,)`` entries of each row.
        source: ``(E,)`` node that an entry comes from, counted within its molecule.
        relation: ``(E,)`` its relation: the kinds of bonds, then the virtual one. Rows are sorted by relation, then
            source.
    """

    nodes: Array
    entries: Array
    pairs: Array
    kind: Array
    degree: Array
    source: Array
    relation: Array


def pack(molecules: MoleculeSet, *, self_loops: bool, virtual_node: bool) -> Packed:
    """Lay out the rows of every molecule; done once for a set, and then read from the user's cache.

    Args:
        molecules: the graphs.
        self_loops: let every atom be its own neighbour, by the first relation (single bonds), as HGNN does.
        virtual_node: add a node that is linked with every atom and itself by a relation of its own.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    key = {"packed": molecules.structure, "self_loops": self_loops, "virtual_node": virtual_node}
    found = cached_file(key, lambda: _packed_bytes(molecules, self_loops, virtual_node))
    try:
        arrays = load(found if isinstance(found, bytes) else found.read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(f"{found!s} in the cache is damaged: remove it, and it will be made again.") from error
    return Packed(**{f.name: arrays[f.name] for f in fields(Packed)})


def _packed_bytes(molecules: MoleculeSet, self_loops: bool, virtual_node: bool) -> bytes:
    from safetensors.numpy import save

    bonds, atoms = molecules.num_bonds.astype(np.int64), molecules.num_atoms.astype(np.int64)
    nodes = atoms + virtual_node
    entries = 2 * bonds + (atoms if self_loops else 0) + (2 * atoms + 1 if virtual_node else 0)
    relations = len(molecules.bond_names) + virtual_node
    kind = np.full(int(nodes.sum()), len(molecules.atom_names), dtype=np.int32)
    first = np.cumsum(nodes) - nodes
    kind[np.repeat(first - (np.cumsum(atoms) - atoms), atoms) + np.arange(int(atoms.sum()))] = molecules.atom
    largest = int(nodes.max(initial=0))
    degree = np.zeros(len(kind), dtype=np.int32)
    source = np.zeros(int(entries.sum()), dtype=smallest(np.zeros(0), largest).dtype)
    relation = np.zeros(len(source), dtype=smallest(np.zeros(0), relations).dtype)
    pairs = np.zeros((len(nodes), relations), dtype=np.int32)
    _fill(
        atoms, bonds, molecules.ends.astype(np.int32), molecules.bond, self_loops, virtual_node, largest, relations,
        degree, source, relation, pairs,
    )  # fmt: skip
    arrays = {
        "nodes": nodes,
        "entries": entries,
        "pairs": pairs,
        "kind": smallest(kind, len(molecules.atom_names)),
        "degree": smallest(degree, int(degree.max(initial=0))),
        "source": source,
        "relation": relation,
    }
    return save(arrays)


@njit(cache=True)
def _fill(
    atoms: Array, bonds: Array, ends: Array, bond: Array, self_loops: bool, virtual_node: bool, largest: int,
    relations: int, degree: Array, source: Array, relation: Array, pairs: Array,
) -> None:  # fmt: skip
    """Write rows, degrees and the numbers of pairs."""
    row = np.zeros(largest + 1, np.int64)
    next_free = np.zeros(largest, np.int64)
    seen = np.zeros((relations, largest), np.bool_)
    first_node, first_entry, first_bond = 0, 0, 0
    for g in range(atoms.shape[0]):
        n = atoms[g]
        nodes = n + (1 if virtual_node else 0)
        row[: nodes + 1] = 0
        for b in range(first_bond, first_bond + bonds[g]):
            row[ends[0, b] + 1] += 1
            row[ends[1, b] + 1] += 1
        for i in range(n):
            row[i + 1] += (1 if self_loops else 0) + (1 if virtual_node else 0)
        if virtual_node:
            row[nodes] += nodes
        for i in range(nodes):
            degree[first_node + i] = row[i + 1]
            row[i + 1] += row[i]
            next_free[i] = first_entry + row[i]
        for i in range(n):
            if self_loops:
                source[next_free[i]], relation[next_free[i]] = i, 0
                next_free[i] += 1
        for b in range(first_bond, first_bond + bonds[g]):
            for side in range(2):
                i, j = ends[side, b], ends[1 - side, b]
                source[next_free[i]], relation[next_free[i]] = j, bond[b]
                next_free[i] += 1
        if virtual_node:
            for i in range(nodes):
                if i < n:
                    source[next_free[i]], relation[next_free[i]] = n, relations - 1
                source[first_entry + row[n] + i], relation[first_entry + row[n] + i] = i, relations - 1
        seen[:, :nodes] = False
        for i in range(nodes):
            begin, end = first_entry + row[i], first_entry + row[i + 1]
            for e in range(begin, end):  # rows are short: sorted by insertion
                s, r = source[e], relation[e]
                seen[r, s] = True
                k = e
                while k > begin and (relation[k - 1] > r or (relation[k - 1] == r and source[k - 1] > s)):
                    source[k], relation[k] = source[k - 1], relation[k - 1]
                    k -= 1
                source[k], relation[k] = s, r
        for r in range(relations):
            pairs[g, r] = seen[r, :nodes].sum()
        first_node += nodes
        first_entry += row[nodes]
        first_bond += bonds[g]
