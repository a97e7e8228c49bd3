"""What a batch holds, against plain loops over the molecules in it."""

import dataclasses

import numpy as np
import pytest
import torch
from molecules import LONE, MOLECULES, batch_of, molecule_set, neighbours, random_molecules

from hyperboloid import InputError
from hyperboloid.graphs.files import cache_dir
from hyperboloid.graphs.packing import pack
from hyperboloid.kernels.fused import _flat
from hyperboloid.training.batches import Batches


def rows_of(batch):
    """For each node of a batch its (source, relation) pairs, read back from rows and columns."""
    pairs, adj = pairs_of(batch), batch.adj
    return [[pairs[c] for c in adj.col[adj.rowptr[i] : adj.rowptr[i + 1]]] for i in range(adj.num_rows)]


def pairs_of(batch):
    """The (source, relation) pair of each column."""
    return [
        (j, r)
        for r, source in enumerate(batch.sources)
        for j in (range(len(batch.kind)) if source is None else source.tolist())
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
    # columns are the pairs that occur, or all of a relation, each once, and rows are sorted by them
    pairs = {pair for row in found for pair in row}
    every = {(j, r) for r, source in enumerate(batch.sources) if source is None for j in range(len(kinds))}
    assert len({r for _, r in every}) == self_loops + virtual_node
    assert sorted(pairs | every, key=lambda pair: pair[::-1]) == pairs_of(batch)
    assert sum(batch.columns) == batch.adj.num_cols == len(pairs_of(batch))
    for i in range(batch.adj.num_rows):
        row = batch.adj.col[batch.adj.rowptr[i] : batch.adj.rowptr[i + 1]].tolist()
        assert row == sorted(row)
        assert (batch.adj.row[batch.adj.rowptr[i] : batch.adj.rowptr[i + 1]] == i).all()


@pytest.mark.parametrize("flags", [(True, True), (False, False)])
def test_columns_and_pieces_are_those_that_sorting_gives(flags):
    """What is laid out beforehand, against what an adjacency finds out by itself."""
    self_loops, virtual_node = flags
    made = molecule_set(random_molecules(30))
    batches = Batches(
        made, self_loops=self_loops, virtual_node=virtual_node, dtype=torch.float32, device=torch.device("cpu")
    )
    adj = batches.take(np.array([7, 3, 7, 29, 0])).adj
    alone = dataclasses.replace(adj, by_column=None, longest=None)
    for given, found in zip(adj.transposed, alone.transposed, strict=True):
        assert given.tolist() == found.tolist()
    for given, found in zip(_flat(adj.index), _flat(alone.index), strict=True):
        assert given.dtype == found.dtype == torch.int32
        assert given.tolist() == found.tolist()
    assert (adj.index.symmetric, adj.index.looped) == (alone.index.symmetric, alone.index.looped)


def test_large_molecules_are_packed_in_larger_numbers():
    """Of more nodes than 8 bits can count, and a row of more entries than a piece may have."""
    chain = ([0] * 1100, [(i, i + 1, 0) for i in range(1099)])
    batch = batch_of((LONE, chain), chosen=[1, 0])
    assert len(batch.adj.index.rows.hubs) == 1  # the virtual node
    pairs = pairs_of(batch)
    rows = [[pairs[c] for c in batch.adj.col[batch.adj.rowptr[i] : batch.adj.rowptr[i + 1]]] for i in (0, 600)]
    assert rows == [[(0, 0), (1, 0), (1100, 3)], [(599, 0), (600, 0), (601, 0), (1100, 3)]]


def test_a_thread_that_is_ahead_gives_the_same_batches_in_the_same_order():
    made = molecule_set(random_molecules(30))
    batches = Batches(made, self_loops=True, virtual_node=True, dtype=torch.float32, device=torch.device("cpu"))
    parts = np.array_split(np.random.default_rng(0).permutation(30), 4)
    for part, batch in zip(parts, batches.each(parts), strict=True):
        alone = batches.take(part)
        assert torch.equal(batch.kind, alone.kind)
        assert torch.equal(batch.adj.col, alone.adj.col)


def test_sums_and_means_go_over_the_nodes_of_each_graph():
    batch = batch_of()
    ones = torch.ones(len(batch.kind), 1, dtype=torch.float64)
    assert batch.sum(ones).flatten().tolist() == [6, 4, 2, 5]
    assert batch.mean(batch.kind.double().unsqueeze(-1))[2] == pytest.approx((2 + 3) / 2)
    values = torch.randn(len(batch.kind), 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(batch.mean, values)
    assert torch.autograd.gradcheck(batch.sum, values)


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
