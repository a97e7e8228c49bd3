"""The user's names of nodes and classes, and the numbers they get."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperboloid.errors import InputError
from hyperboloid.graphs.graph import Graph


def integer_values(names: Any) -> NDArray[np.int64] | None:
    """The values of a pyarrow array of names if all are integers as one writes them, else None.

    ``007`` and ``+7`` are names, not the integer 7: two ids that differ in the file must not become one.
    """
    import pyarrow as pa
    from pyarrow import compute as pc

    if not pc.all(pc.match_substring_regex(names, r"^(0|-?[1-9][0-9]*)$")).as_py():
        return None
    try:
        return pc.cast(names, pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None


def encode(column: Any) -> tuple[NDArray[np.int64], Any]:
    """The code of each string of a chunked array (-1 for null), and the array of distinct strings they count."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    return coded.indices.fill_null(-1).to_numpy().astype(np.int64), coded.dictionary


def number_nodes(source: Any, target: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...] | None, int]:
    """Node numbers of the two ends of each link, given their names as chunked arrays of strings.

    Integer ids are numbered in their order, others as they first appear, row by row.

    Returns:
        ``(M,)`` rows, ``(M,)`` columns, the ``N`` names (None if they are ``0 … N-1``), and ``N``.
    """
    import pyarrow as pa

    codes, names = encode(pa.chunked_array([*source.chunks, *target.chunks]))
    values = integer_values(names)
    if values is None:
        in_file_order = codes.reshape(2, -1).T.ravel()
        first = np.empty(len(names), dtype=np.int64)
        # Written backwards, so that of several writes to one place the earliest row's stays.
        first[in_file_order[::-1]] = np.arange(codes.size)[::-1]
        order = np.argsort(first)
    else:
        order = np.argsort(values)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    rows, cols = rank[codes].reshape(2, -1)
    return rows, cols, node_ids(names.take(pa.array(order)).to_pylist()), len(names)


def node_ids(names: list[str]) -> tuple[str, ...] | None:
    """The names as :class:`Graph` holds them: None when they are just ``0 … N-1``."""
    plain = all(name == str(number) for number, name in enumerate(names))
    return None if plain else tuple(names)


def positions(graph: Graph, names: Any) -> NDArray[np.int64]:
    """The node number of each name of a pyarrow array of strings, -1 where the graph has no such node."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if graph.node_ids is None:
        known = pc.cast(pa.array(np.arange(graph.num_nodes)), pa.string())
    else:
        known = pa.array(graph.node_ids, pa.string())
    return np.asarray(pc.index_in(names, value_set=known).fill_null(-1)).astype(np.int64)


def node_number(graph: Graph, name: str) -> int:
    """The number of the node that the user calls ``name``.

    Raises:
        InputError: the graph has no such node.
    """
    import pyarrow as pa

    number = int(positions(graph, pa.array([name]))[0])
    if number < 0:
        ends = f"{graph.id_of(0)} … {graph.id_of(graph.num_nodes - 1)}" if graph.num_nodes else "none"
        raise InputError(f"Graph '{graph.name}' has no node '{name}'; its {graph.num_nodes} nodes are {ends}.")
    return number


def number_classes(labels: Any) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    """Class numbers of a chunked array of labels, and the sorted class names (None if they are ``0 … C-1``).

    Null labels get -1. Integer labels are sorted as numbers, others as text.
    """
    codes, names = encode(labels)
    values = integer_values(names)
    words = names.to_pylist()
    order = np.argsort(words if values is None else values)
    rank = np.full(len(words) + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(words))
    # Code -1 (null) picks the extra last place, which stays -1.
    return rank[codes], node_ids([words[i] for i in order])
