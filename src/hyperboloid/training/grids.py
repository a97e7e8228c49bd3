"""Which settings a search tries, for every model the same.

The paper's grid has three numbers: a learning rate, one dropout probability p and an L2 penalty. Its p end at 0.7, and
that was the best one so often that 0.8 is tried too. What the paper leaves open is tried in all ways, and validation
decides. That is where p applies: for links to weights (DropConnect) or to features; for nodes to features alone, or
half of it to weights too, and all of it or half of it to neighbours. It is also how many layers a model for links has,
which squared distance decodes them where a model has two (:attr:`Encoder.distances`), and whether LGCN's attention has
the paper's formula or that of the published code.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.nn.registry import get_model

from .loop import is_shallow
from .settings import Settings, check_names, default_settings

LEARNING_RATES = (0.01, 0.008, 0.005, 0.001)
DROPOUTS_OF_PAPER = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
DROPOUTS = (*DROPOUTS_OF_PAPER, 0.8)
PENALTIES = (0.0, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001)
ACTIVATION = {"link": "relu", "node": "elu"}
#: Where p applies, and how much of it.
PLACES: dict[str, tuple[dict[str, float], ...]] = {
    "link": ({"drop_connect": 1.0}, {"dropout": 1.0}),
    "node": (
        {"dropout": 1.0, "att_dropout": 1.0, "drop_connect": 0.5},
        {"dropout": 1.0, "att_dropout": 0.5, "drop_connect": 0.5},
        {"dropout": 1.0},
    ),
}
#: How many layers; a search that must be short has the first number of them. For links one is worth 0.2 to 9.2 points
#: of AUC to such a search by LGCN, GCN and GAT on five graphs (``docs/analysis.md``); LGCN loses up to four points of
#: accuracy for nodes by it (``results/shortfall.jsonl``).
LAYERS = {"link": (1, 2), "node": (2,)}
#: A search that must be short: learning rate, p (of features, not of weights) and penalty. A few settings at random may
#: all be bad; these are corners among which the best ones found on the paper's graphs lie. With one layer Euclidean
#: models are best without a penalty on citation networks, hyperbolic ones with a strong one.
SHORT: dict[str, tuple[tuple[float, ...], ...]] = {
    "link": ((0.01,), (0.0, 0.5), (0.001, 0.0001, 0.0)),
    "node": ((0.01,), (0.0, 0.5), (0.001, 0.0001)),
}
#: Where LGCN's attention cuts squared distances off: nowhere in the paper's formula, at 1 in the published code.
ATTENTION_CAPS = (None, 1.0)
#: Shallow models have neither dropout nor L2; their learning rate is searched around its default.
SHALLOW_FACTORS = (1.0, 0.3, 3.0)


#: Values to try for each of some settings.
Choices = Mapping[str, Sequence[Any]]


def read_choices(path: str | Path) -> dict[str, list[Any]]:
    """A grid of the user's own: a JSON file with a list of values for each setting; all combinations are tried.

    Raises:
        InputError: the file is no such grid.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=partial(_once_each, path))
    except OSError as error:
        raise InputError(f"The grid {path} cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise InputError(f"The grid {path} is not JSON: see its line {error.lineno}.") from error
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # no text, lists in lists without end, or such numbers
        raise InputError(f"The grid {path} is not JSON that can be read.") from error
    if not isinstance(content, dict) or not content:
        raise InputError(f'The grid {path} must be like {{"lr": [0.01, 0.001], "dropout": [0, 0.5]}}, and not empty.')
    check_names(content)
    for name, values in content.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"The grid {path} must have a list of values for '{name}', and at least one.")
        if len({json.dumps(value) for value in values}) < len(values):
            raise InputError(f"The grid {path} has a value of '{name}' twice.")
        for value in values:
            Settings(**{name: value})  # refuses what it cannot be
    return content


def _once_each(path: str | Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object none of whose names is there twice, of which the last would be taken without a word."""
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise InputError(f"The grid {path} has '{name}' {times} times: leave one list of values.")
    return dict(pairs)


def grid(
    model: str,
    task: str,
    dataset: str,
    tries: int | None = None,
    *,
    short: bool = False,
    choices: Choices | None = None,
    **given: Any,
) -> list[Settings]:
    """The settings to try.

    Args:
        model: name of the model.
        task: ``link`` or ``node``.
        dataset: name of the data set, whose scaling of features is kept.
        tries: so many of them; None for all.
        short: only a few settings, see :data:`SHORT`.
        choices: values to try instead of the paper's, all combinations of them; everything else has its default.
        **given: settings that are the same in all, such as ``dim``.

    Returns:
        The settings in a random order, so that any number of the first are a fair sample. For models that have the
        same choices it is the same order.
    """
    line = get_model(model)
    base = default_settings(model, task, dataset, **given)
    if choices is not None:
        combinations = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
        random.Random(0).shuffle(combinations)
        made = dict.fromkeys(default_settings(model, task, dataset, **(given | point)) for point in combinations)
        return list(made)[:tries]  # once each: 0 and 0.0 are the same
    if is_shallow(model):
        factors = (1.0,) if "lr" in given else SHALLOW_FACTORS[:tries]
        return [dataclasses.replace(base, lr=base.lr * factor) for factor in factors]
    kept = {name: getattr(base, name) for name in ("scaling", "dim", "normalization")}
    common: dict[str, Any] = {"activation": ACTIVATION[task], **kept}
    if short:
        numbers, places, layers = SHORT[task], PLACES[task][-1:], LAYERS[task][:1]
    else:
        numbers, places, layers = (LEARNING_RATES, DROPOUTS, PENALTIES), PLACES[task], LAYERS[task]
    takes = line.load().takes()
    found = [
        line.settle(Settings(**(common | way | drops | {"lr": lr, "weight_decay": penalty} | given)))
        for way in _ways(model, task, layers)
        for place in places
        for lr, p, penalty in itertools.product(*numbers)
        for drops in [{name: share * p for name, share in place.items() if name in takes}]
    ]
    found = list(dict.fromkeys(found))  # p = 0 is the same wherever it applies, and not every model drops neighbours
    random.Random(0).shuffle(found)
    return found[:tries]


def _ways(model: str, task: str, layers: Sequence[int]) -> list[dict[str, Any]]:
    """Choices beyond the paper's three numbers."""
    line = get_model(model)
    distances = [{"distance": distance} for distance in line.load().distances] if task == "link" else [{}]
    attends = "att_cap" in line.load().takes() and line.fixed.get("attention", True)
    caps = [{"att_cap": cap} for cap in ATTENTION_CAPS] if attends else [{}]
    depths = [{"layers": number} for number in layers]
    return [distance | cap | depth for distance in distances for cap in caps for depth in depths]
