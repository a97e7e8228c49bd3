"""The named data sets: the paper's six, HGCN's second Disease, and Zachary's karate club."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs.build import build_graph
from hyperboloid.graphs.files import find
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.planetoid import load_planetoid

DataDir = str | Path | None


@dataclass(frozen=True)
class Dataset:
    """A data set that can be asked for by name.

    Attributes:
        name: what the user types.
        load: reads or makes the graph, given the data folder or None.
        description: what it is, in a few words.
        paper: nodes, edges, classes and features in the paper's table of data sets; None when it is not there, and
            features None for one-hot ones.
        note: where and why our counts differ from the paper's, or empty.
    """

    name: str
    load: Callable[[DataDir], Graph]
    description: str
    paper: tuple[int, int, int, int | None] | None = None
    note: str = ""


def load_dataset(name: str, data_dir: DataDir = None) -> Graph:
    """The named data set (see :data:`DATASETS`; upper and lower case are the same).

    Raises:
        InputError: no data set has that name, or one of its files is absent or damaged.
    """
    dataset = DATASETS.get(name.lower())
    if dataset is None:
        raise InputError(f"there is no data set '{name}'; choose one of {', '.join(DATASETS)}")
    return dataset.load(data_dir)


def _amazon(data_dir: DataDir) -> Graph:
    """The largest connected component of Amazon Computers, with the authors' split as ``masks["authors"]``."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    path = "amazon/Computers/raw/amazon_electronics_computers.npz"
    with np.load(find(path, "6a4c539abbeee6244ac83a0754c902a1", None, data_dir), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    adjacency, features = (
        csr_matrix(
            (arrays[f"{part}_data"], arrays[f"{part}_indices"], arrays[f"{part}_indptr"]),
            shape=arrays[f"{part}_shape"],
        )
        for part in ("adj", "attr")
    )
    _, component = connected_components(adjacency, directed=False)
    kept = np.flatnonzero(component == np.bincount(component).argmax())
    links = adjacency[kept][:, kept].tocoo()
    number = np.full(adjacency.shape[0], -1, dtype=np.int64)
    number[kept] = np.arange(kept.size)
    return build_graph(
        "amazon",
        links.row,
        links.col,
        kept.size,
        x=features[kept].toarray(),
        y=arrays["labels"][kept],
        class_names=tuple(str(label) for label in arrays["class_names"]),
        masks={"authors": _amazon_masks(number, data_dir)},
    )


def _amazon_masks(number: np.ndarray, data_dir: DataDir) -> dict[str, Tensor]:
    """The authors' split in the component's numbering; ``number`` is -1 for nodes outside it."""
    md5 = {
        "train": "7c9055674db38bcfa3dd1c555171ea63",
        "val": "133c752525d4e312a180b0a3378b6ff4",
        "test": "cb6592ba3fd85b24a349334ee023d9a6",
    }
    masks = {}
    for part, checksum in md5.items():
        path = find(f"amazon/lgcn_masks/amazon.{part}_mask.npy", checksum, None, data_dir)
        nodes = number[np.load(path, allow_pickle=False)]
        masks[part] = torch.from_numpy(nodes[nodes >= 0])
    return masks


def _usa(data_dir: DataDir) -> Graph:
    """US airports and the flights between them; the classes are quartiles of activity."""
    url = "https://raw.githubusercontent.com/leoribeiro/struc2vec/master/graph/"
    files = {
        "labels-usa-airports.txt": "fcfea46507ba49924b6333fa930a7a31",
        "usa-airports.edgelist": "8527d8b716d38cac63a68f4f7c2e31a3",
    }
    labels, links = (find(f"airports/usa/raw/{file}", md5, url + file, data_dir) for file, md5 in files.items())
    airports, y = np.loadtxt(labels, dtype=np.int64, skiprows=1).T
    order = np.argsort(airports)
    ends = order[np.searchsorted(airports[order], np.loadtxt(links, dtype=np.int64))]
    ids = tuple(str(airport) for airport in airports)
    return build_graph("usa", ends[:, 0], ends[:, 1], airports.size, y=y.copy(), node_ids=ids)


def _hgcn(name: str, md5: dict[str, str], data_dir: DataDir) -> Graph:
    """One of HGCN's Disease trees; ``md5`` says which of its files there are."""
    from scipy.sparse import load_npz

    url = f"https://raw.githubusercontent.com/HazyResearch/hgcn/master/data/{name}/{name}."
    files = {part: find(f"hgcn/{name}/{name}.{part}", md5[part], url + part, data_dir) for part in md5}
    ends = np.loadtxt(files["edges.csv"], delimiter=",", dtype=np.int64)
    x = load_npz(files["feats.npz"]).toarray() if "feats.npz" in files else None
    y = np.load(files["labels.npy"], allow_pickle=False)
    return build_graph(name, ends[:, 0], ends[:, 1], y.size, x=x, y=y)


_DISEASE_LP = {
    "edges.csv": "d765c23c16ec5e78c073e6a7f5c96340",
    "feats.npz": "fa115e9022d2281d7253dead9cb5f0a4",
    "labels.npy": "fbde231959a412b0cae32e1d28622190",
}
_DISEASE_NC = {
    "edges.csv": "658765d36ddebe4e0628db848ef3b940",
    "labels.npy": "46f321ea7e10b0fa0d513e5298221d2d",
}


def _disease(data_dir: DataDir) -> Graph:
    """A generated epidemic; it needs no file."""
    from hyperboloid.graphs.generators import disease

    return disease()


def _karate(data_dir: DataDir) -> Graph:
    """Zachary's karate club; the classes are the two clubs after the split."""
    import networkx

    club = networkx.karate_club_graph()
    rows, cols = np.array(club.edges, dtype=np.int64).T
    names, y = np.unique([club.nodes[member]["club"] for member in sorted(club)], return_inverse=True)
    return build_graph("karate", rows, cols, len(club), y=y, class_names=tuple(str(name) for name in names))


_DUPLICATES = "the paper counts links listed twice{}; here each edge counts once: {} edges"

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "cora",
            partial(load_planetoid, "cora"),
            "citations between machine learning papers",
            (2708, 5429, 7, 1433),
            _DUPLICATES.format("", 5278),
        ),
        Dataset(
            "citeseer",
            partial(load_planetoid, "citeseer"),
            "citations between computer science papers",
            (3327, 4732, 6, 3703),
            _DUPLICATES.format(" and self loops", 4552) + "; 15 nodes have neither features nor a label",
        ),
        Dataset(
            "pubmed",
            partial(load_planetoid, "pubmed"),
            "citations between papers on diabetes",
            (19717, 44338, 3, 500),
            _DUPLICATES.format(" and self loops", 44324),
        ),
        Dataset(
            "amazon",
            _amazon,
            "computer goods bought together",
            (13381, 245778, 10, 767),
            "the largest connected component; 4 validation and 8 test nodes of the authors' split lie outside it",
        ),
        Dataset("usa", _usa, "flights between US airports", (1190, 13599, 4, None)),
        Dataset(
            "disease",
            _disease,
            "a generated epidemic on a tree; needs no file",
            note="generated: the paper's Disease is disease_nc, whose features cannot be had",
        ),
        Dataset(
            "disease_lp",
            partial(_hgcn, "disease_lp", _DISEASE_LP),
            "HGCN's epidemic on a tree, for link prediction, 11 features",
        ),
        Dataset(
            "disease_nc",
            partial(_hgcn, "disease_nc", _DISEASE_NC),
            "HGCN's epidemic on a tree, for node classification",
            (1044, 1043, 2, 1000),
            "the file of the 1000 features cannot be had: nodes get a learned embedding instead",
        ),
        Dataset("karate", _karate, "Zachary's karate club"),
    )
}
