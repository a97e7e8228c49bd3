"""Does hyperbolic space help on this graph? Its shape, a short search, and a plain recommendation."""

from __future__ import annotations

import dataclasses
import statistics as st
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.hyperbolicity import Average, delta_average
from hyperboloid.graphs.statistics import Statistics, statistics
from hyperboloid.scores import two_errors
from hyperboloid.training.config import DTYPES
from hyperboloid.training.many import Watcher, train_many
from hyperboloid.training.selection import Verdict
from hyperboloid.training.sweep import Sweep, sweep, task_factory
from hyperboloid.training.trial import Trial

#: Half width of δ_avg's confidence interval.
PRECISION = 0.01
#: Dimension of the search, and those that the winner is tried in afterwards, in this order, as long as time lasts.
DIM, DIMS = 8, (16, 4, 32)
#: Compared by default, the fast ones first: the others get what time they leave.
MODELS = ("gcn", "gat", "lgcn")
#: Initialisations of each test.
SEEDS = 3
#: A short search, of which one setting survives. All train to the end: on Disease the best are the worst at epoch 50.
SEARCH = {"short": True, "halving": False, "rounds": (), "distance": "intrinsic", "epochs": 400}
#: Share of the time that the comparison of models gets; the rest is for the dimensions.
SEARCH_SHARE = 0.75
#: Below this δ_avg a graph is called tree-like: Disease, USA and Amazon lie below, the citation networks above.
TREE_LIKE = 0.25


@dataclass(frozen=True)
class Tried:
    """A model in one dimension: validation and test metrics of its initialisations."""

    dim: int
    val: list[float]
    test: list[float]

    @classmethod
    def of(cls, dim: int, trials: Sequence[Trial]) -> Tried:
        """Those of some trials."""
        whole = [(t.outcome.val, t.test) for t in trials if t.test is not None]
        return cls(dim, [val for val, _ in whole], [test for _, test in whole])


@dataclass(frozen=True)
class Advice:
    """What was found, and what to do.

    Attributes:
        graph: its name.
        notes: what was done to its links.
        shape: its statistics.
        delta: δ_avg; None where the largest component has fewer than four nodes.
        found: the comparison of models, the best on validation first.
        chosen: the model to use.
        rival: the best one of the other geometry; None where no model of it could be trained.
        dims: the chosen model by dimension, ascending.
        dim: the dimension to use.
        seconds: time it took.
    """

    graph: str
    notes: list[str]
    shape: Statistics
    delta: Average | None
    found: Sweep
    chosen: Verdict
    rival: Verdict | None
    dims: list[Tried]
    dim: int
    seconds: float

    @property
    def settled(self) -> bool:
        """Whether more time would hardly change the order: what was cut short is at most the model that is ahead."""
        if self.rival is None:
            return self.chosen.complete
        behind = min(self.chosen, self.rival, key=lambda v: v.test_mean)
        whole = self.chosen.complete and self.rival.complete
        return whole or (behind.complete and is_clear(self.chosen, self.rival, self.found.tested))

    @property
    def clear(self) -> bool:
        """Whether the geometries differ by more than the noise, in something that was learned."""
        if self.rival is None or not (self.found.learned and self.settled):
            return False
        return is_clear(self.chosen, self.rival, self.found.tested)

    @property
    def sentences(self) -> list[str]:
        """The recommendation, and the numbers behind it."""
        if not self.found.learned:
            more = [] if self.settled else ["The budget cut the training short: a longer --budget may change that."]
            return [self.found.nothing_learned, *more, self._expected()]
        space = geometry(self.chosen)
        use = "Use" if self.settled else "For the time being use"
        out = [f"{use} {self.chosen.model} ({space} space) with {self.dim} dimensions."]
        if self.rival is not None:
            gap = 100 * (self.chosen.test_mean - self.rival.test_mean)
            scores = f"{self.found.metric} {self.chosen.told} against {self.rival.told} of {self.rival.model}"
            error = 100 * noise(self.chosen, self.rival, self.found.tested)
            if not self.settled:
                out.append(
                    f"Not settled: the budget cut the training short. So far test {scores}, {gap:+.1f} points, noise "
                    f"{error:.1f}; give a longer --budget."
                )
            elif self.clear:
                out.append(f"The geometry matters here: test {scores}, {gap:+.1f} points, noise {error:.1f}.")
            else:
                out.append(
                    f"The geometry does not decide here: test {scores}, {gap:+.1f} points, within the noise of "
                    f"{error:.1f}. Of the two, {self.chosen.model} is the simpler and faster one."
                )
        out.append(self._expected())
        by_dim = ", ".join(f"d = {t.dim}: {100 * st.mean(t.val):.1f}" for t in self.dims)
        out.append(f"Validation {self.found.metric} of {self.chosen.model} by dimension, in %: {by_dim}.")
        return out

    def _expected(self) -> str:
        """What δ alone would have said."""
        if self.delta is None:
            return "No component has four nodes, so δ is not defined."
        value = f"δ_avg = {self.delta.mean:.2f}"
        if self.delta.mean < TREE_LIKE:
            return f"By its shape ({value}) the graph is tree-like, where hyperbolic space is expected to help."
        return f"By its shape ({value}) the graph is not very tree-like: hyperbolic space is expected to matter little."

    def as_json(self) -> dict[str, Any]:
        """Everything but parameters, in types that JSON has."""
        return {
            "graph": self.graph,
            "notes": self.notes,
            "task": self.found.task,
            "metric": self.found.metric,
            "delta_avg": None if self.delta is None else self.delta.mean,
            "delta_avg_half_width": None if self.delta is None else self.delta.half_width,
            **dataclasses.asdict(self.shape),
            "models": [v.as_json() for v in self.found.verdicts],
            "skipped": self.found.skipped,
            "dims": [dataclasses.asdict(t) for t in self.dims],
            "model": self.chosen.model,
            "geometry": geometry(self.chosen).lower(),
            "dim": self.dim,
            "learned": self.found.learned,
            "clear": self.clear,
            "settled": self.settled,
            "noise": None if self.rival is None else noise(self.chosen, self.rival, self.found.tested),
            "advice": " ".join(self.sentences),
            "seconds": self.seconds,
            "run": str(self.found.folder / "best"),
        }


