"""Regression on whole graphs: numbers that belong to a molecule, learned from batches of molecules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hyperboloid.graphs.molecule_splits import split_molecules
from hyperboloid.graphs.molecules import Array, MoleculeSet, tell_problems
from hyperboloid.kernels import fold, random_numbers
from hyperboloid.nn.graph_batch import GraphBatch
from hyperboloid.nn.graph_model import GraphModel, GraphSizes
from hyperboloid.nn.registry import get_model

from .batches import Batches
from .metrics import regression_metrics
from .settings import Settings
from .tasks import BaseTask, Part, Score

#: Molecules in a batch that is only judged.
JUDGED_AT_ONCE = 1024
_ORDER = 0x4F524452  # tells the order of the molecules from the masks of the same epoch


class GraphTask(BaseTask):
    """Predict the targets of molecules; mean absolute error.

    Models see targets with mean 0 and standard deviation 1 over the training part. With several targets the error is
    the mean over them in these units; with one it is in the target's own.

    Args:
        molecules: the data.
        settings: of the run.
        split: seed of the split.
        dtype: of the numbers.
        device: where to compute.
    """

    name = "graph"
    metric = "mae"

    def __init__(self, molecules: MoleculeSet, settings: Settings, split: int, dtype: torch.dtype, device: str) -> None:
        self.molecules = molecules
        self.settings = settings
        self.dtype = dtype
        self.device = torch.device(device)
        self.split = split_molecules(molecules, split, kind=settings.masks)
        mean, std = (f(molecules.targets[self.split.train], axis=0) for f in (np.mean, np.std))
        self._mean, self._std = mean, np.where(std > 0, std, 1)
        self._y = torch.from_numpy((molecules.targets - self._mean) / self._std).to(self.device, dtype)
        self._batches: dict[tuple[bool, bool], Batches] = {}

    @property
    def split_name(self) -> str:
        """The name of a split that came with the data, or shares and seed."""
        return self.split.name

    @property
    def left_out(self) -> str:
        """Rows that were no molecules, and molecules that the split leaves out."""
        m = self.molecules
        told = tell_problems(m.problems, m.name, "skipped")
        if m.problems:
            told.append(f"{len(m.problems)} of {len(m.problems) + len(m)} rows skipped, {len(m)} molecules read.")
        if self.split.left_out:
            told.append(f"Split: {self.split_name}.")
        return "\n".join(told)

    def build(self, model: str, settings: Settings) -> GraphModel:
        """The model at its start."""
        line = get_model(model)
        network: type[GraphModel] = line.load()
        m, virtual = self.molecules, int(network.virtual_node)
        sizes = GraphSizes(
            kinds=len(m.atom_names) + virtual,
            features=0 if m.x is None else m.x.shape[1],
            relations=len(m.bond_names) + virtual,
            targets=len(m.target_names),
        )
        return network.from_settings(sizes, line.settle(settings))

    def epoch(self, model: GraphModel, seed: int, epoch: int) -> Iterator[tuple[GraphBatch, Tensor]]:
        """The training part in batches with their targets ``(B, T)``, in an order that (seed, epoch) fixes."""
        train, batches = self.split.train, self._batches_for(model)
        numbers = random_numbers(fold(fold(seed, epoch), _ORDER), len(train), torch.device("cpu"))
        order = train[torch.argsort(numbers, stable=True).numpy()]
        targets = self._y[torch.from_numpy(order).to(self.device)].tensor_split(self.steps)
        yield from zip(batches.each(np.array_split(order, self.steps)), targets, strict=True)

    @property
    def steps(self) -> int:
        """Batches of an epoch, of equal size up to one molecule."""
        return -(-len(self.split.train) // self.settings.batch_size)

    def loss(self, predicted: Tensor, y: Tensor) -> Tensor:
        """Mean error of predictions ``(B, T)``, in standard deviations."""
        return F.l1_loss(predicted, y) if self.settings.loss == "absolute" else F.mse_loss(predicted, y)

    @torch.no_grad()
    def predict(self, model: GraphModel, chosen: Array, batches: Batches | None = None) -> Tensor:
        """Predictions ``(n, T)``, float64 in the targets' own units, for molecules of this set or of other batches."""
        batches = batches or self._batches_for(model)
        parts = [chosen[start : start + JUDGED_AT_ONCE] for start in range(0, len(chosen), JUDGED_AT_ONCE)]
        out = torch.cat([model(batch) for batch in batches.each(parts)]).double()
        return out * torch.from_numpy(self._std).to(out) + torch.from_numpy(self._mean).to(out)

    def score(self, encoder: GraphModel, part: Part) -> Score:
        """The negative of the error, and of the loss, which is in standard deviations even of a single target."""
        mae, rmse = (np.array([one[key] for one in self.report(encoder, part).values()]) for key in ("mae", "rmse"))
        loss = mae / self._std if self.settings.loss == "absolute" else (rmse / self._std) ** 2
        error = mae if len(mae) == 1 else mae / self._std
        return Score(-float(error.mean()), -float(loss.mean()))

    def report(self, encoder: GraphModel, part: Part) -> dict[str, dict[str, float]]:
        """MAE, RMSE and R² of each target, in its own units."""
        chosen = getattr(self.split, part)
        predicted = self.predict(encoder, chosen).cpu().numpy()
        return {
            name: regression_metrics(predicted[:, k], self.molecules.targets[chosen, k])
            for k, name in enumerate(self.molecules.target_names)
        }

    @staticmethod
    def shown(metric: float) -> float:
        """The error itself."""
        return -metric

    def batches_of(self, molecules: MoleculeSet, model: GraphModel) -> Batches:
        """Any molecules with the same kinds of atoms and bonds, as the model wants them."""
        flags = {"self_loops": model.self_loops, "virtual_node": model.virtual_node}
        return Batches(molecules, **flags, dtype=self.dtype, device=self.device)

    def _batches_for(self, model: GraphModel) -> Batches:
        key = model.self_loops, model.virtual_node
        if key not in self._batches:
            self._batches[key] = self.batches_of(self.molecules, model)
        return self._batches[key]


def predictions_table(task: GraphTask, model: GraphModel) -> Any:
    """A pyarrow table of the validation and test parts: line, part, and each target's true and predicted value."""
    import pyarrow as pa

    chosen = {part: getattr(task.split, part) for part in ("val", "test")}
    every = np.concatenate(list(chosen.values()))
    predicted = task.predict(model, every).cpu().numpy()
    columns: dict[str, Any] = {
        "line": task.molecules.lines[every],
        "part": [part for part, members in chosen.items() for _ in members],
    }
    for k, name in enumerate(task.molecules.target_names):
        columns[name], columns[f"{name}_predicted"] = task.molecules.targets[every, k], predicted[:, k]
    return pa.table(columns)
