"""Everything about a run folder on one page that needs nothing else."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs.hyperbolicity import delta_average
from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.scores import percent, score
from hyperboloid.training.data import Data
from hyperboloid.training.experiment import Experiment, Run
from hyperboloid.training.settings import taken_settings

from . import html
from .attention import LayerSummary, attention_weights, summarize
from .attention_picture import draw_attention
from .curves import curvature_names, draw_curves
from .disk_picture import draw_disk
from .distortion import OF_LOGITS, run_distortion
from .parity import draw_parity

#: Half width of δ_avg's confidence interval; the command `hyperbolicity` measures more finely.
PRECISION = 0.01


def report(experiment: Experiment, watch: Callable[[str], None] = lambda text: None) -> str:
    """The page, as HTML.

    Of several runs all scores are given; curves, picture, distortion and attention are those of the best on validation.

    Args:
        experiment: a finished run folder.
        watch: is told what is being computed.

    Raises:
        InputError: a run has not finished, or the folder is damaged.
    """
    summary, run = experiment.summary, experiment.best
    title = f"{summary['model']} on {summary['dataset']}, {summary['task']}"
    parts = [f"<h1>{html.escape(title)}</h1>", html.paragraph(_lead(summary), "lead")]
    parts.append(_scores(summary))
    of_molecules: list[tuple[str, Callable[[Run], str]]] = [("the picture", _parity)]
    of_graph = [("the picture", _picture), ("δ and distortion", _tree_likeness), ("the attention", _attention)]
    own = of_molecules if experiment.config.task == "graph" else of_graph
    for name, part in (("the curves", _epochs), *own, ("the configuration", _configuration)):
        watch(name)
        parts.append(part(run))
    return html.page(title, parts)


def _percent(fraction: float) -> str:
    return f"{percent(fraction)} %"


def _lead(summary: dict[str, Any]) -> str:
    several = len(summary["runs"]) > 1
    test, val = (
        score(summary["metric"], summary[f"{part}_mean"], summary[f"{part}_std"] if several else None)
        for part in ("test", "val")
    )
    text = f"Test {summary['metric']} {test}, validation {val}, {summary['dim']} dimensions."
    return f"{text} Mean ± standard deviation of {len(summary['runs'])} runs." if several else text


def _scores(summary: dict[str, Any]) -> str:
    header = ["split", "seed", f"validation {summary['metric']}", f"test {summary['metric']}", "best epoch", "epochs"]
    rows = [
        [
            f"{r['split']} ({r['split_name']})",
            f"{r['seed']}",
            score(summary["metric"], r["val"]),
            score(summary["metric"], r["test"]),
            f"{r['best_epoch']}",
            f"{r['epochs']}",
            f"{r['seconds']:.1f}",
        ]
        for r in summary["runs"]
    ]
    parts = [html.table([*header, "seconds"], rows)]
    errors = []
    for name, found in summary.get("targets", {}).items():
        spread = {key: found[f"{key}_std"] if len(rows) > 1 else None for key in ("mae", "rmse", "r2")}
        errors.append([name, *(score("mae", found[f"{key}_mean"], spread[key]) for key in spread)])
    if errors:
        parts.append(html.table(["target", "test MAE", "test RMSE", "test R²"], errors))
    if len(errors) > 1:
        parts.append(html.paragraph("The first table has the mean over the targets, in standard deviations.", "note"))
    return html.section("scores", "Scores", *parts)


def _epochs(run: Run) -> str:
    if not run.history:
        text = "A sweep has trained this run, and sweeps keep no record of single epochs."
        return html.section("epochs", "Training", html.paragraph(text))
    parts = [html.image(draw_curves(run), "svg", "losses, validation score and curvatures by epoch")]
    names, best = curvature_names(run), run.summary["best_epoch"]
    if names:
        first, last, chosen = run.history[0]["beta"], run.history[-1]["beta"], run.history[best - 1]["beta"]
        start = run.config.settings.beta
        header = ["β (curvature −1/β)", "start", "epoch 1", f"best epoch ({best})", f"last epoch ({len(run.history)})"]
        rows = [
            [name, f"{start:g}", *(f"{values[k]:.4g}" for values in (first, chosen, last))]
            for k, name in enumerate(names)
        ]
        parts.append(html.table(header, rows))
        if run.config.task == "node":
            parts.append(html.paragraph("The outputs are logits: nothing measures a distance there.", "note"))
    return html.section("epochs", "Training", *parts)


def _picture(run: Run) -> str:
    where = "in the plane" if run.encoder.curvature is None else "on the Poincaré disk"
    return html.section("picture", f"Embeddings {where}", html.image(draw_disk(run), "png", f"embeddings {where}"))


def _parity(run: Run) -> str:
    figure = html.image(draw_parity(run), "png", "predicted against true values of the test molecules")
    return html.section("predictions", "Predictions", figure)


def _tree_likeness(run: Run) -> str:
    rows: list[list[str]] = []
    try:
        delta = delta_average(run.graph, precision=PRECISION, seed=0)
        rows.append(["δ_avg of the graph", f"{delta.mean:.3f} ± {delta.half_width:.3f}", "0 for a tree"])
    except InputError as error:
        rows.append(["δ_avg of the graph", "–", str(error)])
    try:
        found = run_distortion(run)
        range_ = "" if found.all_pairs else f" ± {found.standard_error:.2g}"
        pairs = "all pairs" if found.all_pairs else f"{found.pairs:,} pairs"
        rows += [
            ["average distortion", f"{found.average:.4g}{range_}", f"0 where the graph's distances are kept; {pairs}"],
            [
                "mean average precision",
                f"{found.mean_average_precision:.3f}",
                "1 where neighbours are nearest",
            ],
            ["rank correlation of distances", f"{found.rank_correlation:.3f}", "1 where their order is kept"],
        ]
    except InputError as error:
        rows.append(["average distortion", "–", str(error)])
    note = html.paragraph(OF_LOGITS, "note") if run.config.task == "node" else ""
    return html.section("geometry", "Is the graph hyperbolic, and the embedding faithful?", html.table([], rows), note)


def _attention(run: Run) -> str:
    if not run.encoder.attends:
        return ""
    try:
        layers = attention_weights(run)
        summaries = summarize(layers, run.graph.y)
    except InputError as error:
        return html.section("attention", "Attention", html.paragraph(str(error)))
    header = ["layer", "entropy, 1 for uniform", "on the node itself", "uniform", "on neighbours of the same label"]
    header += ["their share", "shuffled labels, points above the share"]
    figure = html.image(draw_attention(run, layers, summaries), "svg", "attention across the graph")
    return html.section("attention", "Attention", html.table(header, map(_attention_row, summaries)), figure)


def _attention_row(s: LayerSummary) -> list[str]:
    cells = [f"{s.layer}", f"{s.entropy:.3f}", _percent(s.self_share), _percent(s.self_uniform)]
    same = s.same_label
    if same is None:
        return [*cells, "–", "–", "–"]
    control = f"{100 * same.control:+.1f} ± {100 * same.control_std:.1f}"
    return [*cells, f"{_percent(same.attention)} of {same.nodes} nodes", _percent(same.share), control]


def _about(data: Data) -> list[list[str]]:
    """What was trained on, in numbers."""
    if isinstance(data, MoleculeSet):
        return [
            ["molecules", f"{len(data):,}"],
            ["rows that were none", f"{len(data.problems):,}"],
            ["atoms", f"{int(data.num_atoms.sum()):,} of {len(data.atom_names)} kinds"],
            ["bonds", f"{int(data.num_bonds.sum()):,} of {len(data.bond_names)} kinds"],
        ]
    return [
        ["nodes", f"{data.num_nodes:,}"],
        ["edges", f"{data.num_edges:,}"],
        ["features", f"{data.num_features or 'none: an embedding for each node is learned'}"],
        ["classes", f"{data.num_classes or 'none'}"],
    ]


def _configuration(run: Run) -> str:
    config = run.config
    about = [
        ["data set", config.dataset],
        *_about(run.data),
        ["data's SHA-256", config.checksum],
        ["model", config.model],
        ["parameters", f"{sum(p.numel() for p in run.encoder.parameters()):,}"],
        ["dtype and device", f"{config.dtype}, {config.device}"],
        ["seconds per epoch", f"{run.summary['seconds'] / max(1, run.summary['epochs']):.3g}"],
    ]
    taken = taken_settings(config.model)
    settings = [
        [name, "default" if value is None else json.dumps(value)]
        for name, value in sorted(dataclasses.asdict(config.settings).items())
        if name in taken
    ]
    return html.section(
        "configuration", "Configuration", html.table([], about), html.table(["setting", "value"], settings)
    )
