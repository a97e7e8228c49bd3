"""Ctrl-C while the program is still being imported: nothing has begun, so it ends there and then."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hyperboloid.signals import handled

#: How to go on after Ctrl-C, where a command has no more to say about it.
AGAIN = "the same command starts again"


@contextmanager
def starting(how: str = AGAIN) -> Iterator[None]:
    """Ctrl-C ends the program at once, with exit code 130 and a sentence on ``how`` to go on.

    No exception would do: libraries on their way in catch it now and then, as if something optional were not there, and
    the program goes on.
    """

    def leave(number: int, frame: Any) -> None:
        os.write(2, f"Interrupted; {how}.\n".encode())
        os._exit(130)

    with handled(signal.SIGINT, leave):
        yield
