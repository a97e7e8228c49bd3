"""Seconds of one link-prediction epoch on Cora (training step and validation) for every model, in one table.

    HYPERBOLOID_DATA=… python benchmarks/models.py

Each model has two layers of width 16 and the settings that `train` would choose, and all run in one process on the same
split; epochs alternate between the models, so that a busy machine slows all of them. "CPU" counts the seconds that all
threads were busy, as the published codes were measured: LGCN 0.5 and HGCN (aggregation at the origin) 0.19 CPU seconds
an epoch. Embeddings trained by sampling have epochs of another kind and are left out.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from hyperboloid.graphs import load_graph
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import default_settings
from hyperboloid.training.tasks import LinkTask

PUBLISHED = {"lgcn": 0.5, "hgcn": 0.19}  # CPU seconds an epoch, Cora links, d = 16


def trainings(data_dir: str | None, dim: int) -> dict[str, Training]:
    graph = load_graph("cora", data_dir=data_dir)
    made = {}
    for name, model in MODELS.items():
        if model.load().inductive:
            settings = default_settings(name, "link", "cora", dim=dim)
            made[name] = Training(name, LinkTask(graph, settings, 0, torch.float32, "cpu"), settings, 0)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=50)
    args = parser.parse_args()
    made = trainings(args.data_dir, args.dim)
    wall: dict[str, list[float]] = {name: [] for name in made}
    busy: dict[str, list[float]] = {name: [] for name in made}
    for epoch in range(args.epochs + 5):
        for name, training in made.items():
            start, cpu = time.perf_counter(), time.process_time()
            training.step()
            if epoch >= 5:  # the first few compile and fill caches
                wall[name].append(time.perf_counter() - start)
                busy[name].append(time.process_time() - cpu)
    lgcn = statistics.median(wall["lgcn"])
    print(f"Cora, link prediction, d = {args.dim}, {torch.get_num_threads()} threads, median of {args.epochs} epochs")
    print(f"{'model':24} {'seconds':>8} {'CPU':>8} {'× LGCN':>7}   published CPU")
    for name in made:
        seconds, cpu = statistics.median(wall[name]), statistics.median(busy[name])
        theirs = f"{PUBLISHED[name]:.2f}, {PUBLISHED[name] / cpu:.1f} times ours" if name in PUBLISHED else ""
        print(f"{name:24} {seconds:8.4f} {cpu:8.4f} {seconds / lgcn:7.1f}   {theirs}")


if __name__ == "__main__":
    main()
