import sys
import time
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from pyarrow import parquet
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from hyperboloid.errors import InputError
from hyperboloid.graphs import load_graph, read_graph
from hyperboloid.graphs.splits import split_links, split_nodes
from hyperboloid.graphs.tables import in_memory

# Node 0 … 5; each edge once, in one direction; weights that float32 holds exactly.
EDGES = [(0, 1, 0.5), (2, 1, 2.0), (2, 3, 1.25), (4, 0, 3.0), (5, 4, 0.75), (1, 5, 8.0)]
X = np.array([[1.0, -2.5], [0.25, 3.0], [4.0, 0.0], [-1.0, 0.5], [2.0, 2.0], [7.0, 6.0]], dtype=np.float32)
CLASSES = ["red", "blue", None, "blue", "red", "green"]
Y = [2, 0, -1, 0, 2, 1]


def text(separator, header=True):
    rows = [("source", "target", "strength")] if header else []
    return "".join(separator.join(map(str, row)) + "\n" for row in rows + EDGES)


def feature_text():
    order = [3, 0, 5, 1, 4, 2]
    return "id,a,b\n" + "".join(f"{i},{X[i, 0]},{X[i, 1]}\n" for i in order)


def label_text():
    return "node,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(CLASSES) if label)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "x.csv").write_text(feature_text())
    (tmp_path / "y.csv").write_text(label_text())
    return tmp_path


def network():
    graph = nx.DiGraph()
    for i in range(6):
        graph.add_node(i, a=float(X[i, 0]), b=float(X[i, 1]), **({"label_": CLASSES[i]} if CLASSES[i] else {}))
    graph.add_weighted_edges_from(EDGES, weight="strength")
    return graph


def matrix():
    rows, cols, values = zip(*EDGES, strict=True)
    return sp.coo_matrix((values, (rows, cols)), shape=(6, 6))


def write(folder, kind):
    """The same graph in one of the forms a user may have; returns what to call read_graph with."""
    files = {"features": folder / "x.csv", "labels": folder / "y.csv"}
    inside = {"features": "a, b", "labels": "label_"}
    path = folder / f"edges.{kind}"
    match kind:
        case "csv":
            path.write_text(text(","))
        case "tsv":
            path.write_bytes(b"\xef\xbb\xbf" + text("\t").replace("\n", "\r\n").encode())
        case "txt":
            path.write_text("# a comment\n\n" + text("   ").replace("4", "  4"))
        case "parquet":
            rows, cols, values = map(list, zip(*EDGES, strict=True))
            parquet.write_table(pa.table({"source": rows, "target": cols, "strength": values}), path)
        case "graphml":
            nx.write_graphml(network(), path)
            return path, {"weight": "strength", **inside}
        case "gml":
            nx.write_gml(nx.relabel_nodes(network(), str), path)
            return path, {"weight": "strength", **files}
        case "npz":
            sp.save_npz(path, matrix())
            return path, files
        case "networkx":
            return network(), {"weight": "strength", **inside}
        case "scipy":
            return matrix().tocsc(), files
        case "pyg":
            rows, cols, values = zip(*EDGES, strict=True)
            data = Data(x=torch.from_numpy(X), y=torch.tensor(Y), edge_index=torch.tensor([rows, cols]))
            data.strength = torch.tensor(values)
            return data, {"weight": "strength", "labels": folder / "y.csv"}
    return path, {"weight": "strength", **files}


@pytest.mark.parametrize("kind", ["csv", "tsv", "txt", "parquet", "graphml", "gml", "npz", "networkx", "scipy", "pyg"])
def test_the_same_graph_in_every_form(folder, kind):
    source, options = write(folder, kind)
    graph = read_graph(source, **options)
    best = {pair: w for u, v, w in EDGES for pair in ((u, v), (v, u))}
    assert list(map(tuple, graph.edge_index.T.tolist())) == sorted(best)
    assert graph.edge_weight.tolist() == [best[pair] for pair in sorted(best)]
    assert torch.equal(graph.x, torch.from_numpy(X))
    assert graph.y.tolist() == Y
    assert graph.class_names == ("blue", "green", "red")
    assert graph.node_ids is None


