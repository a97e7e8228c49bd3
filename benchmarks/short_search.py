"""What the short search of `hyperboloid advise` finds for links, by the number of layers. No test score is computed.

HYPERBOLOID_DATA=… python benchmarks/short_search.py disease_lp citeseer      # minutes a graph on a CPU

Printed is the best validation score of a search in %, mean over two splits; in brackets the best with an L2 penalty.
"""

from __future__ import annotations

import argparse
import statistics

import torch

from hyperboloid.analysis.advise import DIM, MODELS, SEARCH
from hyperboloid.graphs import load_graph
from hyperboloid.training.many import train_many
from hyperboloid.training.selection import SEARCH_SEED, to_try
from hyperboloid.training.sweep import task_factory

SPLITS = (0, 1)


def best(model: str, dataset: str, layers: int, data_dir: str | None) -> tuple[float, float]:
    """Best validation score, of all settings and of those with a penalty, mean over splits."""
    graph = load_graph(dataset, data_dir=data_dir)
    given = {name: SEARCH[name] for name in ("short", "distance", "epochs")}
    runs = [(s, SEARCH_SEED) for s in to_try(model, "link", graph.name, dim=DIM, layers=layers, **given)]
    all_of, penalised = [], []
    for split in SPLITS:
        task_for = task_factory(graph, "link", split, torch.float32, "cpu")
        outcomes = [trial.outcome for trial in train_many(model, task_for, runs)]
        all_of.append(max(o.val for o in outcomes))
        penalised.append(max(o.val for o in outcomes if o.settings.weight_decay))
    return statistics.mean(all_of), statistics.mean(penalised)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    for dataset in args.datasets:
        for model in MODELS:
            shown = []
            for layers in (2, 1):
                score, penalised = best(model, dataset, layers, args.data_dir)
                shown.append(f"{100 * score:.1f} ({100 * penalised:.1f})")
            print(dataset, model, " → ".join(shown), flush=True)


if __name__ == "__main__":
    main()
