"""The paper's figure of efficiency: test AUC against seconds per 100 epochs, of all models in one run."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.style import COLOURS, dress, new_figure
from hyperboloid.graphs import load_graph
from hyperboloid.scores import spread_of
from hyperboloid.training.config import DTYPES
from hyperboloid.training.loop import start_training
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import task_factory

from .board import Score, noise_between
from .claims import EUCLIDEAN, FAILS, HOLDS, PARTLY, UNKNOWN, Claim, Finding
from .figure_runs import link_settings, number_of_seeds, trained
from .figures import Asked, FigureExperiment
from .protocol import SPLIT
from .provenance import device_name
from .results import Line
from .table import PaperTable

MODELS = ("gcn", "gat", "kgcn", "hat", "hgcn", "lgcn", "lgcn_f")
DATASET, GRAPH, DIM, SEEDS = "disease", "disease_lp", 64, 3
#: Timing: the models take turns, so many epochs at a time, so that whatever else the machine does meets all of them.
WARMING, ROUNDS, EPOCHS = 3, 7, 10
#: "On the same level" is read as within this factor.
LEVEL = 2.0

Judge = Callable[[dict[str, Any]], tuple[str, str]]


def _on_every_device(judge: Judge, lines: Sequence[Line]) -> Finding:
    """What is found on each device that has been measured; it holds where it holds on all of them."""
    if not lines:
        return Finding(UNKNOWN, 0, 1, "Nothing has been measured.")
    found = [(line["device"], *judge(line["models"])) for line in lines]
    verdicts = {verdict for _, verdict, _ in found}
    text = " ".join(f"{device}: {said}" for device, _, said in found)
    return Finding(verdicts.pop() if len(verdicts) == 1 else PARTLY, len(found), len(found), text)


def _seconds(models: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{name} {models[name]['seconds_per_100']:.2f} s" for name in names)


def frechet_is_a_little_better(lines: Sequence[Line]) -> Finding:
    """The AUC of LGCN_F against LGCN's."""

    def judge(models: dict[str, Any]) -> tuple[str, str]:
        a, b = (Score(m["test_mean"], m["test_std"], len(m["tests"])) for m in (models["lgcn_f"], models["lgcn"]))
        noise = noise_between(a, b)
        which = "more than" if abs(a.mean - b.mean) > noise else "within"
        text = f"LGCN_F {a}, LGCN {b}: {100 * (a.mean - b.mean):+.2f} points, {which} the noise of {100 * noise:.2f}."
        return (HOLDS if a.mean > b.mean else FAILS), text

    return _on_every_device(judge, lines)


def frechet_is_slowest(lines: Sequence[Line]) -> Finding:
    """Seconds of LGCN_F against those of all others."""

    def judge(models: dict[str, Any]) -> tuple[str, str]:
        order = sorted(models, key=lambda name: -models[name]["seconds_per_100"])
        return (HOLDS if order[0] == "lgcn_f" else FAILS), f"per 100 epochs {_seconds(models, *order)}."

    return _on_every_device(judge, lines)


def hgcn_is_slower(lines: Sequence[Line]) -> Finding:
    """Seconds of HGCN against LGCN's."""

    def judge(models: dict[str, Any]) -> tuple[str, str]:
        ratio = models["hgcn"]["seconds_per_100"] / models["lgcn"]["seconds_per_100"]
        return (HOLDS if ratio > 1 else FAILS), f"{_seconds(models, 'hgcn', 'lgcn')}, {ratio:.1f} times as long."

    return _on_every_device(judge, lines)


def gcn_is_fastest(lines: Sequence[Line]) -> Finding:
    """Seconds of GCN against those of all others; κGCN, HAT and LGCN against GAT's."""

    def judge(models: dict[str, Any]) -> tuple[str, str]:
        seconds = {name: m["seconds_per_100"] for name, m in models.items()}
        fastest = min(seconds, key=lambda name: seconds[name])
        ratios = {name: seconds[name] / seconds["gat"] for name in ("kgcn", "hat", "lgcn")}
        level = all(1 / LEVEL <= ratio <= LEVEL for ratio in ratios.values())
        listed = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
        text = f"{fastest} is the fastest; against GAT: {listed} times as long."
        right = (fastest == "gcn") + level
        return (FAILS, PARTLY, HOLDS)[right], text

    return _on_every_device(judge, lines)


