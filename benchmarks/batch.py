"""Milliseconds of one epoch of many models trained as one program, and memory, for several models and batch sizes.

    python benchmarks/batch.py --device cuda --data-dir DATA --models lgcn,gcn,gat,hgcn --counts 1,64,256

The same models are timed one by one as well, in the plain loop, and on a GPU also in the loop that plays recorded
epochs: a few of them, for each takes as long as the others.
"""

from __future__ import annotations

import argparse
import time

import torch

from hyperboloid.graphs import load_graph
from hyperboloid.training.batch import Batch
from hyperboloid.training.loop import Training
from hyperboloid.training.recorded import RecordedTraining
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import Task, get_task

WARM = 6  # epochs before the clock starts: compiling, filling caches, recording the CUDA graph
ALONE = 16  # models that are trained one by one at most


def one_by_one(kind: type[Training], model: str, task: Task, batch: Batch, seconds: float) -> str:
    """The same models trained one after the other for as many epochs, beside the seconds of the batch."""
    epochs, count = batch.epoch - WARM, len(batch)
    alone = [kind(model, task, settings, seed) for settings, seed in batch.runs[:ALONE]]
    for training in alone:
        for _ in range(WARM):
            training.step()
    start = time.perf_counter()
    for training in alone:
        for _ in range(epochs):
            training.step()
    taken = (time.perf_counter() - start) * count / len(alone)
    loop = "recorded, " if kind is RecordedTraining else ""
    return f"one by one {loop}{1000 * taken / epochs:.1f} ms, {taken / seconds:.2f} times as long"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--task", default="link")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--models", default="lgcn,gcn,gat,hgcn")
    parser.add_argument("--counts", default="1,16")
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    graph = load_graph(args.graph, data_dir=args.data_dir)
    print(f"{args.graph}, {args.task}, d = {args.dim}, {args.device}: ms an epoch (training step and validation)")
    for model in args.models.split(","):
        for count in map(int, args.counts.split(",")):
            settings = Settings(dim=args.dim, drop_connect=0.2, dropout=0.5 if args.task == "node" else 0.0)
            task = get_task(args.task)(graph, settings, 0, torch.float32, args.device)
            cuda = args.device.startswith("cuda")
            if cuda:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            batch = Batch(model, task, [(settings, seed) for seed in range(count)])
            for _ in range(WARM):
                batch.step()
            batch.outcomes  # noqa: B018 (waits for the device)
            ready = time.perf_counter()
            for _ in range(args.epochs):
                batch.step()
            best = max(o.val for o in batch.outcomes)
            seconds = time.perf_counter() - ready
            more = one_by_one(Training, model, task, batch, seconds)
            if cuda:
                memory = torch.cuda.max_memory_allocated() / 2**30
                more = f"{memory:.1f} GiB, {more}, {one_by_one(RecordedTraining, model, task, batch, seconds)}"
            print(
                f"{model:12} × {count:4}: {1000 * seconds / args.epochs:8.1f} ms, {ready - start:5.1f} s to start, "
                f"best validation {best:.3f}, {more}",
                flush=True,
            )


if __name__ == "__main__":
    main()
