"""The paper's figure of three kinds of aggregation, computed: four means of the same points of the hyperbolic plane."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from hyperboloid.analysis.aggregation import MEANS, OFF_SURFACE, draw_aggregation, example_points, measure_means
from hyperboloid.geometry import Lorentz

from .claims import FAILS, HOLDS, UNKNOWN, Claim, Finding
from .figures import Asked, FigureExperiment
from .measure import TOLERANCE
from .results import Line
from .table import PaperTable


def tangent_is_no_centroid(lines: Sequence[Line]) -> Finding:
    """Whether the mean in the tangent space has a larger sum of squared distances than the centroid of each kind."""
    by_name = {line["mean"]: line for line in lines}
    if "tangent mean" not in by_name:
        return Finding(UNKNOWN, 0, 1, "It has not been measured.")
    tangent = by_name["tangent mean"]
    text = (
        f"Its sum of squared Lorentzian distances is {_percent(tangent['lorentz_excess'])} above that of the Lorentz "
        f"centroid, its sum of squared intrinsic distances {_percent(tangent['intrinsic_excess'])} above that of the "
        f"Fréchet mean; when the plane is moved, it stays {tangent['left_behind']:.2f} √β behind."
    )
    apart = min(tangent["lorentz_excess"], tangent["intrinsic_excess"]) > TOLERANCE
    return Finding(HOLDS if apart else FAILS, 1, 1, text)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


class Aggregation(FigureExperiment):
    """Four means of one neighbourhood."""

    name = "aggregation"
    title = "Aggregation: four means of the same points"
    about = (
        "The Euclidean mean of points on H² lies off the surface; the ray from 0 through it (dashed) meets the surface "
        "in the Lorentz centroid. The mean in the tangent space of the origin is on the surface, but it minimises no "
        "sum of squared distances there, and it does not move with the points when the plane is moved."
    )
    key = ("mean",)
    needs = ("points", "point", "off", "lorentz_excess", "intrinsic_excess", "left_behind")
    claims = (
        Claim(
            "Aggregation in the tangent space is no centroid",
            "it “can only meet the mathematical meanings in tangent spaces, rather than hyperbolic spaces”",
            tangent_is_no_centroid,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """A line for each mean."""
        points = Lorentz(1.0).exp0(example_points()).tolist()
        return [{"mean": name, "points": points} for name in (OFF_SURFACE, *MEANS)]

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """One mean and its properties."""
        (found,) = (mean for mean in measure_means(example_points()) if mean.name == wanted["mean"])
        line = dataclasses.asdict(found)
        line.pop("name")
        return line

    def draw(self, lines: Sequence[Line]) -> Any:
        """H² and the disk."""
        return draw_aggregation(lines[0]["points"], {line["mean"]: line["point"] for line in lines})

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """Properties of the means."""
        columns = {
            "mean": "mean",
            "off": "off the surface",
            "lorentz_excess": "Σ d_L² above its minimum",
            "intrinsic_excess": "Σ d_H² above its minimum",
            "left_behind": "left behind",
        }
        rows = [{key: line[key] if key == "mean" else _short(line[key]) for key in columns} for line in lines]
        remarks = [
            "Off the surface: |⟨m, m⟩_L + β|/β. Sums of squared distances as parts of their minimum. Left behind: how "
            "far, in √β, the mean of moved points is from the moved mean.",
        ]
        return PaperTable(self.name, self.title, columns, rows, remarks)


def _short(value: float | None) -> float | None:
    """Rounding shown as 0."""
    return value if value is None or abs(value) > TOLERANCE else 0.0
