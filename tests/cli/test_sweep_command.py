"""``hyperboloid sweep``: the user's own graph in, one table and a run folder out."""

import os
import signal
import subprocess
import sys
import time

import pytest

from hyperboloid import InputError
from hyperboloid.cli.sweep import parse_time

QUICK = ("--dim", 4, "--epochs", 3, "--tries", 2, "--seeds", 2)


def test_a_graph_of_the_user_s_ends_with_one_table_and_advice(cli, own_graph, tmp_path):
    own_graph("mine")
    words = ("sweep", "mine/edges.csv", "--features", "mine/features.csv", "--models", "lgcn,gcn", *QUICK, "--json")
    result = cli(*words)
    assert result.code == 0, result.err
    found = result.json
    assert {m["model"] for m in found["models"]} == {"lgcn", "gcn"}
    assert [m["val"] for m in found["models"]] == sorted((m["val"] for m in found["models"]), reverse=True)
    assert {m["geometry"] for m in found["models"]} == {"hyperbolic", "euclidean"}
    assert found["run"] == "runs/sweep-edges-link/best"
    assert "Validation prefers" in result.out
    assert cli("evaluate", found["run"]).code == 0
    assert cli("predict", found["run"], "--top", 3).code == 0


def test_shallow_models_run_through_the_same_command(cli):
    result = cli("sweep", "karate", "--models", "deepwalk,poincare_emb", *QUICK, "--set", "walks=1", "--json")
    assert result.code == 0, result.err
    assert {m["model"]: m["geometry"] for m in result.json["models"]} == {
        "deepwalk": "euclidean",
        "poincare_emb": "hyperbolic",
    }


def test_a_grid_of_the_user_s_own(cli, tmp_path):
    # gcn has no attention to drop: for it that line of the grid does not count
    (tmp_path / "grid.json").write_text('{"lr": [0.02, 0.005, 0.001], "att_dropout": [0, 0.3]}')
    words = ("sweep", "karate", "--models", "lgcn,gcn", "--grid", "grid.json", "--dim", 4, "--epochs", 3, "--seeds", 2)
    result = cli(*words, "--json")
    assert result.code == 0, result.err
    assert {m["model"]: m["tried"] for m in result.json["models"]} == {"lgcn": 6, "gcn": 3}
    assert all(m["settings"]["lr"] in (0.02, 0.005, 0.001) for m in result.json["models"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("lr: 0.1", "is not JSON"),
        ("[0.1]", "must be like"),
        ("{}", "not empty"),
        ('{"learning": [0.1]}', "no setting 'learning'"),
        ('{"lr": 0.1}', "a list of values for 'lr'"),
        ('{"lr": []}', "at least one"),
        ('{"lr": [0.1, 0.1]}', "twice"),
        ('{"lr": [-1]}', "lr must"),
        ('{"activation": ["loud"]}', "activation must"),
        ('{"lr": [0.1], "dim": [4], "lr": [0.2]}', "has 'lr' 2 times"),
        ('{"lr": [0.1]\n"dim": [4]}', "is not JSON: see its line 2."),
        (f'{{"lr": [{"1" * 5000}]}}', "is not JSON that can be read"),
        ('{"masks": [3]}', "masks must be a name, not 3"),
        ('{"walks": [5]}', "None of the models has a use for the setting 'walks'"),
    ],
)
def test_a_wrong_grid_is_one_sentence(cli, tmp_path, content, message):
    if content is not None:
        (tmp_path / "grid.json").write_text(content)
    result = cli("sweep", "karate", "--grid", "grid.json", "--models", "lgcn,gcn")
    assert result.code == 2
    assert message in result.error
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("karate", "--models", "gnc"), "no model 'gnc'"),
        (("karate", "--budget", "soon"), "--budget must be a time like"),
        (("karate", "--budget", "0m"), "--budget must be a time like"),
        (("karate", "--resume"), "Resuming needs the folder"),
        (("nowhere.csv",), "nowhere.csv"),
        (("karate", "--task", "graph"), "no task 'graph'"),
        (("karate", "--dim", "0"), "dim must be at least 1"),
        (("karate", "--seeds", "0"), "seeds must be at least 1"),
        (("karate", "--seeds", "3000000000"), "--seeds must be at least 1 and at most 10000, not 3000000000."),
        (("karate", "--dim", "8", "--set", "dim=16"), "dim was given twice, by --dim and by --set"),
        (("karate", "--set", "epochs=5", "--epochs", "7"), "epochs was given twice, by --epochs and by --set"),
        (("karate", "--split", "0-4"), "A sweep looks at one split: give --split one number, not '0-4'."),
        (("karate", "--split", "-1"), "--split must be a number, a list like 0,3 or a range like 0-4, not '-1'."),
        (("karate", "--set", "task=node"), "no setting 'task'"),
        (("karate", "--set", "finalists=0"), "no setting 'finalists'"),
    ],
)
def test_mistakes_are_one_sentence(cli, tmp_path, words, message):
    result = cli("sweep", *words)
    assert result.code == 2
    assert message in result.error
    assert not (tmp_path / "runs").exists()


def test_times():
    assert [parse_time(t) for t in ("90s", "10m", " 2h ", "1.5m")] == [90, 600, 7200, 90]
    with pytest.raises(InputError):
        parse_time("10")


def test_interrupted_and_resumed(cli, take_interrupts, tmp_path):
    words = ["sweep", "karate", "--models", "gcn,gat", "--dim", "4", "--tries", "40", "--seeds", "2", "--out", "s"]
    command = [sys.executable, "-m", "hyperboloid", *words]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(command, cwd=tmp_path, env=env, preexec_fn=take_interrupts, stderr=subprocess.PIPE)
    trials = tmp_path / "s" / "trials.jsonl"
    deadline = time.monotonic() + 60
    while not trials.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b"--resume --out s" in err
    before = trials.read_text()
    result = cli(*words[:4], *QUICK, "--out", "s", "--resume")
    assert result.code == 0, result.err
    assert trials.read_text().startswith(before)
