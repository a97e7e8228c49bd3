"""How a run went: losses, validation score and curvatures by epoch."""

from __future__ import annotations

from typing import Any

from hyperboloid.geometry import Curvature
from hyperboloid.training.experiment import Run

from .style import COLOURS, dress, new_figure

LINES = ("-", "--", ":", "-.")


def curvature_names(run: Run) -> list[str]:
    """What the numbers in ``beta`` of each epoch belong to: layers in their order, then the output; none if fixed."""
    if not run.config.settings.train_beta:
        return []
    found = [name for name, module in run.encoder.named_modules() if isinstance(module, Curvature)]
    layers = [name for name in found if name.startswith("convs.")]
    return [f"layer {layers.index(name) + 1}" if name in layers else "output" for name in found]


def draw_curves(run: Run) -> Any:
    """A figure of a run's epochs: losses, the validation metric and, of hyperbolic models, β of every layer."""
    history, metric = run.history, f"val_{run.task.metric}"
    names = curvature_names(run)
    figure = new_figure(5 * (2 + bool(names)), 3.4)
    panels = figure.subplots(1, 2 + bool(names))
    judged = [line for line in history if metric in line]
    epochs, best = [line["epoch"] for line in history], run.summary["best_epoch"]
    panels[0].plot(epochs, [line["loss"] for line in history], color=COLOURS[0], label="training")
    if judged:
        x = [line["epoch"] for line in judged]
        mark = "o" if len(x) == 1 else None
        panels[0].plot(
            x, [line["val_loss"] for line in judged], "--", color=COLOURS[1], label="validation", marker=mark
        )
        factor = 1 if run.task.metric == "mae" else 100
        panels[1].plot(x, [factor * line[metric] for line in judged], color=COLOURS[0], marker=mark)
    panels[0].set_ylabel("loss")
    panels[0].legend(frameon=False, fontsize=8)
    dress(panels[0], "losses")
    panels[1].set_ylabel(f"validation {run.task.metric}" + ("" if run.task.metric == "mae" else ", %"))
    dress(panels[1], f"validation {run.task.metric}")
    if names:
        for k, name in enumerate(names):
            values = [line["beta"][k] for line in history]
            panels[2].plot(epochs, values, LINES[k % len(LINES)], color=COLOURS[k % len(COLOURS)], label=name)
        panels[2].set_ylabel("β (curvature −1/β)")
        panels[2].legend(frameon=False, fontsize=8)
        dress(panels[2], "learned curvatures")
    for axes in panels:
        axes.axvline(best, color="0.6", linewidth=1, linestyle=":")
        axes.set_xlabel(f"epoch (dotted: the best, {best})")
    return figure
