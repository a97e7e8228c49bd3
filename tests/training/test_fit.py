"""Training end to end: a result, repeatability, and what a run may and may not depend on."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import hyperboloid
from hyperboloid.errors import InputError, TrainingError
from hyperboloid.geometry import Curvature
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.splits import split_nodes
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import Settings, default_settings
from hyperboloid.training.tasks import LinkTask, NodeTask

F32 = torch.float32


def test_lgcn_learns_the_links_of_the_disease_tree(tmp_path):
    summary = hyperboloid.fit("disease", task="link", epochs=300, out=tmp_path / "run").summary
    assert summary["test_mean"] > 0.9


def test_lgcn_learns_the_two_clubs_of_karate(tmp_path):
    summary = hyperboloid.fit("karate", task="node", dim=8, epochs=100, out=tmp_path / "run").summary
    assert summary["test_mean"] > 0.8


def files_of(folder):
    return {name: (folder / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl", "embeddings.parquet")}


def test_same_seed_same_run_other_seed_other_run(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        hyperboloid.fit("karate", task="link", seed=seed, epochs=5, out=tmp_path / name, drop_connect=0.3)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert files_of(tmp_path / "a") != files_of(tmp_path / "c")


def test_a_run_does_not_touch_the_global_generator(tmp_path):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    hyperboloid.fit("karate", epochs=2, dropout=0.5, out=tmp_path / "run")
    assert torch.equal(before, torch.get_rng_state())


def test_python_and_command_line_say_the_same(tmp_path, monkeypatch, capsys):
    from hyperboloid.cli.main import main

    python = hyperboloid.fit("karate", task="node", dim=4, seeds=2, epochs=4, out=tmp_path / "python").summary
    words = f"hyperboloid train karate --task node --dim 4 --seeds 2 --epochs 4 --json --out {tmp_path / 'cli'}"
    monkeypatch.setattr("sys.argv", words.split())
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    command = json.loads(capsys.readouterr().out.splitlines()[-1])
    for key in ("val_mean", "val_std", "test_mean", "test_std", "epochs"):
        assert command[key] == python[key]


def test_numbers_of_numpy_and_torch_are_as_good_as_pythons(tmp_path):
    theirs = {
        "split": np.arange(2),
        "seed": np.int32(1),
        "seeds": np.int64(2),
        "dim": np.int64(4),
        "beta": np.float32(0.5),
        "device": torch.device("cpu"),
    }
    pythons = {"split": [0, 1], "seed": 1, "seeds": 2, "dim": 4, "beta": 0.5, "device": "cpu"}
    configs = [
        hyperboloid.fit("karate", epochs=1, out=tmp_path / name, **given).config.to_json()
        for name, given in (("theirs", theirs), ("pythons", pythons))
    ]
    assert json.dumps(configs[0]) == json.dumps(configs[1])
    assert hyperboloid.fit("karate", epochs=1, out=tmp_path / "one", split=np.int64(1)).config.splits == [1]


@pytest.mark.parametrize("shape", [(34,), (34, 3), (1,)])
def test_links_are_learned_whatever_y_is(tmp_path, shape):
    edges = load_graph("karate").edge_index
    for name, more in (("without", {}), ("with", {"y": torch.randn(shape)})):
        hyperboloid.fit(Data(edge_index=edges, num_nodes=34, **more), dim=4, epochs=2, out=tmp_path / name)
    assert files_of(tmp_path / "with") == files_of(tmp_path / "without")


def test_splits_in_columns_of_masks_are_chosen_by_their_number(tmp_path):
    graph = load_graph("karate")
    splits = [split_nodes(graph, seed) for seed in (3, 4)]
    masks = {
        f"{part}_mask": torch.stack([torch.isin(torch.arange(34), getattr(split, part)) for split in splits], 1)
        for part in ("train", "val", "test")
    }
    data = Data(edge_index=graph.edge_index, y=graph.y, num_nodes=34, **masks)
    runs = hyperboloid.fit(data, task="node", dim=4, epochs=2, split=[0, 1], out=tmp_path / "run").runs
    assert [run.summary["split_name"] for run in runs] == ["public 0", "public 1"]
    for run, split in zip(runs, splits, strict=True):
        assert torch.equal(run.task.split.train, split.train)


def test_training_never_reads_test_labels(tmp_path):
    graph = load_graph("disease")
    parts = split_nodes(graph, 0)
    test = parts.test
    graph = dataclasses.replace(graph, masks={"public": {"train": parts.train, "val": parts.val, "test": test}})
    wrong = graph.y.clone()
    wrong[test] = 1 - wrong[test]
    twisted = dataclasses.replace(graph, y=wrong)
    for name, one in (("true", graph), ("twisted", twisted)):
        hyperboloid.fit(one, task="node", dim=4, epochs=10, out=tmp_path / name)
    assert files_of(tmp_path / "true") == files_of(tmp_path / "twisted")
    scores = [hyperboloid.load(tmp_path / name).summary["test_mean"] for name in ("true", "twisted")]
    assert scores[0] == pytest.approx(1 - scores[1])


def test_messages_do_not_pass_along_hidden_edges():
    graph = load_graph("disease")
    task = LinkTask(graph, Settings(), 0, F32, "cpu")
    used = {tuple(e) for e in task.edge_index.t().tolist()}
    hidden = torch.cat([task.split.val, task.split.test], dim=1)
    assert not any((u, v) in used or (v, u) in used for u, v in hidden.t().tolist())


def test_weight_decay_spares_biases_and_curvatures():
    task = NodeTask(load_graph("disease"), Settings(), 0, F32, "cpu")
    training = Training("lgcn", task, Settings(weight_decay=0.1), 0)
    decayed, free = (g["params"] for g in training.optimizer.param_groups)
    assert [g["weight_decay"] for g in training.optimizer.param_groups] == [0.1, 0]
    curvatures = [m.raw for m in training.encoder.modules() if isinstance(m, Curvature)]
    assert len(curvatures) == 3
    biases = [p for name, p in training.encoder.named_parameters() if name.endswith("bias")]
    assert {id(p) for p in free} == {id(p) for p in curvatures + biases}
    assert len(decayed) == 4


def test_the_first_non_finite_value_is_blamed_on_its_layer():
    graph = load_graph("disease")
    broken = dataclasses.replace(graph, x=graph.x * 1e38)
    task = LinkTask(broken, Settings(scaling="none"), 0, F32, "cpu")
    with pytest.raises(
        TrainingError, match=r"Epoch 1: the output of layer convs\.0\.lin \(TangentLinear\) is not finite"
    ):
        Training("lgcn", task, Settings(scaling="none"), 0).step()


def test_a_parameter_gone_bad_is_named():
    task = LinkTask(load_graph("disease"), Settings(), 0, F32, "cpu")
    training = Training("lgcn", task, Settings(), 0)
    training.step()
    with torch.no_grad():
        training.encoder.convs[1].lin.weight[0, 0] = math.nan
    with pytest.raises(TrainingError, match=r"Epoch 2: parameter convs\.1\.lin\.weight is not finite"):
        training.step()


def test_named_graphs_have_settings_of_their_own_and_others_the_general_one():
    general = default_settings("lgcn", "link", "never seen")
    assert default_settings("lgcn", "link", "disease_lp") != general
    assert general == default_settings("lgcn", "link", "another")
    assert default_settings("lgcn", "link", "cora", dim=8, lr=0.1) == dataclasses.replace(
        default_settings("lgcn", "link", "cora"), dim=8, lr=0.1
    )
    with pytest.raises(InputError, match="no setting 'learning_rate'"):
        default_settings("lgcn", "link", "cora", learning_rate=0.1)


def test_all_shipped_settings_are_valid():
    from importlib.resources import files

    table = json.loads(files("hyperboloid.training").joinpath("defaults.json").read_text())
    for model, tasks in table.items():
        for task, entries in tasks.items():
            assert "*" in entries, f"{model}/{task} has nothing for a graph it has never seen"
            for entry in entries.values():
                assert not Settings(**entry).last_activation  # see "Why our pictures do not fill one quadrant"
