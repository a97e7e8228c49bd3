"""What the library refuses when called from Python, before it writes anything."""

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import hyperboloid
from hyperboloid.errors import InputError, TrainingError
from hyperboloid.training.checkpoint import write_atomically

PARTS = ("train", "val", "test")
RING = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 0]])


def ring(**more):
    return Data(edge_index=RING, num_nodes=8, **more)


MASKS = {f"{part}_mask": torch.arange(8).view(8, 1) % 4 == torch.tensor([k, k + 1]) for k, part in enumerate(PARTS)}
TWO_SPLITS = ring(y=torch.tensor([0, 1, 1, 0, 1, 0, 0, 1]), **MASKS)


@pytest.mark.parametrize(
    ("graph", "options", "fragment"),
    [
        (3.5, {}, "cannot read a graph from a float"),
        (networkx.Graph(), {}, "no edges"),
        (sp.coo_matrix((4, 4)), {}, "no edges"),
        (sp.coo_matrix(np.ones((3, 4))), {}, "square"),
        (ring(x=torch.full((8, 2), torch.nan)), {}, "not a finite float32 number"),
        (ring(x=torch.ones(7, 2)), {}, "features of shape"),
        (ring(y=torch.zeros(8, dtype=torch.long)), {"task": "node"}, "of one class"),
        (ring(), {"task": "node"}, "no labels"),
        (ring(), {"seeds": 0}, "seeds must be whole numbers"),
        (ring(), {"split": []}, "splits must be whole numbers"),
        (ring(), {"split": [2, 2]}, "splits must differ"),
        (ring(), {"split": -1}, "splits must be whole numbers"),
        (ring(), {"split": True}, "split must be a whole number, not True"),
        (ring(), {"split": [0, 0.5]}, "split must be a whole number, not 0.5"),
        (ring(), {"seeds": "2"}, "seeds must be a whole number, not '2'"),
        (ring(), {"seed": 1.0}, "seed must be a whole number, not 1.0"),
        (ring(y=torch.randn(8)), {"task": "node"}, "labels must be whole numbers"),
        (TWO_SPLITS, {"task": "node", "split": [0, 2, 1]}, "no node split named 'public 2'"),
        (ring(), {"dim": True}, "dim must be a whole number"),
        (ring(), {"dim": 2.5}, "dim must be a whole number"),
        (ring(), {"dim": "16"}, "dim must be a whole number"),
        (ring(), {"beta": -1}, "beta must be at least"),
        (ring(), {"rate": 0.1}, "no setting 'rate'"),
        (ring(), {"dtype": "float16"}, "dtype must be one of float32, float64"),
        (ring(), {"device": "mps"}, "device must be cpu or cuda"),
        (ring(), {"model": "x"}, "no model 'x'"),
        (ring(), {"task": "x"}, "no task 'x'"),
    ],
)
def test_fit_refuses(tmp_path, graph, options, fragment):
    with pytest.raises(InputError) as refusal:
        hyperboloid.fit(graph, out=tmp_path / "run", **options)
    assert fragment in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_load_refuses_what_is_no_run_folder(tmp_path):
    with pytest.raises(InputError, match="There is no run folder"):
        hyperboloid.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no config\.json"):
        hyperboloid.load(tmp_path)
    with pytest.raises(InputError, match="File name too long"):
        hyperboloid.load(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["x", "y" * 250, "z/below"])
def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, name):
    (tmp_path / "x").mkdir()
    (tmp_path / "z").write_text("")
    with pytest.raises(TrainingError, match="Could not write"):
        write_atomically(tmp_path / name, b"content")
    assert {path.name for path in tmp_path.iterdir()} == {"x", "z"}
