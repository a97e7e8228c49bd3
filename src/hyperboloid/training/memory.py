"""How many models one batch should have: as many as gain by it, and as fit into memory."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from hyperboloid.nn import LGCN
from hyperboloid.nn.features import SparseFeatures
from hyperboloid.nn.registry import get_model

from .batch import Batch
from .settings import Settings
from .tasks import Task

#: On a CPU a larger batch gains nothing, and on a GPU one that fills the memory leaves no room for other programs.
MOST_ON_CPU, SHARE_OF_MEMORY = 16, 0.7
#: On a CPU models whose aggregation is no single kernel take turns where an epoch of one goes through more bytes than
#: these: so many vectors for every node and numbers for every edge. Measured with 16 models on two cores, memory being
#: kept (`process.py`): in a batch those of Cora at d = 64 (2 MB) are 1.1 to 1.7 times as fast, of Pubmed at d = 16
#: (5 MB) 1.1 to 1.7, at d = 32 (9 MB) 0.9 to 1.0, of Amazon at d = 8 (11 MB) 0.8 to 1.2.
CACHED, PASSED_BY_NODE, PASSED_BY_EDGE = 8 * 2**20, 3, 2
#: What a model of a batch on a CPU needs at most, by measuring the largest ones: vectors for every pair that is decoded
#: and every neighbour; where the aggregation is one kernel, numbers for those, and vectors for every node. Features of
#: which some are dropped are copied.
VECTORS_BY_EDGE, NUMBERS_BY_EDGE, VECTORS_BY_NODE, FEATURES = 40, 24, 40, 3

_processes = 1


def share_machine(processes: int, device: str) -> None:
    """Let this process have its part of a machine that several share: of its threads, and of its memory."""
    global _processes
    _processes = processes
    torch.set_num_threads(max(1, torch.get_num_threads() // processes))
    if device.startswith("cuda"):
        with torch.cuda.device(device):
            torch.cuda.set_per_process_memory_fraction(1 / processes)


def _free_memory() -> int:
    """Bytes that programs may still take, where the system tells; else what any computer has."""
    limits = [number for number in (_available(), _left_to_group()) if number is not None]
    return min(limits, default=2 * 2**30)


def _available() -> int | None:
    """What Linux can hand out, what it only keeps to be faster included."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _text("/proc/meminfo"), re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def _left_to_group() -> int | None:
    """What a container may take beyond what it has."""
    limit, used = (_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return int(limit) - int(used) if limit.isdigit() and used.isdigit() else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def _edges(task: Task) -> int:
    """Pairs that are decoded, and neighbours."""
    return int(task.examples(0, 1).numel() + task.edge_index.size(1))


def _numbers(model: str, task: Task, settings: Settings) -> int:
    """How many numbers a model of a batch on a CPU keeps at once."""
    x = task.x.value if isinstance(task.x, SparseFeatures) else task.x
    dropped = 0 if x is None or not settings.dropout else FEATURES * x.numel()
    if _fused(model, task, settings):
        vectors = VECTORS_BY_NODE * task.graph.num_nodes * settings.dim
        return NUMBERS_BY_EDGE * _edges(task) + vectors + dropped
    return VECTORS_BY_EDGE * _edges(task) * settings.dim + dropped


def _fused(model: str, task: Task, settings: Settings) -> bool:
    """Whether a CPU has a kernel for the whole aggregation, which writes vectors for nodes only."""
    line = get_model(model)
    centroid = issubclass(line.load(), LGCN) and line.settle(settings).mean in (None, "centroid")
    return centroid and task.dtype == torch.float32


def batch_is_faster(model: str, task: Task, settings: Settings) -> bool:
    """Whether many models are trained sooner as one program; always on a GPU, and where one kernel aggregates."""
    if task.device.type == "cuda" or _fused(model, task, settings):
        return True
    numbers = PASSED_BY_NODE * task.graph.num_nodes * settings.dim + PASSED_BY_EDGE * _edges(task)
    return numbers * task.dtype.itemsize <= CACHED


def capacity(model: str, task: Task, settings: Settings) -> int:
    """How many models one batch should have."""
    if task.device.type != "cuda":
        if not batch_is_faster(model, task, settings):
            return MOST_ON_CPU  # one of them works at a time, and the others are only their parameters
        needed = task.dtype.itemsize * _numbers(model, task, settings)
        return int(max(1, min(MOST_ON_CPU, SHARE_OF_MEMORY * _free_memory() / _processes // needed)))
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(task.device)
    torch.cuda.reset_peak_memory_stats(task.device)
    probe = Batch(model, task, [(settings, 0), (settings, 1)])
    try:
        probe.step()
    except torch.OutOfMemoryError:
        return 1
    needed = (torch.cuda.max_memory_allocated(task.device) - before) // 2
    del probe
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(task.device)
    own = total / _processes - torch.cuda.memory_reserved(task.device)
    return int(max(1, SHARE_OF_MEMORY * min(free, own) // needed))
