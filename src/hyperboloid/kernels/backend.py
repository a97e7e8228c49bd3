"""Which backend computes: it depends on where tensors are and on their type, unless somebody asks for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.geometry.precision import HALVES

Backend = Literal["reference", "cpu", "triton"]

_forced: ContextVar[Backend | None] = ContextVar("backend", default=None)


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Compute everything inside by one backend, as far as it goes; what it does not have is the reference's."""
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def chosen_backend(t: Tensor, *others: Tensor | None) -> Backend:
    """Which backend takes this: the one asked for by :func:`use_backend` or ``HYPERBOLOID_BACKEND``, or the fastest.

    Args:
        t: lies where it is to be computed, and has the precision.
        others: are computed with as well.
    """
    if torch.compiler.is_compiling():  # a compiler needs operations that it can see into, or that are registered
        return "reference"
    forced = _forced.get() or os.environ.get("HYPERBOLOID_BACKEND")
    if forced:
        if forced not in get_args(Backend):
            raise InputError(f"HYPERBOLOID_BACKEND must be one of {', '.join(get_args(Backend))}, not '{forced}'.")
        return cast(Backend, forced)
    if t.dtype in HALVES:
        return "reference"
    mapped = torch._C._functorch.maybe_current_level() is not None
    hidden = mapped and any(o is not None and _is_hidden(o) for o in (t, *others))
    return "reference" if hidden else fast_backend(t)


def _is_hidden(t: Tensor) -> bool:
    """Whether torch.func differentiates it: kernels read numbers, which it keeps to itself."""
    while torch._C._functorch.is_batchedtensor(t):
        t = torch._C._functorch.get_unwrapped(t)
    return torch._C._functorch.is_gradtrackingtensor(t)


def fast_backend(t: Tensor) -> Backend:
    """The fastest backend where ``t`` lies."""
    if t.device.type == "cpu":
        return "cpu"
    if t.device.type != "cuda" or not _has_triton():
        return "reference"
    return "triton" if t.device.index == torch.cuda.current_device() else "reference"  # kernels start on that one


def kernels_for(t: Tensor, on_gpu: str, on_cpu: str) -> Any:
    """The module that has the kernels for a tensor, of two by name; imported only now, because triton is heavy."""
    name = on_gpu if "triton" in (chosen_backend(t), fast_backend(t)) else on_cpu
    return import_module(f".{name}", __package__)


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
