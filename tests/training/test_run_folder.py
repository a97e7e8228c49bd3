"""What lies in a run folder, and that reading it never runs anything."""

import dataclasses
import json
import os
import pickle
import shutil
import signal

import pyarrow.parquet as pq
import pytest
import torch

import hyperboloid
from hyperboloid.errors import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.training import runner
from hyperboloid.training.loop import Training

FILES = {"config.json", "metrics.jsonl", "model.safetensors", "embeddings.parquet", "summary.json"}
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x1f\x8b")


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Two seeds on two splits; not to be written to."""
    folder = tmp_path_factory.mktemp("several") / "run"
    return hyperboloid.fit("karate", dim=4, epochs=4, seeds=2, split=[0, 1], out=folder)


@pytest.fixture
def single(several, tmp_path):
    """A run folder that may be damaged."""
    shutil.copytree(several.runs[0].folder, tmp_path / "run")
    shutil.copy(several.folder / "graph.safetensors", tmp_path / "run")
    return tmp_path / "run"


def test_four_runs_each_whole_in_a_folder_of_its_own(several):
    names = {f"split-{split}-seed-{seed}" for split in (0, 1) for seed in (0, 1)}
    assert {path.name for path in several.folder.iterdir()} == names | {
        "config.json",
        "graph.safetensors",
        "summary.json",
    }
    whole = json.loads((several.folder / "summary.json").read_text())
    assert whole == several.summary
    for name, summary in zip(sorted(names), whole["runs"], strict=True):
        assert {path.name for path in (several.folder / name).iterdir()} == FILES
        alone = hyperboloid.load(several.folder / name)
        assert len(alone.runs) == 1
        assert alone.best.summary == summary
        assert alone.best.score("test").metric == summary["test"]


def test_config_says_how_to_repeat_the_run(several):
    config = json.loads((several.folder / "split-1-seed-0" / "config.json").read_text())
    assert config["format"] == 1
    assert (config["splits"], config["seeds"]) == ([1], [0])
    assert (config["dataset"], config["task"], config["model"]) == ("karate", "link", "lgcn")
    assert (config["settings"]["dim"], config["settings"]["epochs"]) == (4, 4)
    assert config["checksum"] == several.graph.checksum
    assert set(config["versions"]) >= {"hyperboloid", "python", "torch", "torch_geometric"}


def test_metrics_have_a_line_for_each_epoch(several):
    for run in several.runs:
        lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
        assert all(set(line) >= {"loss", "val_auc", "beta"} for line in lines)
        assert lines[run.summary["best_epoch"] - 1]["val_auc"] == run.summary["val"]


def test_embeddings_are_the_normal_coordinates_of_the_nodes(several):
    run = several.runs[3]
    table = pq.read_table(run.folder / "embeddings.parquet")
    assert table.column_names == ["id", "v0", "v1", "v2", "v3"]
    assert table["id"].to_pylist() == [str(i) for i in range(34)]
    with torch.no_grad():
        z = run.task.encode(run.encoder)
    for k in range(4):
        torch.testing.assert_close(torch.tensor(table[f"v{k}"].to_pylist()), z[:, k])


def test_a_run_that_was_split_otherwise_is_not_scored(single):
    path = single / "summary.json"
    content = json.loads(path.read_text())
    assert hyperboloid.load(single).runs[0].evaluate()["test"] == content["runs"][0]["test"]
    content["runs"][0]["split_name"] = "another way"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="was split as 'another way', which this version does otherwise"):
        hyperboloid.load(single).runs[0].evaluate()


def test_nothing_in_it_is_a_pickle(several):
    files = [path for path in several.folder.rglob("*") if path.is_file()]
    assert len(files) == 3 + 4 * len(FILES)
    for path in files:
        assert not path.read_bytes().startswith(PICKLES), path


class Trap:
    def __reduce__(self):
        return (os.mkdir, ("sprung",))


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("name", ["model.safetensors", "graph.safetensors", "config.json", "summary.json"])
def test_a_pickle_is_refused_and_not_run(single, tmp_path, monkeypatch, name, protocol):
    monkeypatch.chdir(tmp_path)
    (single / name).write_bytes(pickle.dumps(Trap(), protocol))
    with pytest.raises(InputError, match=name):
        hyperboloid.load(single).best.score("test")
    assert not (tmp_path / "sprung").exists()


def test_a_torch_file_is_refused_and_not_run(single, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Trap()}, single / "model.safetensors")
    with pytest.raises(InputError, match="model"):
        hyperboloid.load(single).best.score("test")
    assert not (tmp_path / "sprung").exists()


def test_ctrl_c_amid_an_epoch_ends_it_first(tmp_path, monkeypatch):
    """Otherwise the checkpoint would count an epoch whose step was not made."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    backward = Training._backward

    def interrupted(training):
        if training.epoch == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return backward(training)

    settings = {"dim": 4, "epochs": 9, "dropout": 0.3}
    hyperboloid.fit("karate", **settings, out=tmp_path / "unbroken")
    try:
        monkeypatch.setattr(Training, "_backward", interrupted)
        with pytest.raises(KeyboardInterrupt) as stop:
            hyperboloid.fit("karate", **settings, out=tmp_path / "run")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        monkeypatch.undo()
    assert stop.value.args == (str(tmp_path / "run"),)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 5
    hyperboloid.fit("karate", **settings, out=tmp_path / "run", resume=True)
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()


