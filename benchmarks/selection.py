"""How many of a search's settings have to be tried again, with how many initialisations. No test score is computed.

HYPERBOLOID_DATA=… python benchmarks/selection.py citeseer 8 --device cuda     # a minute; on a CPU an hour

One cell's search is run as `hyperboloid paper run node` does it, then its best settings with ten other initialisations
each. From these ten, in random orders, every selection below takes as many as it asks for, and what it chooses is
judged by those that are left: printed is their mean validation score in %, what the choice is worth. Trials are kept in
--work, so that it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch

from hyperboloid.graphs import load_graph
from hyperboloid.paper.protocol import ROUNDS, SPLIT, RunProtocol
from hyperboloid.training.journal import Journal
from hyperboloid.training.many import train_many
from hyperboloid.training.selection import SEARCH_SEED, SELECTION_SEED, Rounds, to_try
from hyperboloid.training.sweep import task_factory
from hyperboloid.training.trial import Run, Trial

TASK, INITS, ORDERS = "node", 10, 2000
#: The selection for links, that for nodes, and others; the last one has the most settings. One initialisation at least
#: has to be left.
SELECTIONS: list[Rounds] = [
    ROUNDS["link"],
    ((16, 9),),
    ((128, 3),),
    ((64, 1), (16, 3), (4, 6)),
    ((128, 1), (32, 3), (8, 6)),
    ((128, 1), (32, 4), (6, 9)),
]


def scores_of(model: str, dataset: str, dim: int, device: str, data_dir: str | None, work: Path) -> np.ndarray:
    """Validation scores ``(settings, INITS)`` of the best settings of a search, the best of it first."""
    graph = load_graph(dataset, data_dir=data_dir)
    task_for = task_factory(graph, TASK, SPLIT, torch.float32, device)
    work.mkdir(parents=True, exist_ok=True)
    journal = Journal(work / f"{model}-{dataset}-d{dim}-{device}.jsonl")

    def trained(stage: str, runs: list[Run], halving: bool) -> list[Trial]:
        save = partial(journal.add, stage, model)
        train_many(model, task_for, journal.missing(stage, model, runs), halving=halving, save=save)
        return [trial for trial in journal.read(stage, model, runs) if not trial.outcome.failed]

    settings = to_try(model, TASK, dataset, dim=dim, **RunProtocol().fixed(model))
    searched = trained("search", [(one, SEARCH_SEED) for one in settings], True)
    ranked = sorted(searched, key=lambda t: (t.outcome.val, -t.outcome.val_loss), reverse=True)
    best = [trial.outcome.settings for trial in ranked[: SELECTIONS[-1][0][0]]]
    again = trained("selection", [(one, SELECTION_SEED + k) for one in best for k in range(INITS)], False)
    found = {one: [t.outcome.val for t in again if t.outcome.settings == one] for one in best}
    return np.array([own for own in found.values() if len(own) == INITS])


def worth(scores: np.ndarray, rounds: Rounds) -> float:
    """Mean score of what a selection chooses, by initialisations that it has not seen."""
    chance, found = np.random.default_rng(0), []
    for _ in range(ORDERS):
        shuffled = scores[:, chance.permutation(INITS)]  # all settings have the same initialisations
        left = np.arange(len(scores))
        for most, inits in rounds:
            left = left[:most]
            left = left[np.argsort(-shuffled[left, :inits].mean(1), kind="stable")]
        found.append(shuffled[left[0], rounds[-1][1] :].mean())
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("dim", type=int)
    parser.add_argument("--model", default="lgcn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data-dir")
    parser.add_argument("--work", type=Path, default=Path("runs/selection"))
    args = parser.parse_args()
    scores = scores_of(args.model, args.dataset, args.dim, args.device, args.data_dir, args.work)
    spread = scores.std(axis=1, ddof=1).mean()
    print(f"{args.model} {args.dataset} d={args.dim}: deviation from run to run {100 * spread:.2f} points")
    for rounds in SELECTIONS:
        text = ", then ".join(f"{most} settings by {inits}" for most, inits in rounds)
        print(f"{100 * worth(scores, rounds):.2f}  {text}", flush=True)


if __name__ == "__main__":
    main()
