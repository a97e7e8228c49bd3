"""Run folders, read back: everything here works from the folder alone."""

from __future__ import annotations

import json
import statistics
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.nn.features import compress
from hyperboloid.scores import spread_of

from .config import Config, read_config
from .data import Data, read_data
from .every_task import get_any_task
from .features import scaled_features
from .graph_task import GraphTask
from .loop import build_encoder
from .tasks import PARTS, Part, Score


class Run:
    """One trained model: a folder with ``config.json``, ``metrics.jsonl``, ``model.safetensors``, … in it.

    Args:
        folder: of the run.
        config: of this run alone.
        data: the graph, or the molecules, it was trained on.
    """

    def __init__(self, folder: Path, config: Config, data: Data) -> None:
        self.folder = folder
        self.config = config
        self.data = data

    @property
    def graph(self) -> Graph:
        """The one graph it was trained on."""
        return one_graph(self.folder, self.data)

    def graph_or_own(self, source: Any) -> Graph:
        """The graph that ``source`` stands for, see :func:`load_graph`; the run's own for None."""
        return self.graph if source is None else load_graph(source)

    @property
    def split(self) -> int:
        """Seed of the split."""
        return self.config.splits[0]

    @property
    def seed(self) -> int:
        """Seed of the initialisation."""
        return self.config.seeds[0]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Scores and counts of the finished run."""
        return read_summary(self.folder)

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """What was noted down of each epoch; empty for a run that a sweep has trained."""
        path = self.folder / "metrics.jsonl"
        if not path.is_file():
            return []
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for line in lines:
                float(line["epoch"]), float(line["loss"]), [float(beta) for beta in line["beta"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a log of hyperboloid: {error!r}.") from error
        return lines

    @cached_property
    def task(self) -> Any:
        """The :class:`Task` or :class:`GraphTask`, with the very split the model was trained on."""
        return make_task(self.config, self.data, self.split, "cpu")

    @cached_property
    def encoder(self) -> Any:
        """The trained :class:`Encoder` or :class:`GraphModel`, in evaluation mode."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        encoder = build_encoder(self.config.model, self.task, self.config.settings, self.seed)
        path = self.folder / "model.safetensors"
        try:
            encoder.load_state_dict(load(path.read_bytes()))
        except (OSError, SafetensorError, RuntimeError, ValueError, KeyError) as error:
            reason = str(error).splitlines()[-1].strip().rstrip(".")  # torch lists what differs, below a heading
            raise InputError(f"{path} does not hold this run's parameters: {reason}.") from error
        return encoder.eval()

    @torch.no_grad()
    def score(self, part: Part) -> Score:
        """Score on the validation or test part, computed anew."""
        parts = self.summary.get("split_name", self.task.split_name)
        if parts != self.task.split_name:
            raise InputError(
                f"The run in {self.folder} was split as '{parts}', which this version does otherwise: train it again."
            )
        found: Score = self.task.score(self.encoder, part)
        return found

    def evaluate(self) -> dict[str, Any]:
        """Validation and test metric, and for molecules those of each target, computed anew."""
        found: dict[str, Any] = {part: self.task.shown(self.score(part).metric) for part in PARTS}
        if isinstance(self.task, GraphTask):
            found["targets"] = {part: self.task.report(self.encoder, part) for part in PARTS}
        return found

    @torch.no_grad()
    def encode(self, graph: Any = None) -> Tensor:
        """Output of the encoder ``(N, out_channels)``, as it was evaluated: validation and test edges stay hidden.

        With a graph given, or whatever :func:`load_graph` takes, messages pass along all its edges (the run's own
        ``graph`` may be given too). Another one needs features, as many as the one trained on.
        """
        if isinstance(self.task, GraphTask):
            raise InputError(
                f"The run in {self.folder} predicts properties of molecules and embeds no nodes: "
                "evaluate() judges it, and `hyperboloid predict` applies it to new ones."
            )
        if graph is None:
            own: Tensor = self.task.encode(self.encoder)
            return own.detach()  # of a shallow model it is a parameter
        graph = load_graph(graph)
        if graph is not self.graph:
            if self.graph.x is None or not self.encoder.inductive:
                raise InputError("This model learned an embedding per node, without features: it knows no other graph.")
            if graph.num_features != self.graph.num_features:
                raise InputError(
                    f"The model was trained on {self.graph.num_features} features per node, "
                    f"but graph '{graph.name}' has {graph.num_features}."
                )
        scaled = scaled_features(graph, self.task.scaling, self.config.torch_dtype, trained_on=self.graph)
        x = compress(scaled)
        weight = None if graph.edge_weight is None else graph.edge_weight.to(self.config.torch_dtype)
        out: Tensor = self.encoder(x, graph.edge_index, weight)
        return out


