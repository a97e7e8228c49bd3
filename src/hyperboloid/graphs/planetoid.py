"""Cora, Citeseer and Pubmed from Planetoid's raw files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from hyperboloid.graphs.build import build_graph
from hyperboloid.graphs.files import find
from hyperboloid.graphs.graph import UNLABELLED, Graph
from hyperboloid.graphs.pickles import load_pickle

_URL = "https://github.com/kimiyoung/planetoid/raw/master/data/"
_FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
_VALIDATION = 500
_MD5 = {
    "citeseer": {
        "allx": "28486b4b9c4ee076b4eee2febd89ba86",
        "ally": "f0df7e5f859245e32987bfd224d01657",
        "graph": "5f88483d5f5cc2b26b987bbbfb695005",
        "test.index": "70af39d4dff8aaa5c63f8dc526b16534",
        "tx": "c25ab826a7e95c0922ab625de705f7df",
        "ty": "356894a73b7a7eff43c3580f2fcf92a4",
        "y": "8b99f50aa950fbbf9a7a2b71ff9cac97",
    },
    "cora": {
        "allx": "c9083193a57057dd1238321e140194d7",
        "ally": "125d70817fe1fdbfdcad991995e81579",
        "graph": "b37c419cec179f45834467630c278e4c",
        "test.index": "9b822cae1d01f41e8bf8782e20367c0e",
        "tx": "b29c36916768e1d2f55391c1aa9317ac",
        "ty": "48bf43f54fa5b86089a4bd0299795f10",
        "y": "78344284e3ff7fd24eb9c307d51351eb",
    },
    "pubmed": {
        "allx": "d6ecf5ffbdc9f8b181962d6829c7a8ac",
        "ally": "ab5def164b4c5b33e215b6397a84ee4b",
        "graph": "601ee2ffa59197989ff7267383a4ea46",
        "test.index": "57cdfacfa20179b9b92e077fba394d1c",
        "tx": "30d5abd15cf10e46ebd9514b256e0347",
        "ty": "3082e367753e3a81c457f644316ca17d",
        "y": "520bb2899bb8fb705181b8e34a973573",
    },
}


def load_planetoid(name: str, data_dir: str | Path | None = None) -> Graph:
    """``cora``, ``citeseer`` or ``pubmed`` with raw features and Planetoid's split as ``masks["public"]``."""
    paths = {part: _path(name, part, data_dir) for part in _MD5[name]}
    test = np.loadtxt(paths["test.index"], dtype=np.int64)
    links = load_pickle(paths["graph"])
    num_nodes = max(int(test.max()), *links) + 1
    seen_x, test_x = load_pickle(paths["allx"]), load_pickle(paths["tx"])
    seen_y, test_y = load_pickle(paths["ally"]), load_pickle(paths["ty"])

    # The rows of tx stand in the order of test.index; the nodes it leaves out (15 of Citeseer's) have no row.
    x = np.zeros((num_nodes, seen_x.shape[1]), dtype=np.float32)
    x[: seen_x.shape[0]] = seen_x.toarray()
    x[test] = test_x.toarray()
    one_hot = np.zeros((num_nodes, seen_y.shape[1]), dtype=np.int64)
    one_hot[: seen_y.shape[0]] = seen_y
    one_hot[test] = test_y
    y = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNLABELLED)

    degrees = [len(neighbours) for neighbours in links.values()]
    rows = np.repeat(np.fromiter(links, np.int64, len(links)), degrees)
    cols = np.fromiter((j for neighbours in links.values() for j in neighbours), np.int64, sum(degrees))
    train = load_pickle(paths["y"]).shape[0]
    public = {
        "train": torch.arange(train),
        "val": torch.arange(train, train + _VALIDATION),
        "test": torch.from_numpy(np.sort(test)),
    }
    return build_graph(name, rows, cols, num_nodes, x=x, y=y, masks={"public": public})


def _path(name: str, part: str, data_dir: str | Path | None) -> Path:
    file = f"ind.{name}.{part}"
    return find(f"planetoid/{_FOLDERS[name]}/raw/{file}", _MD5[name][part], _URL + file, data_dir)
