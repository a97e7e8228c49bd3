r"""Four means of the same points of the hyperbolic plane: the paper's first figure, with numbers.

- **Euclidean**: the arithmetic mean of the coordinates. On H² it leaves the surface; the ray from 0 through it meets
  the surface in the Lorentz centroid. On the disk it stays inside, but is the mean of a picture, not of the points.
- **Lorentz**: the centroid of the squared Lorentzian distance (Eq. 16), LGCN's aggregation.
- **Fréchet**: the point with the least sum of squared intrinsic distances.
- **Tangent**: exp_0 of the mean of log_0, the aggregation in the tangent space of the origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz

from .disk import geodesic
from .style import COLOURS, GREY, new_figure

#: A neighbourhood whose four means lie apart: radius √β·r and direction in degrees of each point.
EXAMPLE = ((2.3, 13.0), (2.5, 128.0), (2.7, 142.0), (3.0, 159.0))
#: Where the plane is moved to see whether a mean moves with the points.
SHIFT = (0.8, -0.6)


def example_points() -> Tensor:
    """Normal coordinates ``(4, 2)`` of the points that are drawn, β = 1."""
    return torch.tensor(
        [[r * math.cos(math.radians(a)), r * math.sin(math.radians(a))] for r, a in EXAMPLE], dtype=torch.float64
    )


def euclidean_mean(v: Tensor, beta: float) -> Tensor:
    """Arithmetic mean of the points' coordinates on H², normal coordinates ``(m, 2)`` to ``(3,)``: off the surface."""
    return Lorentz(beta).exp0(v).mean(-2)


def disk_mean(v: Tensor, beta: float) -> Tensor:
    """Arithmetic mean of the points' coordinates on the disk, normal coordinates ``(m, 2)`` to ``(2,)``."""
    space = Lorentz(beta)
    return space.log0(space.from_poincare(space.to_poincare(space.exp0(v)).mean(-2)))


def lorentz_mean(v: Tensor, beta: float) -> Tensor:
    """The Lorentz centroid, normal coordinates ``(m, 2)`` to ``(2,)``."""
    return Lorentz(beta).normal.centroid(v)


def frechet_mean(v: Tensor, beta: float) -> Tensor:
    """The Fréchet mean, likewise."""
    return Lorentz(beta).normal.frechet(v)


def tangent_mean(v: Tensor, beta: float) -> Tensor:
    """The mean in the tangent space of the origin, likewise."""
    return v.mean(-2)


#: Those that are points of the plane.
MEANS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "Euclidean on the disk": disk_mean,
    "Lorentz centroid": lorentz_mean,
    "Fréchet mean": frechet_mean,
    "tangent mean": tangent_mean,
}
OFF_SURFACE = "Euclidean on H²"
_MARKS = {
    OFF_SURFACE: ("X", COLOURS[1]),
    "Euclidean on the disk": ("X", COLOURS[1]),
    "Lorentz centroid": ("*", COLOURS[0]),
    "Fréchet mean": ("D", COLOURS[2]),
    "tangent mean": ("^", COLOURS[3]),
}
_SIZE = {"X": 80, "*": 170, "D": 55, "^": 80}


@dataclass(frozen=True)
class Mean:
    """One of the means, held against what a mean should be.

    Attributes:
        name: of it.
        point: coordinates on H² ``(x_0, x_1, x_2)``, which need not be on the surface.
        off: |⟨m, m⟩_L + β|/β, 0 on the surface.
        lorentz_excess: part by which Σ d_L² exceeds its minimum; None for what is no point of the plane.
        intrinsic_excess: likewise of Σ d_H².
        left_behind: how far, in √β, the mean of the moved points is from the moved mean; 0 for a mean that belongs to
            the points and not to the place of the origin.
    """

    name: str
    point: list[float]
    off: float
    lorentz_excess: float | None
    intrinsic_excess: float | None
    left_behind: float | None


def measure_means(v: Tensor, beta: float = 1.0) -> list[Mean]:
    """All means of points in normal coordinates ``(m, 2)``, with their properties."""
    space = Lorentz(beta)
    normal = space.normal
    shift = torch.tensor(SHIFT, dtype=v.dtype)
    ambient = euclidean_mean(v, beta)
    found = [Mean(OFF_SURFACE, ambient.tolist(), _off(ambient, beta), None, None, None)]
    least = (frechet_mean(v, beta), lorentz_mean(v, beta))
    for name, mean in MEANS.items():
        m = mean(v, beta)
        excess = [
            float(distance(m, v).sum() / distance(best, v).sum()) - 1
            for distance, best in zip((normal.sqdist, normal.lorentz_sqdist), least, strict=True)
        ]
        moved = mean(normal.log_at(shift.expand_as(v), v), beta)
        behind = float(normal.dist(moved, normal.log_at(shift, m))) / beta**0.5
        point = space.exp0(m)
        found.append(Mean(name, point.tolist(), _off(point, beta), excess[1], excess[0], behind))
    return found