class Efficiency(FigureExperiment):
    """AUC against time of seven models on Disease."""

    name = "efficiency"
    title = "Efficiency on Disease"
    about = (
        f"Test AUC of link prediction on `{GRAPH}` at d = {DIM} against seconds per 100 epochs, all models in one run "
        "on one machine. An epoch is a training step and the scoring of the validation part. The models take turns of "
        f"{EPOCHS} epochs, {ROUNDS} each, of which the median counts. Settings are those that the search for Table 4 "
        "has chosen, at the nearest dimension that has been measured (for LGCN_F those of LGCN), else the ones that "
        "ship. The paper's picture prints no numbers."
    )
    options = frozenset({"seeds", "epochs", "data_dir", "device", "dtype", "work"})
    key = ("device",)
    needs = ("models",)
    claims = (
        Claim("LGCN_F is a little better", "“LGCN_F has a little improvement with LGCN”", frechet_is_a_little_better),
        Claim("LGCN_F is the slowest", "“LGCN_F is the slowest”", frechet_is_slowest),
        Claim("HGCN is slower than LGCN", "“HGCN is significantly slower than LGCN”", hgcn_is_slower),
        Claim(
            "GCN is the fastest",
            "“GCN is the fastest. Most hyperbolic GCNs, e.g., κGCN, HAT, LGCN, are on the same level with GAT”",
            gcn_is_fastest,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """One line with all models, which only together can be compared."""
        chosen = {model: link_settings(model, DATASET, GRAPH, DIM, asked)[0] for model in MODELS}
        return [
            {
                "dataset": DATASET,
                "graph": GRAPH,
                "task": "link",
                "dim": DIM,
                "split": SPLIT,
                "runs": number_of_seeds(asked, SEEDS),
                "settings": {model: dataclasses.asdict(settings) for model, settings in chosen.items()},
                "device": device_name(asked.device),
                "protocol": {"dtype": asked.dtype, "rounds": ROUNDS, "epochs": EPOCHS, "limit": asked.epochs},
            }
        ]

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """Train every model some times, then time them all."""
        found: dict[str, dict[str, Any]] = {}
        chosen = {model: Settings(**settings) for model, settings in wanted["settings"].items()}
        for number, model in enumerate(MODELS, start=1):
            say(f"{number} of {len(MODELS)}: {model}")
            one = wanted | {"model": model, "settings": wanted["settings"][model]}
            experiment = trained(self.name, one, asked)
            tests = [run.summary["test"] for run in experiment.runs]
            found[model] = {
                "test_mean": statistics.mean(tests),
                "test_std": spread_of(tests),
                "tests": tests,
                "settings_from": link_settings(model, DATASET, GRAPH, DIM, asked)[1],
            }
        say("the time of an epoch")
        for model, rounds in _times(chosen, asked).items():
            found[model] |= {"seconds_per_100": 100 * statistics.median(rounds) / EPOCHS, "rounds": rounds}
        return {"models": found}

    def draw(self, lines: Sequence[Line]) -> Any:
        """A panel for each device."""
        from matplotlib.ticker import LogLocator, NullFormatter

        figure = new_figure(7 * len(lines), 4.8)
        for axes, line in zip(figure.subplots(1, len(lines), squeeze=False)[0], lines, strict=True):
            by_time = sorted(line["models"].items(), key=lambda item: item[1]["seconds_per_100"])
            for place, (name, m) in enumerate(by_time):
                flat = name in EUCLIDEAN
                look = {"color": COLOURS[1 if flat else 0], "fmt": "s" if flat else "o"}
                y, x = 100 * m["test_mean"], m["seconds_per_100"]
                axes.errorbar([x], [y], yerr=[100 * m["test_std"]], ms=7, capsize=3, **look)
                above = 4 if place % 2 == 0 else -12  # neighbours in time are often as good, and their names would meet
                axes.annotate(name, (x, y), (8, above), textcoords="offset points", fontsize=9)
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.margins(x=0.15)
            axes.set_xlabel("seconds per 100 epochs")
            axes.set_ylabel("test ROC AUC, %")
            dress(axes, f"{GRAPH}, links, d = {DIM}, {line['device']} (squares: Euclidean, circles: hyperbolic)")
        return figure

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """A row for each model and device."""
        rows = [
            {
                "model": name,
                "auc": f"{100 * m['test_mean']:.1f} ± {100 * m['test_std']:.1f}",
                "seconds": f"{m['seconds_per_100']:.2f}",
                "ratio": f"{m['seconds_per_100'] / line['models']['lgcn']['seconds_per_100']:.1f}",
                "settings": m["settings_from"],
                "device": line["device"],
            }
            for line in lines
            for name, m in line["models"].items()
        ]
        columns = {
            "model": "model",
            "auc": "test AUC, %",
            "seconds": "seconds per 100 epochs",
            "ratio": "× LGCN",
            "settings": "settings",
            "device": "device",
        }
        return PaperTable(self.name, self.title, columns, rows)


def _times(chosen: dict[str, Settings], asked: Asked) -> dict[str, list[float]]:
    """Seconds that each model's turns took; no model is done before its turns are over."""
    graph = load_graph(GRAPH, data_dir=asked.data_dir)
    task_for = task_factory(graph, "link", SPLIT, DTYPES[asked.dtype], asked.device)
    trainings = {model: start_training(model, task_for(s), s, 0) for model, s in chosen.items()}
    for training in trainings.values():
        for _ in range(WARMING):
            training.step()
    found: dict[str, list[float]] = {model: [] for model in chosen}
    for _ in range(ROUNDS):
        for model, training in trainings.items():
            began = time.perf_counter()
            for _ in range(EPOCHS):
                training.step()  # it reads the loss and the score back, so that a GPU has finished when it returns
            found[model].append(time.perf_counter() - began)
    return found
