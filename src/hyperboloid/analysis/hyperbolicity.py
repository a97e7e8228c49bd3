"""The distribution of δ⁺ over quadruples of nodes, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperboloid.graphs.hyperbolicity import Hyperbolicity

from .style import COLOURS, dress, new_figure, plain, save_figure


def draw_hyperbolicity(found: Hyperbolicity, name: str, path: Path) -> None:
    """Draw the histogram of a graph's δ⁺ to a PNG or SVG file."""
    figure = new_figure(6, 4)
    sign = "=" if found.delta_worst_exact else "≥"
    title = f"{plain(name)}: δ_avg = {found.delta_avg:.3f}, δ_worst {sign} {found.delta_worst:g}"
    draw_histogram(figure.subplots(), found.counts, found.delta_avg, title)
    save_figure(figure, path)


def draw_histogram(axes: Any, counts: Sequence[int], average: float, title: str) -> None:
    """A bar for each δ⁺ = 0, 1/2, 1, … with its share of the quadruples, and a line at δ_avg.

    The axis is logarithmic: most quadruples of most graphs have δ⁺ ≤ 1, and the tail is what one wants to see.
    """
    shares = [100 * count / sum(counts) for count in counts]
    axes.bar([k / 2 for k in range(len(shares))], shares, width=0.42, color=COLOURS[0])
    axes.axvline(average, color=COLOURS[3], linestyle="--", linewidth=1.8, label=f"δ_avg = {average:.3f}")
    axes.set_yscale("log")
    axes.set_ylim(min(0.03, *(share / 3 for share in shares if share)), 200)
    last = max(4, len(shares) - 1)
    axes.set_xlim(-0.35, last / 2 + 0.35)
    axes.set_xticks([k / 2 for k in range(0, last + 1, 1 if last <= 6 else 2)])
    axes.set_xlabel("δ⁺ of a quadruple of nodes, edges")
    axes.set_ylabel("share of quadruples, %")
    axes.legend(frameon=False, fontsize=9)
    dress(axes, title)
