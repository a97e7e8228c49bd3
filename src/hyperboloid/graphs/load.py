"""One way in: a graph from a data set's name, a path, or an object."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs.datasets import DATASETS, load_dataset
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.load_molecules import MOLECULE_SETS
from hyperboloid.graphs.readers import GRAPH_SUFFIXES, read_graph


def load_graph(
    source: Any,
    *,
    data_dir: str | Path | None = None,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
) -> Graph:
    """The graph that ``source`` stands for.

    Args:
        source: the name of a data set (``cora``); a path or an object that :func:`read_graph` takes; or a
            :class:`Graph`, which is returned as it is.
        data_dir: the folder that holds the named data sets' files.
        features: see :func:`read_graph`; only for the user's own graphs.
        labels: likewise.
        weight: likewise.

    Raises:
        InputError: no such data set or file, or something is wrong with it.
    """
    is_name = isinstance(source, str) and source.lower() in DATASETS
    if is_name or isinstance(source, Graph):
        if features is not None or labels is not None or weight is not None:
            raise InputError(
                "features, labels and weight go with a graph of your own; "
                f"'{source if is_name else source.name}' comes with what it has"
            )
        return load_dataset(source, data_dir) if is_name else source
    if isinstance(source, str) and source.lower() in MOLECULE_SETS:
        raise InputError(f"'{source}' is a set of molecules, not one graph: it goes with train and --task graph.")
    if isinstance(source, str) and not _is_path(source):
        raise InputError(
            f"there is no data set '{source}': choose one of {', '.join(DATASETS)}, "
            "or give the path to an edge list such as edges.csv"
        )
    return read_graph(source, features=features, labels=labels, weight=weight)


def _is_path(source: str) -> bool:
    path = Path(source).expanduser()
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    if any(separator in source for separator in separators) or path.suffix.lower() in GRAPH_SUFFIXES:
        return True
    try:
        return path.exists()
    except OSError:  # a name longer than any file's
        return False
