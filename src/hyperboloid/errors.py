"""The two ways in which a run fails, which become exit codes 2 and 1; checks of seeds and of memory."""

import re

#: How torch says that an allocation failed; other errors mention memory too.
_NO_ROOM = re.compile("out of memory|allocate memory|enough memory|tried to allocate", re.IGNORECASE)


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that says what, and what to do."""


class TrainingError(RuntimeError):
    """Training could not go on (a non-finite value, a full disk); the message says where it stopped."""


def check_seed(seed: int) -> None:
    """Refuse a negative seed, before anything is loaded or drawn."""
    if seed < 0:
        raise InputError(f"The seed must not be negative, but it is {seed}.")


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that an allocation failed: Python's, NumPy's, or torch's on any device."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(_NO_ROOM.search(str(error))))
