"""Training from the outside: a graph in, a run folder out."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.store import graph_to_bytes

from .checkpoint import load_checkpoint, save_checkpoint, write_atomically, write_json
from .config import Config, check_device, read_config
from .experiment import Experiment, read_summary, run_folder, summarize
from .interrupt import held_interrupt
from .loop import Training, build_encoder
from .settings import default_settings
from .tasks import Task, get_task

#: A run killed at any moment loses at most about this many seconds of work.
CHECKPOINT_EVERY = 5.0


class Progress(Protocol):
    """Told about every epoch of every run."""

    def start(self, config: Config) -> None:
        """A run begins, or goes on."""

    def epoch(self, training: Training, metrics: dict[str, Any]) -> None:
        """An epoch ended."""

    def finish(self, summary: dict[str, Any]) -> None:
        """A run ended."""


def fit(
    dataset: Any,
    *,
    task: str = "link",
    model: str = "lgcn",
    dim: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    split: int | Sequence[int] = 0,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
    data_dir: str | Path | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Experiment:
    """Train a model on a graph, once for each split and seed, and keep everything in a run folder.

    Args:
        dataset: name of a data set (``cora``), path of a graph file, or a PyG ``Data``, networkx graph, scipy sparse
            matrix or :class:`Graph`.
        task: ``link`` or ``node``.
        model: name of the model.
        dim: width of the embeddings; by default what suits the data set.
        seeds: number of initialisations, ``seed``, ``seed + 1``, ….
        seed: the first of them.
        split: seed of the split, or several.
        features: table of node features, for a graph of the user's.
        labels: table of node labels, likewise.
        weight: column of edge weights, likewise.
        data_dir: where the named data sets lie.
        device: ``cpu`` or ``cuda``.
        dtype: ``float32`` or ``float64``.
        out: the run folder; by default a new one below ``runs/``.
        resume: go on with the unfinished runs of ``out``.
        progress: is told how it goes.
        **settings: hyper-parameters that differ from the defaults, see :class:`Settings`.

    Raises:
        InputError: something given is wrong; nothing was written.
        TrainingError: a number is not finite, or the disk is full.
        KeyboardInterrupt: with the run folder as its argument, which ``resume`` takes up.
    """
    graph = load_graph(dataset, data_dir=data_dir, features=features, labels=labels, weight=weight)
    config = Config(
        dataset=dataset if isinstance(dataset, str) else str(dataset) if isinstance(dataset, Path) else graph.name,
        checksum=graph.checksum,
        task=task,
        model=model,
        settings=default_settings(model, task, graph.name, dim, **settings),
        splits=[split] if isinstance(split, int) else list(split),
        seeds=list(range(seed, seed + seeds)),
        dtype=dtype,
        device=device,
    )
    check_device(device)

    def task_for(split: int) -> Task:
        return get_task(task)(graph, config.settings, split, config.torch_dtype, device)

    # everything that can be wrong with the input shows here, before anything is written
    first = task_for(config.splits[0])
    build_encoder(model, first, config.settings, config.seeds[0])
    try:
        folder = _open_folder(out, config, resume, Path(graph.name).stem)
    except OSError as error:
        raise InputError(f"Cannot make the run folder {out or 'below runs/'}: {error.strerror}.") from error
    try:
        _train_all(folder, config, graph, task_for, first, progress)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(str(folder)) from interrupt
    return Experiment(folder)


def _train_all(
    folder: Path, config: Config, graph: Graph, task_for: Callable[[int], Task], first: Task, progress: Progress | None
) -> None:
    """Fill a run folder: one run for each split and seed, and their summary."""
    write_json(folder / "config.json", config.to_json())
    if not (folder / "graph.safetensors").exists():
        write_atomically(folder / "graph.safetensors", graph_to_bytes(graph))

    summaries = []
    for split_seed in config.splits:
        current = first if split_seed == config.splits[0] else task_for(split_seed)
        for run_seed in config.seeds:
            one = config.only(split_seed, run_seed)
            where = run_folder(folder, config, split_seed, run_seed)
            summaries.append(_train(where, one, current, progress))
    write_json(folder / "summary.json", summarize(config, folder, summaries))


def _open_folder(out: str | Path | None, config: Config, resume: bool, name: str) -> Path:
    """Make the run folder, or check that the one there holds this very experiment."""
    if out is None:
        if resume:
            raise InputError("Resuming needs the run folder: give it by --out.")
        stem = f"{name}-{config.task}-{config.model}-d{config.settings.dim}"
        names = (Path("runs") / (stem if n == 1 else f"{stem}-{n}") for n in itertools.count(1))
        folder = next(path for path in names if not path.exists())
    else:
        folder = Path(out)
        if folder.exists() and not resume:
            raise InputError(f"{folder} exists already: choose another --out, or go on with it by --resume.")
        if folder.exists() and (folder / "config.json").exists():
            _check_same(folder, config)
        elif folder.exists() and (not folder.is_dir() or any(p.suffix != ".partial" for p in folder.iterdir())):
            raise InputError(f"{folder} is not a run folder: choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_same(folder: Path, config: Config) -> None:
    """Refuse a run folder of another experiment, naming what differs."""

    def flat(c: Config) -> dict[str, Any]:
        return {key: value for key, value in vars(c).items() if key != "settings"} | vars(c.settings)

    there = flat(read_config(folder))
    for key, value in flat(config).items():
        if there[key] != value:
            raise InputError(
                f"{folder} holds another experiment: its {key} is {there[key]}, not {value}; choose another --out."
            )


def _train(folder: Path, config: Config, task: Task, progress: Progress | None) -> dict[str, Any]:
    """One run, from wherever it stands to its end."""
    if (folder / "summary.json").exists():
        return read_summary(folder)
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config.to_json())
    training = Training(config.model, task, config.settings, config.seeds[0])
    checkpoint = folder / "checkpoint.safetensors"
    if checkpoint.exists():
        load_checkpoint(checkpoint, training)
    if progress is not None:
        progress.start(config)
    _epochs(folder, training, lambda: save_checkpoint(checkpoint, training), progress)
    summary = _finish(folder, config, training)
    checkpoint.unlink(missing_ok=True)
    if progress is not None:
        progress.finish(summary)
    return summary


def _epochs(folder: Path, training: Training, save: Callable[[], None], progress: Progress | None) -> None:
    """Run the remaining epochs, writing a line for each and a checkpoint now and then."""
    log = folder / "metrics.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)[: training.epoch] if log.exists() else []
    write_atomically(log, "".join(lines).encode())
    saved = started = time.perf_counter()
    logged = training.epoch
    try:
        with log.open("a", encoding="utf-8") as file, held_interrupt() as interrupted:
            try:
                while not training.done:
                    metrics = training.step()
                    file.write(json.dumps(metrics) + "\n")
                    logged = training.epoch
                    now = time.perf_counter()
                    training.seconds, started = training.seconds + now - started, now
                    if progress is not None:
                        progress.epoch(training, metrics)
                    if interrupted():
                        raise KeyboardInterrupt
                    if now - saved > CHECKPOINT_EVERY:
                        file.flush()
                        save()
                        saved = time.perf_counter()
            except KeyboardInterrupt:
                if logged == training.epoch:  # else it came amid an epoch: what was saved last stays
                    file.flush()
                    save()
                raise
    except OSError as error:
        raise TrainingError(f"Could not write {log}: {error.strerror}.") from error


def _finish(folder: Path, config: Config, training: Training) -> dict[str, Any]:
    """Score the best epoch once, and write the model, its embeddings and the summary."""
    from safetensors.torch import save

    encoder, task = training.encoder, training.task
    encoder.load_state_dict(training.best_state)
    test = training.score("test")
    with torch.no_grad():
        embeddings = task.encode(encoder)
    write_atomically(folder / "model.safetensors", save({k: v.contiguous() for k, v in encoder.state_dict().items()}))
    write_atomically(folder / "embeddings.parquet", embeddings_to_bytes(task, embeddings))
    summary = {
        "split": config.splits[0],
        "seed": config.seeds[0],
        "val": training.best.metric,
        "test": test.metric,
        "val_loss": -training.best.negative_loss,
        "test_loss": -test.negative_loss,
        "best_epoch": training.best_epoch,
        "epochs": training.epoch,
        "seconds": training.seconds,
    }
    write_json(folder / "summary.json", summarize(config, folder, [summary]))
    return summary


def embeddings_to_bytes(task: Task, embeddings: torch.Tensor) -> bytes:
    """A Parquet table with a node's id and its normal coordinates ``v0 …``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    graph = task.graph
    columns = {"id": pa.array([graph.id_of(i) for i in range(graph.num_nodes)])}
    for k, column in enumerate(embeddings.cpu().T):
        columns[f"v{k}"] = pa.array(column.numpy())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
