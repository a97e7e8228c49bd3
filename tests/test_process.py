"""What the command line asks of its process, in processes of its own."""

import os
import platform
import subprocess
import sys

import pytest

WAITING = """
import os, sys
from hyperboloid.process import wait_briefly
wait_briefly()
print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"), "torch" in sys.modules)
"""
#: Pages that the system has to clear for 64 MB, the second time that they are needed.
PAGES = """
import resource
import numpy as np
from hyperboloid.process import keep_memory
keep_memory()
def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(64 * 2**20, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
pages()
print(pages())
"""


def run(code, **variables):
    ours = ("OMP_", "GOMP_", "MALLOC_", "GLIBC_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | variables
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ({}, "PASSIVE 1000"),
        ({"GOMP_SPINCOUNT": "7"}, "PASSIVE 7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
    ],
    ids=["nothing", "spins", "policy"],
)
def test_threads_wait_briefly_unless_the_user_has_said_how(given, then):
    assert run(WAITING, **given) == f"{then} False"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep memory")
def test_freed_memory_is_kept_unless_the_user_has_said_what_to_do():
    assert int(run(PAGES)) < 16
    assert int(run(PAGES, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072")) > 16
