"""What a signal does for a while, where it is this program's to say."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

#: What is called with a signal's number and the frame that it has come in.
Handler = Callable[[int, Any], None]


@contextmanager
def handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Call ``handler`` at a signal.

    Outside the main thread, or where the signal already means something else than Python gives it, nothing is changed.
    """
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(number) is not usual:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, usual)


def ignored(number: signal.Signals) -> AbstractContextManager[None]:
    """Let a signal do nothing: a second Ctrl-C while the first one is answered, say."""
    return handled(number, lambda number, frame: None)
