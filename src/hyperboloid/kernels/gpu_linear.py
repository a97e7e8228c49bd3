"""Products of linear maps as Triton kernels, float32, on tensor cores.

A tensor core multiplies numbers of 11 bits. Each float32 is split into two such numbers, and three of their four
products are added up (``tf32x3``): the errors are those of float32, and it takes less time than float32 units do. The
gradient of the weights is a product of tall matrices with a small result, and a GPU gives each tile of it to one of its
processors: where few models have few tiles, the nodes are taken in parts, whose products are added up.

Features that all models share, but each thins out by its own dropout, are thinned out as they are read: whoever needs a
model's mask draws it again, and no model has features of its own in memory.

Tiles were measured on an H200, 136 models of Amazon (767 features, 16 to 64 columns), Pubmed and Cora (16 to 64).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu_random import ALIGNED, Models, drawn, kept

#: Programs that keep a GPU busy, the fewest nodes that are worth one, and the most that one should add up.
BUSY, WORTHWHILE, LONG = 1024, 256, 4096


@triton.jit
def _halves(x):
    """x as the sum of two numbers of 11 bits, up to the last bit of a float32."""
    upper = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return upper, x - upper


@triton.jit
def _plus_product(total, a, b):
    """total + a b, without the product of both lower halves.

    Triton's own ``tf32x3`` keeps infinities apart from what is no number, which takes more time than the product. What
    tensor cores add up they cut off instead of rounding it, so that long sums would come out too small: only the sum
    over this part of a and b is left to them.
    """
    upper_a, lower_a = _halves(a)
    upper_b, lower_b = _halves(b)
    part = tl.dot(lower_a, upper_b, input_precision="tf32")
    part = tl.dot(upper_a, lower_b, part, input_precision="tf32")
    return total + tl.dot(upper_a, upper_b, part, input_precision="tf32")


@triton.jit
def _row_total(
    x_ptr, weight_ptr, n, c, nodes, room, columns, begin, least,
    DROP: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of X Wᵀ."""
    total = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
    for start in range(0, room, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + k[None, :], (n[:, None] < nodes) & (k[None, :] < room), 0.0)
        if DROP:
            x = tl.where(kept(k[None, :], begin[:, None], least), x, 0.0)
        weight = tl.load(weight_ptr + k[:, None], (c[None, :] < columns) & (k[:, None] < room), 0.0)
        total = _plus_product(total, x, weight)
    return total


