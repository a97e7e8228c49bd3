"""The training loop: Adam, a validation score every epoch, early stopping, the best epoch kept."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.errors import TrainingError
from hyperboloid.geometry import Curvature
from hyperboloid.kernels import random_stream
from hyperboloid.nn.registry import get_model
from hyperboloid.nn.shallow import ShallowEncoder

from .checkpoint import copy_state
from .guard import blame, finite
from .patience import bounds_of, last_epoch, longest_wait
from .settings import Settings
from .tasks import BaseTask, Part, Score, Task


class Training:
    """One model on its way: (model, task, settings, seed) determine every number of it.

    Nothing is drawn from a generator that keeps a state, so a run that was interrupted and put back by
    :func:`load_checkpoint` goes on exactly as if it had not been.

    Args:
        model: its name.
        task: what to train for.
        settings: hyper-parameters.
        seed: of the initialisation, the random masks and the training negatives.
    """

    task: Any

    def __init__(self, model: str, task: BaseTask, settings: Settings, seed: int) -> None:
        self.task = task
        self.settings = settings
        self.seed = seed
        self.encoder = build_encoder(model, task, settings, seed)
        self.optimizer = self._optimizer()
        self.epoch = 0
        self.best_epoch = 0
        self.learning_since = longest_wait(task.plateau, settings.patience, settings.epochs)
        self.best = Score(-math.inf, -math.inf)
        self.best_state: dict[str, Tensor] = {}
        self.seconds = 0.0  # spent so far, interruptions not counted

    @property
    def done(self) -> bool:
        """Out of epochs, or out of patience."""
        settings = self.settings
        return self.epoch >= last_epoch(self.best_epoch, self.learning_since, settings.patience, settings.epochs)

    def step(self) -> dict[str, Any]:
        """Train for one epoch, score the validation part, and say how it went."""
        self.epoch += 1
        loss, score, betas = self._learn_and_judge()
        metrics: dict[str, Any] = {"epoch": self.epoch, "loss": loss}
        if score is not None:
            if not math.isfinite(score.negative_loss):
                raise self._blame()
            if score > self.best:
                low, high = bounds_of(self.task.plateau)
                if not low <= -score.negative_loss <= high:
                    self.learning_since = min(self.learning_since, self.epoch)
                self.best, self.best_epoch, self.best_state = score, self.epoch, copy_state(self.encoder)
            metrics |= {f"val_{self.task.metric}": self.task.shown(score.metric), "val_loss": -score.negative_loss}
        metrics["beta"] = betas
        return metrics

    def _learn_and_judge(self) -> tuple[float, Score | None, list[float]]:
        """One epoch: the loss, the score of the validation part if there can be one, and every β."""
        loss = self._learn()
        score = self.score("val") if self._can_be_judged else None
        return loss, score, [float(beta) for beta in self._betas]

    @property
    def _betas(self) -> list[Tensor]:
        """β of every curvature."""
        return [m.beta.detach() for m in self.encoder.modules() if isinstance(m, Curvature)]

    @property
    def _can_be_judged(self) -> bool:
        """Whether the model of this epoch does its task already."""
        return True

    def _optimizer(self) -> torch.optim.Optimizer | None:
        """What moves the parameters; None where they move by themselves."""
        return adam(self.encoder, self.settings)

    def _learn(self) -> float:
        """Change the parameters for one epoch, and give the loss."""
        assert self.optimizer is not None
        loss = self._backward()
        gradients = [p.grad for p in self.encoder.parameters() if p.grad is not None]
        if not (math.isfinite(loss) and finite(gradients)):
            raise self._blame()
        self.optimizer.step()
        return loss

    def _blame(self) -> TrainingError:
        return blame(self.encoder, self._backward, self.epoch)

    def _backward(self) -> float:
        assert self.optimizer is not None
        self.encoder.train()
        self.optimizer.zero_grad(set_to_none=True)
        with random_stream(self.seed, self.epoch):
            loss = self._loss()
        loss.backward()
        return float(loss.detach())

    def _loss(self) -> Tensor:
        """What is made smaller in this epoch."""
        loss: Tensor = self.task.loss(self.encoder, self.seed, self.epoch)
        return loss

    @torch.no_grad()
    def score(self, part: Part) -> Score:
        """Score of the present parameters."""
        self.encoder.eval()
        found: Score = self.task.score(self.encoder, part)
        return found


def start_training(model: str, task: BaseTask, settings: Settings, seed: int) -> Training:
    """The training that suits task, model and device: by batches of graphs, of shallow models, on a GPU recorded."""
    if not isinstance(task, Task):
        from .batch_loop import BatchTraining

        return BatchTraining(model, task, settings, seed)
    if is_shallow(model):
        from .shallow import ShallowTraining

        return ShallowTraining(model, task, settings, seed)
    # the kernels compute in float32; in double precision, much of what would be recorded is not theirs
    if task.device.type == "cuda" and task.dtype == torch.float32 and can_be_batched(model, settings):
        from .recorded import RecordedTraining

        return RecordedTraining(model, task, settings, seed)
    return Training(model, task, settings, seed)


def is_shallow(model: str) -> bool:
    """Whether the model is a table of embeddings, without layers."""
    return issubclass(get_model(model).load(), ShallowEncoder)


def can_be_batched(model: str, settings: Settings) -> bool:
    """Whether an epoch of the model is always the same program, which can be recorded, and run for many models at once.

    Fréchet means stop when they have converged, each by itself.
    """
    return not is_shallow(model) and get_model(model).settle(settings).mean != "frechet"


def build_encoder(model: str, task: BaseTask, settings: Settings, seed: int) -> Any:
    """The model at its start; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = task.build(model, settings)
    encoder = encoder.to(task.device, task.dtype)
    for module in encoder.modules():
        if isinstance(module, Curvature):  # a β rounded to float32 is not quite the one asked for
            module.reset_parameters()
    return encoder


def adam(
    encoder: nn.Module, settings: Settings, *, fused: bool = False, capturable: bool = False
) -> torch.optim.Adam:  # fmt: skip
    """Adam with coupled L2 on the weights; biases and curvatures are not decayed.

    Args:
        encoder: whose parameters it moves.
        settings: with the learning rate and the decay.
        fused: as one operation.
        capturable: for a CUDA graph.
    """
    curvatures = {p for m in encoder.modules() if isinstance(m, Curvature) for p in m.parameters()}
    trained = [p for p in encoder.parameters() if p.requires_grad]
    free = [p for p in trained if p in curvatures or p.dim() < 2]
    decayed = [p for p in trained if p not in curvatures and p.dim() >= 2]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": free}]
    return torch.optim.Adam([g for g in groups if g["params"]], lr=settings.lr, fused=fused, capturable=capturable)
