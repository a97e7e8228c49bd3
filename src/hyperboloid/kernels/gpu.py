"""The GPU backend: the kernels of `gpu_loops.py` as differentiable operations with a leading axis of models.

Under :func:`torch.func.vmap` that axis is the mapped one, so a batch of models is one launch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hyperboloid.geometry.rows import Gradients

from . import gpu_loops as loops
from .adjacency import Adjacency


def _block(d: int) -> int:
    """The power of two that holds d coordinates."""
    return max(1, 1 << (d - 1).bit_length())


def _tile(d: int, most: int) -> int:
    """How many vectors of d coordinates a program takes at a time."""
    return max(1, min(most, 1024 // _block(d)))


def _over_rows(kernel: Any, u: Tensor, beta: Tensor, *tensors: Tensor) -> None:
    """Run a kernel over the rows of u ``(…, d)``; β belongs to equally many rows each."""
    rows, d = u.numel() // u.size(-1), u.size(-1)
    if rows:
        tile = _tile(d, 32)
        kernel[(-(-rows // tile),)](*tensors, rows, rows // beta.numel(), d, BLOCK_R=tile, BLOCK_D=_block(d))


def _values(kernel: Any, u: Tensor, v: Tensor, beta: Tensor, out: Tensor) -> Tensor:
    """Run a forward kernel over rows ``(…, d)``."""
    _over_rows(kernel, u, beta, u.contiguous(), v.contiguous(), beta, out)
    return out


def _gradients(kernel: Any, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
    """Run a backward kernel over rows ``(…, d)``."""
    u, v = u.contiguous(), v.contiguous()
    grad_u, grad_v = torch.empty_like(u), torch.empty_like(v)
    by_row = torch.zeros(u.shape[:-1], dtype=torch.float64, device=u.device)
    _over_rows(kernel, u, beta, u, v, beta, grad.contiguous(), grad_u, grad_v, by_row)
    return grad_u, grad_v, _held(by_row.view(beta.numel(), -1).sum(1), beta)


def _held(grad: Tensor, like: Tensor) -> Tensor:
    """A double gradient in another dtype, held below its largest number."""
    limit = torch.finfo(like.dtype).max / 1e3
    return grad.clamp(-limit, limit).to(like.dtype)


class Rows:
    """Chords and gyrovector differences by kernels, see :class:`hyperboloid.geometry.rows.RowKernels`."""

    def chord(self, u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        """d_L ``(…)``."""
        return _values(loops.chord_forward, u, v, beta, u.new_empty(u.shape[:-1]))

    def chord_gradients(self, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
        """Gradients of d_L."""
        return _gradients(loops.chord_backward, u, v, beta, grad)

    def gyro(self, u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        """⊖u ⊕ v ``(…, d)``."""
        return _values(loops.gyro_forward, u, v, beta, u.new_empty(u.shape))

    def gyro_gradients(self, u: Tensor, v: Tensor, beta: Tensor, grad: Tensor) -> Gradients:
        """Gradients of ⊖u ⊕ v."""
        return _gradients(loops.gyro_backward, u, v, beta, grad)


def _polar(u: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """1/‖u‖ and sinh r of rows ``(M, N, d)``, both ``(M, N)`` and double."""
    inverse, sinh = (torch.empty(u.shape[:-1], dtype=torch.float64, device=u.device) for _ in range(2))
    _over_rows(loops.polar, u, beta, u, beta, inverse, sinh)
    return inverse, sinh


def _blocks(adj: Adjacency, d: int) -> dict[str, int]:
    """Neighbours that a program takes at a time, about as many as a row has, and its threads."""
    usual = max(4, min(32, _block(adj.col.numel() // max(adj.num_rows, 1))))
    tile = _tile(d, usual)
    return {"BLOCK_E": tile, "BLOCK_D": _block(d), "num_warps": max(1, min(4, tile * _block(d) // 256))}


class _Centroid(torch.autograd.Function):
    @staticmethod
    def forward(u: Tensor, weight: Tensor, beta: Tensor, adj: Adjacency) -> tuple[Tensor, ...]:
        u, weight = u.contiguous(), weight.contiguous()
        models, cols, d = u.shape
        out = u.new_empty(models, adj.num_rows, d)
        n = torch.empty(out.shape, dtype=torch.float64, device=u.device)
        size, gap, top = (torch.empty(out.shape[:2], dtype=n.dtype, device=n.device) for _ in range(3))
        if out.numel():
            loops.centroid_forward[(adj.num_rows, models)](
                u, *_polar(u, beta), weight, beta, adj.rowptr, adj.col, out, n, size, gap, top,
                adj.num_rows, cols, adj.col.numel(), d, **_blocks(adj, d),
            )  # fmt: skip
        return out, n, size, gap, top

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.adj = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, beta, n, size, gap, top = ctx.saved_tensors
        adj: Adjacency = ctx.adj
        u, weight = u.contiguous(), weight.contiguous()
        models, cols, d = u.shape
        grad_space, grad_gap, grad_root = (torch.empty_like(t) for t in (n, gap, gap))
        grad_weight, grad_u = torch.empty_like(weight), torch.empty_like(u)
        by_column = torch.empty(models, cols, dtype=torch.float64, device=u.device)
        shapes = (adj.num_rows, cols, adj.col.numel(), d)
        blocks = _blocks(adj, d)
        if grad.numel():
            loops.centroid_backward_rows[(adj.num_rows, models)](
                u, *_polar(u, beta), beta, adj.rowptr, adj.col, n, size, gap, top, grad.contiguous(),
                grad_space, grad_gap, grad_weight, grad_root, *shapes, **blocks,
            )  # fmt: skip
        if grad_u.numel():
            loops.centroid_backward_cols[(cols, models)](
                u, weight, beta, *adj.transposed, n, top, grad_space, grad_gap, grad_u, by_column, *shapes, **blocks
            )
        grad_beta = by_column.sum(1) + grad_root.sum(1) / (2 * beta.double().sqrt())
        return grad_u, grad_weight, _held(grad_beta, beta), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, u: Tensor, weight: Tensor, beta: Tensor, adj: Adjacency) -> Any:
        """Mapped inputs bring the axis of models, the axis of length 1 that a single model has gives way to it."""
        moved = [
            (t.expand(info.batch_size, *t.shape[1:]) if dim is None else t.movedim(dim, 0).squeeze(1)).contiguous()
            for t, dim in zip((u, weight, beta), in_dims, strict=False)
        ]
        outputs = _Centroid.apply(*moved, adj)
        return tuple(t.unsqueeze(1) for t in outputs), (0,) * len(outputs)


def lorentz_aggregate(u: Tensor, adj: Adjacency, beta: Tensor, weight: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.lorentz_aggregate`."""
    out: Tensor = _Centroid.apply(u.unsqueeze(0), weight.unsqueeze(0), beta.reshape(1), adj)[0]
    return out.squeeze(0)
