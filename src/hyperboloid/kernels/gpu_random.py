"""Random masks as Triton kernels: in torch each would be a dozen operations, all of which have to be started.

The numbers are those of `random.py`, bit by bit; one launch serves all models. See `masks.py` for their gradient.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hyperboloid.function import Function

from .mapped import in_front

BLOCK = 2048
#: Wide rows begin at multiples of so many numbers: what multiplies them reads four at a time.
WIDE, ALIGNED = 64, 16


@triton.jit
def hashed(x):
    """:func:`hyperboloid.kernels.random.hash32` of uint32 numbers."""
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _folded(key, number):
    """:func:`hyperboloid.kernels.random.fold`; keys and numbers wider than 32 bits lose the upper ones."""
    return hashed(hashed(key.to(tl.uint32)) + number.to(tl.uint32))


@triton.jit(do_not_specialize=["number", "step", "number_step"])
def _fold(
    key_ptr, number_ptr, out_ptr, count, number, step, number_step, NUMBERS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Fold ``(count,)`` keys with a number, or with as many numbers; a step is 0 where there is one for all."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if NUMBERS:
        number = tl.load(number_ptr + place * number_step, place < count, 0)
    key = _folded(tl.load(key_ptr + place * step, place < count, 0), number)
    tl.store(out_ptr + place, key.to(tl.int32, bitcast=True), place < count)


@triton.jit
def _elements(models, INDEX: tl.constexpr, BLOCK: tl.constexpr):
    """A program's model and elements: models take turns, for what they share is then read from memory once."""
    model, block = tl.program_id(0) % models, tl.program_id(0) // models
    return model.to(tl.int64), block.to(INDEX) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def drawn(model, key_ptr, p_ptr, number, key_step, p_step, FOLD: tl.constexpr):
    """What a model's mask follows from: where its hashes start, the least of those that are kept, and p."""
    start = number.to(tl.uint32)
    if FOLD:
        start = _folded(tl.load(key_ptr + model * key_step), number)
    p = tl.load(p_ptr + model * p_step)
    least = (p * 16777216.0).to(tl.int32)  # of 24 bits, rounded up below: whole numbers are compared faster
    least += (least.to(p.dtype) < p * 16777216.0).to(tl.int32)
    return start, tl.minimum(least, 0xFFFFFF).to(tl.uint32) << 8, p  # so that no hash need lose its lower bits


@triton.jit
def kept(place, start, least):
    """Which elements of a mask are True."""
    return hashed(start + place.to(tl.uint32)) >= least


