"""The paper's figure of attention: what LGCN's layers attend to on Disease, around node 3 and everywhere."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.attention import SameLabel, attention_weights, neighbours, summarize
from hyperboloid.analysis.attention_picture import draw_neighbourhood, legend
from hyperboloid.analysis.style import COLOURS, dress, new_figure
from hyperboloid.scores import percent, spread_of
from hyperboloid.training.experiment import Run
from hyperboloid.training.settings import default_settings

from .cells import chosen_names
from .claims import UNKNOWN, Claim, Finding, judged
from .figure_runs import limits, number_of_seeds, trained
from .figures import Asked, FigureExperiment
from .protocol import SPLIT
from .results import Line
from .table import PaperTable

#: The graph of the paper's picture, and two of the same kind whose features there are.
GRAPHS = ("disease_nc", "disease_lp", "disease")
NODE, SEEDS, LAYERS = 3, 5, 2


def around_the_node(lines: Sequence[Line]) -> Finding:
    """Whether a neighbour of the node's own class gets more attention than one of the other, in each run and layer."""
    line = next((line for line in lines if line["around"] is not None), None)
    if line is None:
        return Finding(UNKNOWN, 0, SEEDS * LAYERS, f"{GRAPHS[0]} has not been measured.")
    labels = line["around"]["labels"]
    alike = [k for k in range(1, len(labels)) if labels[k] == labels[0]]
    other = [k for k in range(1, len(labels)) if labels[k] != labels[0]]
    pairs = [
        (statistics.mean(layer[k] for k in alike), statistics.mean(layer[k] for k in other))
        for run in line["around"]["weights"]
        for layer in run
    ]
    more = sum(a > b for a, b in pairs)
    means = [100 * statistics.mean(column) for column in zip(*pairs, strict=True)]
    rest = 100 - len(other) * means[1]
    text = (
        f"A neighbour of node {NODE}'s class gets {means[0]:.1f} % of its attention on average, one of the other class "
        f"{means[1]:.1f} %; more in {more} of {len(pairs)} pairs of a run and a layer. With the node itself, as the "
        f"paper counts, its class gets {rest:.1f} %, and is {100 * (1 - len(other) / len(labels)):.1f} % of the nodes."
    )
    return Finding(judged(more, len(pairs)), len(pairs), SEEDS * LAYERS, text)


def across_the_graph(lines: Sequence[Line]) -> Finding:
    """Whether neighbours of the same class get more than their share, beyond what shuffled labels give."""
    total = len(GRAPHS) * SEEDS * LAYERS
    found = [(line["graph"], same) for line in lines for run in line["same_label"] for same in run]
    if not found:
        return Finding(UNKNOWN, 0, total, "No graph has been measured.")
    beyond = sum(SameLabel(**same).beyond_chance for _, same in found)
    listed = ", ".join(
        f"{graph} {100 * statistics.mean(s['attention'] - s['share'] for g, s in found if g == graph):+.1f}"
        for graph in dict.fromkeys(graph for graph, _ in found)
    )
    text = (
        f"Attention on the same class less its share, in points, mean over runs and layers: {listed}. Beyond two "
        f"standard deviations of shuffled labels in {beyond} of {len(found)} layers of a run."
    )
    return Finding(judged(beyond, len(found)), len(found), total, text)


