"""What tests of every part need."""

import os
import signal
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which some test or library may do first


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the paper's data files, which are not part of the repository."""
    given = os.environ.get("HYPERBOLOID_DATA")
    if not given:
        pytest.skip("HYPERBOLOID_DATA is not set")
    if not Path(given).is_dir():
        pytest.skip(f"HYPERBOLOID_DATA names {given}, which is not a folder")
    return Path(given)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    """What tests convert goes to a cache of their own, not to the user's."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture
def take_interrupts():
    """To be called in a child process before it starts: a test runner may have its children ignore Ctrl-C."""
    return lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
