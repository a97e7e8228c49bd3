"""Ctrl-C while the program is still being imported: nothing has begun, so it ends there and then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def starting(how: str) -> Iterator[None]:
    """Ctrl-C ends the program at once, with exit code 130 and a sentence on ``how`` to go on.

    No exception would do: libraries on their way in catch it now and then, as if something optional were not there, and
    the program goes on. Outside the main thread, or where Ctrl-C already means something else, nothing is changed.
    """

    def leave(number: int, frame: Any) -> None:
        os.write(2, f"Interrupted; {how}.\n".encode())
        os._exit(130)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
