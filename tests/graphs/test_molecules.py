"""Molecules from ZINC's files, SMILES tables and PyG objects; targets that can be computed; splits."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from molecules import MOLECULES, molecule_set, random_molecules
from pyarrow import parquet
from torch_geometric.data import Data

from hyperboloid import InputError
from hyperboloid.graphs.load_molecules import load_molecules
from hyperboloid.graphs.molecule_splits import split_molecules
from hyperboloid.graphs.molecule_store import molecules_to_bytes, read_stored_molecules
from hyperboloid.graphs.molecules import Problem, find_name, tell_problems
from hyperboloid.graphs.smiles import PROPERTIES, from_smiles, parse

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def written(molecules):
    """Each molecule as the multiset of its atoms, each with its bonds and the kinds of its neighbours, in no order."""
    out, a, b = [], 0, 0
    for n, m in zip(molecules.num_atoms, molecules.num_bonds, strict=True):
        kinds = [molecules.atom_names[k] for k in molecules.atom[a : a + n]]
        around = [[] for _ in kinds]
        for i, j, k in zip(*molecules.ends[:, b : b + m].tolist(), molecules.bond[b : b + m].tolist(), strict=True):
            around[i].append((kinds[j], molecules.bond_names[k]))
            around[j].append((kinds[i], molecules.bond_names[k]))
        out.append(sorted((kind, sorted(near)) for kind, near in zip(kinds, around, strict=True)))
        a, b = a + n, b + m
    return out


# ---- ZINC


@pytest.fixture(scope="module")
def zinc(data_dir):
    if not (data_dir / "zinc").is_dir():
        pytest.skip("the files of zinc are absent")
    return load_molecules("zinc", data_dir=data_dir, targets=["logp", "qed", "SAS"])


def test_zinc_has_the_counts_of_its_readme(zinc):
    assert len(zinc) == 204_315 + 24_887 + 19_661
    assert {part: len(chosen) for part, chosen in zinc.masks["hgnn"].items()} == {
        "train": 204_315,
        "val": 24_887,
        "test": 19_661,
    }
    assert len(zinc.atom_names) == 14
    assert zinc.num_atoms.max() == 83
    assert zinc.num_atoms.mean() == pytest.approx(43.8, abs=0.05)
    assert zinc.target_names == ("logp", "qed", "sas")
    assert zinc.targets[0] == pytest.approx([5.0506, 0.702012232801, 2.08409457207])
    parts = zinc.masks["hgnn"]
    assert len(np.unique(np.concatenate(list(parts.values())))) == len(zinc)


def test_zincs_graphs_are_those_that_rdkit_makes_of_its_smiles(zinc, data_dir):
    import gzip

    with gzip.open(data_dir / "zinc" / "zinc250k.csv.gz", "rt") as file:
        lines = [next(file).strip().split(",") for _ in range(301)]
    rows = lines[1:]
    made = from_smiles("slice", [row[0] for row in rows], range(2, 302), np.zeros((300, 0)), (), ["logp", "sas"])
    here = zinc.only(np.flatnonzero(np.isin(zinc.lines, made.lines)))
    there = made.only(np.flatnonzero(np.isin(made.lines, here.lines)))
    assert len(here) > 290
    assert written(here) == written(there)
    np.testing.assert_allclose(there.targets, here.targets[:, [0, 2]], rtol=0, atol=1e-6)


# ---- SMILES


def test_a_molecule_by_hand():
    """Hydrogen cyanide: hydrogens are atoms, kinds are symbol, valence and charge."""
    one = parse("C#N")
    assert one.atoms == ["C4(0)", "N3(0)", "H1(0)"]
    assert sorted(zip(one.ends, one.bonds, strict=True)) == [((0, 1), 2), ((0, 2), 0)]
    assert parse("[NH4+]").atoms[0] == "N4(1)"
    benzene = parse("c1ccccc1")
    assert sorted(benzene.bonds) == [0] * 9 + [1] * 3  # kekulised


def test_known_properties_of_aspirin():
    """Values that RDKit's documentation and many papers quote."""
    values = dict(zip(PROPERTIES, parse(ASPIRIN, list(PROPERTIES)).computed, strict=True))
    assert values["logp"] == pytest.approx(1.3101, abs=1e-4)
    assert values["qed"] == pytest.approx(0.5501, abs=1e-3)
    assert values["sas"] == pytest.approx(1.58, abs=0.01)


