"""Batches of molecules, put together on the device they are needed on: no work per molecule in Python."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hyperboloid.graphs.molecules import Array, MoleculeSet
from hyperboloid.graphs.packing import pack
from hyperboloid.kernels import Adjacency
from hyperboloid.nn.graph_batch import GraphBatch


class Batches:
    """Molecules on a device, of which any may be asked for as a batch.

    Args:
        molecules: all of them.
        self_loops: see :func:`pack`; likewise ``virtual_node``.
        dtype: of features.
        device: where to compute.
    """

    def __init__(
        self, molecules: MoleculeSet, *, self_loops: bool, virtual_node: bool, dtype: torch.dtype, device: torch.device
    ) -> None:
        packed = pack(molecules, self_loops=self_loops, virtual_node=virtual_node)
        self._nodes, self._entries, self._pairs = packed.nodes, packed.entries, packed.pairs
        self._device = device
        self._kind, self._degree, self._source, self._relation = (
            torch.from_numpy(a).to(device) for a in (packed.kind, packed.degree, packed.source, packed.relation)
        )
        self._first_node, self._first_entry = (
            torch.from_numpy(np.cumsum(count) - count).to(device) for count in (packed.nodes, packed.entries)
        )
        self._x: Tensor | None = None
        if molecules.x is not None:
            virtual = np.zeros((int(packed.nodes.sum()), molecules.x.shape[1]), dtype=np.float32)
            virtual[packed.kind < len(molecules.atom_names)] = molecules.x
            self._x = torch.from_numpy(virtual).to(device, dtype)

    def take(self, chosen: Array) -> GraphBatch:
        """The batch of the molecules numbered ``chosen`` ``(B,)``, in that order."""
        nodes, entries = self._nodes[chosen], self._entries[chosen]
        columns = self._pairs[chosen].sum(0)
        # sizes are known on the host, so that nothing has to wait for the device
        num_nodes, num_entries, num_columns = int(nodes.sum()), int(entries.sum()), int(columns.sum())
        ids, n, e = (torch.from_numpy(a).to(self._device, non_blocking=True) for a in (chosen, nodes, entries))
        graph, place = _spans(self._first_node[ids], n, num_nodes)
        before = torch.cumsum(n, 0) - n
        owner, entry = _spans(self._first_entry[ids], e, num_entries)

        degree = self._degree[place].long()
        rowptr = torch.zeros(num_nodes + 1, dtype=torch.long, device=self._device)
        torch.cumsum(degree, 0, out=rowptr[1:])
        row = torch.repeat_interleave(degree, output_size=num_entries)
        key = self._relation[entry].long() * num_nodes + self._source[entry].long() + before[owner]
        there = torch.zeros(len(columns) * num_nodes, dtype=torch.int32, device=self._device)
        there[key] = 1
        number = torch.cumsum(there, 0)  # of each pair that is there, counted from 1
        pair = torch.searchsorted(number, torch.arange(1, num_columns + 1, device=self._device))
        adj = Adjacency(
            rowptr,
            row,
            number[key] - 1,
            torch.arange(num_entries, device=self._device),
            num_nodes,
            num_columns,
            num_entries,
        )
        x = None if self._x is None else self._x[place]
        return GraphBatch(self._kind[place].long(), x, graph, len(chosen), pair % num_nodes, columns.tolist(), adj)


def _spans(first: Tensor, count: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Members of groups one after the other: which group ``(total,)``, and the place where each member lies."""
    group = torch.repeat_interleave(count, output_size=total)
    shift = first - (torch.cumsum(count, 0) - count)
    return group, torch.arange(total, device=count.device) + shift[group]
