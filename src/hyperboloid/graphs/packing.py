"""Molecules as a batch wants them: for every node the (source, relation) pairs it aggregates, row after row.

Rows are compressed and nothing is padded, so that molecules of any sizes share a batch without waste. The same entries
are there a second time by column, as the gradients need them: in a batch nothing has to be sorted or counted again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numba import njit

from hyperboloid.errors import InputError

from .molecule_store import cached_file
from .molecules import Array, MoleculeSet


@dataclass(frozen=True, eq=False)
class Packed:
    """Flat arrays, molecule after molecule; a molecule's virtual node, if it has one, is its last node.

    A column is a (source, relation) pair. Those of a molecule are sorted by relation, then source. A relation by which
    every atom or node sends (that of self loops, that of the virtual node) has a column for each node; of the others
    only pairs that occur are there.

    Attributes:
        nodes: ``(G,)`` nodes of each molecule.
        entries: ``(G, R)`` entries of its rows, by relation.
        columns: ``(G, R)`` its columns, by relation.
        whole: ``(R,)`` whether a relation has a column for each node.
        kind: ``(N,)`` kind of each node; the virtual node's comes after all atoms'.
        degree: ``(N,)`` entries of each row.
        relation: ``(E,)`` of each entry: the kinds of bonds, then the virtual one. Rows are sorted by column.
        rank: ``(E,)`` its column, counted within the molecule's columns of the relation.
        column_degree: ``(P,)`` entries of each column.
        source: ``(P,)`` its node, counted within the molecule.
        column_row: ``(E,)`` by column, the row of each entry, counted within the molecule.
        column_entry: ``(E,)`` by column, the place of each entry among those of the molecule's rows.
    """

    nodes: Array
    entries: Array
    columns: Array
    whole: Array
    kind: Array
    degree: Array
    relation: Array
    rank: Array
    column_degree: Array
    source: Array
    column_row: Array
    column_entry: Array


def pack(molecules: MoleculeSet, *, self_loops: bool, virtual_node: bool) -> Packed:
    """Lay out the rows of every molecule; done once for a set, and then read from the user's cache.

    Args:
        molecules: the graphs.
        self_loops: let every atom be its own neighbour, by the first relation (single bonds), as HGNN does.
        virtual_node: add a node that is linked with every atom and itself by a relation of its own.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    key = {"packed": molecules.structure, "self_loops": self_loops, "virtual_node": virtual_node, "version": 2}
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
    relations = len(molecules.bond_names) + virtual_node
    whole = np.zeros(relations, dtype=np.bool_)
    whole[0] |= self_loops
    whole[-1] |= virtual_node
    kind = np.full(int(nodes.sum()), len(molecules.atom_names), dtype=np.int32)
    first = np.cumsum(nodes) - nodes
    kind[np.repeat(first - (np.cumsum(atoms) - atoms), atoms) + np.arange(int(atoms.sum()))] = molecules.atom
    each = 2 * bonds + (atoms if self_loops else 0) + (2 * atoms + 1 if virtual_node else 0)
    longest, most, total = int(nodes.max(initial=0)), int(each.max(initial=0)), int(each.sum())
    # numbers within a molecule are small; only two choices, since the loops are compiled for each
    small = max(longest, relations, len(molecules.atom_names)) < 2**8 and most < 2**15
    tiny, short = (np.uint8, np.int16) if small else (np.int32, np.int32)
    degree, relation, rank, column_row = (np.zeros(size, tiny) for size in (len(kind), total, total, total))
    column_entry = np.zeros(total, short)
    column_degree, source = (np.zeros(total + int(whole.sum()) * len(kind), tiny) for _ in range(2))
    entries, columns = (np.zeros((len(nodes), relations), dtype=np.int32) for _ in range(2))
    used = _fill(
        atoms, bonds, molecules.ends.astype(np.int32), molecules.bond, self_loops, virtual_node, whole, longest, most,
        degree, relation, rank, column_degree, source, column_row, column_entry, entries, columns,
    )  # fmt: skip
    arrays: dict[str, Array] = {
        "nodes": nodes,
        "entries": entries,
        "columns": columns,
        "whole": whole,
        "kind": kind.astype(tiny),
        "degree": degree,
        "relation": relation,
        "rank": rank,
        "column_degree": column_degree[:used],
        "source": source[:used],
        "column_row": column_row,
        "column_entry": column_entry,
    }
    return save(arrays)


@njit(cache=True)
def _fill(
    atoms: Array, bonds: Array, ends: Array, bond: Array, self_loops: bool, virtual_node: bool, whole: Array,
    longest: int, most: int, degree: Array, relation: Array, rank: Array, column_degree: Array, source: Array,
    column_row: Array, column_entry: Array, entries: Array, columns: Array,
) -> int:  # fmt: skip
    """Write rows and columns; gives the number of columns."""
    relations = whole.shape[0]
    row, next_free = np.zeros(longest + 1, np.int64), np.zeros(longest, np.int64)
    sender, by = np.zeros(most, np.int64), np.zeros(most, np.int64)  # of each entry: its source and relation
    column = np.zeros((relations, longest), np.int64)
    start = np.zeros(relations * longest + 1, np.int64)
    first_node, first_entry, first_bond, first_column = 0, 0, 0, 0
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
            next_free[i] = row[i]
        for i in range(n):
            if self_loops:
                sender[next_free[i]], by[next_free[i]] = i, 0
                next_free[i] += 1
        for b in range(first_bond, first_bond + bonds[g]):
            for side in range(2):
                i = ends[side, b]
                sender[next_free[i]], by[next_free[i]] = ends[1 - side, b], bond[b]
                next_free[i] += 1
        if virtual_node:
            for i in range(nodes):
                if i < n:
                    sender[next_free[i]], by[next_free[i]] = n, relations - 1
                sender[row[n] + i], by[row[n] + i] = i, relations - 1

        for r in range(relations):
            column[r, :nodes] = 1 if whole[r] else 0
        for i in range(nodes):
            for e in range(row[i], row[i + 1]):  # rows are short: sorted by insertion
                s, r = sender[e], by[e]
                column[r, s] = 1
                entries[g, r] += 1
                k = e
                while k > row[i] and (by[k - 1] > r or (by[k - 1] == r and sender[k - 1] > s)):
                    sender[k], by[k] = sender[k - 1], by[k - 1]
                    k -= 1
                sender[k], by[k] = s, r
        count = 0  # of columns so far
        for r in range(relations):
            for s in range(nodes):
                if column[r, s] > 0:
                    column[r, s] = count
                    source[first_column + count] = s
                    start[count + 1] = 0
                    count += 1
                    columns[g, r] += 1
        for e in range(row[nodes]):
            start[column[by[e], sender[e]] + 1] += 1
        start[0] = 0
        for c in range(count):
            column_degree[first_column + c] = start[c + 1]
            start[c + 1] += start[c]
        before = np.zeros(relations, np.int64)
        for r in range(1, relations):
            before[r] = before[r - 1] + columns[g, r - 1]
        for i in range(nodes):
            for e in range(row[i], row[i + 1]):
                c, r = column[by[e], sender[e]], by[e]
                relation[first_entry + e], rank[first_entry + e] = r, c - before[r]
                column_row[first_entry + start[c]], column_entry[first_entry + start[c]] = i, e
                start[c] += 1
        first_node += nodes
        first_entry += row[nodes]
        first_bond += bonds[g]
        first_column += count
    return first_column
