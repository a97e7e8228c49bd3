"""Ctrl-C during training: the epoch at work ends first, so that what is saved is a whole number of epochs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hyperboloid.signals import handled


@contextmanager
def held_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back, and give a function that says whether it was pressed; pressed again it interrupts at once.

    Where :func:`handled` changes nothing, it never was.
    """
    pressed = False

    def note(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    with handled(signal.SIGINT, note):
        yield lambda: pressed
