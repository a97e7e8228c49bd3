"""One run: a model trained in a folder of its own, from wherever it stands to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from hyperboloid.errors import TrainingError

from .checkpoint import load_checkpoint, save_checkpoint, write_atomically, write_json
from .config import Config
from .experiment import read_summary, summarize
from .graph_task import GraphTask, predictions_table
from .interrupt import held_interrupt
from .loop import Training, start_training
from .tasks import PARTS, BaseTask, Task

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


def train_run(folder: Path, config: Config, task: BaseTask, progress: Progress | None) -> dict[str, Any]:
    """One run, from wherever it stands to its end."""
    if (folder / "summary.json").exists():
        return read_summary(folder)
    folder.mkdir(exist_ok=True)
    if not (folder / "config.json").exists():
        write_json(folder / "config.json", config.to_json())
    training = start_training(config.model, task, config.settings, config.seeds[0])
    checkpoint = folder / "checkpoint.safetensors"
    if checkpoint.exists():
        load_checkpoint(checkpoint, training)
    if progress is not None:
        progress.start(config)
    _epochs(folder, training, lambda: save_checkpoint(checkpoint, training), progress)
    summary = finish_run(folder, config, training)
    checkpoint.unlink(missing_ok=True)
    if progress is not None:
        progress.finish(summary)
    return summary


def _epochs(folder: Path, training: Training, save: Callable[[], None], progress: Progress | None) -> None:
    """Run the remaining epochs, writing a line for each and a checkpoint now and then."""
    log = folder / "metrics.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)[: training.epoch] if log.exists() else []
    write_atomically(log, b"".join(lines))
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


def finish_run(folder: Path, config: Config, training: Training) -> dict[str, Any]:
    """Score the best epoch once, and write the model, its embeddings or predictions, and the summary."""
    from safetensors.torch import save

    encoder, task = training.encoder, training.task
    encoder.load_state_dict(training.best_state)
    test = training.score("test")
    write_atomically(folder / "model.safetensors", save({k: v.contiguous() for k, v in encoder.state_dict().items()}))
    if isinstance(task, GraphTask):
        write_atomically(folder / "predictions.parquet", parquet(predictions_table(task, encoder)))
        more = {"targets": {part: task.report(encoder, part) for part in PARTS}}
    else:
        with torch.no_grad():
            embeddings = task.encode(encoder)
        write_atomically(folder / "embeddings.parquet", embeddings_to_bytes(task, embeddings))
        more = {}
    summary = {
        "split": config.splits[0],
        "split_name": task.split_name,
        "seed": config.seeds[0],
        "val": task.shown(training.best.metric),
        "test": task.shown(test.metric),
        "val_loss": -training.best.negative_loss,
        "test_loss": -test.negative_loss,
        "best_epoch": training.best_epoch,
        "epochs": training.epoch,
        "seconds": training.seconds,
        **more,
    }
    write_json(folder / "summary.json", summarize(config, folder, [summary]))
    return summary


def embeddings_to_bytes(task: Task, embeddings: torch.Tensor) -> bytes:
    """A Parquet table with a node's id and its normal coordinates ``v0 …``."""
    import pyarrow as pa

    graph = task.graph
    columns = {"id": pa.array([graph.id_of(i) for i in range(graph.num_nodes)])}
    for k, column in enumerate(embeddings.detach().cpu().T):
        columns[f"v{k}"] = pa.array(column.numpy())
    return parquet(pa.table(columns))


def parquet(table: Any) -> bytes:
    """A pyarrow table as the content of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