def read_text(folder, content, name="edges.csv", **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_graph(path, **options)


def test_without_weight_the_third_column_is_ignored(folder):
    graph = read_text(folder, text(",", header=False))
    assert graph.edge_weight is None
    assert graph.num_edges == 6
    assert graph.name == "edges.csv"


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ("10,2\n2,-3\n", ("-3", "2", "10")),
        ("b,a\na,c\n", ("b", "a", "c")),
        ("Source,Target\nb,a\n", ("b", "a")),
        ("person,friend,years\nann,bob,3\nbob,cy,4\n", ("ann", "bob", "cy")),
        ("first,second\n7,8\n", ("7", "8")),
        ("root,1\n1,2\n", ("root", "1", "2")),
        ("weight,from,to\n0.5,a,b\n", ("a", "b")),
        ("007,7\n", ("007", "7")),
        ("New York, Paris \nParis,Rome\n", ("New York", "Paris", "Rome")),
        ('"Smith, J","Doe, K"\n', ("Smith, J", "Doe, K")),
        ("99999999999999999999,1\n", ("99999999999999999999", "1")),
        ("Åse,☃\n", ("Åse", "☃")),
        ("1,1\n0,2\n", None),
    ],
)
def test_ids_and_headers(folder, content, ids):
    graph = read_text(folder, content)
    assert graph.node_ids == ids
    assert graph.num_nodes == len(ids or "012")


def test_labels_that_are_numbers_are_sorted_as_numbers(folder):
    (folder / "y.csv").write_text("0,10\n1,9\n2,\n")
    graph = read_text(folder, "0,1\n1,2\n", labels=folder / "y.csv")
    assert graph.class_names == ("9", "10")
    assert graph.y.tolist() == [1, 0, -1]


def test_features_from_npz_and_parquet(folder):
    (folder / "e.csv").write_text("a,b\nb,c\n")
    np.savez(folder / "x.npz", x=X[:3], ids=["c", "a", "b"])
    table = pa.table({"v": X[:3, 0], "w": [True, False, True], "node_id": ["c", "a", "b"]})
    parquet.write_table(table, folder / "x.parquet")
    dense = read_graph(folder / "e.csv", features=folder / "x.npz")
    assert torch.equal(dense.x, torch.from_numpy(X[[1, 2, 0]]))
    stored = read_graph(folder / "e.csv", features=folder / "x.parquet")
    assert stored.x.tolist() == [[0.25, 0.0], [4.0, 1.0], [1.0, 1.0]]
    sp.save_npz(folder / "s.npz", sp.csr_matrix(X[:3]))
    (folder / "n.csv").write_text("0,1\n1,2\n")
    assert torch.equal(read_graph(folder / "n.csv", features=folder / "s.npz").x, torch.from_numpy(X[:3]))


def test_isolated_nodes_and_masks_of_pyg():
    mask = torch.tensor([True, False, False, True])
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4, train_mask=mask, val_mask=~mask, test_mask=~mask)
    graph = load_graph(data)
    assert graph.num_nodes == 4
    assert graph.masks["public"]["train"].tolist() == [0, 3]


PARTS = {"train": [0, 3], "val": [1, 5], "test": [2, 4]}


def masked(kind, parts=PARTS):
    """Data with the masks of some parts, each made by ``kind``."""
    masks = {f"{part}_mask": kind(torch.isin(torch.arange(6), torch.tensor(nodes))) for part, nodes in parts.items()}
    return Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=torch.tensor([0, 1] * 3), num_nodes=6, **masks)


@pytest.mark.parametrize(
    "kind",
    [
        lambda mask: mask.byte(),
        lambda mask: mask.float(),
        lambda mask: mask.unsqueeze(1),
        lambda mask: mask.numpy(),
        lambda mask: mask.nonzero().flatten().flip(0),
        lambda mask: mask.nonzero().flatten().tolist(),
    ],
)
def test_masks_of_pyg_of_any_kind_are_the_same_split(kind):
    graph = load_graph(masked(kind))
    assert {part: nodes.tolist() for part, nodes in graph.masks["public"].items()} == PARTS
    assert graph.checksum == load_graph(masked(torch.Tensor.clone)).checksum


