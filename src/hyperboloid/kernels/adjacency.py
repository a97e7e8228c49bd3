"""The neighbourhoods of a graph as compressed rows, in the order the kernels want them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from hyperboloid.errors import InputError

with warnings.catch_warnings():  # torch announces once that its CSR layout may still change: here, where nobody listens
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)

#: A row with more entries than this is cut into pieces.
PIECE = 1024


class Side(NamedTuple):
    """Rows (or columns) as the kernels take them: in pieces of bounded length, so that no hub is one worker's alone.

    Attributes:
        ptr: ``(num + 1,)`` where each row starts.
        other: ``(E,)`` the column of each entry.
        pieces: ``(P, 3)`` row, start and end of each piece; first those of long rows.
        hubs: ``(H, 3)`` each long row, its first piece and the one after its last.
    """

    ptr: Tensor
    other: Tensor
    pieces: Tensor
    hubs: Tensor

    @property
    def in_hubs(self) -> int:
        """How many pieces belong to long rows."""
        return self.pieces.size(0) - (self.ptr.numel() - 1 - self.hubs.size(0))

    @classmethod
    def cut(cls, ptr: Tensor, other: Tensor, kind: torch.dtype, longest: int | None) -> Side:
        """Rows as they start, in pieces; indices become ``kind``, see :class:`Adjacency` for ``longest``."""
        if longest is not None and longest <= PIECE:  # every row is a piece, and the device need not be asked
            ptr, row = ptr.to(kind), torch.arange(ptr.numel() - 1, dtype=kind, device=ptr.device)
            return cls(ptr, other.to(kind), torch.stack([row, ptr[:-1], ptr[1:]], dim=1), ptr.new_empty(0, 3))
        length = ptr.diff()
        long, short = (length > PIECE).nonzero().squeeze(1), (length <= PIECE).nonzero().squeeze(1)
        count = (length[long] + PIECE - 1) // PIECE
        last = count.cumsum(0)
        owner = torch.repeat_interleave(long, count)
        place = torch.arange(owner.numel(), device=ptr.device) - torch.repeat_interleave(last - count, count)
        start = ptr[owner] + PIECE * place
        pieces = torch.stack([owner, start, torch.minimum(start + PIECE, ptr[owner + 1])], dim=1)
        whole = torch.stack([short, ptr[short], ptr[short + 1]], dim=1)
        hubs = torch.stack([long, last - count, last], dim=1)
        return cls(*(t.to(kind).contiguous() for t in (ptr, other, torch.cat([pieces, whole]), hubs)))


class Index(NamedTuple):
    """A graph as the kernels take it; indices are int32 where they fit.

    Attributes:
        rows, columns: its two sides.
        entry: ``(E,)`` the place of each column's entries among the rows'.
        target: ``(E,)`` the row of each of the rows' entries.
        upper: ``(U,)`` the entries (i, j) with i ≤ j, where each (j, i) is the ``entry`` of (i, j); else empty.
        symmetric: whether every entry (i, j) has its (j, i): rows and columns are then the same lists.
        looped: whether every row has its own node among its columns.
    """

    rows: Side
    columns: Side
    entry: Tensor
    target: Tensor
    upper: Tensor
    symmetric: bool
    looped: bool


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Row i lists the neighbours j that node i aggregates; entries are sorted by (row, column).

    Attributes:
        rowptr: ``(num_rows + 1,)`` where each row starts.
        row: ``(E,)`` the row (target node i) of each entry.
        col: ``(E,)`` the column (source node j) of each entry.
        perm: ``(E,)`` where each entry stood in the edge list it was made from; added self loops stand behind it.
        num_rows: number of target nodes.
        num_cols: number of source nodes.
        num_given: length of the edge list; entries with ``perm`` at or above it are added self loops.
        by_column: what :attr:`transposed` gives, where it is known already.
        longest: entries of the longest row or column, or more, where it is known without asking the device.
    """

    rowptr: Tensor
    row: Tensor
    col: Tensor
    perm: Tensor
    num_rows: int
    num_cols: int
    num_given: int
    by_column: tuple[Tensor, Tensor, Tensor] | None = None
    longest: int | None = None

    @classmethod
    def from_edges(cls, source: Tensor, target: Tensor, size: tuple[int, int], *, self_loops: bool) -> Adjacency:
        """Sort an edge list ``source → target``.

        Args:
            source, target: ``(E,)`` node indices.
            size: number of source and of target nodes.
            self_loops: add the loop of every node that has none (the paper's N(i) ∪ {i}); needs equal sizes.
        """
        num_cols, num_rows = size
        source, target = source.long(), target.long()
        for name, nodes, count in (("source", source, num_cols), ("target", target, num_rows)):
            if nodes.numel() and not (int(nodes.min()) >= 0 and int(nodes.max()) < count):
                raise InputError(
                    f"the graph names {name} nodes outside 0 to {count - 1}, the nodes that have features."
                )
        num_given = source.numel()
        if self_loops:
            has_loop = torch.zeros(num_rows, dtype=torch.bool, device=source.device)
            has_loop[target[source == target]] = True
            missing = (~has_loop).nonzero().squeeze(-1)
            source, target = torch.cat([source, missing]), torch.cat([target, missing])
        order = torch.argsort(target * num_cols + source, stable=True)
        row, col = target[order], source[order]
        rowptr = torch.zeros(num_rows + 1, dtype=torch.long, device=row.device)
        torch.cumsum(torch.bincount(row, minlength=num_rows), 0, out=rowptr[1:])
        return cls(rowptr, row, col, order, num_rows, num_cols, num_given)

    @property
    def edge_index(self) -> Tensor:
        """``(2, E)`` source and target of each entry, PyG's convention."""
        return torch.stack([self.col, self.row])

    @cached_property
    def ends(self) -> Tensor:
        """``(2, E)`` row and column of each entry."""
        with torch.inference_mode(False):  # whoever asks first, it must serve training later
            return torch.stack([self.row, self.col])

    @cached_property
    def unordered(self) -> tuple[Tensor, Tensor]:
        """The pairs of nodes ``(2, P)`` that its entries join, each once, and which of them each entry is ``(E,)``.

        What is the same for (i, j) and (j, i) need not be computed twice.
        """
        nodes = max(self.num_rows, self.num_cols)
        with torch.inference_mode(False):
            low, high = self.ends.long().aminmax(dim=0)
            code, which = (low * nodes + high).unique(return_inverse=True)
            return torch.stack([code // nodes, code % nodes]), which

    @cached_property
    def transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same entries by column: where each column starts, their rows, and their places among the entries."""
        if self.by_column is not None:
            return self.by_column
        order = torch.argsort(self.col, stable=True)
        counts = torch.bincount(self.col, minlength=self.num_cols)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), self.row[order], order

    @cached_property
    def index(self) -> Index:
        """As the kernels take it."""
        colptr, row, entry = self.transposed
        largest = max(self.num_rows, self.num_cols, self.col.numel())
        kind = torch.int32 if largest < 2**31 else torch.int64
        square = self.num_rows == self.num_cols
        symmetric = square and torch.equal(self.rowptr, colptr) and torch.equal(self.col, row)
        upper = (self.row <= self.col).nonzero().squeeze(1) if symmetric else entry.new_empty(0)
        return Index(
            Side.cut(self.rowptr, self.col, kind, self.longest),
            Side.cut(colptr, row, kind, self.longest),
            entry.to(kind),
            self.row.to(kind),
            upper.to(kind),
            symmetric=symmetric,
            looped=square and self._is_looped(),
        )

    @cached_property
    def _known(self) -> dict[Hashable, Tensor]:
        return {}

    def known(self, what: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """What follows from the graph alone, and is asked for in every epoch: computed the first time."""
        if what not in self._known:
            with torch.inference_mode(False):
                found = compute()
            if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(found):
                return found  # of this compilation or transformation, and of no other
            self._known[what] = found
        return self._known[what]

    def _is_looped(self) -> bool:
        loops = torch.bincount(self.row[self.row == self.col], minlength=self.num_rows)
        return bool((loops > 0).all())

    def to(self, device: torch.device | str) -> Adjacency:
        """The same graph on ``device``."""
        names = ("rowptr", "row", "col", "perm")
        return replace(self, by_column=None, **{name: getattr(self, name).to(device) for name in names})

    def matrix(self, weight: Tensor, *, transposed: bool = False) -> Tensor:
        """The sparse CSR matrix ``(num_rows, num_cols)`` of weights ``(E,)`` of the entries, or its transpose."""
        start, index, size = self.rowptr, self.col, (self.num_rows, self.num_cols)
        if transposed:
            start, index, order = self.transposed
            weight, size = weight.index_select(0, order), (self.num_cols, self.num_rows)
        return torch.sparse_csr_tensor(start, index, weight, size, check_invariants=False)

    def ones(self, like: Tensor) -> Tensor:
        """Equal weights ``(E,)``; unlike ``new_ones`` of a model's tensor one set for all models of a batch."""
        return torch.ones(self.row.shape, dtype=like.dtype, device=like.device)

    def sort_weights(self, edge_weight: Tensor) -> Tensor:
        """Weights ``(num_given,)`` of the edge list in the order of the entries ``(E,)``; added self loops get 1."""
        loops = edge_weight.new_ones(self.perm.numel() - self.num_given)
        return torch.cat([edge_weight, loops])[self.perm]


class _Cached(NamedTuple):
    version: int
    adjacencies: dict[tuple[int, int, bool], Adjacency]


_cache: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def cached_adjacency(graph: Tensor, size: tuple[int, int], *, self_loops: bool) -> Adjacency:
    """The :class:`Adjacency` of a graph, sorted once for as long as the tensor lives unchanged.

    Args:
        graph: ``(2, E)`` edge list (source, target), or a sparse CSR matrix (row = target).
        size: number of source and of target nodes.
        self_loops: add missing self loops.
    """
    if graph.is_inference():  # inference tensors count no versions, so a change could not be noticed
        return Adjacency.from_edges(*_ends(graph), size, self_loops=self_loops)
    entry = _cache.get(graph)
    if entry is None or entry.version != graph._version:
        entry = _Cached(graph._version, {})
        _cache[graph] = entry
    key = (*size, self_loops)
    if key not in entry.adjacencies:
        with torch.inference_mode(False):  # what is first asked for in inference mode must serve training later
            entry.adjacencies[key] = Adjacency.from_edges(*_ends(graph), size, self_loops=self_loops)
    return entry.adjacencies[key]


def _ends(graph: Tensor) -> tuple[Tensor, Tensor]:
    """Source and target of every edge."""
    if graph.layout == torch.strided:
        return graph[0], graph[1]
    rows = torch.arange(graph.size(0), device=graph.device)
    return graph.col_indices(), torch.repeat_interleave(rows, graph.crow_indices().diff())
