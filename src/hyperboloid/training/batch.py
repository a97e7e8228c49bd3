"""Many models of one architecture trained as one program: a leading model axis on every parameter.

The layers stay written for one model; :func:`torch.func.vmap` gives them the axis. Learning rate, weight decay, dropout
probabilities, seeds and starts may differ from model to model. Each model is the one that :class:`Training` would make
of the same settings and seed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from hyperboloid.errors import InputError
from hyperboloid.geometry import Curvature
from hyperboloid.kernels import random_stream
from hyperboloid.nn import Encoder
from hyperboloid.nn.settings import PER_MODEL

from .batch_steps import adam_, judge_
from .loop import build_encoder
from .patience import last_epoch, longest_wait
from .recording import Recording
from .settings import Settings
from .stacked import Stacked
from .tasks import Part, Task

#: Settings in which the models of one batch may differ: none of them changes a tensor's shape or the program.
MAY_DIFFER = frozenset({"lr", "weight_decay", "beta", *PER_MODEL})


@dataclass(frozen=True)
class Outcome:
    """How one model of a batch has done so far.

    Attributes:
        settings: its settings.
        seed: its seed.
        val: best validation metric.
        val_loss: validation loss of that epoch.
        best_epoch: that epoch; 0 if there was none, or if later numbers were not finite.
        epochs: epochs until it was out of patience, or until its numbers were not finite, or until now.
        done: whether one of the first two has happened.
    """

    settings: Settings
    seed: int
    val: float
    val_loss: float
    best_epoch: int
    epochs: int
    done: bool

    @property
    def failed(self) -> bool:
        """Whether its numbers did not stay finite, or no epoch was scored."""
        return self.best_epoch == 0

    @classmethod
    def broken(cls, settings: Settings, seed: int, epochs: int) -> Outcome:
        """Of a model whose numbers were not finite at that epoch: what it was before says nothing of its settings."""
        return cls(settings, seed, -math.inf, math.inf, 0, epochs, True)


def shape_of(settings: Settings) -> tuple[Any, ...]:
    """What models must have in common to be trained as one program."""
    return tuple(v for k, v in sorted(dataclasses.asdict(settings).items()) if k not in MAY_DIFFER)


class Batch:
    """Models on their way, all at the same epoch.

    Args:
        model: name of the encoder.
        task: what to train for.
        runs: settings and seed of each model; the settings differ in :data:`MAY_DIFFER` only.
    """

    def __init__(self, model: str, task: Task, runs: Sequence[tuple[Settings, int]]) -> None:
        if len({shape_of(settings) for settings, _ in runs}) != 1:
            raise InputError(f"the settings of one batch may differ in {', '.join(sorted(MAY_DIFFER))} only.")
        self.task = task
        self.runs = list(runs)
        # a start is a matter of β and seed alone, and the models of a search have the same ones
        starts = {(settings.beta, seed): settings for settings, seed in runs}
        built = {start: build_encoder(model, task, settings, start[1]) for start, settings in starts.items()}
        encoders = [built[settings.beta, seed] for settings, seed in runs]
        self._program = _Program(encoders[0], task)
        state, _ = stack_module_state(encoders)
        self._state = Stacked.of({name: p.detach() for name, p in state.items()})
        self._best_state = self._state.clone()
        self._trained = [name for name, p in encoders[0].named_parameters() if p.requires_grad]
        curvatures = {f"{name}.raw" for name, m in encoders[0].named_modules() if isinstance(m, Curvature)}
        self._decayed = {n for n, p in encoders[0].named_parameters() if p.dim() >= 2 and n not in curvatures}
        self._decays: Tensor | None = None
        flat = self._state.flat

        def numbers(name: str) -> Tensor:
            return torch.tensor([getattr(s, name) for s, _ in runs], dtype=flat.dtype, device=flat.device)

        # a probability that is 0 for all needs no mask
        self._numbers = {n: numbers(n) for n in PER_MODEL if any(getattr(s, n) for s, _ in runs)}
        count, any_settings = len(runs), runs[0][0]
        wait = longest_wait(task.plateau, any_settings.patience, any_settings.epochs)
        self._per_model: dict[str, Tensor] = {
            "seed": torch.tensor([seed for _, seed in runs], dtype=torch.int32, device=flat.device),
            "lr": numbers("lr"),
            "weight_decay": numbers("weight_decay"),
            "best": torch.full((count,), -torch.inf, dtype=torch.float64, device=flat.device),
            "best_loss": torch.full((count,), torch.inf, dtype=flat.dtype, device=flat.device),
            "best_epoch": torch.zeros(count, dtype=torch.int32, device=flat.device),
            "learning_since": torch.full((count,), wait, dtype=torch.int32, device=flat.device),
            "broken_at": torch.zeros(count, dtype=torch.int32, device=flat.device),
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
        }
        self._epoch = torch.zeros((), dtype=torch.int32, device=flat.device)
        self._recording = Recording(task.device)
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.runs)

    def step(self) -> None:
        """Train every model for one epoch and score its validation part."""
        self.epoch += 1
        self._recording.play(self._step)

    def catch_up(self) -> None:
        """All models are at the same epoch already."""

    def _step(self) -> None:
        self._epoch += 1
        with torch.enable_grad():
            trained = [self._state.named[n].requires_grad_() for n in self._trained]
            examples = self.task.examples(self._per_model["seed"], self._epoch)
            losses = self.task.losses(self._forward(self._state, examples, training=True), None)
            found = torch.autograd.grad(losses, trained, torch.ones_like(losses), allow_unused=True)
        for p in trained:
            p.requires_grad_(False)
        with torch.no_grad():
            self._learn(dict(zip(self._trained, found, strict=True)))
            self._judge()

    def _forward(self, state: Stacked, examples: Tensor, *, training: bool) -> Tensor:
        """Logits of all models; ``examples`` have a model axis in training."""
        self._program.train(training)

        def one(p: dict[str, Tensor], seed: Tensor, numbers: dict[str, Tensor], chosen: Tensor) -> Tensor:
            with self._program.with_numbers(numbers), random_stream(seed, self._epoch):
                out: Tensor = functional_call(self._program, {f"encoder.{n}": t for n, t in p.items()}, (chosen,))
            return out

        many = vmap(one, in_dims=(0, 0, 0, 0 if training else None))
        out: Tensor = many(state.named, self._per_model["seed"], self._numbers, examples)
        return out

    def _learn(self, gradients: dict[str, Tensor | None]) -> None:
        """Change the parameters; one that no logit looks at, such as the output's curvature, stays what it is."""
        m = self._per_model
        if self._decays is None:
            used = {name for name, gradient in gradients.items() if gradient is not None}
            self._decays = self._state.columns(self._decayed & used)
        gradient = self._state.joined(gradients)
        adam_(
            self._state.flat, gradient, m["mean"], m["square"], decays=self._decays, lr=m["lr"],
            weight_decay=m["weight_decay"], step=self._epoch,
        )  # fmt: skip

    def _judge(self) -> None:
        """Score the validation part, and keep what is best for each model that still has patience."""
        logits = self._forward(self._state, self.task.part("val"), training=False)
        records = {name: self._per_model[name] for name in ("best", "best_loss", "best_epoch", "learning_since")}
        settings = self.runs[0][0]  # of all, in what follows
        losses, broken_at = self.task.losses(logits, "val"), self._per_model["broken_at"]
        better = judge_(
            self.task.metrics(logits, "val"), losses, **records,
            epoch=self._epoch, epochs=settings.epochs, patience=settings.patience, plateau=self.task.plateau,
        )  # fmt: skip
        broken_at.add_(self._epoch * ((broken_at == 0) & ~losses.isfinite()))
        kept = self._best_state.flat
        torch.where(better.unsqueeze(1), self._state.flat, kept, out=kept)

    @property
    def outcomes(self) -> list[Outcome]:
        """How each model has done so far."""
        names = ("best", "best_loss", "best_epoch", "learning_since", "broken_at")
        columns = (self._per_model[name].tolist() for name in names)
        out = []
        for (settings, seed), val, loss, best_epoch, since, broken_at in zip(self.runs, *columns, strict=True):
            last = last_epoch(best_epoch, since, settings.patience, settings.epochs)
            if 0 < broken_at <= last:  # alone, a model stops when it is out of patience, and does not see what comes
                out.append(Outcome.broken(settings, seed, broken_at))
            else:
                out.append(Outcome(settings, seed, val, loss, best_epoch, min(self.epoch, last), self.epoch >= last))
        return out

    @torch.no_grad()
    def metrics(self, part: Part) -> list[float]:
        """Metric of each model's best epoch on a part."""
        logits = self._forward(self._best_state, self.task.part(part), training=False)
        values: list[float] = self.task.metrics(logits, part).tolist()
        return values

    def state(self, index: int) -> dict[str, Tensor]:
        """Parameters of one model's best epoch, as its encoder's ``load_state_dict`` takes them."""
        return self._best_state.model(index)

    def keep(self, indices: Sequence[int]) -> None:
        """Go on with some of the models only."""
        chosen = torch.tensor(list(indices), dtype=torch.long, device=self._epoch.device)
        self.runs = [self.runs[i] for i in indices]
        self._state, self._best_state = (stacked.select(chosen) for stacked in (self._state, self._best_state))
        for tensors in (self._numbers, self._per_model):
            for name in tensors:
                tensors[name] = tensors[name].index_select(0, chosen)
        self._recording = Recording(self.task.device, warming=1)

    def contents(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the models have come to, as tensors and counters."""
        states = {"state": self._state.flat, "best_state": self._best_state.flat}
        return {name: t.cpu() for name, t in (states | self._per_model).items()}, {"epoch": self.epoch}

    def put_back(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Put the models, which are those of then, back to where :meth:`contents` saw them."""
        own = {"state": self._state.flat, "best_state": self._best_state.flat} | self._per_model
        if {name: t.shape for name, t in own.items()} != {name: t.shape for name, t in tensors.items()}:
            raise ValueError("these are not the tensors of this batch")
        for name, tensor in own.items():
            tensor.copy_(tensors[name])
        self.epoch = int(counters["epoch"])
        self._epoch.fill_(self.epoch)


class _Program(torch.nn.Module):
    """From examples to logits as one module, so that parameters can be swapped for a model's own."""

    def __init__(self, encoder: Encoder, task: Task) -> None:
        super().__init__()
        self.encoder = encoder
        self.task = task
        self._drops = [(m, name) for m in encoder.modules() for name in getattr(m, "per_model", ())]

    def forward(self, examples: Tensor) -> Tensor:
        return self.task.logits(self.encoder, self.task.encode(self.encoder), examples)

    @contextmanager
    def with_numbers(self, numbers: dict[str, Tensor]) -> Iterator[None]:
        """Give the modules a model's own probabilities."""
        before = [getattr(module, name) for module, name in self._drops]
        try:
            for module, name in self._drops:
                setattr(module, name, numbers.get(name, 0.0))
            yield
        finally:
            for (module, name), value in zip(self._drops, before, strict=True):
                setattr(module, name, value)
