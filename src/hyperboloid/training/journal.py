"""The trials of a sweep, noted down as they end, so that it can go on where it was stopped."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError

from .settings import Settings
from .trial import ENTRY, Run, Trial
from .unfinished import Shelf


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
            key = _key(stage, model, trial.outcome.settings, trial.outcome.seed)
            self._known[key] = trial.as_entry()
            if not trial.cut:
                lines.append(json.dumps({"key": key, **self._known[key]}, allow_nan=False) + "\n")
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))

    def read(self, stage: str, model: str, runs: Sequence[Run]) -> list[Trial]:
        """The trials of those runs that have a line."""
        entries = [(run, self._known.get(_key(stage, model, *run))) for run in runs]
        return [Trial.from_entry(run, entry) for run, entry in entries if entry is not None]

    def shelf(self, stage: str, model: str) -> Shelf | None:
        """Where a stage of a model puts what is stopped on its way; None where nothing is written."""
        name = f"unfinished-{stage.replace(' ', '-')}-{model}.safetensors"
        return None if self._path is None else Shelf(self._path.with_name(name))


def _key(stage: str, model: str, settings: Settings, seed: int) -> str:
    return json.dumps([stage, model, dataclasses.asdict(settings), seed], sort_keys=True)