def test_a_second_ctrl_c_amid_an_epoch_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CHECKPOINT_EVERY", -1.0)
    backward = Training._backward

    def interrupted(training):
        if training.epoch == 5:
            raise KeyboardInterrupt
        return backward(training)

    settings = {"dim": 4, "epochs": 9}
    hyperboloid.fit("karate", **settings, out=tmp_path / "unbroken")
    monkeypatch.setattr(Training, "_backward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hyperboloid.fit("karate", **settings, out=tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    hyperboloid.fit("karate", **settings, out=tmp_path / "run", resume=True)
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()


@pytest.mark.parametrize("left", [[], ["config.json.partial"]])
def test_a_run_killed_before_its_config_was_there_resumes(tmp_path, left):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in left:
        (folder / name).write_bytes(b"{")
    assert hyperboloid.fit("karate", dim=4, epochs=1, out=folder, resume=True).summary["epochs"] == 1


def test_a_float64_run_is_read_back_to_the_last_bit(tmp_path):
    from safetensors.torch import load_file

    run = hyperboloid.fit("karate", dim=4, epochs=3, dtype="float64", out=tmp_path / "run").best
    stored = load_file(tmp_path / "run" / "model.safetensors")
    for name, tensor in run.encoder.state_dict().items():
        assert tensor.dtype == torch.float64
        assert torch.equal(tensor, stored[name])


def test_a_graph_with_one_fixed_split_is_not_split_several_times(tmp_path):
    graph = load_graph("karate")
    parts = {"train": torch.tensor([0, 33]), "val": torch.tensor([1, 32]), "test": torch.tensor([2, 31])}
    given = dataclasses.replace(graph, masks={"public": parts})
    with pytest.raises(InputError, match="one fixed split"):
        hyperboloid.fit(given, task="node", split=[0, 1], epochs=2, out=tmp_path / "run")
    run = hyperboloid.fit(given, task="node", epochs=2, out=tmp_path / "run").best
    assert run.summary["split_name"] == "public"


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_given_split_with_an_empty_part_is_refused(tmp_path, part):
    parts = {"train": torch.tensor([0, 33]), "val": torch.tensor([1, 32]), "test": torch.tensor([2, 31])}
    given = dataclasses.replace(load_graph("karate"), masks={"public": parts | {part: torch.tensor([], dtype=int)}})
    with pytest.raises(InputError, match="has an empty part"):
        hyperboloid.fit(given, task="node", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
