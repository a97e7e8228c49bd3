"""Which setting a graph that nobody has tuned should get: the one that is best on average over the named graphs.

    HYPERBOLOID_DATA=… python benchmarks/general_default.py link

Every entry of `defaults.json` for the task is trained on every graph below (split 0, one initialisation); printed is
how far its validation score falls short of the best entry's, averaged over the graphs. No test score is computed.
"""

from __future__ import annotations

import argparse
import json
import statistics
from importlib.resources import files

import torch

from hyperboloid.graphs import load_graph
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import get_task

GRAPHS = {
    "link": ["cora", "citeseer", "usa", "disease_lp", "disease"],
    "node": ["cora", "citeseer", "usa", "disease_lp"],
}


def validation(task: str, dataset: str, settings: Settings, data_dir: str | None) -> float:
    graph = load_graph(dataset, data_dir=data_dir)
    training = Training("lgcn", get_task(task)(graph, settings, 0, torch.float32, "cpu"), settings, 0)
    while not training.done:
        training.step()
    return training.best.metric


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(GRAPHS))
    parser.add_argument("--data-dir")
    parser.add_argument("--epochs", type=int, default=400)
    args = parser.parse_args()
    table = json.loads(files("hyperboloid.training").joinpath("defaults.json").read_text())["lgcn"][args.task]
    scores: dict[str, dict[str, float]] = {}
    for name, entry in table.items():
        settings = Settings(**{**entry, "epochs": args.epochs})
        scores[name] = {g: validation(args.task, g, settings, args.data_dir) for g in GRAPHS[args.task]}
        print(name, {g: round(s, 4) for g, s in scores[name].items()}, flush=True)
    best = {g: max(s[g] for s in scores.values()) for g in GRAPHS[args.task]}
    short = {name: statistics.mean(best[g] - s[g] for g in best) for name, s in scores.items()}
    for name in sorted(short, key=short.__getitem__):
        print(f"{short[name]:.4f} behind on average: {name} {table[name]}")


if __name__ == "__main__":
    main()
