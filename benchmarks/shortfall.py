"""What might close LGCN's gap to the paper beyond the search: changes to the settings that a cell has chosen, judged by
validation scores. No test score is computed.

HYPERBOLOID_DATA=… python benchmarks/shortfall.py            # half an hour on a CPU; goes on where it was stopped

Every change is tried with the settings that the search has found without it, on the same splits and initialisations.
Lines go to results/shortfall.jsonl, which `hyperboloid paper report` draws up.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.graphs import load_graph
from hyperboloid.paper.board import chosen_lines
from hyperboloid.paper.cells import cells
from hyperboloid.paper.protocol import SPLIT
from hyperboloid.paper.provenance import code_version, device_name, library_versions
from hyperboloid.paper.results import append_line, cell_key, key_of, read_results
from hyperboloid.paper.shortfalls import UNCHANGED, read_tried
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import Part, Score, get_task

RESULTS = Path("results")
#: One cell of each graph and task on which LGCN falls short, and that a CPU can train in seconds.
CELLS = [
    *cells("link", datasets=["cora"], dims=[16], models=["lgcn"]),
    *cells("link", datasets=["citeseer"], dims=[32], models=["lgcn"]),
    *cells("node", datasets=["cora"], dims=[32], models=["lgcn"]),
    *cells("node", datasets=["citeseer"], dims=[8], models=["lgcn"]),
    *cells("node", datasets=["usa"], dims=[16], models=["lgcn"]),
]
#: Runs: a split each, or where the split came with the data an initialisation each; seeds that no cell is tested with.
RUNS, FIRST_SEED = 5, 50


class Averaged(Training):
    """Judges an exponential average of the weights, over the last fifty epochs or so."""

    decay = 0.98

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.average = copy.deepcopy(self.encoder)

    def _learn(self) -> float:
        loss = super()._learn()
        share = max(1 - self.decay, 1 / self.epoch)
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.encoder.parameters(), strict=True):
                mean.lerp_(now, share)
        return loss

    @torch.no_grad()
    def score(self, part: Part) -> Score:
        self.average.eval()
        found: Score = self.task.score(self.average, part)
        return found


class LearnedDecoder(Training):
    """Learns the r and t of the Fermi-Dirac decoder, which order nothing anew but shape the loss."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.shift, self.scale = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        assert self.optimizer is not None
        self.optimizer.add_param_group({"params": [self.shift, self.scale], "weight_decay": 0.0})

    def _loss(self) -> Tensor:
        logits = self.task.logits(
            self.encoder, self.task.encode(self.encoder), self.task.examples(self.seed, self.epoch)
        )
        found: Tensor = self.task.losses((logits + self.shift) * self.scale.exp(), None)
        return found


class MoreNonEdges(Training):
    """Three fresh non-edges for each edge, which together count as much as it."""

    times = 3

    def _loss(self) -> Tensor:
        z = self.task.encode(self.encoder)
        draws = [self.task.examples(self.seed + (k << 20), self.epoch) for k in range(self.times)]
        return torch.stack([self.task.losses(self.task.logits(self.encoder, z, d), None) for d in draws]).mean()


class HiddenEdges(Training):
    """Half of the training edges are hidden from messages in each epoch, and only these are predicted."""

    share = 0.5

    def _loss(self) -> Tensor:
        task, pairs = self.task, self.task.examples(self.seed, self.epoch)
        edges, others = pairs.chunk(2, dim=1)
        draw = torch.Generator().manual_seed((self.seed << 20) + self.epoch)
        hidden = torch.rand(edges.size(1), generator=draw) < self.share
        shown = ~torch.isin(self._names(task.edge_index), self._names(edges[:, hidden]))
        weight = None if task.edge_weight is None else task.edge_weight[shown]
        z = self.encoder(task.x, task.edge_index[:, shown], weight)
        chosen = torch.cat([edges[:, hidden], others[:, : int(hidden.sum())]], dim=1)
        found: Tensor = task.losses(task.logits(self.encoder, z, chosen), None)
        return found

    def _names(self, edges: Tensor) -> Tensor:
        """One number for each edge, whichever way it points."""
        low, high = edges.long().aminmax(dim=0)
        return low * int(self.task.graph.num_nodes) + high


def settings(**changed: Any) -> Callable[[Settings], tuple[type[Training], Settings]]:
    """Other settings."""
    return lambda chosen: (Training, dataclasses.replace(chosen, **changed))


def training(kind: type[Training]) -> Callable[[Settings], tuple[type[Training], Settings]]:
    """Another training."""
    return lambda chosen: (kind, chosen)


BOTH = {
    UNCHANGED: settings(),
    "an activation after the last layer": settings(last_activation=True),
    "1 layer": settings(layers=1),
    "3 layers": settings(layers=3),
    "no biases": settings(bias=False),
    "tanh": settings(activation="tanh"),
    "β starts at 0.25": settings(beta=0.25),
    "β starts at 4": settings(beta=4.0),
    "M_att twice as wide": lambda chosen: (Training, dataclasses.replace(chosen, att_dim=2 * chosen.dim)),
    "patience 200": settings(patience=200),
    "averaged weights": training(Averaged),
}
CHANGES = {
    "link": BOTH
    | {
        "ELU": settings(activation="elu"),
        "0.3 of the neighbours dropped": settings(att_dropout=0.3),
        "features not scaled": settings(scaling="none"),
        "r and t of the decoder learned": training(LearnedDecoder),
        "3 non-edges for each edge": training(MoreNonEdges),
        "predicted edges hidden from messages": training(HiddenEdges),
    },
    "node": BOTH | {"ReLU": settings(activation="relu")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    args = parser.parse_args()
    chosen = {key_of(line): line for line in chosen_lines(read_results(args.results), SPLIT)}
    code, there = code_version(), read_tried(args.results)
    for cell in CELLS:
        graph = load_graph(cell.graph, data_dir=args.data_dir)
        base = Settings(**chosen[cell_key(cell)]["settings"])
        runs = [(SPLIT, FIRST_SEED + k) if cell.public_split else (SPLIT + k, FIRST_SEED) for k in range(RUNS)]
        for change, made in CHANGES[cell.task].items():
            kind, changed = made(base)
            record = {name: getattr(cell, name) for name in ("dataset", "task", "model", "dim")} | {"change": change}
            record |= {"base": dataclasses.asdict(base), "settings": dataclasses.asdict(changed)}
            record["runs"] = [list(run) for run in runs]
            if any(all(line[name] == record[name] for name in record) for line in there):
                continue
            began, scores = time.perf_counter(), []
            for split, seed in runs:
                task = get_task(cell.task)(graph, changed, split, torch.float32, "cpu")
                at_work = kind(cell.model, task, changed, seed)
                while not at_work.done:
                    at_work.step()
                scores.append(at_work.best.metric)
            line = {"experiment": "shortfall", **record, "val": scores, "commit": code, "device": device_name("cpu")}
            line |= {"versions": library_versions(), "seconds": time.perf_counter() - began}
            append_line(args.results, line)
            print(cell, f"{sum(scores) / RUNS:.4f}", change, f"{line['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
