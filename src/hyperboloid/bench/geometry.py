"""Distances, exp and log at a point, centroids: time for a million points, and error in float32 far from the origin.

Ours, geoopt's where it is installed, and textbook formulas; d = 16, β = 1, points 0.25 apart at radius 6 and 9. Each
gets its inputs rounded to float32 in the coordinates that it takes. The exact result is that of these very inputs in
float64, so nobody is charged with the rounding of the inputs; a rounded point or tangent vector is what its space part
says. Points that come out are compared in normal coordinates. A centroid is that of eight points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from hyperboloid.geometry import Lorentz

from . import textbook
from .numbers import Case, Number, describe
from .plan import Plan
from .timing import timed

DIM = 16
RADII = (6, 9)
APART = 0.25
#: Points of each centroid.
MEMBERS = 8
DISTANCE, EXP, LOG, CENTROID = OPERATIONS = ("distance", "exp at a point", "log at a point", "centroid")
TIME = "time for a million points"
OURS, OUR_POINTS = "hyperboloid, normal coordinates", "hyperboloid, points"
GEOOPT, TEXTBOOK = "geoopt", "textbook"

M = Lorentz(1.0)


def error_at(radius: int) -> str:
    """Name of the largest relative error at a radius."""
    return f"largest relative error at radius {radius}"


def nan_at(radius: int) -> str:
    """Name of the share of results that are no numbers."""
    return f"not finite at radius {radius}"


Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Way:
    """One way to compute an operation.

    Attributes:
        coordinates: that it takes: ``normal``, ``points`` of the hyperboloid, or ``ball``.
        function: computes it.
    """

    coordinates: str
    function: Function


def ways(device: torch.device) -> dict[str, dict[str, Way]]:
    """By operation and name."""
    normal = M.normal
    in_normal: tuple[Function, ...] = (normal.dist, normal.exp_at, normal.log_at, normal.centroid)
    in_points: tuple[Function, ...] = (M.dist, M.exp, M.log, M.centroid)
    found = {
        operation: {OURS: Way("normal", first), OUR_POINTS: Way("points", second)}
        for operation, first, second in zip(OPERATIONS, in_normal, in_points, strict=True)
    }
    if find_spec("geoopt") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it scripts its functions, which torch deprecates
            import geoopt

        theirs, ball = geoopt.Lorentz().to(device), geoopt.PoincareBall().to(device)
        for operation, function in zip(OPERATIONS, (theirs.dist, theirs.expmap, theirs.logmap), strict=False):
            found[operation][GEOOPT] = Way("points", function)
        # its hyperboloid has no mean of several points; the midpoint of its ball is the same point
        found[CENTROID][f"{GEOOPT}, ball"] = Way("ball", lambda p: ball.weighted_midpoint(p, reducedim=[-2]))
    by_the_book: tuple[Function, ...] = (textbook.dist, textbook.exp, textbook.log, textbook.centroid)
    for operation, function in zip(OPERATIONS, by_the_book, strict=True):
        found[operation][TEXTBOOK] = Way("points", function)
    return found


def inputs(operation: str, coordinates: str, radius: float, points: int, device: torch.device) -> tuple[Tensor, ...]:
    """What an operation is given, float32: ``points`` pairs, or a share of them in groups of :data:`MEMBERS`."""
    generator = torch.Generator(device).manual_seed(0)
    members = MEMBERS if operation == CENTROID else 1

    def directions(*shape: int) -> Tensor:
        t = torch.randn(*shape, DIM, dtype=torch.float64, generator=generator, device=device)
        return t / torch.linalg.vector_norm(t, dim=-1, keepdim=True)

    centre = radius * directions(points // members, 1).expand(-1, members, -1)
    step = APART * directions(points // members, members)
    near = M.normal.exp_at(centre, step)
    if operation != CENTROID:
        centre, step, near = (t.squeeze(1) for t in (centre, step, near))
    x, y = M.exp0(centre), M.exp0(near)
    if operation == CENTROID:
        exact: tuple[Tensor, ...] = ({"normal": near, "points": y, "ball": M.to_poincare(y)}[coordinates],)
    elif operation == EXP:
        exact = (centre, step) if coordinates == "normal" else (x, M.log(x, y))
    else:
        exact = (centre, near) if coordinates == "normal" else (x, y)
    return tuple(t.float() for t in exact)


def to_normal(coordinates: str, t: Tensor) -> Tensor:
    """Normal coordinates of points in float64."""
    t = t.double()
    return t if coordinates == "normal" else M.log0(M.from_poincare(t) if coordinates == "ball" else t)


def exact_result(operation: str, coordinates: str, given: tuple[Tensor, ...]) -> Tensor:
    """The result for float32 inputs in float64; points in normal coordinates."""
    first = to_normal(coordinates, given[0])
    if operation == CENTROID:
        return M.normal.centroid(first)
    if operation == EXP:
        step = given[1].double()
        if coordinates == "normal":
            return M.normal.exp_at(first, step)
        return M.log0(M.exp(M.exp0(first), step))  # this looks at the space part of the vector only
    second = to_normal(coordinates, given[1])
    if operation == DISTANCE:
        return M.normal.dist(first, second)
    return M.normal.log_at(first, second) if coordinates == "normal" else M.log(M.exp0(first), M.exp0(second))


def errors(operation: str, way: Way, radius: float, points: int, device: torch.device) -> tuple[float, float]:
    """Largest relative error of the results that are finite, and the share of those that are not."""
    given = inputs(operation, way.coordinates, radius, points, device)
    exact = exact_result(operation, way.coordinates, given)
    result = way.function(*given)
    result = to_normal(way.coordinates, result) if operation in (EXP, CENTROID) else result.double()
    if operation == DISTANCE:
        exact, result = exact.unsqueeze(-1), result.unsqueeze(-1)
    finite = result.isfinite().all(-1)
    size = torch.linalg.vector_norm(exact, dim=-1)
    error = torch.linalg.vector_norm(result - exact, dim=-1) / size
    largest = float(error[finite].max()) if bool(finite.any()) else 0.0
    return largest, 1 - float(finite.double().mean())


@torch.no_grad()
def measure(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    """One case for each operation."""
    for operation, by_name in ways(device).items():
        what = {"operation": operation, "dim": DIM, "points": plan.points}
        say(describe(what))
        calls = {
            name: partial(way.function, *inputs(operation, way.coordinates, RADII[0], plan.points, device))
            for name, way in by_name.items()
        }
        numbers = []
        for name, time in timed(calls, device, plan.seconds).items():
            scale = 1e6 / plan.points
            busy = None if time.busy is None else scale * time.busy
            numbers.append(time._replace(ms=scale * time.ms, busy=busy).number(name, TIME))
        for radius in RADII:
            for name, way in by_name.items():
                largest, lost = errors(operation, way, radius, plan.points, device)
                numbers.append(Number(name, error_at(radius), largest, "1"))
                numbers.append(Number(name, nan_at(radius), lost, "1"))
        yield Case(what, numbers)
