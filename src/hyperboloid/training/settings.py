"""All settings of a training run, and where their defaults come from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.nn.registry import GRAPH_MODELS, base_name, check_task, get_model
from hyperboloid.nn.settings import ModelSettings, one_of, ranged


@dataclass(frozen=True)
class Settings(ModelSettings):
    """The model's hyper-parameters and the optimiser's.

    Attributes:
        lr: learning rate, Adam's or that of the model's own optimiser.
        weight_decay: strength of the L2 penalty, on weights only (not on biases, not on β).
        epochs: at most so many.
        patience: stop after so many epochs without a better validation score; the first so many do not count, nor do
            those before a model has begun to learn, up to five times as many (``patience.py``).
        distance: which squared distance decodes links, the intrinsic one or the paper's Lorentzian one.
        scaling: of the features: ``rows`` makes each node's sum to 1, ``columns`` gives each feature mean 0 and
            standard deviation 1, ``none`` leaves them; ``auto``: rows for counts (none negative, most 0), else columns.
        masks: name of a split that came with the data (``public``, ``authors``, ``hgnn``); for molecules also
            ``random`` or ``scaffold``; None for the protocol's choice.
        batch_size: graphs in a batch, for models of whole graphs. Likewise:
        schedule: of the learning rate: ``constant``, or ``cosine`` down to 0 over all epochs.
        clip: the longest gradient; None for any.
        loss: ``absolute`` or ``squared`` error, in units of the target's standard deviation.
    """

    lr: float = ranged(0.01, 0.0, 100.0)
    weight_decay: float = ranged(0.0, 0.0, 1e38)
    epochs: int = ranged(2000, 1)
    patience: int = ranged(100, 1)
    distance: str = one_of("intrinsic", "intrinsic", "lorentz")
    scaling: str = one_of("auto", "auto", "rows", "columns", "none")
    masks: str | None = None
    batch_size: int = ranged(128, 1)
    schedule: str = one_of("cosine", "constant", "cosine")
    clip: float | None = ranged(1.0, 1e-9)
    loss: str = one_of("absolute", "absolute", "squared")


#: Settings of the training that only models of whole graphs have a use for, and those that only the others have.
OF_GRAPHS = frozenset({"batch_size", "schedule", "clip", "loss"})
OF_NODES = frozenset({"distance", "scaling"})
#: Those that tables of embeddings have no use for: they know no features and no penalty.
OF_LAYERS = frozenset({"scaling", "weight_decay"})


#: How neighbours are summed where a model leaves it open: for links, which are decoded by distances, they are averaged.
NORMALIZATION = {"link": "rows", "node": "symmetric"}


def check_names(given: Iterable[str]) -> None:
    """Refuse names that are no setting's."""
    known = {f.name for f in dataclasses.fields(Settings)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InputError(f"There is no setting '{unknown[0]}'; the settings are: {', '.join(sorted(known))}.")


def taken_settings(model: str) -> frozenset[str]:
    """Names of the settings that a model has a use for, those of the training included."""
    training = {f.name for f in dataclasses.fields(Settings)} - {f.name for f in dataclasses.fields(ModelSettings)}
    encoder = get_model(model).load()
    taken: frozenset[str] = encoder.takes()
    training -= OF_NODES if model in GRAPH_MODELS else OF_GRAPHS
    return taken | (training if getattr(encoder, "inductive", True) else training - OF_LAYERS)


def default_settings(model: str, task: str, dataset: str, dim: int | None = None, **given: Any) -> Settings:
    """Settings for a run: what is given, else what was found best for this data set, else best on average.

    ``defaults.json`` holds, for a model and a task, an entry for every data set that has been searched and one called
    ``*`` for all others; each was chosen on validation scores only. A variant takes the entries of its architecture,
    and a model that has not been searched those of the model ``*``.
    """
    check_names(given)
    check_task(model, task)
    fixed, encoder, taken = get_model(model).fixed, get_model(model).load(), taken_settings(model)
    for name in given:
        if name not in taken:
            raise InputError(f"{model} has no use for the setting '{name}'; it has: {', '.join(sorted(taken))}.")
    if given.get("distance", "intrinsic") not in getattr(encoder, "distances", ("intrinsic",)):
        raise InputError(f"{model} decodes links by the {' or '.join(encoder.distances)} distance only.")
    for name, value in fixed.items():
        if given.get(name, value) != value:
            raise InputError(f"{name} is {json.dumps(value)} in model '{model}': that is what makes it this model.")
    table = json.loads(files("hyperboloid.training").joinpath("defaults.json").read_text(encoding="utf-8"))
    entries = next(table[name] for name in (model, base_name(model), "*") if name in table).get(task, {})
    chosen = entries.get(dataset, entries.get("*", {}))
    if "normalization" in taken:
        chosen = {"normalization": NORMALIZATION[task], **chosen}
    if dim is not None:
        given["dim"] = dim
    return Settings(**{**chosen, **given, **fixed})
