"""Batches of molecules: laid out on the host by one compiled loop, and sent to the device in one piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import numpy as np
import torch
from numba import njit
from torch import Tensor

from hyperboloid.graphs.molecules import Array, MoleculeSet, spans
from hyperboloid.graphs.packing import pack
from hyperboloid.kernels import Adjacency
from hyperboloid.nn.graph_batch import GraphBatch


class Batches:
    """Molecules of which any may be asked for as a batch.

    Args:
        molecules: all of them.
        self_loops: see :func:`pack`; likewise ``virtual_node``.
        dtype: of features.
        device: where to compute.
    """

    def __init__(
        self, molecules: MoleculeSet, *, self_loops: bool, virtual_node: bool, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._packed = p = pack(molecules, self_loops=self_loops, virtual_node=virtual_node)
        self._dtype, self._device = dtype, device
        self._longest = int(max(p.degree.max(initial=0), p.column_degree.max(initial=0)))
        counts = (p.nodes, p.entries.sum(1), p.columns.sum(1))
        self._first = [np.concatenate([[0], np.cumsum(count, dtype=np.int64)]) for count in counts]
        self._x: Array | None = None
        if molecules.x is not None:
            self._x = np.zeros((int(p.nodes.sum()), molecules.x.shape[1]), dtype=np.float32)
            self._x[p.kind < len(molecules.atom_names)] = molecules.x

    def take(self, chosen: Array) -> GraphBatch:
        """The batch of the molecules numbered ``chosen`` ``(B,)``, in that order."""
        return self.send(*self.lay(chosen))

    def each(self, parts: Sequence[Array]) -> Iterator[GraphBatch]:
        """The batches of several choices; a thread lays out the next while one is in use."""
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(self.lay, parts[0])
            for chosen in parts[1:]:
                ready, coming = coming, pool.submit(self.lay, chosen)
                yield self.send(*ready.result())
            yield self.send(*coming.result())

    def lay(self, chosen: Array) -> tuple[Array, Tensor]:
        """A batch on the host: the choice, and all its indices end to end."""
        p, places = self._packed, self._places(chosen)
        laid = torch.empty(places[-1].stop, dtype=torch.int32, pin_memory=self._device.type == "cuda")
        _lay(
            chosen, *self._first, p.entries, p.columns, p.whole, p.kind, p.degree, p.relation, p.rank, p.column_degree,
            p.source, p.column_row, p.column_entry, *(laid.numpy()[place] for place in places),
        )  # fmt: skip
        return chosen, laid

    def send(self, chosen: Array, laid: Tensor) -> GraphBatch:
        """The batch on the device."""
        p, there = self._packed, laid.to(self._device, non_blocking=True)
        kind, graph, ptr, rowptr, row, col, colptr, by_row, entry, source = (
            there[place] for place in self._places(chosen)
        )
        columns = p.columns[chosen].sum(0).tolist()
        sparse = iter(source.split([n for n, whole in zip(columns, p.whole, strict=True) if not whole]))
        adj = Adjacency(
            rowptr, row, col, torch.arange(len(col), device=self._device), len(kind), len(colptr) - 1, len(col),
            by_column=(colptr, by_row, entry), longest=self._longest,
        )  # fmt: skip
        x = None
        if self._x is not None:
            x = torch.from_numpy(self._x[spans(p.nodes, chosen)]).to(self._device, self._dtype)
        sources = [None if whole else next(sparse) for whole in p.whole]
        return GraphBatch(kind, x, graph, ptr, sources, columns, adj)

    def _places(self, chosen: Array) -> list[slice]:
        """Where each array that :func:`_lay` writes has its place; known without asking the device.

        All start at multiples of 16 bytes: Triton compiles a kernel again for arrays that do not.
        """
        p = self._packed
        nodes, entries, columns = (int(a[chosen].sum()) for a in (p.nodes, p.entries, p.columns))
        sparse = int(p.columns[chosen][:, ~p.whole].sum())
        sizes = (nodes, nodes, len(chosen) + 1, nodes + 1, entries, entries, columns + 1, entries, entries, sparse)
        starts = accumulate((-(-size // 4) * 4 for size in sizes), initial=0)
        return [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]


@njit(nogil=True, cache=True)
def _lay(
    chosen: Array, first_node: Array, first_entry: Array, first_column: Array, entries: Array, columns: Array,
    whole: Array, kind: Array, degree: Array, relation: Array, rank: Array, column_degree: Array, source: Array,
    column_row: Array, column_entry: Array, kind_out: Array, graph: Array, ptr: Array, rowptr: Array, row: Array,
    col: Array, colptr: Array, by_row: Array, entry_out: Array, source_out: Array,
) -> None:  # fmt: skip
    """Copy the molecules one after the other, counting nodes, entries and columns on through the batch.

    Columns are sorted by relation first, so that those of a relation, and its entries by column, go on from molecule to
    molecule; ``next_…`` are where.
    """
    relations = whole.shape[0]
    next_column, next_entry = np.zeros(relations + 1, np.int64), np.zeros(relations + 1, np.int64)
    next_source = np.zeros(relations + 1, np.int64)
    for g in chosen:
        for r in range(relations):
            next_column[r + 1] += columns[g, r]
            next_entry[r + 1] += entries[g, r]
            next_source[r + 1] += 0 if whole[r] else columns[g, r]
    for r in range(relations):
        next_column[r + 1] += next_column[r]
        next_entry[r + 1] += next_entry[r]
        next_source[r + 1] += next_source[r]
    rowptr[-1], colptr[-1] = row.shape[0], row.shape[0]
    node, entry = 0, 0  # where the molecule starts
    for b in range(chosen.shape[0]):
        g = chosen[b]
        ptr[b] = node
        at, e = entry, first_entry[g]
        for i in range(first_node[g + 1] - first_node[g]):
            kind_out[node + i], graph[node + i], rowptr[node + i] = kind[first_node[g] + i], b, at
            for _ in range(degree[first_node[g] + i]):
                row[at], col[at] = node + i, next_column[relation[e]] + rank[e]
                at, e = at + 1, e + 1
        c, e = first_column[g], first_entry[g]
        for r in range(relations):
            for _ in range(columns[g, r]):
                colptr[next_column[r]] = next_entry[r]
                next_column[r] += 1
                if not whole[r]:
                    source_out[next_source[r]] = node + source[c]
                    next_source[r] += 1
                for _ in range(column_degree[c]):
                    by_row[next_entry[r]], entry_out[next_entry[r]] = node + column_row[e], entry + column_entry[e]
                    next_entry[r], e = next_entry[r] + 1, e + 1
                c += 1
        node, entry = node + first_node[g + 1] - first_node[g], at
    ptr[-1] = node
