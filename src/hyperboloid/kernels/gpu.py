"""The GPU backend: launches of the kernels of `lorentz_aggregate` (`gpu_aggregate.py` …) and of those over rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from hyperboloid.geometry.rows import Gradients, RowKernel

from . import gpu_aggregate as kernels
from . import gpu_aggregate_backward as backward
from . import gpu_gyro as gyro
from . import gpu_refine as refine
from . import gpu_rows as loops
from .adjacency import Index, Side
from .gpu_math import STEP

#: Most entries, or neighbours of a node, that a program takes at a time, and room for all their coordinates; measured.
TAKEN, ENTRY_ROOM, PIECE_ROOM = 32, 2048, 512
#: Most programs of a model that look whether something must be computed again: mostly there is nothing.
MOST = 128


def _block(d: int) -> int:
    """The power of two that holds d coordinates."""
    return max(1, 1 << (d - 1).bit_length())


def _tile(d: int, most: int, room: int = 1024) -> int:
    """How many vectors of d coordinates a program takes at a time, of which it has ``room`` for all coordinates."""
    return max(1, min(most, room // _block(d)))


def _over_rows(
    kernel: Any, u: Tensor, beta: Tensor, *tensors: Tensor, tile: int | None = None, **constants: Any
) -> None:
    """Run a kernel over the rows of u ``(…, d)``, ``tile`` at a time; β belongs to equally many rows each."""
    rows, d = u.shape[:-1].numel(), u.size(-1)
    if rows:
        tile = tile or _tile(d, 32)
        kernel[(-(-rows // tile),)](
            *tensors, rows, rows // beta.numel(), d, BLOCK_R=tile, BLOCK_D=_block(d), **constants
        )


def _over_pieces(
    kernel: Any, side: Side, models: int, width: int, *args: Any, room: int = PIECE_ROOM, **constants: Any
) -> None:
    """Run a kernel over the pieces of rows or columns.

    A program takes as many neighbours at a time as a row has, about, and as many rows as it has room for: each waits
    for memory several times, and a GPU has only so many programs under way.
    """
    usual, pieces = max(4, min(TAKEN, _block(side.other.size(0) // max(side.ptr.size(0) - 1, 1)))), side.pieces.size(0)
    if pieces:
        tile = _tile(width, usual, room)
        rows = _tile(width * tile, TAKEN, room)
        kernel[(-(-pieces // rows), models)](
            *args, side.pieces, side.other, pieces, BLOCK_R=rows, BLOCK_E=tile, **constants, num_warps=1
        )


def by_pieces(kernel: Any, side: Side, shape: tuple[int, ...], *args: Any, **constants: Any) -> None:
    """Run a kernel over the pieces of rows or columns, for vectors of a shape ``(M, N, d)``."""
    models, _, d = shape
    _over_pieces(kernel, side, models, d, *args, D=d, BLOCK_D=_block(d), **constants)


def _values(kernel: Any, u: Tensor, v: Tensor, beta: Tensor, out: Tensor, **constants: Any) -> Tensor:
    """Run a forward kernel over rows ``(…, d)``."""
    _over_rows(kernel, u, beta, u.contiguous(), v.contiguous(), beta.contiguous(), out, **constants)
    return out


def _gradients(kernel: Any, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor, **constants: Any) -> Gradients:
    """Run a backward kernel over rows ``(…, d)``."""
    u, v, beta = u.contiguous(), v.contiguous(), beta.contiguous()
    grad_u, grad_v = torch.empty_like(u), torch.empty_like(v)
    by_row = torch.zeros(u.shape[:-1], dtype=torch.float64, device=u.device)
    _over_rows(kernel, u, beta, u, v, beta, grad.contiguous(), grad_u, grad_v, by_row, **constants)
    return grad_u, grad_v, _held(by_row.view(beta.numel(), -1).sum(1), beta)


def _held(grad: Tensor, like: Tensor) -> Tensor:
    """A double gradient in another dtype, held below its largest number."""
    limit = torch.finfo(like.dtype).max / 1e3
    return grad.to(like.dtype).clamp(-limit, limit)


def _chord(u: Tensor, v: Tensor, beta: Tensor, *, squared: bool) -> Tensor:
    """d_L, or d_H² if ``squared``, ``(…)``."""
    return _values(loops.chord_forward, u, v, beta, u.new_empty(u.shape[:-1]), SQUARED=squared)


def _by_steps(d: int) -> dict[str, int]:
    """For kernels that take a few coordinates at a time, four to a thread: as many rows as a warp then has.

    The threads of a row all compute its exponentials, so there are few of them, up to d = 16 a single one: measured on
    an H200, Amazon's nodes at d = 8, u ⊕ v takes 0.8 µs a model; it took 6.1 where eight threads shared a row.
    """
    step = min(_block(d), max(4, _block(d) // 4), STEP.value)
    return {"tile": 128 // step, "num_warps": 1, "STEP": step}


def _gyro(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """u ⊕ v ``(…, d)``."""
    return _values(gyro.gyro_forward, u, v, beta, u.new_empty(u.shape), **_by_steps(u.size(-1)))


def _gyro_gradients(u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Gradients of u ⊕ v."""
    return _gradients(gyro.gyro_backward, u, v, beta, grad, **_by_steps(u.size(-1)))


