"""Memory grows with the edges, never with N × N; measured on whole processes."""

import subprocess
import sys

import pytest
import torch

from hyperboloid.graphs import load_graph
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
    assert peak(tmp_path, "graph = 'pubmed'", {"dim": 64, "data_dir": str(data_dir)}) < 2 * GB


def test_100_000_nodes_without_features_in_3_gb(tmp_path):
    graph = """
n = 100_000
parent = np.random.default_rng(0).integers(0, np.arange(1, n))
graph = sp.coo_matrix((np.ones(n - 1), (parent, np.arange(1, n))), shape=(n, n))
"""
    assert peak(tmp_path, graph, {"dim": 16}) < 3 * GB


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_batch_that_finds_no_room_is_trained_in_parts(data_dir):
    """It is planned by what is free, and that may be gone when it is recorded."""
    settings = Settings(dim=16, epochs=12, dropout=0.5)
    task_for = task_factory(load_graph("cora", data_dir=data_dir), "link", 0, torch.float32, "cuda")
    runs = [(settings, seed) for seed in range(64)]
    freely = train_many("lgcn", task_for, runs)
    torch.cuda.reset_peak_memory_stats()
    train_many("lgcn", task_for, runs[:8])
    few = torch.cuda.max_memory_reserved()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(4 * few / torch.cuda.get_device_properties(0).total_memory)
    try:
        cramped = train_many("lgcn", task_for, runs)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert [t.outcome.seed for t in cramped] == list(range(64))
    for ours, theirs in zip(cramped, freely, strict=True):
        assert abs(ours.outcome.val - theirs.outcome.val) < 1e-3
