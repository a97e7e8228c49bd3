"""One epoch of link prediction, training step and validation, of LGCN and of Euclidean networks in the same loop.

All models have two layers of width 16, ReLU between them and no dropout, and see the same split. On a GPU an epoch is
one recorded program, as in a sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch_geometric.nn import GATConv

from hyperboloid.graphs import Graph, load_graph
from hyperboloid.nn import Encoder
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.batch import Batch
from hyperboloid.training.features import scaled_features
from hyperboloid.training.loop import Training
from hyperboloid.training.recording import WARMING
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import LinkTask

from .numbers import Case, describe
from .plan import Plan
from .timing import Call, profiled, timed

OURS, GAT, GCN = "lgcn", "gat", "gcn"
#: GATConv as users of PyG write it: no sparse features.
DENSE_GAT = "GATConv, dense features"
EPOCH, PROFILE = "epoch", f"part of {OURS}"
SETTINGS = Settings(dim=16)


def measure(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    """One case for each graph of the plan."""
    for name in plan.epoch_graphs:
        what = {"graph": name, "dim": SETTINGS.dim}
        say(describe(what))
        graph = load_graph(name, data_dir=data_dir)
        every = [model for model, line in MODELS.items() if line.load().inductive]
        steps = _steps(graph, every if name == plan.every_model_on else [OURS, GAT, GCN], device)
        times = timed(steps, device, plan.seconds * (1 + len(steps) / 4))
        numbers = [time.number(model, EPOCH) for model, time in times.items()]
        yield Case(what, numbers + profiled(steps[OURS], device, PROFILE))


def _steps(graph: Graph, models: list[str], device: torch.device) -> dict[str, Call]:
    """What trains each model for one epoch."""
    task = LinkTask(graph, SETTINGS, 0, torch.float32, str(device))
    if device.type == "cuda":
        return {model: _recorded(model, task).step for model in models}
    steps: dict[str, Call] = {model: Training(model, task, SETTINGS, 0).step for model in models}
    if graph.x is not None:
        steps[DENSE_GAT] = _dense_gat(graph, device).step
    return steps


def _recorded(model: str, task: LinkTask) -> Batch:
    """One model as a program that plays its epoch from a recording."""
    batch = Batch(model, task, [(SETTINGS, 0)])
    for _ in range(WARMING + 1):
        batch.step()
    return batch


def _dense_gat(graph: Graph, device: torch.device) -> Training:
    task = LinkTask(graph, SETTINGS, 0, torch.float32, str(device))
    task.x = scaled_features(graph, task.scaling, torch.float32, trained_on=graph)
    training = Training(GAT, task, SETTINGS, 0)
    d = SETTINGS.dim
    training.encoder = Encoder([GATConv(graph.num_features, d), GATConv(d, d)], activation=SETTINGS.activation)
    training.optimizer = torch.optim.Adam(training.encoder.parameters(), lr=SETTINGS.lr)
    return training
