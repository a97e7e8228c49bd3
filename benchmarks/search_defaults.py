"""Random search for the package's default settings, by validation scores only, many models as one program.

    python benchmarks/search_defaults.py --device cuda --data-dir DATA --out search.jsonl link:cora:16 node:usa:64 …
    python benchmarks/search_defaults.py --best search.jsonl …

Settings that share an architecture are trained together, along a leading model axis on every parameter. Every setting
is trained on three (split, initialisation) pairs; the line written for one holds its validation scores and no test
score.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import time
from pathlib import Path

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional as F

from hyperboloid.graphs import load_graph
from hyperboloid.kernels import random_stream
from hyperboloid.nn import SparseFeatures
from hyperboloid.training.features import scaled_features
from hyperboloid.training.loop import build_encoder
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import LinkTask, Task, get_task

# varied from model to model in a batch
NUMBERS = {
    "link": {
        "lr": [0.01, 0.005],
        "weight_decay": [0.0, 1e-4, 5e-4, 1e-3, 2e-3],
        "drop_connect": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
    },
    "node": {
        "lr": [0.01, 0.005],
        "weight_decay": [1e-4, 5e-4, 1e-3, 2e-3, 5e-3],
        "dropout": [0.0, 0.3, 0.5, 0.6, 0.7, 0.8],
        "att_dropout": [0.0, 0.3, 0.6],
        "drop_connect": [0.0, 0.2, 0.4],
    },
}
# a batch each
SHAPES = {
    "link": [
        {"activation": activation, "last_activation": last, "distance": distance}
        for activation, last in (("relu", False), ("relu", True), ("elu", False), ("elu", True))
        for distance in ("intrinsic", "lorentz")
    ],
    "node": [{"activation": "elu"}, {"activation": "relu"}],
}
RUNS = [(0, 100), (1, 101), (2, 102)]
DROPS = ("dropout", "att_dropout", "drop_connect")


class Scores(torch.nn.Module):
    """Logits of a task as one module, so that its parameters can be swapped for a batched copy."""

    def __init__(self, encoder: torch.nn.Module, task: Task) -> None:
        super().__init__()
        self.encoder = encoder
        self.task = task

    def forward(self, chosen: torch.Tensor) -> torch.Tensor:
        z = self.task.encode(self.encoder)
        return self.task.logits(self.encoder, z, chosen) if isinstance(self.task, LinkTask) else z[chosen]


def batched_auc(logits: torch.Tensor, positives: int) -> torch.Tensor:
    negative = logits[:, positives:].sort(dim=1).values.contiguous()
    positive = logits[:, :positives].contiguous()
    positive = positive.nan_to_num(-math.inf)  # a model that diverged ranks nothing rightly
    below = torch.searchsorted(negative, positive) + torch.searchsorted(negative, positive, right=True)
    return below.double().mean(1) / (2 * negative.size(1))


class Adam:
    """Adam with coupled L2, a learning rate and a decay for each model."""

    def __init__(self, params: dict[str, torch.Tensor], lr: torch.Tensor, decay: torch.Tensor) -> None:
        self.params, self.lr, self.decay, self.steps = params, lr, decay, 0
        self.state = {k: (torch.zeros_like(v), torch.zeros_like(v)) for k, v in params.items()}

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        for name, p in self.params.items():
            shape = (-1, *[1] * (p.dim() - 1))
            grad = p.grad
            if grad is None:  # the output's curvature, which logits do not use
                continue
            if p.dim() >= 3:  # a stacked matrix; biases and curvatures are not decayed
                grad = grad + self.decay.view(shape) * p
            mean, square = self.state[name]
            mean.lerp_(grad, 0.1)
            square.mul_(0.999).addcmul_(grad, grad, value=0.001)
            size = (square / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
            p -= self.lr.view(shape) / (1 - 0.9**self.steps) * mean / size


def train(task: Task, settings: list[Settings], seeds: list[int]) -> list[tuple[float, int]]:
    """Best validation score and its epoch for each model."""
    device, dtype = task.device, task.dtype
    encoders = [build_encoder("lgcn", task, s, seed) for s, seed in zip(settings, seeds, strict=True)]
    params, _ = stack_module_state([Scores(e, task) for e in encoders])
    base = Scores(encoders[0], task)
    numbers = {n: torch.tensor([getattr(s, n) for s in settings], dtype=dtype, device=device) for n in DROPS}
    adam = Adam(
        params,
        torch.tensor([s.lr for s in settings], dtype=dtype, device=device),
        torch.tensor([s.weight_decay for s in settings], dtype=dtype, device=device),
    )
    seed_tensor = torch.tensor(seeds, dtype=torch.int32, device=device)

    def one(p: dict, seed: torch.Tensor, drops: dict, epoch: int, chosen: torch.Tensor) -> torch.Tensor:
        for module in base.modules():
            for name in DROPS:
                if name in module.__dict__:
                    setattr(module, name, drops[name])
        with random_stream(seed, epoch):
            return functional_call(base, p, (chosen,))

    many = vmap(one, in_dims=(0, 0, 0, None, None))
    best = torch.full((len(settings),), -math.inf, dtype=torch.float64, device=device)
    best_loss, best_epoch = torch.full_like(best, math.inf), torch.zeros_like(best)
    for epoch in range(1, settings[0].epochs + 1):
        base.train()
        loss = training_loss(task, lambda chosen, e=epoch: many(params, seed_tensor, numbers, e, chosen), epoch)
        for p in params.values():
            p.grad = None
        loss.sum().backward()
        adam.step()
        base.eval()
        with torch.no_grad():
            metric, loss = validation(task, lambda chosen: many(params, seed_tensor, numbers, 0, chosen))
        running = epoch - best_epoch <= settings[0].patience
        better = running & ((metric > best) | ((metric == best) & (loss < best_loss)))
        best, best_loss = torch.where(better, metric, best), torch.where(better, loss, best_loss)
        best_epoch = torch.where(better, epoch, best_epoch)
        if epoch % 20 == 0 and not (epoch - best_epoch <= settings[0].patience).any():
            break
    return list(zip(best.tolist(), best_epoch.tolist(), strict=True))


def training_loss(task: Task, logits_of, epoch: int) -> torch.Tensor:
    if isinstance(task, LinkTask):
        count = task.split.train.size(1)
        generator = torch.Generator().manual_seed(epoch)
        pairs = torch.cat([task.split.train, task._sampler.sample(count, generator)], dim=1).to(task.device)
        logits = logits_of(pairs)
        return F.softplus(-logits[:, :count]).mean(1) + F.softplus(logits[:, count:]).mean(1)
    return node_loss(task, logits_of, task.split.train)[1]


def node_loss(task: Task, logits_of, nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    nodes = nodes.to(task.device)
    logits = logits_of(nodes)
    y = task.graph.y.to(task.device)[nodes].expand(logits.size(0), -1)
    return logits, F.cross_entropy(logits.transpose(1, 2), y, reduction="none").mean(1)


def validation(task: Task, logits_of) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(task, LinkTask):
        count = task.split.val.size(1)
        logits = logits_of(torch.cat([task.split.val, task.split.val_neg], dim=1).to(task.device))
        loss = F.softplus(-logits[:, :count]).mean(1) + F.softplus(logits[:, count:]).mean(1)
        return batched_auc(logits, count), loss.double()
    logits, loss = node_loss(task, logits_of, task.split.val)
    y = task.graph.y.to(task.device)[task.split.val.to(task.device)]
    return (logits.argmax(-1) == y).double().mean(1), loss.double()


def search(cell: str, args: argparse.Namespace, rng: random.Random) -> None:
    task_name, dataset, dim, *rest = cell.split(":")
    shapes = SHAPES[task_name]
    if rest:
        shapes = [shapes[int(i)] for i in rest[0].split(",")]
    pairs = RUNS[: int(rest[1])] if len(rest) > 1 else RUNS
    graph = load_graph(dataset, data_dir=args.data_dir)
    fixed = {"dim": int(dim), "epochs": args.epochs}
    for shape in shapes:
        grid = [dict(zip(NUMBERS[task_name], v, strict=True)) for v in itertools.product(*NUMBERS[task_name].values())]
        numbers = rng.sample(grid, min(args.count, len(grid)))
        settings = [Settings(**shape, **fixed, **n) for n in numbers]
        runs: list[list[tuple[float, int]]] = [[] for _ in settings]
        start = time.perf_counter()
        for split, seed in pairs:
            task = get_task(task_name)(graph, settings[0], split, torch.float32, args.device)
            if isinstance(task.x, SparseFeatures):
                task.x = scaled_features(graph, task.scaling, torch.float32, trained_on=graph).to(args.device)
            for at in range(0, len(settings), args.batch):
                part = settings[at : at + args.batch]
                for k, result in enumerate(train(task, part, [seed] * len(part))):
                    runs[at + k].append(result)
        with args.out.open("a") as file:
            for n, results in zip(numbers, runs, strict=True):
                chosen = {**shape, **fixed, **n}
                line = {"task": task_name, "dataset": dataset, "settings": chosen, "val": [r[0] for r in results]}
                file.write(json.dumps(line | {"best_epoch": [r[1] for r in results]}) + "\n")
        top = max(statistics.mean(r[0] for r in results) for results in runs)
        print(f"{cell} {shape}: best {top:.4f} of {len(runs)}, {time.perf_counter() - start:.0f} s", flush=True)


def show_best(paths: list[Path], count: int = 5) -> None:
    cells: dict[tuple[str, str], list[tuple[float, str, list[float]]]] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            run = json.loads(line)
            entry = (statistics.mean(run["val"]), json.dumps(run["settings"]), run["best_epoch"])
            cells.setdefault((run["task"], run["dataset"]), []).append(entry)
    for (task, dataset), entries in sorted(cells.items()):
        for mean, settings, epochs in sorted(entries, reverse=True)[:count]:
            print(f"{task} {dataset} {mean:.4f} of {len(entries)}, best epochs {epochs}: {settings}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", help="task:dataset:dim[:shapes[:runs]], e.g. link:cora:16:2,3:1")
    parser.add_argument("--best", nargs="+", type=Path)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=64, help="settings for each shape")
    parser.add_argument("--batch", type=int, default=256, help="models trained at a time")
    parser.add_argument("--epochs", type=int, default=800)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.best:
        show_best(args.best)
        return
    for cell in args.cells:
        # seeded by the cell, so that leaving one out does not change the others
        search(cell, args, random.Random(f"{args.seed} {cell}"))


if __name__ == "__main__":
    main()
