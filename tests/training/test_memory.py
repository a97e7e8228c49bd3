"""Memory grows with the edges, never with N × N, measured on whole processes; and what happens where there is none."""

import gc
import subprocess
import sys
import weakref

import pytest
import torch

from hyperboloid.errors import TrainingError
from hyperboloid.graphs import load_graph
from hyperboloid.training.batch import Batch
from hyperboloid.training.many import train_many
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import task_factory

GB = 1024**3

TRAIN = """
import resource, sys, torch
torch.set_num_threads(1)
import numpy as np, scipy.sparse as sp
import hyperboloid
{graph}
hyperboloid.fit(graph, task="link", out=sys.argv[1], epochs=2, **{settings})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak(tmp_path, graph, settings):
    script = TRAIN.format(graph=graph, settings=settings)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_pubmed_links_at_d_64_in_2_gb(tmp_path, data_dir):
    assert peak(tmp_path, "graph = 'pubmed'", {"dim": 64, "layers": 2, "data_dir": str(data_dir)}) < 2 * GB


def test_100_000_nodes_without_features_in_3_gb(tmp_path):
    graph = """
n = 100_000
parent = np.random.default_rng(0).integers(0, np.arange(1, n))
graph = sp.coo_matrix((np.ones(n - 1), (parent, np.arange(1, n))), shape=(n, n))
"""
    assert peak(tmp_path, graph, {"dim": 16}) < 3 * GB


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_batch_that_finds_no_room_on_a_gpu_is_trained_in_parts(data_dir, monkeypatch):
    """It is planned by what is free, and that may be gone when it starts."""
    settings = Settings(dim=16, epochs=12, dropout=0.5)
    task_for = task_factory(load_graph("cora", data_dir=data_dir), "link", 0, torch.float32, "cuda")
    runs = [(settings, seed) for seed in range(64)]
    few, _ = reserved("lgcn", task_for, runs[:8])
    most, freely = reserved("lgcn", task_for, runs)
    sizes = sizes_of_batches(monkeypatch)
    room = few + (most - few) / 4
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.get_device_properties(0).total_memory)
    try:
        cramped = train_many("lgcn", task_for, runs)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert 64 in sizes
    assert sum(sizes) > 64 + 2  # and the two models by which room is measured
    assert [t.outcome.seed for t in cramped] == list(range(64))
    for ours, theirs in zip(cramped, freely, strict=True):
        assert abs(ours.outcome.val - theirs.outcome.val) < 1e-3


def reserved(*job):
    """Most bytes of the GPU that a training of many models takes, and its trials."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    trials = train_many(*job)
    most = torch.cuda.max_memory_reserved()
    torch.cuda.empty_cache()
    return most, trials


def sizes_of_batches(monkeypatch):
    """A list of the sizes of all batches that are built from now on."""
    sizes, build = [], Batch.__init__

    def noted(self, model, task, runs):
        sizes.append(len(runs))
        build(self, model, task, runs)

    monkeypatch.setattr(Batch, "__init__", noted)
    return sizes


def lack_memory(monkeypatch, above):
    """From now on no batch of more models than ``above`` can be trained."""
    step = Batch.step

    def cramped(self):
        if len(self) > above:
            raise torch.OutOfMemoryError("there is no room")
        step(self)

    monkeypatch.setattr(Batch, "step", cramped)


@pytest.fixture
def karate():
    return task_factory(load_graph("karate"), "link", 0, torch.float64, "cpu")


def test_what_finds_no_room_is_halved_until_it_does(karate, monkeypatch):
    runs = [(Settings(dim=4, epochs=5, lr=lr), seed) for lr in (0.01, 0.02) for seed in range(5)]
    freely, saved = train_many("lgcn", karate, runs), []
    lack_memory(monkeypatch, above=3)
    sizes = sizes_of_batches(monkeypatch)
    cramped = train_many("lgcn", karate, runs, save=saved.extend)
    assert sizes == [10, 5, 2, 2, 2, 2, 2]
    assert saved == cramped
    assert [(t.outcome.settings, t.outcome.seed) for t in cramped] == runs
    losses = [[t.outcome.val_loss for t in trials] for trials in (cramped, freely)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_no_room_for_a_single_model_is_one_sentence(karate, monkeypatch):
    lack_memory(monkeypatch, above=0)
    with pytest.raises(TrainingError, match="no room for even one model: use a smaller --dim or --device cpu"):
        train_many("lgcn", karate, [(Settings(dim=4, epochs=5), seed) for seed in range(3)])


def test_a_batch_that_is_done_leaves_nothing_behind(karate):
    """Its recording holds memory of the GPU, which must not wait for Python to look for cycles."""
    batch = Batch("lgcn", karate(Settings(dim=4)), [(Settings(dim=4), 0), (Settings(dim=4), 1)])
    batch.step()
    seen = weakref.ref(batch)
    gc.disable()
    try:
        del batch
        assert seen() is None
    finally:
        gc.enable()
