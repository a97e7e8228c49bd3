"""Memory grows with the edges, never with N × N; measured on whole processes."""

import subprocess
import sys

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
