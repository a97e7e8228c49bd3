"""The trials of a sweep, noted down as they end, so that it can go on where it was stopped."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError

from .batch import Outcome
from .many import Trial
from .settings import Settings

Run = tuple[Settings, int]
#: What is kept of a trial.
ENTRY = "val", "val_loss", "best_epoch", "epochs", "done", "test"


class Journal:
    """One line for each trial in a file.

    Args:
        path: of the file; None keeps everything in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path is None or not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:  # a kill amid a line: what is written next must not be glued to it
            path.write_bytes(whole)
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), start=1):
            try:
                entry = json.loads(line)
                stage, model, settings, seed = json.loads(entry.pop("key"))
                entry = {name: entry[name] for name in ENTRY}
                # settings that were not there yet had their defaults
                self._known[_key(stage, model, Settings(**settings), seed)] = entry
            except (ValueError, TypeError, KeyError, AttributeError, InputError) as error:
                raise InputError(f"{path}, line {number} is no trial: delete that line to have it again.") from error

    def missing(self, stage: str, model: str, runs: Sequence[Run]) -> list[Run]:
        """Those runs that have no line yet."""
        return [run for run in runs if _key(stage, model, *run) not in self._known]

    def add(self, stage: str, model: str, trials: Sequence[Trial]) -> None:
        """Note down trials; those cut short by time are kept in memory only, so that a resumed sweep has them again."""
        lines = []
        for trial in trials:
            o = trial.outcome
            key = _key(stage, model, o.settings, o.seed)
            scores = {"val": None, "val_loss": None} if o.failed else {"val": o.val, "val_loss": o.val_loss}
            counts = {"best_epoch": o.best_epoch, "epochs": o.epochs, "done": o.done}
            self._known[key] = {**scores, **counts, "test": trial.test}
            if not trial.cut:
                lines.append(json.dumps({"key": key, **self._known[key]}, allow_nan=False) + "\n")
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(lines)

    def read(self, stage: str, model: str, runs: Sequence[Run]) -> list[Trial]:
        """The trials of those runs that have a line."""
        found = []
        for settings, seed in runs:
            entry = self._known.get(_key(stage, model, settings, seed))
            if entry is None:
                continue
            val, loss = entry["val"], entry["val_loss"]
            outcome = Outcome(
                settings,
                seed,
                -math.inf if val is None else val,
                math.inf if loss is None else loss,
                **{k: entry[k] for k in ("best_epoch", "epochs", "done")},
            )
            found.append(Trial(outcome, entry["test"]))
        return found


def _key(stage: str, model: str, settings: Settings, seed: int) -> str:
    return json.dumps([stage, model, dataclasses.asdict(settings), seed], sort_keys=True)
