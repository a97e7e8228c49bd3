"""Training on a GPU, an epoch of which, validation included, is one recording."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hyperboloid.kernels import random_stream

from .loop import Training, adam
from .recording import Recording
from .settings import Settings
from .tasks import Score, Task


class RecordedTraining(Training):
    """A model on its way; arguments are those of :class:`Training`.

    Seed and epoch are tensors, so that a recording draws anew every time. What an epoch has to tell is read all at
    once, after it: a gradient that is not finite moves no parameter, for the optimizer is told of it.
    """

    task: Task

    def __init__(self, model: str, task: Task, settings: Settings, seed: int) -> None:
        super().__init__(model, task, settings, seed)
        self._parameters = [p for p in self.encoder.parameters() if p.requires_grad]
        self._key, self._clock = (torch.tensor(n, dtype=torch.int32, device=task.device) for n in (seed, 0))
        self._told = torch.empty(0)
        self._recording = Recording(task.device)

    def _optimizer(self) -> torch.optim.Optimizer:
        return adam(self.encoder, self.settings, fused=True, capturable=self.task.device.type == "cuda")

    def _learn_and_judge(self) -> tuple[float, Score, list[float]]:
        self._clock.fill_(self.epoch)
        self._recording.play(self._program)
        fine, loss, metric, val_loss, *betas = self._told.tolist()
        if not fine:
            raise self._blame()
        return loss, Score(metric, -val_loss), betas

    def _program(self) -> None:
        """One epoch: learn, judge, and leave the numbers in ``_told``."""
        optimizer: Any = self.optimizer
        loss = self._differentiate()
        norms = torch._foreach_norm([p.grad for p in self._parameters if p.grad is not None])
        fine = torch.stack([loss, *norms]).isfinite().all()
        optimizer.found_inf = (~fine).float()
        optimizer.step()
        self.encoder.eval()
        with torch.no_grad():
            numbers: list[Tensor] = [fine, loss, *self.task.judged(self.encoder, "val"), *self._betas]
            self._told = torch.stack([n.double() for n in numbers])

    def _differentiate(self) -> Tensor:
        """The loss; gradients go to the parameters, where nothing is added to what is there."""
        self.encoder.train()
        with torch.enable_grad(), random_stream(self._key, self._clock):
            loss = self.task.loss(self.encoder, self._key, self._clock)
            found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        for parameter, gradient in zip(self._parameters, found, strict=True):
            parameter.grad = None if gradient is None else gradient.contiguous()  # as the optimizer wants it
        return loss.detach()

    def _backward(self) -> float:
        return float(self._differentiate())