class Experiment:
    """A run folder: a single run, or one sub-folder for each split and seed.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.config = read_config(self.folder)

    def __repr__(self) -> str:
        return f"Experiment({str(self.folder)!r}, {self.config.model} on {self.config.dataset}, {self.config.task})"

    @cached_property
    def data(self) -> Data:
        """The graph, or the molecules, that were trained on."""
        path, data = read_data(self.folder, self.config.task)
        if data.checksum != self.config.checksum:
            raise InputError(f"{path} is not the graph of this run: its checksum differs from config.json's.")
        return data

    @property
    def graph(self) -> Graph:
        """The one graph that was trained on."""
        return one_graph(self.folder, self.data)

    @property
    def molecules(self) -> MoleculeSet:
        """The molecules that were trained on."""
        if not isinstance(self.data, MoleculeSet):
            raise InputError(f"The run in {self.folder} was trained on one graph, not on molecules.")
        return self.data

    @cached_property
    def runs(self) -> list[Run]:
        """Its runs, by split and seed."""
        c = self.config
        return [
            Run(run_folder(self.folder, c, split, seed), c.only(split, seed), self.data)
            for split in c.splits
            for seed in c.seeds
        ]

    @property
    def best(self) -> Run:
        """The run with the best validation score."""
        shown = get_any_task(self.config.task).shown  # of an error, which is the smaller the better, its negative
        return max(self.runs, key=lambda run: shown(float(run.summary["val"])))

    @property
    def summary(self) -> dict[str, Any]:
        """Mean and spread over the runs."""
        return summarize(self.config, self.folder, [run.summary for run in self.runs])


def make_task(config: Config, data: Data, split: int, device: str) -> Any:
    """The task of a config, with a seed's split, on a device."""
    task: Any = get_any_task(config.task)
    return task(data, config.settings, split, config.torch_dtype, device)


def one_graph(folder: Path, data: Data) -> Graph:
    """The data, if it is one graph."""
    if isinstance(data, MoleculeSet):
        raise InputError(f"The run in {folder} was trained on many molecules, not on the nodes of one graph.")
    return data


def read_summary(folder: Path) -> dict[str, Any]:
    """Scores and counts of the finished run in its own folder, checked."""
    path = folder / "summary.json"
    if not path.is_file():
        raise InputError(f"The run in {folder} has not finished; go on with it by `train … --resume`.")
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["runs"][0]
        for key in ("split", "seed", "val", "test", "epochs", "seconds"):
            float(content[key])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path} is not a summary of hyperboloid: {error!r}.") from error
    return content


def run_folder(folder: Path, config: Config, split: int, seed: int) -> Path:
    """Where one run of an experiment lies."""
    alone = len(config.splits) * len(config.seeds) == 1
    return folder if alone else folder / f"split-{split}-seed-{seed}"


def summarize(config: Config, folder: Path, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and sample standard deviations over runs (0 for a single one).

    Metrics are fractions of 1, errors are in the target's units, or of several targets in standard deviations; then the
    test errors of each follow in its own.
    """
    val, test = [r["val"] for r in runs], [r["test"] for r in runs]
    targets: dict[str, dict[str, float]] = {}
    for name, found in runs[0].get("targets", {}).get("test", {}).items():
        values = {key: [r["targets"]["test"][name][key] for r in runs] for key in found}
        targets[name] = {f"{key}_mean": statistics.mean(each) for key, each in values.items()}
        targets[name] |= {f"{key}_std": spread_of(each) for key, each in values.items()}
    return {
        "dataset": config.dataset,
        "task": config.task,
        "model": config.model,
        "dim": config.settings.dim,
        "seeds": len(config.seeds),
        "splits": config.splits,
        "metric": get_any_task(config.task).metric,
        "val_mean": statistics.mean(val),
        "val_std": spread_of(val),
        "test_mean": statistics.mean(test),
        "test_std": spread_of(test),
        "epochs": sum(r["epochs"] for r in runs),
        "seconds": sum(r["seconds"] for r in runs),
        **({"targets": targets} if targets else {}),
        "run": str(folder),
        "runs": runs,
    }


def load(folder: str | Path) -> Experiment:
    """Read a run folder back; nothing in it is executed or unpickled."""
    return Experiment(folder)