def test_a_mask_without_the_others_is_no_split():
    data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4, train_mask=torch.rand(4))
    graph = read_graph(data)
    assert not graph.masks
    assert not graph.problems


def test_edge_index_of_pyg_is_an_edge_list():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    wrapped = EdgeIndex(edges, sparse_size=(4, 4))
    found, expected = (read_graph(Data(edge_index=e, num_nodes=4)) for e in (wrapped, edges))
    assert torch.equal(found.edge_index, expected.edge_index)


def test_masks_of_pyg_with_columns_are_several_splits():
    data = masked(torch.Tensor.clone)  # whose test mask is the same in both
    both = torch.stack([data.train_mask, data.val_mask], 1)
    data.train_mask, data.val_mask = both, both.flip(1)
    splits = [split_nodes(load_graph(data), seed) for seed in (0, 1)]
    assert [split.train.tolist() for split in splits] == [[0, 3], [1, 5]]
    assert [split.test.tolist() for split in splits] == [[2, 4], [2, 4]]
    assert [split.name for split in splits] == ["public 0", "public 1"]
    with pytest.raises(InputError, match=r"no node split named 'public 2' \(it came with: public 0, public 1\)"):
        split_nodes(load_graph(data), 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_mask": torch.ones(7, dtype=torch.bool)}, r"train_mask of graph 'graph' has shape \(7,\)"),
        ({"val_mask": torch.ones(5, dtype=torch.bool)}, "neither a mask of its 6 nodes"),
        ({"val_mask": torch.ones(6, 1, 1)}, "neither a mask"),
        ({"test_mask": torch.tensor([2, 6])}, "nor a list of different nodes"),
        ({"test_mask": torch.tensor([2, 2])}, "nor a list of different nodes"),
        ({"test_mask": torch.full((6,), 0.5)}, "neither a mask"),
        ({"train_mask": torch.ones(6, 2), "val_mask": torch.ones(6, 3)}, "equally many columns"),
        ({"y": torch.full((6,), 0.5)}, "labels must be whole numbers"),
        ({"y": torch.zeros(6, 3)}, r"labels of shape \(6, 3\)"),
        ({"y": torch.zeros(1)}, r"labels of shape \(1,\)"),
        ({"y": ["a"] * 6}, "numbers; this list is none"),
    ],
)
def test_bad_labels_and_masks_of_pyg_are_told_to_who_asks_for_them(changes, message):
    data = masked(torch.Tensor.clone).update(changes)
    graph = load_graph(data)
    assert split_links(graph).train.numel()
    with pytest.raises(InputError, match=message):
        split_nodes(graph)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(
    "change",
    [
        lambda data: {"x": data.x.to_sparse()},
        lambda data: {"x": data.x.to_sparse_csr()},
        lambda data: {"x": data.x.numpy(), "edge_index": data.edge_index.numpy()},
        lambda data: {"y": data.y.numpy()},
        lambda data: {"y": data.y.tolist()},
    ],
)
def test_sparse_features_and_arrays_in_pyg(change):
    data = masked(torch.Tensor.clone).update({"x": torch.eye(6)})
    expected = load_graph(data)
    assert load_graph(data.update(change(data))).checksum == expected.checksum


def test_values_of_one_are_no_weights():
    assert read_graph(sp.csr_matrix(np.array([[0, 1], [1, 0]]))).edge_weight is None


def test_gml_without_labels(folder):
    graph = read_text(folder, "graph [ node [ id 3 ] node [ id 8 ] edge [ source 3 target 8 ] ]", "g.gml")
    assert graph.node_ids == ("3", "8")