def _off(x: Tensor, beta: float) -> float:
    return abs(float(Lorentz(beta).inner(x, x)) + beta) / beta


def draw_aggregation(points: Sequence[Sequence[float]], means: dict[str, Sequence[float]]) -> Any:
    """A figure of H² and of the disk.

    Args:
        points: coordinates on H², β = 1, ``(m, 3)``.
        means: the same of the means, by :class:`Mean`'s names.
    """
    figure = new_figure(11.5, 5.6)
    figure.set_layout_engine("none")  # it does not know how much room three dimensions take
    surface = figure.add_axes((0.0, 0.02, 0.47, 0.9), projection="3d", computed_zorder=False)
    _draw_surface(surface, np.array(points), means)
    _draw_disk(figure.add_axes((0.55, 0.1, 0.42, 0.82)), np.array(points), means)
    return figure


def _draw_surface(axes: Any, points: np.ndarray, means: dict[str, Sequence[float]]) -> None:
    """The hyperboloid x_0² = 1 + x_1² + x_2², its points and means, and the ray that takes the mean back to it."""
    radius, angle = np.meshgrid(np.linspace(0, 3.05, 16), np.linspace(0, 2 * np.pi, 49))
    r = np.sinh(radius)
    surface = (r * np.cos(angle), r * np.sin(angle), np.cosh(radius))
    axes.plot_wireframe(*surface, color="0.8", linewidth=0.5, rcount=25, ccount=9, zorder=1)
    outside = np.array(means[OFF_SURFACE])
    for x in points:
        axes.plot(*np.stack([_up(x), _up(outside)], axis=1), color=COLOURS[1], linewidth=0.8, linestyle=":", zorder=2)
    axes.scatter(*_up(points.T), color="black", s=28, zorder=3, label="points", depthshade=False)
    axes.plot(*np.stack([np.zeros(3), _up(outside)], axis=1), color=GREY, linewidth=1.2, linestyle="--", zorder=2)
    for name, x in means.items():
        if name != "Euclidean on the disk":
            mark, colour = _MARKS[name]
            place = _up(np.array(x))
            axes.scatter(
                *place, marker=mark, color=colour, s=_SIZE[mark], edgecolor="black", zorder=4, depthshade=False
            )
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    axes.set_zlabel("$x_0$")
    axes.view_init(elev=16, azim=-70)
    axes.set_box_aspect(None, zoom=1.08)
    axes.set_title("On H², where the Euclidean mean lies above the surface", fontsize=10)


def _up(x: np.ndarray) -> np.ndarray:
    """(x_0, x_1, x_2) in the order in which they are drawn, x_0 upwards."""
    return np.stack([x[1], x[2], x[0]])


def _draw_disk(axes: Any, points: np.ndarray, means: dict[str, Sequence[float]]) -> None:
    """The Poincaré disk; geodesics from the centroid to the points."""
    from matplotlib.patches import Circle

    plane = Lorentz(1.0)

    def flat(x: Any) -> np.ndarray:
        coordinates: np.ndarray = plane.to_poincare(torch.as_tensor(np.array(x))).numpy()
        return coordinates

    axes.add_patch(Circle((0, 0), 1, fill=False, color="0.4"))
    dots = flat(points)
    centre = np.broadcast_to(flat(means["Lorentz centroid"]), dots.shape).copy()
    for arc in geodesic(centre, dots):
        axes.plot(*arc.T, color=GREY, linewidth=0.8, zorder=1)
    axes.scatter(*dots.T, color="black", s=28, zorder=3, label="points")
    for name, x in means.items():
        if name != OFF_SURFACE:
            mark, colour = _MARKS[name]
            label = "Euclidean mean" if mark == "X" else name
            axes.scatter(*flat(x), marker=mark, color=colour, s=_SIZE[mark], edgecolor="black", zorder=4, label=label)
    axes.scatter(0, 0, marker="+", color="0.4", s=60, label="origin")
    axes.set_aspect("equal")
    axes.set_xlim(-1.05, 1.05)
    axes.set_ylim(-1.05, 1.05)
    axes.set_xlabel("$p_1$")
    axes.set_ylabel("$p_2$")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.07), frameon=False, fontsize=9)
    axes.set_title("On the Poincaré disk", fontsize=10)
