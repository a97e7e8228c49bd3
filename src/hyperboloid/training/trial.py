"""What is known of one trained model, and how it is written down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .batch import Outcome
from .settings import Settings

#: Settings and seed of a model.
Run = tuple[Settings, int]
#: What is written down of a trial.
ENTRY = "val", "val_loss", "best_epoch", "epochs", "done", "test"


@dataclass(frozen=True)
class Trial:
    """One trained model.

    Attributes:
        outcome: its settings, seed and validation scores.
        test: metric on the test part at the best epoch; None where it was not asked for, or the model failed.
        state: parameters of the best epoch; None likewise, or where it was read.
        cut: whether it would have gone on, had there been time.
    """

    outcome: Outcome
    test: float | None = None
    state: dict[str, Tensor] | None = None
    cut: bool = False

    def as_entry(self) -> dict[str, Any]:
        """All but settings, seed and parameters, in types that JSON has."""
        o = self.outcome
        scores = {"val": None, "val_loss": None} if o.failed else {"val": o.val, "val_loss": o.val_loss}
        return {**scores, "best_epoch": o.best_epoch, "epochs": o.epochs, "done": o.done, "test": self.test}

    @classmethod
    def from_entry(cls, run: Run, entry: dict[str, Any]) -> Trial:
        """The trial of which :meth:`as_entry` was written down."""
        val, loss = entry["val"], entry["val_loss"]
        counts = {name: entry[name] for name in ("best_epoch", "epochs", "done")}
        scores = -math.inf if val is None else val, math.inf if loss is None else loss
        return cls(Outcome(*run, *scores, **counts), entry["test"])