#: See :func:`hyperboloid.geometry.rows.offer`.
ROWS = {
    "chord": RowKernel(partial(_chord, squared=False), partial(_gradients, loops.chord_backward, SQUARED=False)),
    "sqdist": RowKernel(partial(_chord, squared=True), partial(_gradients, loops.chord_backward, SQUARED=True)),
    "gyro": RowKernel(_gyro, _gyro_gradients),
}


def _polar(t: Tensor, beta: Tensor, flags: Tensor, count: int) -> Tensor:
    """``count`` double scalars of each row ``(M, N, d)``: 4 of points, which takes the flags down, 2 of features."""
    out = torch.empty(*t.shape[:-1], count, dtype=torch.float64, device=t.device)
    _over_rows(kernels.polar, t, beta, t, beta, out, flags, POINTS=count == 4, num_warps=1)
    return out


def _without_index(widths: dict[str, Any]) -> dict[str, Any]:
    """For kernels that look no neighbour up."""
    return {name: value for name, value in widths.items() if name != "INDEX"}


class _Call:
    """What the kernels of one call share; tensors that are not there are replaced by one that is."""

    def __init__(self, u: Tensor, beta: Tensor, weight: Tensor | None, keep: Tensor | None, index: Index) -> None:
        self.u, self.beta, self.index = u.contiguous(), beta.contiguous(), index
        weight, keep = (t if t is None or t.stride(1) == 1 else t.contiguous() for t in (weight, keep))
        self.given = (u if weight is None else weight, u if keep is None else keep.view(torch.uint8))
        self.steps = tuple(0 if t is None else t.stride(0) for t in (weight, keep))
        self.kind = {"WEIGHT": weight is not None, "KEEP": keep is not None}
        self.models, self.cols, self.d = u.shape
        self.num_rows, self.entries = index.rows.ptr.size(0) - 1, index.target.size(0)
        self.sizes = (self.num_rows, self.cols, self.entries)

    def wide(self, *shape: int) -> Tensor:
        """Room for doubles ``(M, …)``."""
        return torch.empty(self.models, *shape, dtype=torch.float64, device=self.u.device)

    def widths(self, name: str, width: int) -> dict[str, Any]:
        """A width that is compiled in, and the type of the numbers that places in such a matrix fit into."""
        largest = width * max(self.num_rows, self.cols)
        return {name: width, f"BLOCK_{name}": _block(width), "INDEX": tl.int32 if largest < 2**31 else tl.int64}

    def by_entries(self, kernel: Any, count: int, *args: Any, **constants: Any) -> None:
        """Run a kernel over so many entries, evenly."""
        tile = _tile(max(constants.get("BLOCK_A", 1), constants.get("BLOCK_D", 1)), TAKEN, ENTRY_ROOM)
        if count:
            kernel[(-(-count // tile), self.models)](*args, BLOCK_E=tile, **constants, num_warps=1)

    def by_pieces(self, kernel: Any, side: Side, *args: Any, **constants: Any) -> None:
        """Run a kernel over the pieces of rows or columns."""
        _over_pieces(kernel, side, self.models, constants.get("BLOCK_A") or constants["BLOCK_D"], *args, **constants)

    def refine(
        self, kernel: Any, count: int, *args: Any, some: int = refine.SOME_NODES.value, **constants: Any
    ) -> None:
        """Run a kernel of `gpu_refine.py`, whose programs look at ``some`` of so many rows, columns or entries."""
        tile = _tile(max(constants.get("BLOCK_A", 1), constants.get("BLOCK_D", 1)), TAKEN, PIECE_ROOM)
        if count and self.entries:
            kernel[(min(-(-count // some), MOST), self.models)](*args, BLOCK_E=tile, **constants)

    def by_hubs(self, kernel: Any, side: Side, *args: Any, **constants: Any) -> None:
        """Run a kernel over the rows or columns in several pieces."""
        if side.hubs.size(0):
            kernel[(side.hubs.size(0), self.models)](*args, **constants, num_warps=1)


def aggregate(
    u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Tensor | None, keep: Tensor | None,
    index: Index, cap: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """See :func:`hyperboloid.kernels.fused.aggregate`."""
    call = _Call(u, beta, weight, keep, index)
    flags = torch.empty(call.models, 2, dtype=torch.int32, device=u.device)
    points, key_polar, query_polar = _polar(call.u, call.beta, flags, 4), call.wide(0, 2), call.wide(0, 2)
    score = u.new_empty(call.models, call.entries if key is not None else 0)
    if key is not None:
        key = key.contiguous()
        key_polar = _polar(key, call.beta, flags, 2)
        rows = key, key_polar
        if query is not None:
            query = query.contiguous()
            rows = query, query_polar = query, _polar(query, call.beta, flags, 2)
        given = (*rows, key, key_polar, call.beta, index.target, index.rows.other, score, flags, *call.sizes, cap)
        widths = call.widths("A", key.size(-1))
        half = query is None and index.symmetric
        count = index.upper.size(0) if half else call.entries
        kind = {"SHARED": query is None, "HALF": half}
        call.by_entries(kernels.scores, count, *given, index.upper, index.entry, count, **kind, **widths)
        call.refine(refine.refine_scores, call.entries, *given, some=refine.SOME_ENTRIES.value, **widths)

    side, widths = index.rows, call.widths("D", call.d)
    out = u.new_empty(call.models, call.num_rows, call.d)
    space, state = call.wide(call.num_rows, call.d), call.wide(call.num_rows, 3)
    parts = call.wide(side.in_hubs, call.d), call.wide(side.in_hubs, 3)
    # a score is never above 0, and that of the node itself is 0; without scores weights are what they are
    shift = key is not None and (any(call.kind.values()) or query is not None or not index.looped)
    call.by_pieces(
        kernels.centroids, side, call.u, points, call.beta, score, *call.given, out, space, state, flags, *parts,
        *call.sizes, side.in_hubs, *call.steps,
        ATTENTION=key is not None, SHIFT=shift, **call.kind, **widths,
    )  # fmt: skip
    merged = (out, space, state, flags, call.num_rows, side.in_hubs)
    call.by_hubs(kernels.merge_centroids, side, *parts, side.hubs, call.beta, *merged, **_without_index(widths))
    call.refine(
        refine.refine_centroids, call.num_rows, call.u, points, call.beta, score, *call.given, side.ptr, side.other,
        out, space, state, flags, *call.sizes, *call.steps, ATTENTION=key is not None, **call.kind, **widths,
    )  # fmt: skip
    return out, space, state, score, points, key_polar, query_polar, flags


def aggregate_backward(
    grad: Tensor, u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Tensor | None,
    keep: Tensor | None, index: Index, cap: float, needed: list[Tensor], to_weight: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """See :func:`hyperboloid.kernels.fused.aggregate_backward`."""
    call = _Call(u, beta, weight, keep, index)
    space, state, score, points, key_polar, query_polar, flags = needed
    widths, grad = call.widths("D", call.d), grad.contiguous()
    q, to_gap = torch.empty_like(space), call.wide(call.num_rows)
    by_row, by_column = call.wide(call.num_rows, 2), call.wide(call.cols, 2)
    _over_rows(backward.row_gradients, grad, call.beta, grad, space, state, call.beta, q, to_gap, by_row)
    pair = u.new_empty(call.models, call.entries, 2)
    grad_weight = u.new_empty(call.models, call.entries if to_weight else 0)
    known = {"ATTENTION": key is not None, "GRAD_WEIGHT": to_weight, "SHARED": query is None, **call.kind}
    if key is not None or any(call.kind.values()):  # else all weights are 1, and nothing more is asked of them
        call.by_entries(
            backward.entry_gradients, call.entries, call.u, points, q, to_gap, state, score, *call.given, index.target,
            index.rows.other, pair, grad_weight, *call.sizes, *call.steps, cap, **known, **widths,
        )  # fmt: skip
    else:
        pair.fill_(1)
    touched = torch.zeros(call.models, call.cols, dtype=torch.uint8, device=u.device)  # by tight rows
    call.refine(
        refine.refine_entries, call.num_rows, call.u, points, q, to_gap, space, state, score, *call.given,
        index.rows.ptr, index.rows.other, pair, grad_weight, touched, flags, *call.sizes, *call.steps, cap,
        **known, **widths,
    )  # fmt: skip

    side, grad_u = index.columns, torch.empty_like(call.u)
    parts = call.wide(side.in_hubs, call.d), call.wide(side.in_hubs)
    call.by_pieces(
        backward.pull_points, side, call.u, points, call.beta, q, to_gap, pair, index.entry,
        grad_u, by_column, *parts, *call.sizes, side.in_hubs, room=PIECE_ROOM // 2, **widths,  # q is double
    )  # fmt: skip
    results = (call.u, points, call.beta, grad_u, by_column, call.cols, side.in_hubs)
    call.by_hubs(backward.merge_points, side, *parts, side.hubs, *results, **_without_index(widths))
    call.refine(
        refine.refine_points, call.cols, call.u, points, call.beta, q, to_gap, space, state, pair, side.ptr,
        side.other, index.entry, grad_u, by_column, touched, flags, *call.sizes, **widths,
    )  # fmt: skip
    del q  # half of the memory that this takes, before there is more

    grad_query, grad_key = u.new_empty(0), u.new_empty(0)
    if key is not None:
        columns = rows = key.contiguous(), key_polar
        grad_key = torch.empty_like(columns[0])
        sides = [(columns, columns, grad_key, True, True)]  # and whether they are rows, and columns
        if query is not None:
            rows = query.contiguous(), query_polar
            grad_query = torch.empty_like(rows[0])
            _pull_features(call, "row", rows, columns, pair, grad_query, by_row)
            _pull_features(call, "column", columns, rows, pair, grad_key, by_column)
            sides = [(rows, columns, grad_query, True, False), (columns, rows, grad_key, False, True)]
        elif index.symmetric:
            _pull_features(call, "both", columns, columns, pair, grad_key, by_row)
        else:
            _pull_features(call, "row", columns, columns, pair, grad_key, by_row)
            _pull_features(call, "column", columns, columns, pair, grad_key, by_column, add=True)
        for mine, others, grad_mine, is_row, is_column in sides:
            call.refine(
                refine.refine_features, mine[0].size(1), *mine, *others, call.beta, score, pair, index.rows.ptr,
                index.rows.other, index.columns.ptr, index.columns.other, index.entry, grad_mine, by_row, by_column,
                flags, mine[0].size(1), others[0].size(1), call.entries, ROW=is_row, COLUMN=is_column,
                **call.widths("A", key.size(-1)),
            )  # fmt: skip

    grad_beta = torch.empty_like(call.beta)
    given = (by_row.sum(1), by_column.sum(1), call.beta, grad_beta, call.models)
    backward.beta_gradient[(-(-call.models // 256),)](*given, BLOCK=256)
    return grad_u, grad_query, grad_key, grad_beta, grad_weight


def _pull_features(
    call: _Call, role: str, mine: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], pair: Tensor, grad: Tensor,
    by_node: Tensor, *, add: bool = False,
) -> None:  # fmt: skip
    """Gradient in the attention features of rows, columns, or nodes that are both; ``add`` to what is there."""
    side, a = call.index.columns if role == "column" else call.index.rows, mine[0].size(-1)
    widths = call.widths("A", a)
    parts = call.wide(side.in_hubs, a), call.wide(side.in_hubs, 2)
    call.by_pieces(
        backward.pull_features, side, *mine, *others, call.beta, pair, call.index.entry,
        grad, by_node, *parts, mine[0].size(1), others[0].size(1), call.entries, side.in_hubs,
        ROLE=role, ADD=add, **widths,
    )  # fmt: skip
    results = (*mine, call.beta, grad, by_node, mine[0].size(1), side.in_hubs)
    call.by_hubs(backward.merge_features, side, *parts, side.hubs, *results, ADD=add, **_without_index(widths))
