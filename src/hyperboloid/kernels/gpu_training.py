"""What a training step does beside the model, for many models at once, as Triton kernels.

In torch these are dozens of operations on a few numbers, all of which have to be started.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .gpu_math import log1p

BLOCK = 1024


@triton.jit(do_not_specialize=["half"])
def _edge_losses(logits_ptr, slopes_ptr, shares_ptr, half, BLOCK: tl.constexpr):
    """Slopes of the loss of each model ``(M, 2·half)``, and the sum of a program's losses."""
    model = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = place < 2 * half
    sign = tl.where(place < half, -1.0, 1.0)
    place += 2 * model * half
    x = tl.load(logits_ptr + place, there, 0.0)
    x *= sign.to(x.dtype)
    small = tl.exp(-tl.abs(x))
    loss = tl.maximum(x, 0.0) + log1p(small)  # what is no number stays none: small is not one either
    slope = sign.to(x.dtype) * tl.where(x >= 0, 1.0, small) / ((1 + small) * half)
    tl.store(slopes_ptr + place, slope, there)
    share = tl.sum(tl.where(there, loss, 0.0).to(tl.float64), 0)
    tl.store(shares_ptr + model * tl.num_programs(0) + tl.program_id(0), share)


def edge_losses(logits: Tensor) -> tuple[Tensor, Tensor]:
    """See :func:`hyperboloid.kernels.edge_loss`; and the slopes ``(…, P)``."""
    logits, count = logits.contiguous(), logits.size(-1)
    models, programs = logits.numel() // count, -(-count // BLOCK)
    slopes = torch.empty_like(logits)
    shares = torch.empty(*logits.shape[:-1], programs, dtype=torch.float64, device=logits.device)
    _edge_losses[(programs, models)](logits, slopes, shares, count // 2, BLOCK=BLOCK)
    return (shares.sum(-1) / (count // 2)).to(logits.dtype), slopes


@triton.jit(do_not_specialize=["models"])
def _judge(
    metric_ptr, loss_ptr, best_ptr, best_loss_ptr, best_epoch_ptr, since_ptr, epoch_ptr, better_ptr, models, epochs,
    patience, low, high, BLOCK: tl.constexpr,
):  # fmt: skip
    """Whether each of ``(M,)`` models is better than it was, and if so the new numbers."""
    model = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = model < models
    epoch = tl.load(epoch_ptr)
    metric, loss = tl.load(metric_ptr + model, there), tl.load(loss_ptr + model, there)
    best, best_loss = tl.load(best_ptr + model, there), tl.load(best_loss_ptr + model, there)
    since = tl.load(since_ptr + model, there)
    better = ((metric > best) | ((metric == best) & (loss < best_loss))) & (tl.abs(loss) < float("inf"))
    since = tl.where(better & ((loss < low) | (loss > high)), tl.minimum(since, epoch), since)
    tl.store(since_ptr + model, since, there)
    start = tl.maximum(tl.maximum(tl.load(best_epoch_ptr + model, there), since), patience)
    last = tl.minimum(start + patience, epochs)
    better = better & (epoch <= last)
    tl.store(best_ptr + model, metric, there & better)
    tl.store(best_loss_ptr + model, loss, there & better)
    tl.store(best_epoch_ptr + model, epoch, there & better)
    tl.store(better_ptr + model, better, there)


def judge(
    metric: Tensor, loss: Tensor, best: Tensor, best_loss: Tensor, best_epoch: Tensor, learning_since: Tensor,
    epoch: Tensor, epochs: int, patience: int, low: float, high: float,
) -> Tensor:  # fmt: skip
    """See :func:`hyperboloid.training.batch_steps.judge_`."""
    better = torch.empty(best.shape, dtype=torch.bool, device=best.device)
    models = better.numel()
    _judge[(-(-models // BLOCK),)](
        metric.contiguous(), loss.contiguous(), best, best_loss, best_epoch, learning_since, epoch,
        better.view(torch.uint8), models, epochs, patience, low, high, BLOCK=BLOCK,
    )  # fmt: skip
    return better


@triton.jit
def _adam(
    state_ptr, grad_ptr, mean_ptr, square_ptr, decays_ptr, lr_ptr, weight_decay_ptr, step_ptr, width,
    BETA_1: tl.constexpr, BETA_2: tl.constexpr, LOG_1: tl.constexpr, LOG_2: tl.constexpr, EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One step of Adam on ``(M, width)`` parameters, in double precision inside."""
    model = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, there = model * width + column, column < width
    state = tl.load(state_ptr + place, there, 0.0).to(tl.float64)
    grad = tl.load(grad_ptr + place, there, 0.0).to(tl.float64)
    mean = tl.load(mean_ptr + place, there, 0.0).to(tl.float64)
    square = tl.load(square_ptr + place, there, 0.0).to(tl.float64)
    decays = tl.load(decays_ptr + column, there, 0.0).to(tl.float64)

    grad += tl.load(weight_decay_ptr + model).to(tl.float64) * decays * state
    mean += (1 - BETA_1) * (grad - mean)
    square = BETA_2 * square + (1 - BETA_2) * grad * grad
    step = tl.load(step_ptr).to(tl.float64)
    lr = tl.load(lr_ptr + model).to(tl.float64) / (1 - tl.exp(step * LOG_1))
    size = tl.sqrt(square / (1 - tl.exp(step * LOG_2))) + EPSILON
    tl.store(state_ptr + place, state - lr * mean / size, there)
    tl.store(mean_ptr + place, mean, there)
    tl.store(square_ptr + place, square, there)


def adam_(
    state: Tensor, grad: Tensor, mean: Tensor, square: Tensor, decays: Tensor, lr: Tensor, weight_decay: Tensor,
    step: Tensor, betas: tuple[float, float], epsilon: float,
) -> None:  # fmt: skip
    """See :func:`hyperboloid.training.batch_steps.adam_`."""
    models, width = state.shape
    constants = dict(zip(("BETA_1", "BETA_2", "LOG_1", "LOG_2"), (*betas, *map(math.log, betas)), strict=True))
    _adam[(-(-width // BLOCK), models)](
        state, grad, mean, square, decays, lr, weight_decay, step, width, **constants, EPSILON=epsilon, BLOCK=BLOCK
    )
