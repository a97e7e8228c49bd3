"""Models on their way together, but each by itself: where they cannot be one program, or would not fit into caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from hyperboloid.errors import TrainingError

from .batch import Outcome
from .checkpoint import contents, copy_state, put_back
from .loop import Training, start_training
from .settings import Settings
from .tasks import Part, Task


class OneByOne:
    """What :class:`Batch` is, of models that take an epoch one after the other; see there.

    Args:
        model, task, runs: as there.
        late: whether time is up; then the models whose turn has not come do without it.
    """

    def __init__(
        self, model: str, task: Task, runs: Sequence[tuple[Settings, int]], late: Callable[[], bool] = lambda: False
    ) -> None:
        self.runs = list(runs)
        self._late = late
        self.epoch = 0
        self._trainings = [start_training(model, task, settings, seed) for settings, seed in runs]
        self._broken: set[Training] = set()

    def __len__(self) -> int:
        return len(self.runs)

    def step(self) -> None:
        """Train every model that is not done for one epoch; one whose numbers are not finite stays where it is."""
        self.epoch += 1
        self._go_on(self._late)

    def catch_up(self) -> None:
        """Let those models go on that are behind the others, because the epoch was cut short."""
        self._go_on(lambda: False)

    def _go_on(self, late: Callable[[], bool]) -> None:
        for training in self._at_work:
            if training.epoch < self.epoch and not late():
                try:
                    training.step()
                except TrainingError:
                    self._broken.add(training)

    @property
    def _at_work(self) -> list[Training]:
        return [t for t in self._trainings if not t.done and t not in self._broken]

    @property
    def outcomes(self) -> list[Outcome]:
        """How each model has done so far."""
        return [
            Outcome.broken(settings, seed, t.epoch)
            if t in self._broken
            else Outcome(settings, seed, t.best.metric, -t.best.negative_loss, t.best_epoch, t.epoch, t.done)
            for (settings, seed), t in zip(self.runs, self._trainings, strict=True)
        ]

    def metrics(self, part: Part) -> list[float]:
        """Metric of each model's best epoch on a part; NaN if it has none."""
        return [_of_best(training, part) for training in self._trainings]

    def state(self, index: int) -> dict[str, Tensor]:
        """Parameters of one model's best epoch."""
        return self._trainings[index].best_state

    def keep(self, indices: Sequence[int]) -> None:
        """Go on with some of the models only."""
        self.runs = [self.runs[i] for i in indices]
        self._trainings = [self._trainings[i] for i in indices]

    def contents(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that the models have come to, as tensors and counters."""
        tensors: dict[str, Tensor] = {}
        counters = []
        for i, training in enumerate(self._trainings):
            own, counts = contents(training)
            tensors |= {f"{i}.{name}": tensor for name, tensor in own.items()}
            counters.append(counts | {"broken": training in self._broken})
        return tensors, {"epoch": self.epoch, "models": counters}

    def put_back(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Put the models back to where :meth:`contents` saw them."""
        by_model: list[dict[str, Tensor]] = [{} for _ in self._trainings]
        for key, tensor in tensors.items():
            place, name = key.split(".", 1)
            by_model[int(place)][name] = tensor
        for training, own, counts in zip(self._trainings, by_model, counters["models"], strict=True):
            put_back(training, own, counts)
            if counts["broken"]:
                self._broken.add(training)
        self.epoch = int(counters["epoch"])


def _of_best(training: Training, part: Part) -> float:
    if not training.best_state:
        return float("nan")
    now = copy_state(training.encoder)
    training.encoder.load_state_dict(training.best_state)
    try:
        return training.score(part).metric
    finally:
        training.encoder.load_state_dict(now)
