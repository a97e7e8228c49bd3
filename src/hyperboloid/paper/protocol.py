"""How a cell is measured, and which lines of results were measured so."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.nn.means import get_mean
from hyperboloid.nn.registry import get_model
from hyperboloid.training.config import DTYPES
from hyperboloid.training.loop import is_shallow
from hyperboloid.training.selection import Rounds, to_try
from hyperboloid.training.settings import Settings

#: The split that settings are chosen on, fixed beforehand like the paper's single one.
SPLIT = 0
#: How one of several hundred settings is selected, whose order after the search is that of a single run each. The
#: accuracy of nodes varies from run to run by more than good settings differ, so that many have to be tried again: for
#: LGCN at d = 8 that is worth 0.7 points of mean validation score on Citeseer and 2.1 on USA
#: (``results/selection.txt``). The AUC of links varies by a few tenths of a point.
ROUNDS: dict[str, Rounds] = {"link": ((16, 3),), "node": ((128, 1), (32, 4), (6, 10))}
#: Graphs of the paper whose nodes have no features but their own names.
ONE_HOT = frozenset({"usa"})
#: How parts were named as long as the validation part of nodes had hardly any of rare classes.
BIASED_PARTS = "20 per class/"
#: Versions of search and early stopping, of which no other number of the protocol tells. 3 has 16 finalists; 2 had half
#: as many, and 1 counted the first epochs for patience and stopped what was rising.
SIXTEEN = 3
#: For links, GCN and κ-GCN average neighbours, and models are waited for that have not begun to learn
#: (``training/patience.py``).
AVERAGED, WAITED = 4, 5
#: For nodes, settings are selected in rounds; for all tasks, dropout of features reaches those that are one-hot.
IN_ROUNDS = 6
#: For nodes, models are waited for too, and the last round has 10 initialisations instead of 6.
NODES_WAITED = 7
#: Today's: a best score from before a model has begun to learn does not start its patience.
SEARCH = 8


def rounds_of(model: str, task: str) -> Rounds:
    """How a model's settings are selected; those of shallow models are few."""
    return ROUNDS["link" if is_shallow(model) else task]


def search_of(line: Mapping[str, Any]) -> int:
    """The version that a line was measured by; the shallow models' search and stopping have always been the same."""
    version: int = SEARCH if is_shallow(line["model"]) else line["protocol"].get("search", 1)
    return version


def steps_of(line: Mapping[str, Any]) -> tuple[int, ...]:
    """Versions since which lines of its kind are measured otherwise, from the first whose lines still count to today's.

    Lines of before the first are too different: they had half as many finalists, or Kipf's normalisation, or for nodes
    without features, where it matters most, no dropout of them.
    """
    if is_shallow(line["model"]):
        return (SEARCH,)
    one_hot = line["dataset"] in ONE_HOT
    if line["task"] == "node":
        return (IN_ROUNDS, NODES_WAITED, SEARCH) if one_hot else (SIXTEEN, IN_ROUNDS, NODES_WAITED, SEARCH)
    first = AVERAGED if "normalization" in get_model(line["model"]).load().takes() else SIXTEEN
    return (first, WAITED, IN_ROUNDS, SEARCH) if one_hot else (first, WAITED, SEARCH)


def behind(line: Mapping[str, Any]) -> int:
    """How many of its steps have come since a line was measured: 0 for today's rules.

    Two lines of one graph and task were measured alike if they are as far behind.
    """
    return sum(step > search_of(line) for step in steps_of(line))


def counts_still(line: Mapping[str, Any]) -> bool:
    """Whether a line is of an earlier search that counts until it is measured again; the report tells how many are."""
    return 0 < behind(line) < len(steps_of(line))


def rested_on_luck(line: Mapping[str, Any]) -> bool:
    """Whether only the last step is missing: a best score from before models had begun to learn could start patience.

    A run that has found a better one within that patience has ended as it would today.
    """
    return behind(line) == 1


def searched_less(line: Mapping[str, Any]) -> bool:
    """Whether more is missing: its search was such that any model may have come out worse for it."""
    return behind(line) > 1


def gave_up_early(line: Mapping[str, Any]) -> bool:
    """Whether patience with a line's models could end before they had begun to learn.

    That makes a difference to few runs, most of which a search stops anyway.
    """
    return search_of(line) < (NODES_WAITED if line["task"] == "node" else WAITED)


def kept_one_hot(line: Mapping[str, Any]) -> bool:
    """Whether dropout of features left those of a line's graph for links as they were, for they are one-hot."""
    return line["task"] == "link" and line["dataset"] in ONE_HOT and search_of(line) < IN_ROUNDS


def judged_by_three(line: Mapping[str, Any]) -> bool:
    """Whether a line's settings for nodes were selected from 16 by three initialisations each."""
    return line["task"] == "node" and search_of(line) < IN_ROUNDS


@dataclass(frozen=True)
class RunProtocol:
    """How a cell is measured; a line made by another protocol is another measurement.

    Attributes:
        tries: settings to try; None for the whole grid.
        halving: stop the worse half of a search now and then.
        seeds: fresh initialisations for the test.
        epochs: at most so many.
        patience: stop after so many epochs without a better validation score.
        dtype: ``float32`` or ``float64``.
        layers: of every model; another number is a measurement of its own.
        mean: how neighbours are averaged by the models that leave it open, a name from :mod:`hyperboloid.nn.means`;
            None for what each of them does by itself. Another one is a measurement of its own, too.
    """

    tries: int | None = None
    halving: bool = True
    seeds: int = 10
    epochs: int = Settings.epochs
    patience: int = Settings.patience
    dtype: str = "float32"
    layers: int = Settings.layers
    mean: str | None = None

    def fixed(self, model: str) -> dict[str, Any]:
        """Settings that a model's search does not vary; shallow models have no layers, and epochs of another kind."""
        if is_shallow(model):
            return {}
        fixed = {"epochs": self.epochs, "patience": self.patience, "layers": self.layers}
        return fixed if self.mean is None else fixed | {"mean": self.mean}

    def check_model(self, model: str) -> None:
        """Refuse a model that has no choice where the protocol makes one."""
        line = get_model(model)
        if self.mean is not None and ("mean" not in line.load().takes() or "mean" in line.fixed):
            raise InputError(f"{model} averages neighbours in one way only: leave it out, or do without a mean.")

    def made(self, line: Mapping[str, Any]) -> bool:
        """Whether a line was measured so, with today's grid and splits; lines that :func:`counts_still` are, too."""
        model, task = line["model"], line["task"]
        told = line["protocol"] | ({"search": SEARCH} if counts_still(line) else {})
        same = told == self.record(model) and line["grid"] == _size_of_search(self, model, task)
        return bool(same and not line["parts"].startswith(BIASED_PARTS))

    def record(self, model: str) -> dict[str, Any]:
        """What a line tells of it; the shallow models' search and stopping have always been the same.

        The usual number of layers is not told: it was the only one once. Nor is a mean that nobody has asked for.
        """
        version = {} if is_shallow(model) else {"search": SEARCH}
        told = dataclasses.asdict(self)
        if self.layers == Settings.layers or is_shallow(model):
            del told["layers"]
        if self.mean is None:
            del told["mean"]
        return told | version

    def __post_init__(self) -> None:
        for name in ("tries", "seeds", "epochs", "layers"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name} must be at least 1, not {number}.")
        if self.mean is not None:
            get_mean(self.mean)
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}.")


@cache
def _size_of_search(protocol: RunProtocol, model: str, task: str) -> int:
    return len(to_try(model, task, "*", protocol.tries, **protocol.fixed(model)))
