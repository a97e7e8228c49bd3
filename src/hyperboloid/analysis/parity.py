"""What a model predicts for the test molecules against what is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from hyperboloid.errors import InputError
from hyperboloid.training.experiment import Run

from .style import COLOURS, GREY, dress, new_figure, plain

#: Beyond so many molecules single dots would hide each other: their density is shown instead.
MOST_DOTS = 2000


def draw_parity(run: Run) -> Any:
    """A figure of the predictions stored in a run folder, a panel for each target."""
    from pyarrow import parquet

    stored = run.folder / "predictions.parquet"
    if not stored.is_file():
        raise InputError(
            f"{run.folder} holds no predictions.parquet: the run has not finished, or is none on molecules."
        )
    table = parquet.read_table(stored, filters=[("part", "=", "test")])
    found = run.summary["targets"]["test"]
    dense = len(table) > MOST_DOTS
    figure = new_figure((6.2 if dense else 5) * len(found), 5.6)  # room for titles and scales beside square panels
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, (name, metrics) in zip(panels, found.items(), strict=True):
        true, predicted = table[name].to_numpy(), table[f"{name}_predicted"].to_numpy()
        ends = [min(true.min(), predicted.min()), max(true.max(), predicted.max())]
        margin = 0.03 * (ends[1] - ends[0]) or 1.0
        limits = (ends[0] - margin, ends[1] + margin)
        if dense:
            shown = axes.hexbin(true, predicted, gridsize=60, bins="log", cmap="viridis_r", mincnt=1, extent=limits * 2)
            figure.colorbar(shown, ax=axes, label="molecules", shrink=0.7)
        else:
            axes.plot(
                true, predicted, "o", color=COLOURS[0], ms=3, alpha=float(np.clip(200 / len(true), 0.2, 0.8)), mew=0
            )
        axes.plot(limits, limits, color=GREY, linewidth=1, zorder=3 if dense else 0)
        axes.set_xlim(limits)
        axes.set_ylim(limits)
        axes.set_box_aspect(1)
        axes.set_xlabel(f"{plain(name)}, true")
        axes.set_ylabel(f"{plain(name)}, predicted")
        numbers = f"MAE {metrics['mae']:.4g}, RMSE {metrics['rmse']:.4g}, R² {metrics['r2']:.3f}"
        dress(axes, f"{plain(f'{run.config.model} on {run.data.name}')}, {len(true)} test molecules\n{numbers}")
    return figure
