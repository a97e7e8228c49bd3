"""All tasks by name: what `--task` accepts."""

from __future__ import annotations

from hyperboloid.errors import InputError

from .graph_task import GraphTask
from .tasks import TASKS, BaseTask

EVERY_TASK: dict[str, type[BaseTask]] = {**TASKS, GraphTask.name: GraphTask}


def get_any_task(name: str) -> type[BaseTask]:
    """The task called ``name``, on one graph or on many."""
    if name not in EVERY_TASK:
        raise InputError(f"There is no task '{name}'; choose one of: {', '.join(EVERY_TASK)}.")
    return EVERY_TASK[name]
