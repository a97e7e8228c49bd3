"""The hash behind random masks as one Triton kernel: in torch it would be a dozen, each of which has to be started."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _hash32(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """:func:`hyperboloid.kernels.random.hash32` of ``(count,)`` numbers."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, place < count, 0).to(tl.uint32, bitcast=True)
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    x ^= x >> 16
    tl.store(out_ptr + place, x.to(tl.int32, bitcast=True), place < count)


class _Hash(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            _hash32[(-(-x.numel() // BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> tuple[Tensor, int]:
        return _Hash.apply(x), in_dims[0]


def hash32(x: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.random.hash32`."""
    out: Tensor = _Hash.apply(x)
    return out
