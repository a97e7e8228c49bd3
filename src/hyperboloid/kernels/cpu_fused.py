"""The CPU backend of `lorentz_aggregate` for float32: the loops of `cpu_fused_loops.py` there and of
`cpu_fused_gradients.py` back, model by model."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import cpu_fused_gradients as gradients
from . import cpu_fused_loops as loops
from .adjacency import Index, Side
from .cpu_loops import held
from .threads import over_models, over_range, over_rows


class _Scratch(threading.local):
    """Room for what a call needs until its end, kept for the next one: fresh pages cost more than filling them."""

    LARGEST = 2**26  # bytes that are kept

    def __init__(self) -> None:
        self._room = np.empty(0, np.uint8)

    def take(self, count: int, *shapes: tuple[int, ...]) -> list[Any]:
        """Arrays of these shapes with any content; the first ``count`` are double, the others single precision."""
        dtypes = [np.dtype(np.float64 if k < count else np.float32) for k in range(len(shapes))]
        ends = np.cumsum([0, *(d.itemsize * int(np.prod(s)) for d, s in zip(dtypes, shapes, strict=True))])
        room = self._room if ends[-1] <= self._room.size else np.empty(ends[-1], np.uint8)
        if room.size <= self.LARGEST:
            self._room = room
        parts = zip(ends, ends[1:], dtypes, shapes, strict=False)
        return [room[start:end].view(dtype).reshape(shape) for start, end, dtype, shape in parts]


_scratch = _Scratch()


def _array(t: Tensor | None, m: int, like: Tensor, dim: int) -> Any:
    """A model's part of a tensor as an array; an empty one where there is none."""
    return like.new_empty([0] * dim).numpy() if t is None else t[m].contiguous().numpy()


def _sides(index: Index) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Where rows and columns start, and their entries' other ends."""

    def arrays(side: Side) -> tuple[Any, Any]:
        return side.ptr.numpy(), _unsigned(side.other)

    return arrays(index.rows), arrays(index.columns)


def _unsigned(t: Tensor) -> Any:
    """Indices that numba need not check for being negative, which keeps it from vectorising."""
    array = t.numpy()
    return array.view(f"u{array.dtype.itemsize}")


def _polar(loop: Any, t: Any, beta: float, out: Tensor) -> Any:
    """Numbers of each row of an array ``(N, d)``."""
    over_range(loop, t.shape[0], 4 * t.shape[1], t, beta**0.5, out.numpy())
    return out.numpy()


def aggregate(
    u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Tensor | None, keep: Tensor | None,
    index: Index, cap: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """See :func:`hyperboloid.kernels.fused.aggregate`."""
    models, _, d = u.shape
    (ptr, col), _ = _sides(index)
    rows = ptr.shape[0] - 1
    points = torch.empty(*u.shape[:2], 4, dtype=torch.float64)
    key_polar, query_polar = (
        torch.empty(models, 0 if t is None else t.size(1), 2, dtype=torch.float64) for t in (key, query)
    )
    out = u.new_empty(models, rows, d)
    space, state = (torch.empty(models, rows, width, dtype=torch.float64) for width in (d, 3))
    score = u.new_empty(models, col.shape[0] if key is not None else 0)
    width = d + (0 if key is None else key.size(-1))

    def one(m: int) -> None:
        x, keys, b = _array(u, m, u, 2), _array(key, m, u, 2), float(beta[m])
        own = _polar(loops.point_polar, x, b, points[m])
        ends = of_keys = keys, _polar(loops.feature_polar, keys, b, key_polar[m])
        if query is not None:
            queries = _array(query, m, u, 2)
            ends = queries, _polar(loops.feature_polar, queries, b, query_polar[m])
        over_rows(
            loops.centroids, ptr, width, x, own, *ends, *of_keys, b, _array(weight, m, u, 1), _array(keep, m, _BOOL, 1),
            ptr, col, cap, query is None, out[m].numpy(), space[m].numpy(), state[m].numpy(), score[m].numpy(),
        )  # fmt: skip

    over_models(one, models, 2 * col.shape[0] * width)
    # rows and pairs of which too little is left are computed again on the spot: there are no flags to raise
    return out, space, state, score, points, key_polar, query_polar, torch.zeros(models, 2, dtype=torch.int32)


_BOOL = torch.empty(0, dtype=torch.bool)


def aggregate_backward(
    grad: Tensor, u: Tensor, query: Tensor | None, key: Tensor | None, beta: Tensor, weight: Tensor | None,
    keep: Tensor | None, index: Index, cap: float, needed: list[Tensor], to_weight: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """See :func:`hyperboloid.kernels.fused.aggregate_backward`."""
    rows, columns = _sides(index)
    entry, entries, num_rows = _unsigned(index.entry), rows[1].shape[0], rows[0].shape[0] - 1
    models, cols, d = u.shape
    grad_u, grad_beta = torch.empty_like(u), torch.empty_like(beta)
    grad_query, grad_key = (u.new_empty(0) if t is None else torch.empty_like(t) for t in (query, key))
    grad_weight = u.new_empty(models, entries if to_weight else 0)

    def one(m: int) -> None:
        space, state, score, points, key_polar, query_polar, _ = (t[m].numpy() for t in needed)
        x, b, g = _array(u, m, u, 2), float(beta[m]), _array(grad, m, u, 2)
        weights = (entries,), (entries if key is not None else 0,)
        q, to_gap, w, scale = _scratch.take(2, (num_rows, d), (num_rows,), *weights)
        by_row, by_column = np.zeros((num_rows, 2)), np.zeros((cols, 2))
        over_range(gradients.row_gradients, num_rows, 4 * d, g, space, state, b, q, to_gap, by_row)
        if any(t is not None for t in (key, weight, keep)) or (state[:, 1] < 0).any():
            over_rows(
                gradients.entry_gradients, rows[0], d, x, points, q, to_gap, space, state, score,
                _array(weight, m, u, 1), _array(keep, m, _BOOL, 1), *rows, cap, query is None, w, scale,
                grad_weight[m].numpy(),
            )  # fmt: skip
        else:
            w[:] = 1  # where no row is tight, nothing more is asked of equal weights
        over_rows(
            gradients.pull_points, columns[0], d, x, points, b, q, to_gap, space, state, w, *columns, entry,
            grad_u[m].numpy(), by_column,
        )  # fmt: skip
        if key is not None:
            mine = (_array(key, m, u, 2), key_polar)
            other = mine if query is None else (_array(query, m, u, 2), query_polar)
            a, to_key = key.size(-1), grad_key[m].numpy()
            to_query = to_key if query is None else grad_query[m].numpy()
            both = query is None and index.symmetric
            over_rows(
                gradients.pull_features, rows[0], a, *other, *mine, b, score, scale, *rows, entry, 2 if both else 0,
                False, to_query, by_row,
            )  # fmt: skip
            if not both:
                over_rows(
                    gradients.pull_features, columns[0], a, *mine, *other, b, score, scale, *columns, entry, 1,
                    query is None, to_key, by_column,
                )  # fmt: skip
        of_rows, of_columns = by_row.sum(0), by_column.sum()
        value = (of_rows[1] + of_columns) / (2 * b) + of_rows[0] / (2 * b**0.5)
        grad_beta[m] = held(value)

    over_models(one, models, 4 * entries * (d + (0 if key is None else key.size(-1))))
    return grad_u, grad_query, grad_key, grad_beta, grad_weight
