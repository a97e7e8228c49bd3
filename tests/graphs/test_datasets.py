import subprocess
import sys
import warnings

import networkx
import numpy as np
import pytest
import torch

from hyperboloid.errors import InputError
from hyperboloid.graphs import DATASETS, load_dataset

# nodes, edges, classes, features, class sizes
KNOWN = {
    "cora": (2708, 5278, 7, 1433, [351, 217, 418, 818, 426, 298, 180]),
    "citeseer": (3327, 4552, 6, 3703, [249, 590, 668, 701, 596, 508]),
    "pubmed": (19717, 44324, 3, 500, [4103, 7739, 7875]),
    "amazon": (13381, 245778, 10, 767, None),
    "usa": (1190, 13599, 4, 0, [297, 297, 297, 299]),
    "disease": (1044, 1043, 2, 11, None),
    "disease_lp": (2665, 2664, 2, 11, [1605, 1060]),
    "disease_nc": (1044, 1043, 2, 0, [833, 211]),
    "karate": (34, 78, 2, 0, [17, 17]),
}
PUBLIC_TRAIN = {"cora": 140, "citeseer": 120, "pubmed": 60}


@pytest.mark.parametrize("name", KNOWN)
def test_counts(name, data_dir):
    graph = load_dataset(name, data_dir)
    nodes, edges, classes, features, sizes = KNOWN[name]
    assert (graph.num_nodes, graph.num_edges, graph.num_classes, graph.num_features) == (
        nodes,
        edges,
        classes,
        features,
    )
    if sizes is not None:
        assert torch.bincount(graph.y[graph.y >= 0]).tolist() == sizes


def test_every_data_set_is_known_here():
    assert set(KNOWN) == set(DATASETS)
    assert all(name == dataset.name for name, dataset in DATASETS.items())


def test_differences_from_the_paper_are_explained():
    for name, dataset in DATASETS.items():
        nodes, edges, classes, features, _ = KNOWN[name]
        if dataset.paper is not None and dataset.paper != (nodes, edges, classes, features or None):
            assert dataset.note, f"{name} differs from the paper without a word"


@pytest.mark.parametrize(("name", "folder"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_planetoid_agrees_with_pyg(name, folder, data_dir):
    from torch_geometric.io import read_planetoid_data
    from torch_geometric.utils import coalesce

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG unpickles in ways that numpy deprecates
        theirs = read_planetoid_data(str(data_dir / "planetoid" / folder / "raw"), name)
    ours = load_dataset(name, data_dir)
    assert torch.equal(ours.edge_index, coalesce(theirs.edge_index))
    assert torch.equal(ours.x, theirs.x)
    known = ours.y >= 0
    assert int((~known).sum()) == (15 if name == "citeseer" else 0)
    assert torch.equal(ours.y[known], theirs.y[known])
    for part in ("train", "val", "test"):
        assert torch.equal(ours.masks["public"][part], theirs[f"{part}_mask"].nonzero().flatten())
    assert ours.masks["public"]["train"].numel() == PUBLIC_TRAIN[name]


def test_amazon_component_and_masks_agree_with_pyg(data_dir):
    from torch_geometric.io import read_npz
    from torch_geometric.transforms import LargestConnectedComponents

    whole = read_npz(str(data_dir / "amazon/Computers/raw/amazon_electronics_computers.npz"))
    for part in ("train", "val", "test"):
        whole[f"{part}_mask"] = torch.from_numpy(np.load(data_dir / f"amazon/lgcn_masks/amazon.{part}_mask.npy"))
    theirs = LargestConnectedComponents()(whole)
    ours = load_dataset("amazon", data_dir)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    for part, size in {"train": 200, "val": 496, "test": 992}.items():
        assert torch.equal(ours.masks["authors"][part], theirs[f"{part}_mask"].nonzero().flatten())
        assert ours.masks["authors"][part].numel() == size


def test_usa_keeps_the_airports_ids(data_dir):
    graph = load_dataset("usa", data_dir)
    lines = (data_dir / "airports/usa/raw/usa-airports.edgelist").read_text().split("\n")
    listed = {frozenset(line.split()) for line in lines if line}
    ours = {frozenset((graph.id_of(u), graph.id_of(v))) for u, v in graph.edge_index.T.tolist()}
    assert ours == listed
    listing = (data_dir / "airports/usa/raw/labels-usa-airports.txt").read_text()
    labels = dict(line.split() for line in listing.strip().split("\n"))
    assert [labels[graph.id_of(node)] for node in range(1190)] == [str(c) for c in graph.y.tolist()]


@pytest.mark.parametrize("name", ["disease_lp", "disease_nc"])
def test_disease_is_a_tree(name, data_dir):
    graph = load_dataset(name, data_dir)
    assert networkx.is_tree(networkx.Graph(graph.edge_index.T.tolist()))


def test_karate_needs_no_file(tmp_path):
    graph = load_dataset("karate", tmp_path)
    assert tuple(graph.class_names) == ("Mr. Hi", "Officer")
    assert (int(graph.y[0]), int(graph.y[33])) == (0, 1)
    assert graph.edge_weight is None


def test_nothing_is_written_next_to_the_data(data_dir, tmp_path):
    import shutil

    copy = tmp_path / "data"
    shutil.copytree(data_dir / "planetoid/Cora", copy / "planetoid/Cora")
    before = sorted(copy.rglob("*"))
    load_dataset("cora", copy)
    assert sorted(copy.rglob("*")) == before


def test_unknown_name_lists_the_names():
    with pytest.raises(InputError, match="no data set 'corra'; choose one of cora, citeseer, pubmed"):
        load_dataset("corra")


def test_the_registry_is_cheap_to_import():
    code = (
        "import sys, hyperboloid.graphs; "
        "print([m for m in ('scipy', 'pyarrow', 'networkx', 'torch_geometric') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
