"""``hyperboloid train``: what it prints, the user's own graphs, and runs that end before their time."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import hyperboloid

KEYS = {
    *("dataset", "task", "model", "dim", "seeds", "metric", "val_mean", "val_std", "test_mean", "test_std"),
    *("epochs", "seconds", "run"),
}


@pytest.mark.parametrize(("task", "metric"), [("link", "auc"), ("node", "accuracy")])
def test_json_is_the_last_line(cli, task, metric):
    result = cli("train", "karate", "--task", task, "--dim", 4, "--epochs", 3, "--out", "run", "--json")
    assert result.code == 0, result.err
    assert [line.startswith("{") for line in result.out.splitlines()] == [False, False, True]
    found = result.json
    assert set(found) >= KEYS
    assert found | {"dataset": "karate", "task": task, "model": "lgcn", "dim": 4, "seeds": 1, "run": "run"} == found
    assert (found["metric"], found["epochs"], found["test_std"]) == (metric, 3, 0.0)
    assert all(0 <= found[key] <= 1 for key in ("val_mean", "test_mean"))
    assert f"{100 * found['test_mean']:.1f} %" in result.out  # for people in per cent


def test_several_seeds_and_splits_are_averaged(cli, tmp_path):
    words = ("train", "karate", "--dim", 4, "--epochs", 3, "--seeds", 2, "--seed", 5, "--split", "0,3")
    result = cli(*words, "--out", "run", "--json")
    assert result.code == 0, result.err
    names = ["split-0-seed-5", "split-0-seed-6", "split-3-seed-5", "split-3-seed-6"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if path.is_dir()) == names
    scores = [json.loads((tmp_path / "run" / name / "summary.json").read_text())["test_mean"] for name in names]
    mean = sum(scores) / 4
    assert result.json["test_mean"] == pytest.approx(mean)
    assert result.json["test_std"] == pytest.approx((sum((score - mean) ** 2 for score in scores) / 3) ** 0.5)
    assert (result.json["seeds"], result.json["splits"], result.json["epochs"]) == (2, [0, 3], 12)


def test_without_out_a_new_folder_is_made_each_time(cli, tmp_path):
    for _ in range(2):
        assert cli("train", "karate", "--dim", 4, "--epochs", 1).code == 0
    folders = {path.name for path in (tmp_path / "runs").iterdir()}
    assert folders == {"karate-link-lgcn-d4", "karate-link-lgcn-d4-2"}


def test_resuming_a_finished_run_says_the_same_again(cli, tmp_path):
    words = ("train", "karate", "--dim", 4, "--epochs", 3, "--out", "run", "--json")
    first = cli(*words).json
    model = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert cli(*words, "--resume").json == first
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == model


@pytest.mark.parametrize("task", ["link", "node"])
def test_the_users_own_graph(cli, own_graph, tmp_path, task):
    ids, _ = own_graph("mine")
    files = {name: tmp_path / "mine" / f"{name}.csv" for name in ("edges", "features", "labels")}
    options = ("--features", files["features"], "--labels", files["labels"], "--weight", "trust")
    result = cli("train", files["edges"], "--task", task, *options, "--epochs", 3, "--dim", 4, "--out", "run")
    assert result.code == 0, result.err
    graph = hyperboloid.load("run").graph
    assert sorted(graph.node_ids) == sorted(ids)
    assert graph.num_features == 3
    assert graph.edge_weight.unique().tolist() == [1, 2, 3, 4]
    assert list(graph.class_names) == ["even", "odd"]
    # ids, features and labels belong together: they come in three different orders
    for node in (0, 7, 20):
        i = int(graph.id_of(node).rpartition("-")[2])
        assert graph.x[node].tolist() == [(i * (k + 2)) % 7 + 1 for k in range(3)]
        assert graph.class_names[graph.y[node]] == ("even" if i % 2 == 0 else "odd")


def test_features_change_what_is_learned(cli, own_graph, tmp_path):
    own_graph("mine")
    edges = tmp_path / "mine" / "edges.csv"
    for name, options in (("plain", ()), ("features", ("--features", tmp_path / "mine" / "features.csv"))):
        assert cli("train", edges, *options, "--epochs", 2, "--dim", 4, "--out", name).code == 0
    widths = [hyperboloid.load(name).best.encoder.convs[0].lin.weight.shape for name in ("plain", "features")]
    assert widths[0] != widths[1]


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_full_disk_fails_in_one_sentence_and_the_run_goes_on_later(process, cli, tmp_path):
    words = ("train", "karate", "--epochs", 3, "--out", "run")
    result = process("-m", "hyperboloid", *words, preexec_fn=limit_file_size)
    assert result.code == 1
    assert result.error == "Could not write run/model.safetensors: File too large."
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert not left & {"summary.json", "model.safetensors", "model.safetensors.partial"}
    assert cli("evaluate", "run").code == 2
    assert cli(*words, "--resume").code == 0
    assert cli("evaluate", "run").code == 0


EPOCHS = 150
LONG = ("train", "karate", "--dim", "4", "--epochs", str(EPOCHS), "--set", f"patience={EPOCHS}", "--out", "run")


def test_ctrl_c_leaves_a_run_that_resumes_exactly(cli, take_interrupts, tmp_path):
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "hyperboloid", *LONG]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen(command, cwd=tmp_path, env=env, preexec_fn=take_interrupts, **pipes)
    log = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size) and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err == "Interrupted; go on with the same command and --resume --out run.\n"
    assert out == ""
    done = len(log.read_text().splitlines())
    assert 0 < done < EPOCHS
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()

    assert cli(*LONG, "--resume").code == 0
    assert cli(*LONG[:-1], "unbroken").code == 0
    for name in ("metrics.jsonl", "model.safetensors", "embeddings.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes(), name