@triton.jit(do_not_specialize=["nodes", "models", "number", "key_step", "p_step"])
def row_products(
    x_ptr, weight_ptr, out_ptr, key_ptr, p_ptr, nodes, width, room, columns, x_model, x_row, weight_model, weight_row,
    models, number, key_step, p_step,
    DROP: tl.constexpr, FOLD: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """X Wᵀ ``(M, nodes, columns)``, with dropout on X if ``DROP``; beyond their width both are 0 up to ``room``."""
    m, n = (tl.program_id(0) % models).to(tl.int64), tl.program_id(0) // models * BLOCK_N + tl.arange(0, BLOCK_N)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    x_ptr += m * x_model + n[:, None].to(tl.int64) * x_row
    weight_ptr += m * weight_model + c[None, :].to(tl.int64) * weight_row
    sizes = nodes, room, columns
    if DROP:
        begin, least, p = drawn(m, key_ptr, p_ptr, number, key_step, p_step, FOLD)
        begin += (n.to(tl.int64) * width).to(tl.uint32)
        if least > 0:
            total = _row_total(x_ptr, weight_ptr, n, c, *sizes, begin, least, True, BLOCK_N, BLOCK_C, BLOCK_K)
            total *= (1 / (1 - p)).to(tl.float32)
        else:  # a model that drops nothing need not draw its mask, which takes longer than the product
            total = _row_total(x_ptr, weight_ptr, n, c, *sizes, begin, least, False, BLOCK_N, BLOCK_C, BLOCK_K)
    else:
        total = _row_total(x_ptr, weight_ptr, n, c, *sizes, n, n, False, BLOCK_N, BLOCK_C, BLOCK_K)
    out_ptr += (m * nodes + n[:, None]) * columns + c[None, :]
    tl.store(out_ptr, total, (n[:, None] < nodes) & (c[None, :] < columns))


@triton.jit
def _tall_total(
    a_ptr, x_ptr, c, k, first, last, columns, width, room, a_row, x_row, begin, least,
    DROP: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A tile of Xᵀ A over some nodes: the other way round, for columns are few."""
    total = tl.zeros([BLOCK_W, BLOCK_C], tl.float32)
    for start in range(first, last, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        a = tl.load(a_ptr + n[:, None] * a_row + c[None, :], (n[:, None] < last) & (c[None, :] < columns), 0.0)
        x = tl.load(x_ptr + n[None, :] * x_row + k[:, None], (n[None, :] < last) & (k[:, None] < room), 0.0)
        if DROP:
            x = tl.where(kept(k[:, None], (begin + (n * width).to(tl.uint32))[None, :], least), x, 0.0)
        total = _plus_product(total, x, a)
    return total


@triton.jit(do_not_specialize=["nodes", "part", "parts", "models", "number", "key_step", "p_step"])
def tall_products(
    a_ptr, x_ptr, out_ptr, key_ptr, p_ptr, nodes, part, parts, columns, width, room, a_model, a_row, x_model, x_row,
    models, number, key_step, p_step,
    DROP: tl.constexpr, FOLD: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Aᵀ X ``(M, parts, columns, width)``, over ``part`` nodes each, with dropout on X if ``DROP``."""
    m, which = (tl.program_id(0) % models).to(tl.int64), tl.program_id(0) // models
    tiles = tl.cdiv(width, BLOCK_W)
    c = tl.program_id(1) // tiles * BLOCK_C + tl.arange(0, BLOCK_C)
    k = tl.program_id(1) % tiles * BLOCK_W + tl.arange(0, BLOCK_W)
    a_ptr += m * a_model
    x_ptr += m * x_model
    sizes = which * part, tl.minimum(nodes, (which + 1) * part), columns, width, room, a_row, x_row
    if DROP:
        begin, least, p = drawn(m, key_ptr, p_ptr, number, key_step, p_step, FOLD)
        if least > 0:
            total = _tall_total(a_ptr, x_ptr, c, k, *sizes, begin, least, True, BLOCK_C, BLOCK_W, BLOCK_N)
            total *= (1 / (1 - p)).to(tl.float32)
        else:
            total = _tall_total(a_ptr, x_ptr, c, k, *sizes, begin, least, False, BLOCK_C, BLOCK_W, BLOCK_N)
    else:
        total = _tall_total(a_ptr, x_ptr, c, k, *sizes, 0, 0, False, BLOCK_C, BLOCK_W, BLOCK_N)
    out_ptr += ((m * parts + which) * columns + c[None, :]) * width + k[:, None]
    tl.store(out_ptr, total, (c[None, :] < columns) & (k[:, None] < width))


def _block(size: int, most: int) -> int:
    """The power of two that holds ``size``, from 16, which a tensor core wants, to ``most``."""
    return max(16, min(most, 1 << (size - 1).bit_length()))


def _in_rows(t: Tensor) -> Tensor:
    """``(M, N, k)``, with the numbers of a row side by side."""
    return t if t.stride(2) == 1 else t.contiguous()


def _readable(t: Tensor, room: int) -> Tensor:
    """Rows, copied to where four numbers can be read at a time, with zeros up to so many: it takes less time so."""
    if room > t.size(-1):
        return torch.nn.functional.pad(t, (0, room - t.size(-1)))
    if room % ALIGNED == 0 and any(place % ALIGNED for place in (t.storage_offset(), *t.stride()[:-1])):
        return t.clone(memory_format=torch.contiguous_format)
    return t


def _dropped(x: Tensor, drop: Models | None) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[int, ...], dict[str, bool]]:
    """Features ``(M, N, k)``, and a kernel's tensors, numbers and constants; without dropout some that nobody reads.

    Features that all models share have no models yet where there is dropout. It pays to give them columns of zeros.
    """
    if drop is None:
        if x.size(0) > 1 and x.stride(0) == 0:
            x = _shared(x[0]).expand(x.size(0), -1, -1)
        return _in_rows(x), (x, x), (x.size(0), 0, 0, 0), {"DROP": False, "FOLD": False}
    return _shared(x).expand(drop.count, -1, -1), drop.tensors, drop.numbers, {"DROP": True, "FOLD": drop.fold}


def _shared(x: Tensor) -> Tensor:
    """Features ``(N, k)`` of all models, and some columns of zeros."""
    return _readable(x if x.stride(1) == 1 else x.contiguous(), -(-x.size(1) // ALIGNED) * ALIGNED)


def row_product(x: Tensor, weight: Tensor, drop: Models | None = None) -> Tensor:
    """X Wᵀ ``(M, N, c)`` for ``(M, N, k)`` and ``(M, c, k)``; or a single product, without M.

    With dropout X is ``(N, k)``, of all models the same.
    """
    if weight.dim() == 2:
        x = x if drop is not None else x.unsqueeze(0)
        return row_product(x, weight.unsqueeze(0), drop).squeeze(0)
    columns, width = weight.shape[1:]
    x, of_masks, numbers, constants = _dropped(x, drop)
    models, nodes, room = x.shape
    weight = _readable(_in_rows(weight), room)
    out = x.new_empty(models, nodes, columns)
    if not out.numel() or not width:
        return out.zero_()
    block = _block(columns, 64)
    rows = 128 if block == 64 else 64
    row_products[(-(-nodes // rows) * models, -(-columns // block))](
        x, weight, out, *of_masks, nodes, width, room, columns, *x.stride()[:2], *weight.stride()[:2], *numbers,
        **constants, BLOCK_N=rows, BLOCK_C=block, BLOCK_K=_block(room, 32), num_warps=rows // 32,
    )  # fmt: skip
    return out


def tall_product(a: Tensor, x: Tensor, drop: Models | None = None) -> Tensor:
    """Aᵀ X ``(M, c, k)`` of tall ``(M, N, c)`` and ``(M, N, k)``; or a single product, without M.

    With dropout X is ``(N, k)``, of all models the same.
    """
    if a.dim() == 2:
        x = x if drop is not None else x.unsqueeze(0)
        return tall_product(a.unsqueeze(0), x, drop).squeeze(0)
    a, (models, nodes, columns), width = _in_rows(a), a.shape, x.size(-1)
    x, of_masks, numbers, constants = _dropped(x, drop)
    large = columns > 32 and width > 64
    block_c, block_w = _block(columns, 64 if large else 32), _block(width, 128 if large else 64)
    tiles = -(-columns // block_c) * -(-width // block_w)
    parts = max(1, -(-nodes // LONG), min(BUSY // max(tiles * models, 1), nodes // WORTHWHILE))
    out = a.new_empty(models, parts, columns, width)
    if out.numel():
        tall_products[(parts * models, tiles)](
            a, x, out, *of_masks, nodes, -(-nodes // parts), parts, columns, width, x.size(2), *a.stride()[:2],
            *x.stride()[:2], *numbers, **constants, BLOCK_C=block_c, BLOCK_W=block_w,
            BLOCK_N=64 if block_w < 64 else 32, num_warps=max(1, block_w // 32),
        )  # fmt: skip
    return out.squeeze(1) if parts == 1 else out.sum(1)
