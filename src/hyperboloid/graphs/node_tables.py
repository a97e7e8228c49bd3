"""Features and labels that the user keeps in files of their own, joined to a graph by node id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hyperboloid.errors import InputError
from hyperboloid.graphs.graph import UNLABELLED, Graph
from hyperboloid.graphs.ids import number_classes, positions
from hyperboloid.graphs.sparse import read_npz
from hyperboloid.graphs.tables import TABLE_SUFFIXES, Table, read_table

_ID_NAMES = ("id", "node", "node_id", "nodeid")
_LABEL_NAMES = ("label", "class", "y", "category")


def is_table(option: str | Path) -> bool:
    """Whether an option names a file of features or labels, rather than an attribute of the nodes."""
    path = Path(option)
    return isinstance(option, Path) or path.suffix.lower() in (*TABLE_SUFFIXES, ".npz") or path.exists()


def join_features(graph: Graph, path: Path) -> Graph:
    """The graph with the features in a table (id, numbers…) or NPZ file, one row for each node in any order.

    An NPZ file holds a scipy sparse matrix, or an array ``x`` and optionally the node of each of its rows in
    ``ids``; without ids, row i belongs to the node with id i.

    Raises:
        InputError: a node has no row or two, a row belongs to no node, or a value is not a finite number.
    """
    if path.suffix.lower() == ".npz":
        ids, x, where, column_name = _npz_features(path)
    else:
        ids, x, where, column_name = _table_features(path)
    bad = np.argwhere(~np.isfinite(x))
    if bad.size:
        row, column = bad[0]
        raise InputError(
            f"{where(row)}: the feature in column {column_name(column)} is {x[row, column]}, "
            "not a finite float32 number; replace missing values"
        )
    nodes = _joined(graph, ids, where, "features", path)
    missing = np.setdiff1d(np.arange(graph.num_nodes), nodes)
    if missing.size:
        raise InputError(
            f"{path} has no features for {missing.size} of the graph's {graph.num_nodes} nodes, "
            f"the first is '{graph.id_of(int(missing[0]))}'; give a row for every node"
        )
    ordered = np.empty_like(x)
    ordered[nodes] = x
    return replace(graph, x=torch.from_numpy(ordered))


def join_labels(graph: Graph, path: Path) -> Graph:
    """The graph with the classes in a table (id, label); nodes without a row or with an empty label get -1.

    Raises:
        InputError: a node has two rows, or a row belongs to no node.
    """
    table = _node_table(path, "labels")
    key = _id_column(table)
    column = _named(table, _LABEL_NAMES)
    if column is None or column == key:
        column = 1 if key == 0 else 0
    nodes = _joined(graph, table.strings(key, "node id"), table.where, "labels", path)
    classes, names = number_classes(table.strings(column, "label", optional=True))
    y = np.full(graph.num_nodes, UNLABELLED, dtype=np.int64)
    y[nodes] = classes
    return replace(graph, y=torch.from_numpy(y), class_names=names)


_Features = tuple[Any, NDArray[np.float32], Callable[[int], str], Callable[[int], str]]


def _table_features(path: Path) -> _Features:
    table = _node_table(path, "features")
    key = _id_column(table)
    columns = [i for i in range(len(table.columns)) if i != key]
    x = np.empty((len(table), len(columns)), dtype=np.float32)
    with np.errstate(over="ignore"):
        for place, column in enumerate(columns):
            x[:, place] = table.numbers(column, "feature")
    ids = table.strings(key, "node id")
    return ids, x, table.where, lambda place: table.column_name(columns[place])


def _npz_features(path: Path) -> _Features:
    import pyarrow as pa

    content = read_npz(path, ("x", "ids"))
    arrays = content if isinstance(content, dict) else {"x": content.toarray()}
    if arrays["x"].dtype.kind not in "biuf":
        raise InputError(f"{path}: x must hold real numbers, it is {arrays['x'].dtype}")
    with np.errstate(over="ignore"):
        x = arrays["x"].astype(np.float32)
    ids = np.asarray(arrays.get("ids", np.arange(x.shape[0] if x.ndim else 0)))
    if x.ndim != 2 or x.shape[1] == 0 or ids.shape != x.shape[:1]:
        raise InputError(f"{path}: x must have one row per id, but x is {x.shape} and ids {ids.shape}")
    names = pa.chunked_array([pa.array([str(name) for name in ids.tolist()], pa.string())])
    return names, x, lambda row: f"{path} row {row + 1}", lambda column: str(column + 1)


def _node_table(path: Path, what: str) -> Table:
    """A table with a column of ids and at least one other, its header recognised."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(
            f"cannot read {what} from {path}: give one of {', '.join(TABLE_SUFFIXES)}"
            + (" or .npz" if what == "features" else "")
        )
    table = read_table(path)
    if len(table.columns) < 2:
        raise InputError(f"{path} has a single column; {what} need a column of node ids and at least one more")
    if table.names is None:
        first = [field.strip().lower() for field in table.first_row()]
        named = any(field in _ID_NAMES for field in first) or first[1] in _LABEL_NAMES
        if named or table.numbers_below_words():
            table = table.with_header()
    if len(table) == 0:
        raise InputError(f"{path} has a header but no rows; give at least one row")
    return table


def _named(table: Table, wanted: tuple[str, ...]) -> int | None:
    names = [name.strip().lower() for name in table.names or ()]
    return next((names.index(name) for name in wanted if name in names), None)


def _id_column(table: Table) -> int:
    return _named(table, _ID_NAMES) or 0


def _joined(graph: Graph, ids: Any, where: Callable[[int], str], what: str, path: Path) -> NDArray[np.int64]:
    """The node of each row, each at most once."""
    nodes = positions(graph, ids)
    unknown = np.flatnonzero(nodes < 0)
    if unknown.size:
        row = int(unknown[0])
        raise InputError(
            f"{where(row)}: {what} for node '{ids[row].as_py()}', which the graph '{graph.name}' does not have; "
            "remove the row or add the node's edges"
        )
    order = np.argsort(nodes, kind="stable")
    again = order[1:][nodes[order][1:] == nodes[order][:-1]]
    if again.size:
        row = int(again.min())
        raise InputError(f"{where(row)}: a second row of {what} for node '{ids[row].as_py()}'; keep one")
    return nodes
