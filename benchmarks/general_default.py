"""Which setting a graph that nobody has tuned should get: the one that is best on average over the named graphs.

    HYPERBOLOID_DATA=… python benchmarks/general_default.py link --also '{"layers": 1, "lr": 0.008}'

Every entry of `defaults.json` for the task, and one that might become one, is trained on every graph below, on splits 0
and 1 (for a public split: with two initialisations); printed is how far its validation score falls short of the best
entry's, averaged over the graphs. Features are scaled as those of any graph, whatever the entry says. For links two
graphs are tried without features too, since most edge lists have none. No test score is computed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from importlib.resources import files
from typing import Any

import torch

from hyperboloid.graphs import Graph, load_graph
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import get_task

GRAPHS = {
    "link": ["cora", "citeseer", "usa", "disease_lp", "disease"],
    "node": ["cora", "citeseer", "usa", "disease_lp"],
}
WITHOUT_FEATURES = {"link": ["cora", "citeseer"], "node": []}
SPLITS = (0, 1)


def graphs(task: str, data_dir: str | None) -> dict[str, Graph]:
    found = {name: load_graph(name, data_dir=data_dir) for name in GRAPHS[task]}
    bare = {f"{name}, no features": dataclasses.replace(found[name], x=None) for name in WITHOUT_FEATURES[task]}
    return found | bare


def validation(task: str, graph: Graph, settings: Settings) -> float:
    scores = []
    for number in SPLITS:  # split and seed: one of them decides
        training = Training("lgcn", get_task(task)(graph, settings, number, torch.float32, "cpu"), settings, number)
        while not training.done:
            training.step()
        scores.append(training.best.metric)
    return statistics.mean(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(GRAPHS))
    parser.add_argument("--data-dir")
    parser.add_argument("--also", type=json.loads, metavar="JSON", help="settings to try besides")
    args = parser.parse_args()
    table: dict[str, dict[str, Any]] = json.loads(
        files("hyperboloid.training").joinpath("defaults.json").read_text(encoding="utf-8")
    )["lgcn"][args.task]
    asked = table if args.also is None else table | {"also": args.also}
    entries = {name: {key: v for key, v in entry.items() if key != "scaling"} for name, entry in asked.items()}
    found = graphs(args.task, args.data_dir)
    scores: dict[str, dict[str, float]] = {}
    for name, entry in entries.items():
        if entry in [entries[other] for other in scores]:
            continue  # but for the scaling it is another graph's
        scores[name] = {g: validation(args.task, graph, Settings(**entry)) for g, graph in found.items()}
        print(name, {g: round(s, 4) for g, s in scores[name].items()}, flush=True)
    best = {g: max(s[g] for s in scores.values()) for g in found}
    short = {name: statistics.mean(best[g] - s[g] for g in best) for name, s in scores.items()}
    for name in sorted(short, key=short.__getitem__):
        print(f"{short[name]:.4f} behind on average: {name} {entries[name]}")


if __name__ == "__main__":
    main()
