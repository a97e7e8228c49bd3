"""What a batch holds, against plain loops over the molecules in it."""

import numpy as np
import pytest
import torch
from molecules import MOLECULES, batch_of, molecule_set, neighbours, random_molecules

from hyperboloid import InputError
from hyperboloid.graphs.files import cache_dir
from hyperboloid.graphs.packing import pack
from hyperboloid.training.batches import Batches


def rows_of(batch):
    """For each node of a batch its (source, relation) pairs, read back from rows and columns."""
    relation = np.repeat(np.arange(len(batch.columns)), batch.columns)
    adj = batch.adj
    return [
        [(int(batch.source[c]), int(relation[c])) for c in adj.col[adj.rowptr[i] : adj.rowptr[i + 1]]]
        for i in range(adj.num_rows)
    ]


@pytest.mark.parametrize("flags", [(True, True), (False, False), (True, False), (False, True)])
@pytest.mark.parametrize("molecules", [MOLECULES, random_molecules(30)], ids=["by hand", "random"])
def test_a_batch_holds_the_neighbours_of_every_node(molecules, flags):
    self_loops, virtual_node = flags
    batches = Batches(
        molecule_set(molecules),
        self_loops=self_loops,
        virtual_node=virtual_node,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    order = np.random.default_rng(0).permutation(len(molecules))[: len(molecules) - 1]
    batch = batches.take(order)
    expected, first, kinds, owner = [], 0, [], []
    for place, k in enumerate(order):
        own = neighbours(molecules[k], self_loops=self_loops, virtual_node=virtual_node)
        expected += [sorted((first + j, r) for j, r in row) for row in own]
        kinds += [*molecules[k][0], *([3] if virtual_node else [])]
        owner += [place] * len(own)
        first += len(own)
    found = rows_of(batch)
    assert [sorted(row) for row in found] == expected
    assert batch.kind.tolist() == kinds
    assert batch.graph.tolist() == owner
    # columns are the pairs that occur, each once, and rows are sorted by them
    pairs = {pair for row in found for pair in row}
    assert len(pairs) == len(batch.source) == sum(batch.columns) == batch.adj.num_cols
    for i in range(batch.adj.num_rows):
        row = batch.adj.col[batch.adj.rowptr[i] : batch.adj.rowptr[i + 1]].tolist()
        assert row == sorted(row)
        assert (batch.adj.row[batch.adj.rowptr[i] : batch.adj.rowptr[i + 1]] == i).all()


def test_sums_and_means_go_over_the_nodes_of_each_graph():
    batch = batch_of()
    ones = torch.ones(len(batch.kind), 1, dtype=torch.float64)
    assert batch.sum(ones).flatten().tolist() == [6, 4, 2, 5]
    assert batch.mean(batch.kind.double().unsqueeze(-1))[2] == pytest.approx((2 + 3) / 2)


def test_the_conversion_is_kept_in_a_safe_file_and_made_once(monkeypatch):
    made = molecule_set(random_molecules(5, seed=77))
    first = pack(made, self_loops=True, virtual_node=True)
    files = set((cache_dir() / "molecules").glob("*.safetensors"))
    assert files

    def never(*args):
        raise AssertionError("converted again")

    monkeypatch.setattr("hyperboloid.graphs.packing._packed_bytes", never)
    again = pack(made, self_loops=True, virtual_node=True)
    for name, array in vars(first).items():
        assert np.array_equal(getattr(again, name), array)
    with pytest.raises(AssertionError, match="converted again"):
        pack(made, self_loops=True, virtual_node=False)
    assert set((cache_dir() / "molecules").glob("*.safetensors")) == files


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    packed = pack(molecule_set(random_molecules(3, seed=78)), self_loops=True, virtual_node=True)
    assert len(packed.nodes) == 3


def test_a_damaged_file_of_the_cache_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = molecule_set(random_molecules(3, seed=79))
    pack(made, self_loops=True, virtual_node=True)
    (path,) = (tmp_path / "hyperboloid" / "molecules").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{path.name} in the cache is damaged: remove it"):
        pack(made, self_loops=True, virtual_node=True)
