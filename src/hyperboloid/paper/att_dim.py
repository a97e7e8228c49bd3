"""The paper's figure of sensitivity: link prediction against the width of LGCN's attention matrix."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.style import COLOURS, dress, new_figure
from hyperboloid.errors import TrainingError
from hyperboloid.graphs import load_graph
from hyperboloid.scores import spread_of
from hyperboloid.training.config import DTYPES, use_device
from hyperboloid.training.many import train_many
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import task_factory

from .board import Score, noise_between
from .cells import chosen_names
from .claims import UNKNOWN, Claim, Finding, judged
from .figure_runs import link_settings, number_of_seeds
from .figures import Asked, FigureExperiment
from .protocol import SPLIT
from .results import Line
from .table import PaperTable

#: The paper's names of the graphs, and ours.
GRAPHS = {"disease": "disease_lp", "usa": "usa", "amazon": "amazon"}
WIDTHS = (4, 8, 16, 32, 64, 128, 256)
#: Where the paper finds the performance stable.
STABLE = (32, 64, 128)
DIM, SEEDS = 64, 10
#: A difference of less than half a point is called none, however certain it is.
SMALL = 0.005
MARKS = ("o-", "s--", "^:")


def _scores(lines: Sequence[Line], dataset: str) -> dict[int, Score]:
    own = {line["att_dim"]: line for line in lines if line["dataset"] == dataset}
    return {w: Score(own[w]["test_mean"], own[w]["test_std"], own[w]["runs"]) for w in WIDTHS if w in own}


def _differ(a: Score, b: Score) -> bool:
    return abs(a.mean - b.mean) > max(SMALL, noise_between(a, b))


def _by_graph(judge: Callable[[dict[int, Score]], bool | None], what: str, lines: Sequence[Line]) -> Finding:
    """Graphs of which something holds; None where it cannot be told."""
    found = {dataset: judge(_scores(lines, dataset)) for dataset in GRAPHS}
    known = {dataset: yes for dataset, yes in found.items() if yes is not None}
    if not known:
        return Finding(UNKNOWN, 0, len(GRAPHS), "No graph has the widths that it needs.")
    listed = "; ".join(
        f"{dataset} " + ", ".join(f"{w}: {s}" for w, s in _scores(lines, dataset).items()) for dataset in known
    )
    yes = sum(known.values())
    text = f"Test AUC in % by width: {listed}. {what} on {yes} of {len(known)} graphs."
    return Finding(judged(yes, len(known)), len(known), len(GRAPHS), text)


def stable(lines: Sequence[Line]) -> Finding:
    """Whether no two of the widths from 32 to 128 differ by more than the noise and half a point."""

    def judge(scores: dict[int, Score]) -> bool | None:
        if not set(STABLE) <= set(scores):
            return None
        own = [scores[w] for w in STABLE]
        return not any(_differ(a, b) for k, a in enumerate(own) for b in own[:k])

    return _by_graph(judge, "The AUC is the same from 32 to 128", lines)


def rises_then_drops(lines: Sequence[Line]) -> Finding:
    """Whether both ends lie below the best width, which is none of them, by more than the noise and half a point."""

    def judge(scores: dict[int, Score]) -> bool | None:
        if set(scores) != set(WIDTHS):
            return None
        best = max(WIDTHS, key=lambda w: scores[w].mean)
        return best not in (WIDTHS[0], WIDTHS[-1]) and all(
            _differ(scores[best], scores[end]) for end in (WIDTHS[0], WIDTHS[-1])
        )

    return _by_graph(judge, "It rises, then drops,", lines)


class AttentionWidth(FigureExperiment):
    """AUC against the rows of M_att on three graphs."""

    name = "att_dim"
    title = "The width of LGCN's attention matrix"
    about = (
        f"Test AUC of link prediction by LGCN at d = {DIM} against the width of M_att, {WIDTHS[0]} to {WIDTHS[-1]} "
        f"(split {SPLIT}; bars are one standard deviation over initialisations, which are trained as one batch). "
        "Settings are those that the search for Table 4 has chosen, at the nearest dimension that has been measured, "
        "else the ones that ship; they are the same for all widths. A difference of less than "
        f"{100 * SMALL:g} points counts as none here, however certain it is. The paper's picture prints no numbers."
    )
    options = frozenset({"datasets", "seeds", "epochs", "data_dir", "device", "dtype"})
    key = ("dataset", "att_dim")
    needs = ("test_mean", "test_std", "runs")
    claims = (
        Claim(
            "M_att is stable",
            "“LGCN has a stable performance when the horizontal dimension ranges from 32 to 128”",
            stable,
        ),
        Claim(
            "M_att needs a suitable size",
            "“with the growth of the matrix size, the performance raises first and then starts to drop slowly”",
            rises_then_drops,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """A line for each graph and width."""
        use_device(asked.device)
        lines = []
        for dataset in chosen_names("data set", self.name, asked.datasets, list(GRAPHS)):
            settings, source = link_settings("lgcn", dataset, GRAPHS[dataset], DIM, asked)
            lines += [
                {
                    "dataset": dataset,
                    "graph": GRAPHS[dataset],
                    "task": "link",
                    "model": "lgcn",
                    "dim": DIM,
                    "att_dim": width,
                    "split": SPLIT,
                    "runs": number_of_seeds(asked, SEEDS),
                    "settings": dataclasses.asdict(dataclasses.replace(settings, att_dim=width)),
                    "settings_from": source,
                    "protocol": {"dtype": asked.dtype},
                }
                for width in WIDTHS
            ]
        return lines

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """Train all initialisations of one width as a batch."""
        settings = Settings(**wanted["settings"])
        graph = load_graph(wanted["graph"], data_dir=asked.data_dir)
        task_for = task_factory(graph, "link", SPLIT, DTYPES[asked.dtype], asked.device)

        def watch(alive: int, epoch: int, best: float, finished: int, total: int) -> None:
            say(f"{wanted['dataset']}, width {wanted['att_dim']}: {alive} of {total} at epoch {epoch}")

        runs = [(settings, seed) for seed in range(wanted["runs"])]
        trials = train_many("lgcn", task_for, runs, test=True, watch=watch)
        tests = [trial.test for trial in trials if trial.test is not None]
        if len(tests) < len(runs):
            raise TrainingError(f"A run on {wanted['dataset']} at width {wanted['att_dim']} has no finite number.")
        return {
            "test_mean": statistics.mean(tests),
            "test_std": spread_of(tests),
            "tests": tests,
            "val_mean": statistics.mean(trial.outcome.val for trial in trials),
            "epochs": sum(trial.outcome.epochs for trial in trials),
        }

    def draw(self, lines: Sequence[Line]) -> Any:
        """A line for each graph."""
        figure = new_figure(7, 4.4)
        axes = figure.subplots()
        axes.axvspan(STABLE[0], STABLE[-1], color="0.94", zorder=0, label="stable in the paper")
        for k, dataset in enumerate(GRAPHS):
            scores = _scores(lines, dataset)
            if scores:
                means, stds = ([100 * getattr(s, name) for s in scores.values()] for name in ("mean", "std"))
                axes.errorbar(list(scores), means, yerr=stds, fmt=MARKS[k], color=COLOURS[k], capsize=3, label=dataset)
        axes.set_xscale("log", base=2)
        axes.set_xticks(WIDTHS, [f"{w}" for w in WIDTHS])
        axes.set_xlabel("width of M_att")
        axes.set_ylabel("test ROC AUC, %")
        axes.legend(frameon=False, fontsize=9)
        dress(axes, f"LGCN, links, d = {DIM}")
        return figure

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """Widths across, graphs down."""
        rows = []
        for dataset in GRAPHS:
            scores = _scores(lines, dataset)
            if scores:
                own = [line for line in lines if line["dataset"] == dataset]
                runs = sorted({line["runs"] for line in own})
                rows.append(
                    {"dataset": dataset, "runs": ", ".join(map(str, runs)), "settings": own[0]["settings_from"]}
                    | {f"{w}": f"{scores[w]}" if w in scores else None for w in WIDTHS}
                )
        columns = {"dataset": "graph", **{f"{w}": f"{w}" for w in WIDTHS}, "runs": "runs", "settings": "settings"}
        return PaperTable(self.name, self.title, columns, rows)
