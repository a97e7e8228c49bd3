"""What a step of a batch of models does beside the models: Adam, and telling which of them are better than before.

On a GPU each is one kernel, for an operation costs its start there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hyperboloid.kernels.backend import chosen_backend

from .patience import bounds_of

BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's, as torch has them


def adam_(
    state: Tensor, grad: Tensor, mean: Tensor, square: Tensor, *, decays: Tensor, lr: Tensor, weight_decay: Tensor,
    step: Tensor,
) -> None:  # fmt: skip
    """Adam with coupled L2 in place, a learning rate and a decay for each model.

    Args:
        state: parameters ``(M, P)``.
        grad: their gradient.
        mean, square: Adam's running means.
        decays: 1 for the parameters that are decayed, 0 for the others ``(P,)``.
        lr, weight_decay: ``(M,)``.
        step: number of this step, from 1 on; scalar.
    """
    if chosen_backend(state) == "triton":
        from hyperboloid.kernels import gpu_training

        gpu_training.adam_(state, grad, mean, square, decays, lr, weight_decay, step, BETAS, EPSILON)
        return
    correction, correction_square = (1 - b ** step.double() for b in BETAS)  # in float32 1 − 0.999 is off by 1e-5
    grad = grad + weight_decay.unsqueeze(1) * decays * state
    mean.lerp_(grad, 1 - BETAS[0])
    square.mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
    size = square.sqrt().div_(correction_square.sqrt()).add_(EPSILON)
    state.sub_(mean.mul((lr / correction).unsqueeze(1)).div_(size))


def judge_(
    metric: Tensor, loss: Tensor, *, best: Tensor, best_loss: Tensor, best_epoch: Tensor, learning_since: Tensor,
    epoch: Tensor, epochs: int, patience: int, plateau: float,
) -> Tensor:  # fmt: skip
    """Which models are better than ever before ``(M,)``, of those that still have patience; their records are updated.

    Args:
        metric: of this epoch ``(M,)``.
        loss: of this epoch ``(M,)``; it decides between equal metrics, and must be finite.
        best, best_loss, best_epoch: the records ``(M,)``.
        learning_since: when each model has begun to learn ``(M,)``, see ``patience.py``; is updated too.
        epoch: this one; scalar.
        epochs: how many there are.
        patience: how many may pass without a better one; the first so many do not count.
        plateau: loss of a model that has not begun to learn.
    """
    low, high = bounds_of(plateau)
    patience = min(patience, epochs)  # sums of epochs stay 32 bits
    if chosen_backend(loss) == "triton":
        from hyperboloid.kernels import gpu_training

        return gpu_training.judge(
            metric, loss, best, best_loss, best_epoch, learning_since, epoch, epochs, patience, low, high
        )
    better = ((metric > best) | ((metric == best) & (loss < best_loss))) & loss.isfinite()
    learns = better & ((loss < low) | (loss > high))
    learning_since.copy_(torch.where(learns, learning_since.minimum(epoch), learning_since))
    start = best_epoch.maximum(learning_since).clamp_min(patience)
    better &= (epoch - start <= patience) & (epoch <= epochs)
    for record, now in ((best, metric), (best_loss, loss), (best_epoch, epoch)):
        record.copy_(torch.where(better, now, record))
    return better
