"""An epoch as a recording: small models would otherwise spend their time on a GPU on starting operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch

#: Runs of a program on a GPU before it is recorded: what is compiled and chosen once must be before.
WARMING = 3


class Recording:
    """A program that does the same operations on the same tensors every time.

    On a GPU it is recorded once as a CUDA graph, and played from then on; elsewhere it just runs. The program is given
    anew each time, because to keep it would keep its owner, and with it the recording's memory, alive.

    Args:
        device: where it computes.
        warming: how often it runs before it is recorded.
    """

    def __init__(self, device: torch.device, warming: int = WARMING) -> None:
        self._device = device
        self._warming = warming
        self._graph: torch.cuda.CUDAGraph | None = None

    def play(self, program: Callable[[], None]) -> None:
        """Run the program once.

        Args:
            program: takes what changes from run to run from tensors, and leaves its results in tensors.
        """
        if self._device.type != "cuda":
            program()
        elif self._graph is not None:
            self._graph.replay()
        elif self._warming:
            self._warming -= 1
            stream = _stream_of(self._device)
            stream.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(stream):
                program()
            torch.cuda.current_stream(self._device).wait_stream(stream)
        else:
            self._graph = recorded(program, self._device)
            self._graph.replay()


def _stream_of(device: torch.device) -> torch.cuda.Stream:
    """The same for all recordings of a GPU: products keep 32 MB for every stream that they have ever worked on."""
    return _side_stream(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _side_stream(index: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(index)


def recorded(program: Callable[[], None], device: torch.device) -> torch.cuda.CUDAGraph:
    """The program as a CUDA graph.

    It is recorded on a stream of its device: the one that torch has for this belongs to the GPU that it was first used
    on, and on another one nothing would be recorded.

    Raises:
        torch.OutOfMemoryError: there was no room; on its way out of a recording it turns into another error.
    """
    graph = torch.cuda.CUDAGraph()
    try:
        # a recording that fails does not give the current stream back by itself
        back = torch.cuda.stream(torch.cuda.current_stream(device))
        with back, torch.cuda.graph(graph, stream=_stream_of(device)):
            program()
    except RuntimeError as error:
        if isinstance(error.__context__, torch.OutOfMemoryError):
            raise error.__context__ from None
        raise
    return graph