# What the user did wrong, and what must be said about it.
BAD_EDGES = {
    "empty file": ("e.csv", "", {}, r"e\.csv is empty"),
    "only comments": ("e.csv", "# nothing\n\n", {}, r"e\.csv has no rows"),
    "only a header": ("e.csv", "source,target\n", {}, "has a header but no edges"),
    "binary junk": ("e.csv", b"PK\x03\x04\x00\x00\xff", {}, r"e\.csv is not a text file"),
    "not UTF-8": ("e.csv", b"a,b\r\nc,d\r\n\xe5,b\r\n", {}, r"e\.csv is not UTF-8 text \(line 3\)"),
    "a single column": ("e.csv", "1\n2\n", {}, "single column"),
    "a row too short": ("e.csv", "# c\na,b\n\nc,d\ne\n", {}, r"e\.csv line 5: expected 2 columns, found 1"),
    "a row too long": ("e.txt", "1 2\n3 4 5\n", {}, r"e\.txt line 2: expected 2 columns, found 3"),
    "an open quotation mark": ("e.csv", 'a,b\n"c,d\ne,f\n', {}, r"e\.csv line 2: a quotation mark is not closed"),
    "an open one in the last column": ("e.csv", '# c\na,b\nc,"d\ne,f\n', {}, r"e\.csv line 3: a quotation mark is not"),
    "an open one in the last line": ("e.csv", 'a,b\nc,"d', {}, r"e\.csv line 2: a quotation mark is not closed"),
    "an empty id": ("e.csv", "a,b\n# c\nc,\n", {}, r"e\.csv line 3: the node id in column 2 is empty"),
    "only self loops": ("e.csv", "a,a\n", {}, "has no edges"),
    "weight is a word": (
        "e.csv",
        "u,v,w\n\na,b,1\nc,d,x\n",
        {"weight": "w"},
        r"e\.csv line 4: the weight in column 'w' is 'x'",
    ),
    "weight is negative": ("e.csv", "u,v,w\na,b,1\nc,d,-2\n", {"weight": "w"}, r"e\.csv line 3: the weight is -2"),
    "weight is NaN": ("e.csv", "u,v,w\na,b,nan\n", {"weight": "w"}, r"e\.csv line 2: the weight is nan"),
    "weight is empty": ("e.csv", "u,v,w\na,b,\n", {"weight": "w"}, r"e\.csv line 2: the weight .* is empty"),
    "no such weight": ("e.csv", "u,v,w\na,b,1\n", {"weight": "z"}, "no column 'z' for the weight; it has u, v, w"),
    "weight is an end": ("e.csv", "u,v,w\na,b,1\n", {"weight": "v"}, "holds node ids"),
    "unknown ending": ("e.xyz", "a,b\n", {}, "by its ending '.xyz'"),
    "a pickle": ("e.pkl", "a,b\n", {}, "is a pickle"),
    "a torch file": ("e.pt", "a,b\n", {}, "is a pickle"),
    "broken GraphML": ("e.graphml", "<graphml><node", {}, r"e\.graphml is not a readable graphml file"),
    "broken GML": ("e.gml", "graph [ node [ id", {}, r"e\.gml is not a readable gml file"),
    "a type that GraphML does not have": (
        "e.graphml",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="w" '
        'attr.type="quark"/><graph edgedefault="directed"/></graphml>',
        {},
        r"e\.graphml is not a readable graphml file: it is damaged, or a value in it is not of the type",
    ),
    "a word for a number in GraphML": (
        "e.graphml",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="w" '
        'attr.type="double"/><graph edgedefault="directed"><node id="a"/><node id="b"/>'
        '<edge source="a" target="b"><data key="w">heavy</data></edge></graph></graphml>',
        {"weight": "w"},
        r"e\.graphml is not a readable graphml file: it is damaged, or a value in it is not of the type",
    ),
    "broken Parquet": ("e.parquet", "a,b\n", {}, r"e\.parquet is not a readable Parquet file"),
    "broken NPZ": ("e.npz", "a,b\n", {}, r"e\.npz holds no scipy sparse matrix, or is damaged"),
    "a name that is too long": (
        "e.csv",
        "a,b\n",
        {"features": "x" * 300 + ".csv"},
        "cannot read x+.csv: File name too",
    ),
    "no such features": ("e.csv", "a,b\n", {"features": "nowhere.csv"}, "no file nowhere.csv"),
    "labels in a pickle": ("e.csv", "a,b\n", {"labels": "y.pkl"}, "cannot read labels from y.pkl"),
}


