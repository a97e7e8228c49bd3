"""Neighbours summed by Kipf's normalisation or averaged: the table of docs/models.md. No test score is computed.

HYPERBOLOID_DATA=… python benchmarks/normalization.py usa node --models gcn,kgcn      # minutes on a CPU

Printed is the best validation score of 18 settings with either, d = 16, split 0, one initialisation each.
"""

from __future__ import annotations

import argparse
import itertools

import torch

from hyperboloid.graphs import load_graph
from hyperboloid.nn.gcn import NORMALIZATIONS
from hyperboloid.training.grids import ACTIVATION
from hyperboloid.training.many import train_many
from hyperboloid.training.selection import SEARCH_SEED
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import task_factory

LEARNING_RATES, DROPOUTS, PENALTIES = (0.01, 0.005), (0.0, 0.3, 0.6), (0.0, 0.0001, 0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("task", choices=list(ACTIVATION))
    parser.add_argument("--models", default="gcn,kgcn")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    graph = load_graph(args.dataset, data_dir=args.data_dir)
    task_for = task_factory(graph, args.task, 0, torch.float32, "cpu")
    for model in args.models.split(","):
        scores = []
        for normalization in NORMALIZATIONS:
            common = {"dim": 16, "activation": ACTIVATION[args.task], "normalization": normalization}
            settings = [
                Settings(lr=lr, dropout=p, weight_decay=penalty, **common)
                for lr, p, penalty in itertools.product(LEARNING_RATES, DROPOUTS, PENALTIES)
            ]
            trials = train_many(model, task_for, [(one, SEARCH_SEED) for one in settings])
            scores.append(max(trial.outcome.val for trial in trials))
        print(args.dataset, args.task, model, " → ".join(f"{score:.3f}" for score in scores), flush=True)


if __name__ == "__main__":
    main()
