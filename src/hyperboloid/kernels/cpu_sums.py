"""Gradients of sums over the rows of a graph on a CPU, by a compiled loop that writes no vector per entry."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from .adjacency import Adjacency
from .cpu_loops import Array
from .threads import loop, over_rows


@loop
def _products(first: int, last: int, grad: Array, u: Array, ptr: Array, col: Array, out: Array) -> None:
    """g_i·u_j of the entries (i, j)."""
    for i in range(first, last):
        for e in range(ptr[i], ptr[i + 1]):
            j = col[e]
            total = 0.0
            for c in range(grad.shape[1]):
                total += np.float64(grad[i, c]) * np.float64(u[j, c])
            out[e] = total


def weight_gradient(grad: Tensor, u: Tensor, adj: Adjacency) -> Tensor:
    """Gradient in the weights ``(E,)`` of sums Σ_j w_ij u_j, from that in the sums ``(num_rows, d)``."""
    rows, out = adj.index.rows, grad.new_empty(adj.col.shape)
    given = (t.detach().contiguous().numpy() for t in (grad, u))
    ptr, col = rows.ptr.numpy(), rows.other.numpy()
    over_rows(_products, ptr, 2 * grad.size(1), *given, ptr, col.view(f"u{col.itemsize}"), out.numpy())
    return out
