"""Backends for the tests of sparse operations.

Without a GPU, Triton's kernels run in its interpreter; where there is one, `test_gpu.py` has them compiled instead.
"""

from importlib.util import find_spec

import pytest
import torch

from hyperboloid.kernels import use_backend


@pytest.fixture(params=["reference", "cpu", "triton"])
def backend(request):
    """Every backend passes the same tests."""
    if request.param == "triton" and (find_spec("triton") is None or torch.cuda.is_available()):
        pytest.skip("triton is not installed, or compiles for a GPU: see test_gpu.py")
    with use_backend(request.param):
        yield request.param
