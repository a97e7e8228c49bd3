"""A run killed for real ends as if it had never been killed."""

import signal
import subprocess
import sys
import time

import pytest

import hyperboloid

EPOCHS = 150
SETTINGS = {
    "task": "link",
    "dim": 8,
    "epochs": EPOCHS,
    "patience": EPOCHS,
    "drop_connect": 0.3,
    "dropout": 0.2,
    "att_dropout": 0.2,
}
CHILD = """
import sys, hyperboloid, hyperboloid.training.runner as runner
runner.CHECKPOINT_EVERY = 0.05
hyperboloid.fit("disease", out=sys.argv[1], resume=True, **eval(sys.argv[2]))
"""
#: Dies when a checkpoint has been written and does not have its name yet: too short a moment to be seen from outside.
DIES_WRITING = """
import os, signal
replace = os.replace
def die_at_a_checkpoint(source, target):
    if str(target).endswith("checkpoint.safetensors"):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = die_at_a_checkpoint
"""


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    hyperboloid.fit("disease", out=folder, **SETTINGS)
    return folder


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def start(folder, script=CHILD):
    return subprocess.Popen([sys.executable, "-c", script, str(folder), repr(SETTINGS)])


def died_half_way(child, folder):
    return child.wait() == -signal.SIGKILL and not (folder / "summary.json").exists()


def kill_when(folder, ready):
    """Start a run in another process and SIGKILL it once ``ready``; True if it died half-way."""
    child = start(folder)
    deadline = time.monotonic() + 120
    while child.poll() is None and not ready() and time.monotonic() < deadline:
        time.sleep(0.002)
    child.kill()
    return died_half_way(child, folder)


def test_killed_again_and_again_then_resumed(unbroken, tmp_path):
    folder = tmp_path / "run"
    # before the first checkpoint, after it, while one is being written, and later
    assert kill_when(folder, lambda: (folder / "config.json").exists())
    assert kill_when(folder, lambda: (folder / "checkpoint.safetensors").exists())
    assert died_half_way(start(folder, DIES_WRITING + CHILD), folder)
    assert (folder / "checkpoint.safetensors.partial").exists()
    assert kill_when(folder, lambda: lines_in(folder / "metrics.jsonl") > EPOCHS // 2)
    resumed = hyperboloid.fit("disease", out=folder, resume=True, **SETTINGS)
    for name in ("model.safetensors", "metrics.jsonl", "embeddings.parquet"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes(), name
    assert resumed.summary["test_mean"] == hyperboloid.load(unbroken).summary["test_mean"]
    assert not (folder / "checkpoint.safetensors").exists()


def test_finished_runs_of_several_are_not_trained_again(tmp_path):
    folder = tmp_path / "run"
    hyperboloid.fit("karate", seeds=2, epochs=3, out=folder)
    (folder / "split-0-seed-1" / "summary.json").unlink()
    kept = (folder / "split-0-seed-0" / "summary.json").stat().st_mtime_ns
    whole = hyperboloid.fit("karate", seeds=2, epochs=3, out=folder, resume=True).summary
    assert (folder / "split-0-seed-0" / "summary.json").stat().st_mtime_ns == kept
    assert len(whole["runs"]) == 2
