"""A run killed for real ends as if it had never been killed."""

import os
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


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    hyperboloid.fit("disease", out=folder, **SETTINGS)
    return folder


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_when(folder, ready):
    """Start a run in another process and SIGKILL it once ``ready``; True if it died half-way."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), repr(SETTINGS)])
    deadline = time.monotonic() + 120
    while child.poll() is None and not ready() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGKILL)
    return child.wait() == -signal.SIGKILL and not (folder / "summary.json").exists()


def test_killed_again_and_again_then_resumed(unbroken, tmp_path):
    folder = tmp_path / "run"
    # before the first checkpoint, after it, and while checkpoints are being written
    assert kill_when(folder, lambda: (folder / "config.json").exists())
    assert kill_when(folder, lambda: (folder / "checkpoint.safetensors").exists())
    assert kill_when(folder, lambda: lines_in(folder / "metrics.jsonl") > EPOCHS // 2)
    assert kill_when(folder, lambda: (folder / "checkpoint.safetensors.partial").exists())
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
