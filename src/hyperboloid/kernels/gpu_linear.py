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


@triton.jit(do_not_specialize=["nodes", "models", "number", "key_step", "p_step"])
def row_products(
    x_ptr, weight_ptr, out_ptr, key_ptr, p_ptr, nodes, width, columns, x_model, x_row, weight_model, weight_row, models,
    number, key_step, p_step,
    DROP: tl.constexpr, FOLD: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """X Wᵀ ``(M, nodes, columns)``, with dropout on X if ``DROP``."""
    m, n = (tl.program_id(0) % models).to(tl.int64), tl.program_id(0) // models * BLOCK_N + tl.arange(0, BLOCK_N)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    x_ptr += m * x_model + n[:, None].to(tl.int64) * x_row
    weight_ptr += m * weight_model + c[None, :].to(tl.int64) * weight_row
    total = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
    if DROP:
        begin, least, p = drawn(m, key_ptr, p_ptr, number, key_step, p_step, FOLD)
        begin += (n.to(tl.int64) * width).to(tl.uint32)
    for start in range(0, width, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + k[None, :], (n[:, None] < nodes) & (k[None, :] < width), 0.0)
        if DROP:
            x *= kept(k[None, :], begin[:, None], least).to(tl.float32)
        weight = tl.load(weight_ptr + k[:, None], (c[None, :] < columns) & (k[:, None] < width), 0.0)
        total = tl.dot(x, weight, total, input_precision="tf32x3")
    if DROP:
        total *= (1 / (1 - p)).to(tl.float32)
    out_ptr += (m * nodes + n[:, None]) * columns + c[None, :]
    tl.store(out_ptr, total, (n[:, None] < nodes) & (c[None, :] < columns))


@triton.jit(do_not_specialize=["nodes", "part", "parts", "models", "number", "key_step", "p_step"])
def tall_products(
    a_ptr, x_ptr, out_ptr, key_ptr, p_ptr, nodes, part, parts, columns, width, a_model, a_row, x_model, x_row, models,
    number, key_step, p_step,
    DROP: tl.constexpr, FOLD: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_W: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Aᵀ X ``(M, parts, columns, width)``, over ``part`` nodes each, with dropout on X if ``DROP``."""
    m, which = (tl.program_id(0) % models).to(tl.int64), tl.program_id(0) // models
    tiles = tl.cdiv(width, BLOCK_W)
    c = tl.program_id(1) // tiles * BLOCK_C + tl.arange(0, BLOCK_C)
    k = tl.program_id(1) % tiles * BLOCK_W + tl.arange(0, BLOCK_W)
    a_ptr += m * a_model
    x_ptr += m * x_model
    last = tl.minimum(nodes, (which + 1) * part)
    if DROP:
        begin, least, p = drawn(m, key_ptr, p_ptr, number, key_step, p_step, FOLD)
    total = tl.zeros([BLOCK_W, BLOCK_C], tl.float32)  # the other way round, for columns are few
    for start in range(which * part, last, BLOCK_N):
        n = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        a = tl.load(a_ptr + n[:, None] * a_row + c[None, :], (n[:, None] < last) & (c[None, :] < columns), 0.0)
        x = tl.load(x_ptr + n[None, :] * x_row + k[:, None], (n[None, :] < last) & (k[:, None] < width), 0.0)
        if DROP:
            x *= kept(k[:, None], (begin + (n * width).to(tl.uint32))[None, :], least).to(tl.float32)
        total = tl.dot(x, a, total, input_precision="tf32x3")
    if DROP:
        total *= (1 / (1 - p)).to(tl.float32)
    out_ptr += ((m * parts + which) * columns + c[None, :]) * width + k[:, None]
    tl.store(out_ptr, total, (c[None, :] < columns) & (k[:, None] < width))


def _block(size: int, most: int) -> int:
    """The power of two that holds ``size``, from 16, which a tensor core wants, to ``most``."""
    return max(16, min(most, 1 << (size - 1).bit_length()))


def _in_rows(t: Tensor) -> Tensor:
    """``(M, N, k)``, with the numbers of a row side by side."""
    return t if t.stride(2) == 1 else t.contiguous()


def _aligned(weight: Tensor) -> Tensor:
    """Small matrices, copied to where four numbers can be read at a time; else the product takes longer."""
    places = weight.storage_offset(), *weight.stride()[:2]
    if weight.size(2) % 16 == 0 and any(place % 16 for place in places):
        return weight.clone(memory_format=torch.contiguous_format)
    return weight


def _dropped(x: Tensor, drop: Models | None) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[int, ...], dict[str, bool]]:
    """Features ``(M, N, k)``, and a kernel's tensors, numbers and constants; without dropout some that nobody reads.

    Features that all models share have no models yet; their rows should begin where four numbers can be read at a time.
    """
    if drop is None:
        return _in_rows(x), (x, x), (x.size(0), 0, 0, 0), {"DROP": False, "FOLD": False}
    if x.stride(0) % ALIGNED or x.stride(1) != 1:
        room = x.new_empty(x.size(0), -(-x.size(1) // ALIGNED) * ALIGNED)
        x = room[:, : x.size(1)].copy_(x)
    return x.expand(drop.count, *x.shape), drop.tensors, drop.numbers, {"DROP": True, "FOLD": drop.fold}


def row_product(x: Tensor, weight: Tensor, drop: Models | None = None) -> Tensor:
    """X Wᵀ ``(M, N, c)`` for ``(M, N, k)`` and ``(M, c, k)``; or a single product, without M.

    With dropout X is ``(N, k)``, of all models the same.
    """
    if weight.dim() == 2:
        x = x if drop is not None else x.unsqueeze(0)
        return row_product(x, weight.unsqueeze(0), drop).squeeze(0)
    weight = _aligned(_in_rows(weight))
    x, of_masks, numbers, constants = _dropped(x, drop)
    (models, nodes, width), columns = x.shape, weight.size(1)
    out = x.new_empty(models, nodes, columns)
    if not out.numel() or not width:
        return out.zero_()
    block = _block(columns, 64)
    rows = 128 if block == 64 else 64
    row_products[(-(-nodes // rows) * models, -(-columns // block))](
        x, weight, out, *of_masks, nodes, width, columns, *x.stride()[:2], *weight.stride()[:2], *numbers,
        **constants, BLOCK_N=rows, BLOCK_C=block, BLOCK_K=_block(width, 32), num_warps=rows // 32,
    )  # fmt: skip
    return out


def tall_product(a: Tensor, x: Tensor, drop: Models | None = None) -> Tensor:
    """Aᵀ X ``(M, c, k)`` of tall ``(M, N, c)`` and ``(M, N, k)``; or a single product, without M.

    With dropout X is ``(N, k)``, of all models the same.
    """
    if a.dim() == 2:
        x = x if drop is not None else x.unsqueeze(0)
        return tall_product(a.unsqueeze(0), x, drop).squeeze(0)
    a = _in_rows(a)
    x, of_masks, numbers, constants = _dropped(x, drop)
    (models, nodes, columns), width = a.shape, x.size(2)
    large = columns > 32 and width > 64
    block_c, block_w = _block(columns, 64 if large else 32), _block(width, 128 if large else 64)
    tiles = -(-columns // block_c) * -(-width // block_w)
    parts = max(1, -(-nodes // LONG), min(BUSY // max(tiles * models, 1), nodes // WORTHWHILE))
    out = a.new_empty(models, parts, columns, width)
    if out.numel():
        tall_products[(parts * models, tiles)](
            a, x, out, *of_masks, nodes, -(-nodes // parts), parts, columns, width, *a.stride()[:2], *x.stride()[:2],
            *numbers, **constants, BLOCK_C=block_c, BLOCK_W=block_w, BLOCK_N=64 if block_w < 64 else 32,
            num_warps=max(1, block_w // 32),
        )  # fmt: skip
    return out.squeeze(1) if parts == 1 else out.sum(1)
