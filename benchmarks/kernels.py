"""Where the time of a search goes: microseconds a model of every kernel, for its models trained as one program.

    python benchmarks/kernels.py --device cuda --data-dir DATA amazon/link/lgcn/16 pubmed/node/hgcn/64

The models are those of the largest group of the search's settings that is one program, as many as fit (on a CPU 16).
Then half of them leave: how many epochs the others could have been trained in the time that it takes to go on.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.profiler import ProfilerActivity, profile

from hyperboloid.graphs import load_graph
from hyperboloid.training.batch import Batch
from hyperboloid.training.grids import grid
from hyperboloid.training.many import _by_shape, _masked
from hyperboloid.training.memory import capacity
from hyperboloid.training.sweep import task_factory

WARM, TIMED, SHOWN = 6, 10, 20  # epochs before the clock starts, epochs, and kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("what", nargs="+", metavar="GRAPH/TASK/MODEL/DIM")
    args = parser.parse_args()
    cuda = args.device.startswith("cuda")
    activity = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    for what in args.what:
        name, task_name, model, dim = what.split("/")
        graph = load_graph(name, data_dir=args.data_dir)
        runs = [(settings, 0) for settings in grid(model, task_name, name, dim=int(dim), layers=2)]
        runs = [runs[i] for i in max(_by_shape(runs), key=len)]
        task = task_factory(graph, task_name, 0, torch.float32, args.device)(runs[0][0])
        runs = runs[: capacity(model, task, max((settings for settings, _ in runs), key=_masked))]
        batch = Batch(model, task, runs)
        _seconds(batch, WARM)
        each = _seconds(batch, TIMED) / TIMED / len(runs)
        print(f"{what}: {len(runs)} models, {1e6 * each:.1f} µs an epoch and model", flush=True)
        with profile(activities=[activity]) as profiled:
            batch.step()
            batch.outcomes  # noqa: B018
        spent = [(e.self_device_time_total if cuda else e.self_cpu_time_total, e) for e in profiled.key_averages()]
        for taken, event in sorted(spent, key=lambda pair: -pair[0])[:SHOWN]:
            print(f"  {taken / len(runs):9.2f} µs  × {event.count:3}  {event.key[:90]}", flush=True)
        start = time.perf_counter()
        batch.keep(range(len(runs) // 2))
        _seconds(batch, WARM)
        again, epoch = time.perf_counter() - start, _seconds(batch, TIMED) / TIMED
        print(f"  to go on with half of them takes {(again - WARM * epoch) / epoch:.1f} epochs of theirs", flush=True)
        del batch, profiled, spent


def _seconds(batch: Batch, epochs: int) -> float:
    """Train for some epochs."""
    start = time.perf_counter()
    for _ in range(epochs):
        batch.step()
    batch.outcomes  # noqa: B018 (waits for the device)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
