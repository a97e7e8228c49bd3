"""The kernels' own language has types that its interpreter does not check; its compiler does, and needs no GPU."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).with_name("compile_for_gpu.py")


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.skipif(torch.cuda.is_available(), reason="test_gpu.py runs what is compiled")
def test_every_kernel_compiles_for_a_gpu():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, SCRIPT], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    kernels = set(done.stdout.split())
    assert {"centroids", "merge_centroids", "merge_points", "merge_features", "pull_points", "refine_points"} <= kernels
    assert {
        "pair_pull",
        "flat_pull",
        "pull_rows",
        "pull_columns",
        "row_shares_backward",
        "weighted_pieces",
        "gyro_backward",
        "row_products",
        "tall_products",
        "_adam",
        "_dropout",
        "_dropout_of_rows",
    } <= kernels
