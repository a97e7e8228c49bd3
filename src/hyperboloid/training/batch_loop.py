"""Training by batches of graphs: an epoch is one pass over the training part."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hyperboloid.kernels import random_stream

from .graph_task import GraphTask
from .loop import Training, adam


class BatchTraining(Training):
    """A model of whole graphs on its way; arguments are those of :class:`Training`.

    The order of the molecules and the learning rate follow from seed and epoch alone, so that a resumed run goes on as
    if it had not been interrupted.
    """

    task: GraphTask

    def _optimizer(self) -> torch.optim.Optimizer:
        return adam(self.encoder, self.settings, fused=True)

    def _learn(self) -> float:
        assert self.optimizer is not None
        self.encoder.train()
        total = torch.zeros((), dtype=torch.float64, device=self.task.device)
        with random_stream(self.seed, self.epoch):
            for step, (batch, y) in enumerate(self.task.epoch(self.encoder, self.seed, self.epoch)):
                for group in self.optimizer.param_groups:
                    group["lr"] = self.settings.lr * self._factor(step)
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.task.loss(self.encoder(batch), y)
                loss.backward()
                if self.settings.clip is not None:
                    torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), self.settings.clip)
                self.optimizer.step()
                total += loss.detach() * batch.num_graphs
        # asked once for an epoch, so that a GPU need not wait for the answer in every step
        mean = float(total) / len(self.task.split.train)
        if not math.isfinite(mean):
            raise self._blame()
        return mean

    def _factor(self, step: int) -> float:
        """Part of the learning rate in a step of this epoch."""
        if self.settings.schedule == "constant":
            return 1.0
        done = (self.epoch - 1 + step / self.task.steps) / self.settings.epochs
        return 0.5 * (1 + math.cos(math.pi * done))

    def _backward(self) -> float:
        """The first batch of the epoch again, for :func:`blame`."""
        batch, y = next(self.task.epoch(self.encoder, self.seed, self.epoch))
        loss: Tensor = self.task.loss(self.encoder(batch), y)
        loss.backward()
        return float(loss.detach())
