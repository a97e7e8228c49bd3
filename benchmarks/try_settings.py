"""Validation scores of single settings, for refining what the search found. No test score is computed.

HYPERBOLOID_DATA=… python benchmarks/try_settings.py cora link --splits 0-4 --seeds 50 "lr=0.01 drop_connect=0.6" …
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from hyperboloid.cli.options import numbers, settings_from
from hyperboloid.graphs import load_graph
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import get_task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("task")
    parser.add_argument("settings", nargs="+", help='a setting each, e.g. "lr=0.01 dropout=0.2"')
    parser.add_argument("--splits", default="0")
    parser.add_argument("--seeds", default="50", help="apart from those of the final runs, which start at 0")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    graph = load_graph(args.dataset, data_dir=args.data_dir)
    for words in args.settings:
        settings = Settings(**settings_from(words.split()))
        scores, epochs, start = [], [], time.perf_counter()
        for split in numbers(args.splits, "--splits"):
            task = get_task(args.task)(graph, settings, split, torch.float32, "cpu")
            for seed in numbers(args.seeds, "--seeds"):
                training = Training("lgcn", task, settings, seed)
                while not training.done:
                    training.step()
                scores.append(training.best.metric)
                epochs.append(training.best_epoch)
        seconds = time.perf_counter() - start
        listed = [round(s, 4) for s in scores]
        print(
            args.dataset,
            args.task,
            f"{statistics.mean(scores):.4f}",
            listed,
            epochs,
            words,
            f"{seconds:.0f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