class AttentionOnDisease(FigureExperiment):
    """Attention of LGCN, trained to classify the nodes of Disease."""

    name = "attention"
    title = "Attention on Disease"
    about = (
        f"What the layers of LGCN attend to after training for node classification (split {SPLIT}, the settings that "
        f"ship, several initialisations). Left, node {NODE} of `{GRAPHS[0]}` as in the paper's picture, weights as "
        "means over runs; right, over all nodes that have neighbours of both classes, the attention that goes to "
        "their own class against the share of such neighbours, with shuffled labels as the control. The features of "
        f"`{GRAPHS[0]}` are lost, so that its nodes have learned embeddings instead, and labels of training nodes can "
        "be known by heart; the other two graphs have features."
    )
    options = frozenset({"datasets", "seeds", "epochs", "data_dir", "device", "dtype", "work"})
    key = ("graph",)
    needs = ("around", "same_label", "test_mean", "test_std", "runs")
    claims = (
        Claim(
            f"Node {NODE} attends to its class",
            f"“the center node {NODE} pays more attention to nodes with the same class”",
            around_the_node,
        ),
        Claim(
            "Same-class attention everywhere",
            "attention “can automatically distinguish the difference among neighbors”",
            across_the_graph,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """A line for each graph."""
        return [
            {
                "dataset": "disease",
                "graph": graph,
                "task": "node",
                "model": "lgcn",
                "split": SPLIT,
                "runs": number_of_seeds(asked, SEEDS),
                "settings": dataclasses.asdict(default_settings("lgcn", "node", graph, **limits(asked))),
                "protocol": {"dtype": asked.dtype},
            }
            for graph in chosen_names("data set", self.name, asked.datasets, GRAPHS)
        ]

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """Train some times, and look at every run."""
        experiment = trained(self.name, wanted, asked)
        tests = [run.summary["test"] for run in experiment.runs]
        found = [_of_run(run, around=wanted["graph"] == GRAPHS[0]) for run in experiment.runs]
        around = None
        if found[0]["around"] is not None:
            around = found[0]["around"] | {"weights": [one["around"].pop("weights") for one in found]}
        return {
            "dim": wanted["settings"]["dim"],
            "test_mean": statistics.mean(tests),
            "test_std": spread_of(tests),
            "tests": tests,
            "around": around,
            "same_label": [one["same_label"] for one in found],
            "entropy": [one["entropy"] for one in found],
            "self_share": [one["self_share"] for one in found],
            "seconds": experiment.summary["seconds"],
        }

    def draw(self, lines: Sequence[Line]) -> Any:
        """The node among its neighbours in each layer, and the shares on every graph."""
        line = next((line for line in lines if line["around"] is not None), None)
        figure = new_figure(13.5 if line else 6, 4.6)
        panels = figure.subplots(1, 1 + (LAYERS if line else 0), squeeze=False)[0]
        if line is not None:
            names, labels = line["around"]["names"], line["around"]["labels"]
            for layer, axes in enumerate(panels[:-1]):
                columns = zip(*(run[layer] for run in line["around"]["weights"]), strict=True)
                draw_neighbourhood(axes, names, labels, [statistics.mean(column) for column in columns])
                axes.set_title(
                    f"node {NODE} of {line['graph']}, layer {layer + 1}, mean of {line['runs']} runs", fontsize=9
                )
            legend(panels[0], labels, str)
        _shares(panels[-1], lines)
        return figure

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """A row for each graph and layer."""
        rows = [
            {
                "graph": f"{line['graph']}, layer {k + 1}",
                "attention": _mean_std([run[k]["attention"] for run in line["same_label"]]),
                "share": percent(statistics.mean(run[k]["share"] for run in line["same_label"])),
                "control": _mean_std([run[k]["control"] for run in line["same_label"]]),
                "entropy": f"{statistics.mean(run[k] for run in line['entropy']):.2f}",
                "itself": _mean_std([run[k] for run in line["self_share"]]),
                "accuracy": f"{100 * line['test_mean']:.1f} ± {100 * line['test_std']:.1f}",
            }
            for line in lines
            for k in range(LAYERS)
        ]
        columns = {
            "graph": "graph",
            "attention": "attention on the same class, %",
            "share": "its share, %",
            "control": "shuffled labels, less their share",
            "entropy": "entropy, 1 for uniform",
            "itself": "on the node itself, %",
            "accuracy": "test accuracy, %",
        }
        return PaperTable(self.name, self.title, columns, rows)


def _of_run(run: Run, around: bool) -> dict[str, Any]:
    """What one run attends to."""
    layers = attention_weights(run)
    summaries = summarize(layers, run.graph.y)
    found: dict[str, Any] = {
        "same_label": [dataclasses.asdict(s.same_label) for s in summaries if s.same_label is not None],
        "entropy": [s.entropy for s in summaries],
        "self_share": [s.self_share for s in summaries],
        "around": None,
    }
    if around:
        nodes, weights = neighbours(layers, NODE)
        assert run.graph.y is not None
        names, labels = [run.graph.id_of(i) for i in nodes.tolist()], run.graph.y[nodes].tolist()
        found["around"] = {"names": names, "labels": labels, "weights": weights.tolist()}
    return found


def _mean_std(values: Sequence[float]) -> str:
    return percent(statistics.mean(values), spread_of(values))


def _shares(axes: Any, lines: Sequence[Line]) -> None:
    """Attention on the same class beside its share and what shuffled labels add to it."""
    wide = 0.8 / LAYERS
    for k in range(LAYERS):
        places = [number - 0.4 + wide * (k + 0.5) for number in range(len(lines))]
        runs = [[run[k] for run in line["same_label"]] for line in lines]
        means = [100 * statistics.mean(s["attention"] for s in own) for own in runs]
        spread = [100 * statistics.pstdev(s["attention"] for s in own) for own in runs]
        shares = [100 * statistics.mean(s["share"] for s in own) for own in runs]
        hatch = {"color": COLOURS[k], "hatch": ("", "///")[k % 2], "edgecolor": "white"}
        axes.bar(places, means, 0.9 * wide, yerr=spread, capsize=3, ecolor="0.3", label=f"layer {k + 1}", **hatch)
        ends = [p - 0.45 * wide for p in places], [p + 0.45 * wide for p in places]
        axes.hlines(shares, *ends, color="black", linewidth=2, label="their share" if k == 0 else None)
        control = [100 * statistics.mean(s["share"] + s["control"] for s in own) for own in runs]
        twice = [200 * statistics.mean(s["control_std"] for s in own) for own in runs]
        bar = {"fmt": "none", "ecolor": "black", "capsize": 6, "elinewidth": 1}
        axes.errorbar(places, control, yerr=twice, label="shuffled labels, ± 2 std" if k == 0 else None, **bar)
    axes.set_xticks(range(len(lines)), [line["graph"] for line in lines], fontsize=9)
    axes.set_ylim(0, 130)
    axes.set_yticks(range(0, 101, 25))
    axes.set_ylabel("attention on neighbours of the same class, %", fontsize=9)
    dress(axes, "all nodes with neighbours of both classes")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
