"""The paper's figure of distortion: how well the embeddings of link prediction keep the distances of Disease."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.distortion import draw_bands, run_distortion
from hyperboloid.analysis.style import COLOURS, dress, new_figure
from hyperboloid.scores import spread_of
from hyperboloid.training.experiment import Experiment
from hyperboloid.training.settings import Settings, default_settings

from .board import Score, noise_between
from .cells import chosen_names
from .claims import EUCLIDEAN, HYPERBOLIC, UNKNOWN, Claim, Finding, judged
from .figure_runs import limits, number_of_seeds, searched_settings, trained
from .figures import Asked, FigureExperiment
from .protocol import SPLIT
from .results import Line
from .table import PaperTable

#: From the left in the picture.
MODELS = ("gcn", "gat", "hgcn", "kgcn", "hat", "lgcn")
DATASET, GRAPH, DIM, SEEDS = "disease", "disease_lp", 64, 3
#: Where the settings come from. Distortion depends on them; one choice alone would decide what the claims are worth.
CHOICES = ("searched", "shipped")


def _score(line: Line) -> Score:
    return Score(line["distortion_mean"], line["distortion_std"], line["runs"])


def _compare(lines: Sequence[Line], low: Sequence[str], high: Sequence[str], said: str) -> Finding:
    """Whether each model of ``low`` has less distortion than each of ``high``, with either choice of settings."""
    pairs, listed = [], []
    for choice in CHOICES:
        by_model = {line["model"]: _score(line) for line in lines if line["choice"] == choice}
        pairs += [(by_model[a], by_model[b]) for a in low for b in high if a in by_model and b in by_model]
        scores = ", ".join(f"{model} {score.mean:.3f} ± {score.std:.3f}" for model, score in by_model.items())
        if by_model:
            listed.append(f"{choice} settings: {scores}")
    total = len(low) * len(high) * len(CHOICES)
    if not pairs:
        return Finding(UNKNOWN, 0, total, "No two of these models have been measured.")
    less = [(a, b) for a, b in pairs if a.mean < b.mean]
    clear, behind = (sum(abs(b.mean - a.mean) > noise_between(a, b) for a, b in some)
                     for some in (less, [pair for pair in pairs if pair not in less]))  # fmt: skip
    text = (
        f"Average distortion with {'; '.join(listed)}. {said} in {len(less)} of {len(pairs)} comparisons, by more than "
        f"the noise in {clear}, and more by more than the noise in {behind}."
    )
    return Finding(judged(len(less), len(pairs)), len(pairs), total, text)


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
        "validation. Distortion depends on the settings, and nothing was chosen by it: each model is trained with "
        "those that the search for Table 4 has found best on validation for this graph (searched; at the nearest "
        "dimension that has been measured), and with those that come with the library (shipped). The paper says "
        "neither its settings nor its numbers."
    )
    options = frozenset({"models", "seeds", "epochs", "data_dir", "device", "dtype", "work"})
    key = ("model", "choice")
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
        """A line for each model and choice of settings."""
        models = chosen_names("model", self.name, asked.models, MODELS)
        return [
            self._wanted(model, choice, settings, asked)
            for choice in CHOICES
            for model in models
            if (settings := _settings(model, choice, asked)) is not None
        ]

    def _wanted(self, model: str, choice: str, settings: Settings, asked: Asked) -> Line:
        return {
            "dataset": DATASET,
            "graph": GRAPH,
            "task": "link",
            "model": model,
            "dim": DIM,
            "split": SPLIT,
            "runs": number_of_seeds(asked, SEEDS),
            "settings": dataclasses.asdict(settings),
            "choice": choice,
            "protocol": {"dtype": asked.dtype},
        }

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """Train a model some times and measure every run; what has been trained already is not trained again."""
        return _measured(trained(self.name, wanted, asked))

    def draw(self, lines: Sequence[Line]) -> Any:
        """Bars for each model, and below embedded against graph distances."""
        figure = new_figure(11, 10)
        above, below = figure.subfigures(2, 1, height_ratios=(1, 1.7))
        _draw_bars(above.subplots(), lines)
        by_model = {line["model"]: line for choice in reversed(CHOICES) for line in lines if line["choice"] == choice}
        for panel, model in zip(below.subplots(2, 3).flat, MODELS, strict=True):
            if model in by_model:
                line = by_model[model]
                bands = {int(hops): values for hops, values in line["bands"].items()}
                draw_bands(panel, bands, line["mean_length"], f"{model}, {line['choice']} settings")
            else:
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
                "settings": line["choice"],
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


def _draw_bars(axes: Any, lines: Sequence[Line]) -> None:
    """The average distortion of each model: a full bar with searched settings, a hatched one with shipped ones."""
    for line in lines:
        flat, second = line["model"] in EUCLIDEAN, CHOICES.index(line["choice"])
        place = MODELS.index(line["model"]) + 0.38 * second - 0.19
        look = {"facecolor": COLOURS[1] if flat else COLOURS[0], "edgecolor": "white", "hatch": "//" if second else ""}
        axes.bar(place, line["distortion_mean"], yerr=line["distortion_std"], width=0.36, capsize=3, **look)
        top = line["distortion_mean"] + line["distortion_std"]
        text = f"{line['distortion_mean']:.2f}\nAUC {100 * line['test_mean']:.0f} %"
        axes.annotate(text, (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    names = [f"{model}\n{'Euclidean' if model in EUCLIDEAN else 'hyperbolic'}" for model in MODELS]
    axes.set_xticks(range(len(MODELS)), names)
    axes.set_yscale("log")
    axes.margins(y=0.3)
    axes.set_ylabel("average distortion")
    runs = ", ".join(map(str, sorted({line["runs"] for line in lines})))
    dress(axes, f"{GRAPH}, links, d = {DIM}, {runs} runs: searched settings (full), shipped settings (hatched)")


def _settings(model: str, choice: str, asked: Asked) -> Settings | None:
    """Settings for a model at :data:`DIM`; None where it has not been searched."""
    if choice == "shipped":
        return default_settings(model, "link", GRAPH, DIM, **limits(asked))
    found = searched_settings(model, DATASET, DIM, asked)
    return None if found is None else found[0]


def _measured(experiment: Experiment) -> Line:
    """Distortions of all runs, and how embedded distances grow in the best one."""
    found = [run_distortion(run) for run in experiment.runs]
    averages = [one.average for one in found]
    best = found[experiment.runs.index(experiment.best)]
    tests = [run.summary["test"] for run in experiment.runs]
    return {
        "test_mean": statistics.mean(tests),
        "test_std": spread_of(tests),
        "tests": tests,
        "seconds": experiment.summary["seconds"],
        "distortion_mean": statistics.mean(averages),
        "distortion_std": spread_of(averages),
        "distortions": averages,
        "precisions": [one.mean_average_precision for one in found],
        "correlations": [one.correlation for one in found],
        "rank_correlations": [one.rank_correlation for one in found],
        "mean_length": best.mean_length,
        "bands": {str(hops): values for hops, values in best.bands.items()},
    }
