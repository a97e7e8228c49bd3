"""The numbers that the paper prints in Tables 4 to 7, times 100, and its graphs' hyperbolicity."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypedDict


class Printed(NamedTuple):
    """Mean and standard deviation over 10 runs, in per cent as the paper has them."""

    mean: float
    std: float


class PrintedTables(TypedDict):
    """What ``printed.json`` holds.

    Keys are the paper's data sets (``disease``), dimensions (``"16"``) and our models' names; in the ablation models,
    then ``disease/link``; on ZINC models, then properties.
    """

    link_prediction: dict[str, dict[str, dict[str, list[float]]]]
    node_classification: dict[str, dict[str, dict[str, list[float]]]]
    ablation_dim64: dict[str, dict[str, list[float]]]
    zinc_mae_x100: dict[str, dict[str, list[float]]]
    delta_avg: dict[str, float]


@cache
def printed_tables() -> PrintedTables:
    """The tables, read once."""
    tables: PrintedTables = json.loads(files(__package__).joinpath("printed.json").read_text(encoding="utf-8"))
    return tables
