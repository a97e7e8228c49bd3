"""The runs that figures are made of: with which settings, how many, and where they are kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hyperboloid.errors import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.nn.registry import base_name, get_model
from hyperboloid.training.experiment import Experiment
from hyperboloid.training.fitting import fit
from hyperboloid.training.settings import Settings, default_settings, taken_settings

from .board import chosen_lines
from .figures import Asked
from .protocol import SPLIT
from .provenance import code_version
from .results import Line, read_results


def number_of_seeds(asked: Asked, usual: int) -> int:
    """How many initialisations are asked for."""
    if asked.seeds is not None and asked.seeds < 1:
        raise InputError(f"seeds must be at least 1, not {asked.seeds}.")
    return usual if asked.seeds is None else asked.seeds


def limits(asked: Asked) -> dict[str, int]:
    """The limit of epochs that is asked for, as settings."""
    return {} if asked.epochs is None else {"epochs": asked.epochs}


def searched_settings(model: str, dataset: str, dim: int, asked: Asked) -> tuple[Settings, str] | None:
    """Settings that the search for Table 4 has chosen for a model, and where they come from; None where there are none.

    They are those of the nearest dimension that has been measured; for a variant that the table lacks its
    architecture's.

    Args:
        model: its name.
        dataset: the paper's name of the graph.
        dim: width of the embeddings.
        asked: whose results are looked at, and whose limit of epochs holds.
    """
    lines = chosen_lines(read_results(asked.results, ["link"]), SPLIT)
    for name in dict.fromkeys((model, base_name(model))):
        found = [line for line in lines if (line["dataset"], line["model"]) == (dataset, name)]
        if found:
            nearest = min(found, key=lambda line: abs(line["dim"] - dim))
            chosen = Settings(**nearest["settings"] | {"dim": dim} | limits(asked))
            return get_model(model).settle(chosen), f"link d={nearest['dim']}"
    return None


def link_settings(model: str, dataset: str, graph: str, dim: int, asked: Asked) -> tuple[Settings, str]:
    """The searched settings, else those that ship for our graph of that name."""
    found = searched_settings(model, dataset, dim, asked)
    return found or (default_settings(model, "link", graph, dim, **limits(asked)), "shipped")


def trained(name: str, wanted: Line, asked: Asked) -> Experiment:
    """The runs that a line is made of; what has been trained already is not trained again.

    Args:
        name: of the experiment.
        wanted: with ``graph``, ``task``, ``model``, ``settings`` and ``runs``.
        asked: where data and unfinished work lie, and what computes.
    """
    taken = {setting: wanted["settings"][setting] for setting in taken_settings(wanted["model"])}
    return fit(
        load_graph(wanted["graph"], data_dir=asked.data_dir),
        task=wanted["task"],
        model=wanted["model"],
        seeds=wanted["runs"],
        split=SPLIT,
        device=asked.device,
        dtype=asked.dtype,
        out=_folder(name, wanted, asked),
        resume=True,
        **taken,
    )


def _folder(name: str, wanted: Line, asked: Asked) -> Path:
    """The run folder of a model; those of other settings, code or device lie elsewhere."""
    digest = hashlib.sha256(json.dumps([wanted, code_version(), asked.device]).encode()).hexdigest()[:10]
    return asked.work / f"{name}-{wanted['graph']}-{wanted['model']}-d{wanted['settings']['dim']}-{digest}"
