"""What a program that trains on a CPU asks of its own process. Importing the library asks for nothing.

The command line does both. A script gets the same by starting with ``OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=1000
MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TRIM_THRESHOLD_=2000000000``.
"""

from __future__ import annotations

import ctypes
import os

#: How GNU's OpenMP is told how often to look for work before going to sleep; this many times take some ten
#: microseconds.
SPINS = 1000
#: Numbers of glibc's mallopt, and the variables by which users set them.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_OF_USERS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
#: The largest threshold that mallopt can be told, and that older versions of glibc take.
_MOST, _MOST_ONCE = 2**31 - 1, 2**25


def wait_briefly() -> None:
    """Let OpenMP's threads sleep soon after they have run out of work; to be said before torch is imported.

    By themselves they spin for milliseconds, which is all the time between torch's operations. So they take cores from
    other programs, and from the threads of `kernels/threads.py`, of which a second one then gains nothing: an epoch of
    LGCN on Pubmed took 46 ms on two cores, and takes 30. Asleep at once, they are woken too late for small operations:
    then an epoch on Cora took 8.7 ms instead of 6.8.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))


def keep_memory() -> None:
    """Let glibc keep large pieces of memory that were freed, for the next ones; elsewhere nothing happens.

    Handed back to the system, they have to be cleared again, page by page, in every epoch. The most that a process has
    at a time stays the same.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _OF_USERS):
        return
    # the second number alone would do harm: it keeps the first from growing by itself
    if mallopt(_MMAP_THRESHOLD, _MOST) or mallopt(_MMAP_THRESHOLD, _MOST_ONCE):
        mallopt(_TRIM_THRESHOLD, _MOST)