@pytest.mark.parametrize("case", BAD_EDGES)
def test_bad_edges_are_one_sentence(folder, case):
    name, content, options, message = BAD_EDGES[case]
    with pytest.raises(InputError, match=message) as caught:
        read_text(folder, content, name, **options)
    assert "\n" not in str(caught.value)


BAD_NODES = {
    "a word": ("features", "id,p,q\na,1,2\nb,1,x\nc,1,1\n", r"line 3: the feature in column 'q' is 'x'"),
    "a word, no header": ("features", "a,1,2\nb,1,x\nc,1,1\n", r"line 2: the feature in column 3 is 'x'"),
    "NaN": ("features", "a,1\nb,nan\nc,1\n", r"line 2: the feature in column 2 is nan"),
    "infinite": ("features", "a,1\nb,1\nc,inf\n", r"line 3: the feature in column 2 is inf"),
    "too large for float32": ("features", "a,1\nb,1\nc,1e99\n", r"line 3: the feature in column 2 is inf"),
    "an empty cell": ("features", "a,1\nb,\nc,1\n", r"line 2: the feature in column 2 is empty"),
    "missing": ("features", "id,p\na,1\n", "no features for 2 of the graph's 3 nodes, the first is 'b'"),
    "unknown": ("features", "id,p\na,1\nz,1\n", "line 3: features for node 'z'"),
    "twice": ("features", "id,p\na,1\nb,1\na,2\n", "line 4: a second row of features for node 'a'"),
    "one column": ("features", "id\na\nb\nc\n", "single column"),
    "ragged": ("features", "id,p\na,1\nb\n", "line 3: expected 2 columns, found 1"),
    "unknown label": ("labels", "id,label\nz,red\n", "line 2: labels for node 'z'"),
    "label twice": ("labels", "id,label\na,red\na,blue\n", "line 3: a second row of labels for node 'a'"),
    "labels, header only": ("labels", "id,label\n", "has a header but no rows"),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_features_and_labels_are_one_sentence(folder, case):
    option, content, message = BAD_NODES[case]
    path = folder / "nodes.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_text(folder, "a,b\nb,c\n", **{option: path})
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_npz_features(folder):
    np.savez(folder / "object.npz", x=np.array([{}], dtype=object))
    np.savez(folder / "other.npz", z=X)
    np.savez(folder / "words.npz", x=np.array([["a"], ["b"], ["c"]]))
    damaged = {"data": [1.0], "indices": [10**6], "indptr": [0, 1, 1, 1], "shape": (3, 2)}
    np.savez(folder / "damaged.npz", format=b"csr", **damaged)
    np.savez(folder / "shape.npz", x=X, ids=["a"])
    np.savez(folder / "nan.npz", x=np.full((3, 2), np.nan))
    for name, message in {
        "object": "holds neither arrays x and ids nor a scipy sparse matrix",
        "other": "holds neither arrays x and ids nor a scipy sparse matrix",
        "words": "x must hold real numbers",
        "damaged": "the sparse matrix is damaged",
        "shape": "one row per id",
        "nan": r"nan\.npz row 1: the feature in column 1 is nan",
    }.items():
        with pytest.raises(InputError, match=message):
            read_text(folder, "0,1\n1,2\n", features=folder / f"{name}.npz")


def test_bad_parquet_edges(folder):
    path = folder / "e.parquet"
    for table, message in [
        ({"u": ["a", None], "v": ["b", "c"]}, "row 2: the node id in column 'u' is empty"),
        ({"u": [0.5], "v": [1.0]}, "column 'u' cannot hold a node id"),
        ({"u": [[1]], "v": [[2]]}, "column 'u' cannot hold a node id"),
        ({"u": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}, "has no rows"),
        ({"u": [1]}, "single column"),
    ]:
        parquet.write_table(pa.table(table), path)
        with pytest.raises(InputError, match=message):
            read_graph(path)
    parquet.write_table(pa.table({"u": [1], "v": [2], "w": pa.array([None], pa.float64())}), path)
    with pytest.raises(InputError, match="row 1: the weight is nan"):
        read_graph(path, weight="w")


def test_bad_objects():
    path_graph = nx.path_graph(3)
    path_graph.nodes[0]["a"] = "x"
    path_graph.edges[0, 1]["w"] = "heavy"
    edge = torch.tensor([[0], [1]])
    for source, options, message in [
        (path_graph, {"weight": "w"}, "edge .'0', '1'.: the weight is 'heavy'"),
        (path_graph, {"weight": "z"}, "no edge has an attribute 'z'; the edges have w"),
        (path_graph, {"labels": "club"}, "no node has an attribute 'club' .* the nodes have a"),
        (path_graph, {"features": "a"}, "node '0': the feature 'a' is 'x'"),
        (nx.Graph([(1, "1")]), {}, "written alike"),
        (nx.empty_graph(3), {}, "has no edges"),
        (sp.csr_matrix(np.ones((2, 3))), {}, "must be square"),
        (sp.csr_matrix(-np.ones((2, 2))), {}, "the weight is -1"),
        (sp.csr_matrix(np.ones((2, 2))), {"weight": "w"}, "leave out the option weight"),
        (Data(num_nodes=3), {}, "no edge_index"),
        (Data(edge_index=edge.expand(2, 3).T, num_nodes=3), {}, "no edge_index of shape"),
        (Data(edge_index=edge, num_nodes=2, x="ab"), {}, "numbers; this str is none"),
        (Data(edge_index=edge, num_nodes=2), {"weight": "w"}, "no attribute 'w'"),
        (Data(edge_index=edge, num_nodes=2, edge_weight=torch.tensor([-1.0])), {}, "the weight is -1"),
        (Data(edge_index=edge, num_nodes=1), {}, "edge to node 1"),
        (SimpleNamespace(), {}, "cannot read a graph from a SimpleNamespace"),
    ]:
        with pytest.raises(InputError, match=message):
            read_graph(source, **options)


def test_load_graph_takes_names_paths_and_graphs(folder, monkeypatch):
    karate = load_graph("Karate")
    assert karate.num_edges == 78
    assert load_graph(karate) is karate
    (folder / "e.csv").write_text("a,b\n")
    assert load_graph(str(folder / "e.csv")).num_edges == 1
    monkeypatch.chdir(folder)
    for source, message in [
        ("corra", "no data set 'corra': choose one of cora, .*path to an edge list"),
        ("missing.csv", r"no file missing\.csv"),
        ("no/where", "no file no/where"),
        (str(folder), "is a folder"),
    ]:
        with pytest.raises(InputError, match=message):
            load_graph(source)
    with pytest.raises(InputError, match="go with a graph of your own"):
        load_graph("karate", labels="y.csv")


@pytest.mark.parametrize("separator", [",", "  "])
def test_a_million_edges_in_seconds(folder, separator):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 300_000, size=(1_000_000, 2))
    path = folder / "big.csv"
    path.write_text("\n".join(f"{u}{separator}{v}" for u, v in ends.tolist()))
    start = time.perf_counter()
    graph = read_graph(path)
    seconds = time.perf_counter() - start
    distinct = {(u, v) if u < v else (v, u) for u, v in ends.tolist() if u != v}
    assert graph.num_edges == len(distinct)
    assert seconds < 30, f"{seconds:.1f} s"


def test_pyarrow_holds_on_to_nothing_of_pythons():
    """Its threads let go of a file whenever they like; at the exit that would abort the process, one time in three."""
    data = b"1,2\n3,4\n" * 100
    before = sys.getrefcount(data)
    file = in_memory(data)
    assert sys.getrefcount(data) == before
    assert file.read() == data
