"""A group of models that was stopped on its way, kept in one file, so that it goes on where it stood."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from .checkpoint import UNREADABLE, partial_of, read_tensors, write_tensors
from .settings import Settings
from .trial import Run, Trial


@dataclass(frozen=True)
class Unfinished:
    """A group as it was.

    Attributes:
        runs: settings and seed of each of its models.
        place: which of them were at work.
        found: trials of the others, which are to be told of together with theirs.
        whole: whether which of its models go on depends on the others.
        kind: how they were trained, as one program or in turns.
        tensors, counters: what those at work had come to.
    """

    runs: list[Run]
    place: list[int]
    found: dict[int, Trial]
    whole: bool
    kind: str
    tensors: dict[str, Tensor]
    counters: dict[str, Any]


class Shelf:
    """The file in which the group at work in a stage of a search is kept; there is one at a time.

    Args:
        path: of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, group: Unfinished) -> None:
        """Keep a group in place of what was kept before."""
        counters = {
            "runs": [[dataclasses.asdict(settings), seed] for settings, seed in group.runs],
            "place": group.place,
            "found": {str(i): trial.as_entry() for i, trial in group.found.items()},
            "whole": group.whole,
            "kind": group.kind,
            "group": group.counters,
        }
        write_tensors(self._path, group.tensors, counters)

    def wanted(self, runs: Collection[Run], whole: bool) -> Unfinished | None:
        """The group that was kept, if it is of such a kind, and some of its models are wanted, or all of a whole one.

        It is only what saves time: of what cannot be read, or is not wanted, training begins anew.
        """
        if not self._path.is_file():
            return None
        try:
            group = self._read()
        except UNREADABLE:
            return None
        missing = set(group.runs) - set(runs)
        if group.whole != whole or (missing if whole else len(missing) == len(group.runs)):
            return None
        return group

    def _read(self) -> Unfinished:
        tensors, counters = read_tensors(self._path)
        # settings that were not there yet had their defaults
        runs = [(Settings(**settings), int(seed)) for settings, seed in counters["runs"]]
        found = {int(i): Trial.from_entry(runs[int(i)], entry) for i, entry in counters["found"].items()}
        return Unfinished(
            runs, counters["place"], found, counters["whole"], counters["kind"], tensors, counters["group"]
        )

    def clear(self) -> None:
        """Nothing is unfinished."""
        for path in (self._path, partial_of(self._path)):
            path.unlink(missing_ok=True)
