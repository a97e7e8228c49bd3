"""Seconds of the paper's whole grid for one cell of its link table: 256 settings, selection and test included.

    python benchmarks/grid.py --device cuda --data-dir DATA

LGCN on Cora at d = 16, DropConnect, the Lorentzian distance, at most 600 epochs: all settings to their end, and with
the worse half stopped now and then, as `hyperboloid sweep` does. Twice, because the first run compiles kernels.
"""

from __future__ import annotations

import argparse
import time

import torch

from hyperboloid.graphs import load_graph
from hyperboloid.training.grids import DROPOUTS_OF_PAPER, LEARNING_RATES, PENALTIES
from hyperboloid.training.selection import sweep_model
from hyperboloid.training.sweep import task_factory

CHOICES = {"lr": LEARNING_RATES, "drop_connect": DROPOUTS_OF_PAPER, "weight_decay": PENALTIES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--tries", type=int, help="so many of the settings only")
    args = parser.parse_args()
    graph = load_graph(args.graph, data_dir=args.data_dir)
    given = {"dim": args.dim, "epochs": args.epochs, "dropout": 0.0, "distance": "lorentz", "activation": "relu"}
    for halving in (False, True):
        for run in ("first", "second"):
            began = time.perf_counter()
            task_for = task_factory(graph, "link", 0, torch.float32, args.device)
            found = sweep_model(
                "lgcn", graph, "link", task_for, seeds=10, tries=args.tries, halving=halving, choices=CHOICES, **given
            )
            seconds = time.perf_counter() - began
            print(
                f"{found.grid} settings, {'the worse half stopped' if halving else 'all to their end'}, {run} time: "
                f"{seconds:.1f} s, {found.epochs} epochs of models, {found.epochs / seconds:.0f} a second; "
                f"validation {found.val:.4f}, test {found.test_mean:.4f} ± {found.test_std:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
