"""The user's own graph: an edge list, GraphML, GML, a sparse matrix, or an object in memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.graphs.build import build_graph, check_weights
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.ids import number_nodes
from hyperboloid.graphs.node_tables import is_table, join_features, join_labels
from hyperboloid.graphs.objects import from_networkx, from_pyg
from hyperboloid.graphs.sparse import from_sparse, read_npz
from hyperboloid.graphs.tables import TABLE_SUFFIXES, Table, check_file, read_table

NETWORK_SUFFIXES = (".graphml", ".gml")
GRAPH_SUFFIXES = (*TABLE_SUFFIXES, *NETWORK_SUFFIXES, ".npz")
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".p", ".pt", ".pth", ".joblib")

_SOURCE_NAMES = ("source", "src", "from", "u", "node1", "head")
_TARGET_NAMES = ("target", "dst", "to", "v", "node2", "tail")


def read_graph(
    source: Any,
    *,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
) -> Graph:
    """A graph from the user's file or object.

    Args:
        source: a path to an edge list (``.csv .tsv .txt .edges .edgelist .parquet``), to a ``.graphml`` or ``.gml``
            file or to a scipy sparse ``.npz`` matrix; or a PyG ``Data``, a networkx graph or a scipy sparse matrix.
            Directed links become undirected. An edge list's first two columns are the two ends, unless its header
            has others named source and target (src/dst, from/to, …); a header is recognised by itself.
        features: a file with one row of numbers for each node: a table whose first column (or the one named id,
            node or node_id) is the node's id, or an NPZ file. For networkx graphs, GraphML and GML also node
            attributes, separated by commas.
        labels: a table (id, label) with the classes of some or all nodes; for networkx graphs, GraphML and GML also a
            node attribute.
        weight: the column (or edge attribute) that holds the weight of each edge. Without it edges are unweighted,
            save for PyG's ``edge_weight`` and the values of a sparse matrix.

    Raises:
        InputError: anything is wrong with what was given.
    """
    name, source = _opened(source)
    attributes = {"features": features, "labels": labels}
    if _is_instance(source, "networkx", "Graph"):
        inside = {key: str(v) for key, v in attributes.items() if v is not None and not is_table(v)}
        graph = from_networkx(source, name, inside.get("features"), inside.get("labels"), weight)
        attributes = {key: None if key in inside else v for key, v in attributes.items()}
    elif isinstance(source, Table):
        graph = _from_table(source, name, weight)
    elif _is_instance(source, "torch_geometric.data", "Data"):
        graph = from_pyg(source, name, weight)
    else:
        if weight is not None:
            raise InputError("the values of a sparse matrix are its weights; leave out the option weight")
        graph = from_sparse(source, name)
    if attributes["features"] is not None:
        graph = join_features(graph, Path(attributes["features"]))
    if attributes["labels"] is not None:
        graph = join_labels(graph, Path(attributes["labels"]))
    return graph


def _opened(source: Any) -> tuple[str, Any]:
    """The graph's name, and its content: a :class:`Table`, a networkx graph, a sparse matrix or a PyG ``Data``."""
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        return path.name, _read_file(path)
    if _is_instance(source, "networkx", "Graph"):
        return "graph", source
    if _is_instance(source, "torch_geometric.data", "Data") or _is_sparse(source):
        return "graph", source
    raise InputError(
        f"cannot read a graph from a {type(source).__name__}; give a path, a PyG Data, a networkx graph or a "
        "scipy sparse matrix"
    )


def _is_instance(source: Any, module: str, name: str) -> bool:
    """Whether ``source`` is of a class in a module that may not be imported; if it is not, nothing can be."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(source, getattr(loaded, name))


def _is_sparse(source: Any) -> bool:
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(source))


def _read_file(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix in _PICKLE_SUFFIXES:
        raise InputError(
            f"{path} is a pickle, which can run any code when it is read: write the graph as {_LIST} instead"
        )
    check_file(path)
    if suffix in TABLE_SUFFIXES:
        return read_table(path)
    if suffix in NETWORK_SUFFIXES:
        return _read_network(path)
    if suffix == ".npz":
        return read_npz(path)
    raise InputError(f"cannot tell what {path} is by its ending '{suffix}'; give one of {_LIST}")


_LIST = ", ".join(GRAPH_SUFFIXES)


def _read_network(path: Path) -> Any:
    import networkx

    try:
        if path.suffix.lower() == ".graphml":
            return networkx.read_graphml(path)
        try:
            return networkx.read_gml(path)
        except networkx.NetworkXError as error:
            if "label" not in str(error):
                raise
            return networkx.read_gml(path, label="id")
    except Exception as error:
        # The parsers let whatever goes wrong inside them through; only what they say themselves is of use.
        reason = "it is damaged, or a value in it is not of the type that it should be"
        if isinstance(error, networkx.NetworkXException | SyntaxError):  # the latter is the XML parser's
            reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} is not a readable {path.suffix[1:]} file: {reason}; correct it or write it again"
        ) from error


def _from_table(table: Table, name: str, weight: str | None) -> Graph:
    """A graph from an edge list, whose header is recognised here."""
    if len(table.columns) < 2:
        raise InputError(
            f"{table.path} has a single column; an edge list needs two (source and target), "
            "separated by commas, tabs or blanks"
        )
    if table.names is None and _has_header(table, weight):
        table = table.with_header()
    if len(table) == 0:
        raise InputError(f"{table.path} has a header but no edges; give at least one edge")
    ends = _end_columns(table)
    column = None if weight is None else _weight_column(table, weight, ends)
    source, target = (table.strings(end, "node id") for end in ends)
    rows, cols, names, num_nodes = number_nodes(source, target)
    weights = None
    if column is not None:
        weights = table.numbers(column, "weight")
        check_weights(weights, table.where)
    return build_graph(name, rows, cols, num_nodes, weight=weights, node_ids=names)


def _has_header(table: Table, weight: str | None) -> bool:
    if weight is not None:
        return True
    first = [field.strip().lower() for field in table.first_row()]
    named = any(f in _SOURCE_NAMES for f in first) and any(f in _TARGET_NAMES for f in first)
    return named or table.numbers_below_words()


def _end_columns(table: Table) -> tuple[int, int]:
    """The columns of the two ends: those the header names as a pair, else the first two."""
    names = [name.strip().lower() for name in table.names or ()]
    for source, target in zip(_SOURCE_NAMES, _TARGET_NAMES, strict=True):
        if source in names and target in names:
            return names.index(source), names.index(target)
    return 0, 1


def _weight_column(table: Table, weight: str, ends: tuple[int, int]) -> int:
    names = [name.strip() for name in table.names or ()]
    if weight not in names:
        raise InputError(f"{table.path} has no column '{weight}' for the weight; it has {', '.join(names)}")
    column = names.index(weight)
    if column in ends:
        raise InputError(f"{table.path}: column '{weight}' holds node ids, not the weight; name another")
    return column
