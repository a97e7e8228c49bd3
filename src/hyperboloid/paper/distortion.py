"""The paper's figure of distortion: how well the embeddings of link prediction keep the distances of Disease."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.distortion import draw_bands, run_distortion
from hyperboloid.analysis.style import COLOURS, dress, new_figure
from hyperboloid.training.experiment import Experiment

from .board import Score, noise_between
from .cell_work import SPLIT
from .cells import chosen_names
from .claims import EUCLIDEAN, FAILS, HOLDS, HYPERBOLIC, PARTLY, UNKNOWN, Claim, Finding
from .figure_runs import link_settings, number_of_seeds, trained
from .figures import Asked, FigureExperiment
from .results import Line
from .table import PaperTable

#: From the left in the picture.
MODELS = ("gcn", "gat", "hgcn", "kgcn", "hat", "lgcn")
DATASET, GRAPH, DIM, SEEDS = "disease", "disease_lp", 64, 3


def _score(line: Line) -> Score:
    return Score(line["distortion_mean"], line["distortion_std"], line["runs"])


def _compare(lines: Sequence[Line], low: Sequence[str], high: Sequence[str], said: str) -> Finding:
    """Whether each model of ``low`` has less distortion than each of ``high``."""
    by_model = {line["model"]: _score(line) for line in lines}
    pairs = [(by_model[a], by_model[b]) for a in low for b in high if a in by_model and b in by_model]
    total = len(low) * len(high)
    if not pairs:
        return Finding(UNKNOWN, 0, total, "No two of these models have been measured.")
    less = [(a, b) for a, b in pairs if a.mean < b.mean]
    clear = sum(b.mean - a.mean > noise_between(a, b) for a, b in less)
    listed = ", ".join(f"{model} {score.mean:.3f} ± {score.std:.3f}" for model, score in by_model.items())
    text = (
        f"Average distortion: {listed}. {said} in {len(less)} of {len(pairs)} comparisons, by more than the noise in "
        f"{clear}."
    )
    verdict = HOLDS if len(less) == len(pairs) else PARTLY if 2 * len(less) > len(pairs) else FAILS
    return Finding(verdict, len(pairs), total, text)


def lowest(lines: Sequence[Line]) -> Finding:
    """LGCN against all others."""
    return _compare(lines, ["lgcn"], [model for model in MODELS if model != "lgcn"], "LGCN has less")


def hyperbolic_lower(lines: Sequence[Line]) -> Finding:
    """Every hyperbolic against every Euclidean model."""
    hyperbolic, euclidean = ([m for m in MODELS if m in kind] for kind in (HYPERBOLIC, EUCLIDEAN))
    return _compare(lines, hyperbolic, euclidean, "A hyperbolic model has less than a Euclidean one")


class DistortionOfModels(FigureExperiment):
    """Average distortion of six models on Disease at d = 64."""

    name = "distortion"
    title = "Distortion on Disease"
    about = (
        f"The average distortion of embeddings learned for link prediction on `{GRAPH}` at d = {DIM} (lower is better; "
        "all pairs i ≠ j, graph distances of the whole graph, intrinsic distances of each model's own space), over "
        f"several initialisations on split {SPLIT}; below, embedded against graph distances of the run that is best on "
        "validation. Settings are those that the search for Table 4 has chosen for the model on this graph, at the "
        "nearest dimension that has been measured, else the ones that ship. The paper's picture prints no numbers."
    )
    options = frozenset({"models", "seeds", "epochs", "data_dir", "device", "dtype", "work"})
    key = ("model",)
    needs = ("distortion_mean", "distortion_std", "test_mean", "test_std", "runs", "bands", "mean_length")
    claims = (
        Claim("Lowest distortion", "“LGCN has the lowest average distortion among these GCNs”", lowest),
        Claim(
            "Hyperbolic GCNs distort less",
            "“all the hyperbolic GCNs have lower average distortion compared with Euclidean GCNs”",
            hyperbolic_lower,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """A line for each model."""
        return [self._wanted(model, asked) for model in chosen_names("model", self.name, asked.models, MODELS)]

    def _wanted(self, model: str, asked: Asked) -> Line:
        settings, source = link_settings(model, DATASET, GRAPH, DIM, asked)
        return {
            "dataset": DATASET,
            "graph": GRAPH,
            "task": "link",
            "model": model,
            "dim": DIM,
            "split": SPLIT,
            "runs": number_of_seeds(asked, SEEDS),
            "settings": dataclasses.asdict(settings),
            "settings_from": source,
            "protocol": {"dtype": asked.dtype},
        }

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """Train a model some times and measure every run; what has been trained already is not trained again."""
        return _measured(trained(self.name, wanted, asked))

    def draw(self, lines: Sequence[Line]) -> Any:
        """A bar for each model, and below embedded against graph distances."""
        ordered = sorted(lines, key=lambda line: MODELS.index(line["model"]))
        figure = new_figure(11, 10)
        above, below = figure.subfigures(2, 1, height_ratios=(1, 1.7))
        axes = above.subplots()
        places = range(len(ordered))
        colours = [COLOURS[1] if line["model"] in EUCLIDEAN else COLOURS[0] for line in ordered]
        means, stds = ([line[f"distortion_{what}"] for line in ordered] for what in ("mean", "std"))
        axes.bar(places, means, yerr=stds, color=colours, width=0.6, capsize=4, ecolor="black")
        for place, line in zip(places, ordered, strict=True):
            text = f"{line['distortion_mean']:.3f}\nAUC {100 * line['test_mean']:.1f} %"
            axes.annotate(text, (place, line["distortion_mean"] + line["distortion_std"]), (0, 3),
                          textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
        names = [f"{line['model']}\n{'Euclidean' if line['model'] in EUCLIDEAN else 'hyperbolic'}" for line in ordered]
        axes.set_xticks(places, names)
        axes.margins(y=0.25)
        axes.set_ylabel("average distortion")
        runs = sorted({line["runs"] for line in ordered})
        dress(axes, f"{GRAPH}, links, d = {DIM}: mean and standard deviation of {', '.join(map(str, runs))} runs")
        panels = list(below.subplots(2, 3).flat)
        for panel, line in zip(panels, ordered, strict=False):
            bands = {int(hops): values for hops, values in line["bands"].items()}
            draw_bands(panel, bands, line["mean_length"], line["model"])
        for panel in panels[len(ordered) :]:
            panel.set_axis_off()
        return figure

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """All that was measured."""
        rows = [
            {
                "model": line["model"],
                "distortion": f"{line['distortion_mean']:.3f} ± {line['distortion_std']:.3f}",
                "precision": f"{statistics.mean(line['precisions']):.3f}",
                "correlation": f"{statistics.mean(line['correlations']):.3f}",
                "auc": f"{100 * line['test_mean']:.1f} ± {100 * line['test_std']:.1f}",
                "settings": line["settings_from"],
                "runs": line["runs"],
            }
            for line in sorted(lines, key=lambda line: line["distortion_mean"])
        ]
        columns = {
            "model": "model",
            "distortion": "average distortion",
            "precision": "mean average precision",
            "correlation": "correlation of distances",
            "auc": "test AUC, %",
            "settings": "settings",
            "runs": "runs",
        }
        return PaperTable(self.name, self.title, columns, rows)


def _measured(experiment: Experiment) -> Line:
    """Distortions of all runs, and how embedded distances grow in the best one."""
    found = [run_distortion(run) for run in experiment.runs]
    averages = [one.average for one in found]
    best = found[experiment.runs.index(experiment.best)]
    tests = [run.summary["test"] for run in experiment.runs]
    return {
        "test_mean": statistics.mean(tests),
        "test_std": statistics.stdev(tests) if len(tests) > 1 else 0.0,
        "tests": tests,
        "seconds": experiment.summary["seconds"],
        "distortion_mean": statistics.mean(averages),
        "distortion_std": statistics.stdev(averages) if len(averages) > 1 else 0.0,
        "distortions": averages,
        "precisions": [one.mean_average_precision for one in found],
        "correlations": [one.correlation for one in found],
        "rank_correlations": [one.rank_correlation for one in found],
        "mean_length": best.mean_length,
        "bands": {str(hops): values for hops, values in best.bands.items()},
    }