@triton.jit(do_not_specialize=["models", "number", "key_step", "p_step"])
def _keep_mask(
    key_ptr, p_ptr, out_ptr, count, models, number, key_step, p_step,
    FOLD: tl.constexpr, INDEX: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Masks ``(M, count)``, with the key fold(key, number), or number itself."""
    model, place = _elements(models, INDEX, BLOCK)
    start, least, _p = drawn(model, key_ptr, p_ptr, number, key_step, p_step, FOLD)
    tl.store(out_ptr + model * count + place, kept(place, start, least), place < count)


@triton.jit
def _scaled(x, keep, p):
    """x·mask/(1 − p).

    A division of floats costs much: the double product with 1/(1 − p) is rounded to the same float32, for no quotient
    of two of them lies closer than 2⁻⁴⁹ of itself to the middle between two others.
    """
    kept, share = x * keep.to(x.dtype), (1 - p).to(x.dtype)
    if x.dtype == tl.float64:
        kept = kept / share
    else:
        kept = kept.to(tl.float64) * (1 / share.to(tl.float64))
    return kept.to(x.dtype)


@triton.jit(do_not_specialize=["models", "number", "key_step", "p_step"])
def _dropout(
    x_ptr, key_ptr, p_ptr, out_ptr, count, model_step, models, number, key_step, p_step,
    FOLD: tl.constexpr, INDEX: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Dropout of ``count`` numbers of each model, side by side in memory."""
    model, place = _elements(models, INDEX, BLOCK)
    start, least, p = drawn(model, key_ptr, p_ptr, number, key_step, p_step, FOLD)
    x = tl.load(x_ptr + model * model_step + place, place < count, 0.0)
    tl.store(out_ptr + model * count + place, _scaled(x, kept(place, start, least), p), place < count)


@triton.jit(do_not_specialize=["rows", "models", "number", "key_step", "p_step"])
def _dropout_of_rows(
    x_ptr, key_ptr, p_ptr, out_ptr, rows, columns, model_step, row_step, column_step, out_step, models, number,
    key_step, p_step, FOLD: tl.constexpr, INDEX: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Dropout of a matrix of each model, in any order in memory; rows of the result begin ``out_step`` apart."""
    model, tile = (tl.program_id(0) % models).to(tl.int64), tl.program_id(0) // models
    tiles = tl.cdiv(columns, BLOCK_C)
    r = (tile // tiles * BLOCK_R + tl.arange(0, BLOCK_R))[:, None].to(INDEX)
    c = (tile % tiles * BLOCK_C + tl.arange(0, BLOCK_C))[None, :]
    start, least, p = drawn(model, key_ptr, p_ptr, number, key_step, p_step, FOLD)
    inside = (r < rows) & (c < columns)
    x_ptr += model * model_step + r.to(tl.int64) * row_step
    x = tl.load(x_ptr + c.to(tl.int64) * column_step, inside, 0.0)
    out_ptr += (model * rows + r) * out_step + c
    tl.store(out_ptr, _scaled(x, kept(r * columns + c, start, least), p), inside)


def _blocks(count: int) -> int:
    return -(-count // BLOCK)


class _Fold(Function):
    @staticmethod
    def forward(key: Tensor, number: Tensor | int) -> Tensor:
        many = isinstance(number, Tensor)
        shape = torch.broadcast_shapes(key.shape, number.shape) if many else key.shape
        out = torch.empty(shape, dtype=torch.int32, device=key.device)
        keys, numbers = (t.expand(shape).reshape(-1) for t in (key, number if many else key))
        if out.numel():
            numbered = 0 if many else number, keys.stride(0), numbers.stride(0)
            _fold[(_blocks(out.numel()),)](keys, numbers, out, out.numel(), *numbered, NUMBERS=many, BLOCK=BLOCK)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, key: Tensor, number: Tensor | int) -> tuple[Tensor, int]:
        return _Fold.apply(in_front(key, in_dims[0]), in_front(number, in_dims[1])), 0


class Models:
    """Which key and which p each of a batch of models has; ``shape`` is ``()`` for a single model, or ``(M,)``.

    Attributes:
        tensors: keys and p, as kernels take them.
        numbers: how many models there are, the number that is folded into keys, and the steps of both tensors.
        fold: whether there are keys; else the number is the key of all.
    """

    def __init__(self, key: Tensor | None, p: Tensor, number: int) -> None:
        self.shape = torch.broadcast_shapes(p.shape, () if key is None else key.shape)
        self.count = self.shape.numel()
        keys, p = (t.expand(self.shape).reshape(-1) for t in (p if key is None else key, p))
        self.tensors = keys, p
        self.numbers = self.count, number, keys.stride(0), p.stride(0)
        self.fold = key is not None

    def run(self, kernel: Any, count: int, *args: Any) -> None:
        """Run a kernel over ``count`` elements of every model."""
        kernel[(_blocks(count) * self.count,)](*args, *self.numbers, **self._constants(count), BLOCK=BLOCK)

    def run_rows(self, kernel: Any, rows: int, columns: int, *args: Any) -> None:
        """Run a kernel over a matrix of every model."""
        most = triton.next_power_of_2(columns)
        height = min(BLOCK // min(256, most), triton.next_power_of_2(rows))
        width = min(BLOCK // height, most)
        tiles = -(-rows // height) * -(-columns // width)
        tile = {"BLOCK_R": height, "BLOCK_C": width}
        kernel[(tiles * self.count,)](*args, *self.numbers, **self._constants(rows * columns), **tile)

    def _constants(self, count: int) -> dict[str, Any]:
        return {"FOLD": self.fold, "INDEX": tl.int32 if count < 2**31 - BLOCK else tl.int64}


def keep_mask(key: Tensor | None, number: int, p: Tensor, count: int) -> Tensor:
    """See :func:`hyperboloid.kernels.masks.keep_mask`; with keys or p of models ``(M,)`` the masks have that axis."""
    models = Models(key, p, number)
    out = torch.empty(*models.shape, count, dtype=torch.bool, device=p.device)
    if out.numel():
        models.run(_keep_mask, count, *models.tensors, out.view(torch.uint8), count)
    return out


def dropout(x: Tensor, key: Tensor | None, number: int, p: Tensor) -> Tensor:
    """See :func:`hyperboloid.kernels.masks.dropout`; with keys or p of models ``(M,)`` x has that axis, too."""
    models = Models(key, p, number)
    if not x.numel():
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)
    is_matrix = len(models.shape) <= 1 and x.dim() - len(models.shape) == 2
    own = x.reshape(models.count, *(x.shape[-2:] if is_matrix else (1, -1)))
    rows, columns = own.shape[1:]
    numbers, step = rows * columns, columns
    if is_matrix and columns > WIDE and columns % ALIGNED:
        step = -(-columns // ALIGNED) * ALIGNED
        out = torch.empty(*x.shape[:-1], step, dtype=x.dtype, device=x.device)[..., :columns]
    else:
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if step == columns and own[0].is_contiguous():
        models.run(_dropout, numbers, own, *models.tensors, out, numbers, own.stride(0))
    else:
        sizes = rows, columns, *own.stride(), step
        models.run_rows(_dropout_of_rows, rows, columns, own, *models.tensors, out, *sizes)
    return out


def fold(key: Tensor, number: Tensor | int) -> Tensor:
    """See :func:`hyperboloid.kernels.random.fold`; ``number`` is an int32, or broadcast against the keys."""
    out: Tensor = _Fold.apply(key, number)
    return out