def geometry(verdict: Verdict) -> str:
    """In a word."""
    return "hyperbolic" if verdict.hyperbolic else "Euclidean"


def noise(a: Verdict, b: Verdict, tested: int) -> float:
    """Two standard errors of the difference of two models' test means, see :func:`.two_errors`."""
    return two_errors(a.tested, b.tested, tested)


def is_clear(a: Verdict, b: Verdict, tested: int) -> bool:
    """Whether two models differ by more than the noise."""
    return abs(a.test_mean - b.test_mean) > noise(a, b, tested)


def choose(verdicts: Sequence[Verdict], tested: int) -> tuple[Verdict, Verdict | None]:
    """The model to use, and the best of the other geometry; each geometry's best is chosen on validation.

    Where the two differ by no more than the noise, the Euclidean one is enough.
    """
    curved, flat = (next((v for v in verdicts if v.hyperbolic == h), None) for h in (True, False))
    if curved is None or flat is None:
        return verdicts[0], None
    if is_clear(curved, flat, tested) and curved.test_mean > flat.test_mean:
        return curved, flat
    return flat, curved


def smallest_good(dims: Sequence[Tried], examples: int) -> int:
    """The smallest dimension whose mean validation metric is within the noise of the best one's."""
    best = max(dims, key=lambda t: st.mean(t.val))
    return next(t.dim for t in dims if st.mean(best.val) - st.mean(t.val) <= two_errors(best.val, t.val, examples))


def advise(
    dataset: Any,
    *,
    task: str = "link",
    models: Sequence[str] = MODELS,
    budget: float = 120.0,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
    data_dir: str | Path | None = None,
    device: str = "cpu",
    out: str | Path,
    resume: bool = False,
    watch: Callable[[str, str], Watcher] | None = None,
) -> Advice:
    """Measure a graph, compare models of both geometries on it, and say which to use.

    Args:
        dataset: as for :func:`hyperboloid.fit`; so are features, labels, weight, data_dir and device.
        task: ``link`` or ``node``.
        models: to compare.
        budget: seconds for all of it, about.
        out: folder for the search.
        resume: go on with the search in ``out``.
        watch: gives the watcher of a model's stage.
    """
    began = time.monotonic()
    graph = load_graph(dataset, data_dir=data_dir, features=features, labels=labels, weight=weight)
    shape = statistics(graph)
    try:
        delta = delta_average(graph, precision=PRECISION, seed=0)
    except InputError:
        delta = None
    left = max(1.0, budget - (time.monotonic() - began))
    search: dict[str, Any] = {"dim": DIM, "seeds": SEEDS, "budget": SEARCH_SHARE * left, **SEARCH}
    found = sweep(graph, task=task, models=models, device=device, out=out, resume=resume, watch=watch, **search)
    task_for = task_factory(graph, task, 0, DTYPES["float32"], device)
    chosen, rival = choose(found.verdicts, found.tested)
    dims = [Tried.of(DIM, chosen.trials)]
    for dim in DIMS:
        settings = dataclasses.replace(chosen.settings, dim=dim)
        trials = train_many(
            chosen.model,
            task_for,
            [(settings, seed) for seed in range(SEEDS)],
            test=True,
            until=began + budget,
            watch=None if watch is None else watch(chosen.model, f"{dim} dimensions"),
        )
        whole = [t for t in trials if not t.cut and not t.outcome.failed]
        if len(whole) > 1:
            dims.append(Tried.of(dim, whole))
    dims.sort(key=lambda t: t.dim)
    seconds = time.monotonic() - began
    dim = smallest_good(dims, task_for(chosen.settings).size("val"))
    return Advice(graph.name, graph.notes, shape, delta, found, chosen, rival, dims, dim, seconds)