TABLE = f"""id,SMILES,solubility,note
1,CCO,1.1,x
2,C1CC,0.5,broken ring

# a comment
3,{ASPIRIN},-2,x
4,,3,nothing
5,C,0.25,one carbon
6,CC.[Na+].[Cl-],7,apart
7,[Fe]->[O],1,strange bond
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(TABLE)
    return path


def test_a_table_of_smiles(table):
    found = load_molecules(table, targets=["Solubility", "logp"])
    assert found.target_names == ("solubility", "logp")
    assert found.lines.tolist() == [2, 6, 8, 9]
    assert found.targets[:, 0].tolist() == [1.1, -2, 0.25, 7]
    assert found.targets[1, 1] == pytest.approx(1.3101, abs=1e-4)
    problems = {problem.line: problem.reason for problem in found.problems}
    assert problems.keys() == {3, 7, 10}
    assert "'C1CC' is not a SMILES that RDKit can read" in problems[3]
    assert problems[7] == "there is no SMILES"
    assert "dative bond" in problems[10]
    assert found.num_atoms.tolist() == [9, 21, 5, 10]
    assert found.num_bonds.tolist() == [8, 21, 4, 7]  # the last one is in three parts


def test_targets_come_in_the_order_they_are_asked_for(table):
    one = load_molecules(table, targets=["logp", "solubility"])
    other = load_molecules(table, targets=["solubility", "logp"])
    assert one.target_names == ("logp", "solubility")
    assert np.array_equal(one.targets, other.targets[:, ::-1])


def test_a_few_problems_are_told_and_the_others_counted():
    problems = [Problem(line, "no") for line in range(2, 15)]
    assert tell_problems(problems[:2], "a.csv", "skipped") == ["Line 2 skipped: no.", "Line 3 skipped: no."]
    told = tell_problems(problems, "a.parquet", "left empty")
    assert told[0] == "Row 2 left empty: no."
    assert (len(told), told[-1]) == (11, "… and 3 more.")


def test_a_parquet_table_counts_rows(table, tmp_path):
    path = tmp_path / "own.parquet"
    parquet.write_table(pa.table({"s": ["CCO", "xx", "CC"], "y": [1.0, 2.0, 3.0]}), path)
    found = load_molecules(path, smiles="s", targets=["y"])
    assert found.lines.tolist() == [1, 3]
    assert [problem.line for problem in found.problems] == [2]


def test_a_table_is_converted_once(table, monkeypatch):
    first = load_molecules(table, targets=["solubility"])
    monkeypatch.setattr("hyperboloid.graphs.molecule_tables.from_smiles", None)
    again = load_molecules(table, targets=["solubility"])
    assert again.checksum == first.checksum
    assert [p.reason for p in again.problems] == [p.reason for p in first.problems]
    table.write_text(TABLE.replace("CCO", "CCN"))
    with pytest.raises(TypeError, match="NoneType"):
        load_molecules(table, targets=["solubility"])


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        ("", {"targets": ["y"]}, "own.csv is empty"),
        ("smiles,y\n", {"targets": ["y"]}, "own.csv has a header but no molecules"),
        ("a,b\nCC,1\n", {"targets": ["b"]}, "no column called smiles; name it by --smiles; its columns are: a, b"),
        ("a,b\nCC,1\n", {"smiles": "c", "targets": ["b"]}, "no column 'c'; its columns are: a, b"),
        ("smiles,b\nCC,1\n", {"targets": ["y"]}, "no column 'y'; its columns are: smiles, b"),
        ("smiles,b\nCC,1\n", {}, r"name what to predict by --target: a column of .* \(b\) or logp, qed, sas"),
        ("smiles,b\nCC,1\nC,soft\n", {"targets": ["b"]}, "own.csv line 3: the target in column 'b' is 'soft'"),
        ("smiles,b\nCC,1\nC,\n", {"targets": ["b"]}, "own.csv line 3: the target in column 'b' is empty"),
        ("smiles,b\nCC,1\nC,inf\n", {"targets": ["b"]}, "own.csv line 3: the target 'b' is inf"),
        ("smiles,b\nx,1\ny,2\n", {"targets": ["b"]}, r"can be read; the first one, in line 2: 'x' is not a SMILES"),
        ("smiles,b\nCC,1\n", {"targets": ["b", "b"]}, "each target once"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, content, given, message):
    path = tmp_path / "own.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_molecules(path, **given)


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        ("zink", {}, "no set of molecules 'zink': choose zinc"),
        ("cora", {}, "'cora' is one graph, not a set of graphs"),
        ("missing.csv", {"targets": ["y"]}, "no file missing.csv"),
        (3, {}, "cannot read molecules from a int"),
        ([], {}, "no graphs in this collection"),
        (molecule_set(), {"smiles": "s"}, "a column of a table of your own"),
        (molecule_set(), {"scaffold": True}, "came without SMILES"),
        (molecule_set(), {"targets": ["z"]}, "no target 'z'; choose among: y"),
        (molecule_set(), {"targets": []}, "Name each target once"),
    ],
)
def test_what_is_wrong_with_a_source(source, given, message):
    with pytest.raises(InputError, match=message):
        load_molecules(source, **given)


# ---- PyG


def data(n=3, **more):
    given = {"x": torch.arange(n).view(-1, 1), "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])}
    return Data(**{**given, "y": torch.tensor([1.5]), **more})


def test_pyg_objects_with_kinds():
    one_hot = torch.eye(4)[[1, 1, 3, 3]]
    found = load_molecules([data(edge_attr=one_hot), data(edge_attr=one_hot, y=torch.tensor([2.0]))])
    assert found.num_bonds.tolist() == [2, 2]
    assert [found.bond_names[k] for k in found.bond] == ["edge 1", "edge 3"] * 2  # those that occur, and no others
    assert found.bond_names == ("edge 1", "edge 3")
    assert found.ends.tolist() == [[0, 1, 0, 1], [1, 2, 1, 2]]
    assert found.atom.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.targets.tolist() == [[1.5], [2.0]]
    assert found.x is None


def test_pyg_objects_of_one_node_or_without_edges():
    none = torch.zeros(2, 0, dtype=torch.long)
    lone = Data(x=torch.tensor([[2]]), edge_index=none, edge_attr=torch.zeros(0, dtype=torch.long), y=torch.ones(1))
    apart = Data(x=torch.tensor([[0], [2]]), edge_index=none, edge_attr=torch.zeros(0, 4), y=2.5)
    found = load_molecules([lone, data(edge_attr=torch.eye(4)[[1, 1, 3, 3]]), apart])
    assert found.num_atoms.tolist() == [1, 3, 2]
    assert found.num_bonds.tolist() == [0, 2, 0]
    assert found.targets.tolist() == [[1.0], [1.5], [2.5]]
    alone = load_molecules(iter([lone, lone]))
    assert (alone.atom.tolist(), alone.atom_names, alone.bond_names) == ([0, 0], ("node 2",), ("edge 0",))


def test_pyg_objects_with_features_and_several_targets():
    found = load_molecules([data(x=torch.randn(3, 2), y=torch.tensor([[1.0, 2.0]])) for _ in range(2)])
    assert found.x.shape == (6, 2)
    assert found.target_names == ("y0", "y1")
    assert found.atom.tolist() == [0] * 6


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([data(), data(y=None)], "Graph 2 has no finite numbers in y"),
        ([data(y=torch.tensor([torch.nan]))], "Graph 1 has no finite numbers in y"),
        ([data(), data(y=torch.ones(2))], "equally many numbers in y"),
        ([data(), data(x=torch.randn(3, 2))], "equally many columns in x"),
        ([data(edge_attr=torch.randn(4, 2))], "edge_attr must be the kind of each edge"),
        ([data(edge_index=torch.tensor([[0], [7]]))], "edges to nodes outside 0 to 2"),
        ([data(edge_index=None)], "has no edge_index"),
        ([data(edge_attr=torch.zeros(3, dtype=torch.long))], "Graph 1 has 4 edges, but 3 rows in edge_attr"),
        (data(), "This Data is one graph: give a list"),
        ([data(), "CCO"], "Graph 2 of this collection is a str, not a PyG Data"),
    ],
)
def test_what_is_wrong_with_objects(graphs, message):
    with pytest.raises(InputError, match=message):
        load_molecules(graphs)


# ---- the set itself


def test_a_stored_set_comes_back_whole():
    made = molecule_set(
        masks={"own": {"train": np.array([0, 1]), "val": np.array([2]), "test": np.array([3])}},
        scaffold=np.array([0, 0, 1, 2]),
        x=np.ones((13, 2), dtype=np.float32),
    )
    back = read_stored_molecules(molecules_to_bytes(made))
    assert back.checksum == made.checksum
    assert back.target_names == made.target_names
    with pytest.raises(InputError, match="does not hold molecules"):
        read_stored_molecules(b"\x02\0\0\0\0\0\0\0{}")


def test_some_molecules_of_a_set():
    made = molecule_set(masks={"own": {"train": np.array([0, 1]), "val": np.array([2]), "test": np.array([3])}})
    few = made.only(np.array([3, 1]))
    assert written(few) == [written(made)[3], written(made)[1]]
    assert {part: chosen.tolist() for part, chosen in few.masks["own"].items()} == {
        "train": [1],
        "val": [],
        "test": [0],
    }
    assert few.checksum != made.checksum
    assert made.only(np.arange(4)).checksum == made.checksum


def test_the_checksum_sees_every_part():
    base = molecule_set()
    others = [
        molecule_set(MOLECULES[::-1]),
        molecule_set(targets=np.ones((4, 1))),
        molecule_set(scaffold=np.zeros(4, dtype=np.int64)),
        molecule_set(masks={"own": {"train": np.array([0])}}),
    ]
    assert len({base.checksum, *(other.checksum for other in others)}) == 5


def test_names_are_found_as_written_first():
    assert find_name(["logP", "logp"], "logp") == 1
    assert find_name(["logP", "x"], "LOGP") == 0
    assert find_name(["x"], "y") is None


# ---- splits


def test_a_random_split_is_a_partition_that_the_seed_fixes():
    made = molecule_set(random_molecules(100))
    first, again, other = (split_molecules(made, seed) for seed in (0, 0, 1))
    assert first.name == "80/10/10 random, seed 0"
    assert sorted(np.concatenate([first.train, first.val, first.test])) == list(range(100))
    assert (len(first.val), len(first.test)) == (10, 10)
    assert np.array_equal(first.train, again.train)
    assert not np.array_equal(first.train, other.train)


def test_molecules_of_one_scaffold_stay_together():
    random = np.random.default_rng(0)
    made = molecule_set(random_molecules(200), scaffold=random.integers(60, size=200))
    split = split_molecules(made, 3, kind="scaffold")
    parts = [set(made.scaffold[part]) for part in (split.train, split.val, split.test)]
    assert sum(map(len, parts)) == len(set.union(*parts))
    assert len(split.train) + len(split.val) + len(split.test) == 200
    assert 10 <= len(split.val) <= 30
    assert 10 <= len(split.test) <= 30


def test_scaffolds_are_those_of_murcko(table):
    found = from_smiles(
        "x", ["c1ccccc1C", "CCc1ccccc1", "C1CCCCC1", "CC"], range(4), np.zeros((4, 0)), (), scaffold=True
    )
    assert found.scaffold.tolist() == [0, 0, 1, 2]


def test_molecules_with_atoms_that_training_lacks_are_left_out_and_counted():
    plain, strange = ([0, 1], [(0, 1, 0)]), ([2], [])
    masks = {"own": {"train": np.array([0, 1]), "val": np.array([2, 3]), "test": np.array([4])}}
    made = molecule_set((plain, plain, plain, strange, plain), masks=masks)
    split = split_molecules(made)
    assert split.val.tolist() == [2]
    assert split.name == "the split 'own' of the data; left out with kinds of atoms unseen in training: 1"
    assert split.left_out == 1
    assert split.seen_atoms.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "scaffold", "message"),
    [
        ("own", None, "no split 'own'; choose one of: random, scaffold"),
        ("scaffold", None, "needs SMILES"),
        ("scaffold", np.zeros(2, dtype=int), "too few scaffolds for a training, a validation and a test part: 1"),
        (None, None, "too few molecules for a training, a validation and a test part: 2"),
    ],
)
def test_splits_that_cannot_be(kind, scaffold, message):
    with pytest.raises(InputError, match=message):
        split_molecules(molecule_set(MOLECULES[:2], scaffold=scaffold), kind=kind)


def test_the_problems_are_stored_too():
    made = from_smiles("x", ["CC", "?"], [5, 9], np.zeros((2, 0)), (), ["logp"])
    back = read_stored_molecules(molecules_to_bytes(made))
    assert [(p.line, p.reason) for p in back.problems] == [(9, "'?' is not a SMILES that RDKit can read")]
    assert json.loads(json.dumps(back.target_names)) == ["logp"]
