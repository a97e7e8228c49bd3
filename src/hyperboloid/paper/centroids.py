"""Table 2, "Hyperbolic centroids": which sum of squared distances each mean minimises, and whether it is a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hyperboloid.geometry import Klein, Lorentz, PoincareBall

from .measure import CASES, DIM, TOLERANCE, Groups, largest, random_points
from .table import PaperTable, Tick, number

#: Groups of points for each case and each number of members.
GROUPS, SIZES = 50, (2, 3, 6, 20)
#: The fixed-point iteration has arrived where no mean moves farther than this part of √β …
ARRIVED = 1e-12
#: … and has failed after so many steps.
MAX_STEPS = 1000


def frechet(u: Tensor, weight: Tensor, beta: float) -> Tensor:
    """The Fréchet mean, from the library's own iteration, in normal coordinates ``(…, m, d)`` to ``(…, d)``."""
    return Lorentz(beta).normal.frechet(u, weight)


def einstein(u: Tensor, weight: Tensor, beta: float) -> Tensor:
    """The Einstein midpoint, taken on the Klein ball; shapes as for :func:`frechet`."""
    ball = Klein(beta)
    return ball.to_normal(ball.midpoint(ball.from_normal(u), weight))


def moebius(u: Tensor, weight: Tensor, beta: float) -> Tensor:
    """The Möbius gyromidpoint, taken on the Poincaré ball; shapes as for :func:`frechet`."""
    ball = PoincareBall(beta)
    return ball.to_normal(ball.midpoint(ball.from_normal(u), weight))


def lorentz(u: Tensor, weight: Tensor, beta: float) -> Tensor:
    """The Lorentz centroid (Eq. 16), taken on the hyperboloid; shapes as for :func:`frechet`."""
    space = Lorentz(beta)
    return space.log0(space.centroid(space.exp0(u), weight))


def fixed_point_steps(u: Tensor, weight: Tensor, beta: float) -> int:
    """How many steps the fixed-point iteration for the Fréchet mean (Lou et al., ICML '20) needs for all groups.

    It is of first order: μ ← the Lorentz centroid with weights w_j θ_j/sinh θ_j, θ_j = d_H(μ, x_j)/√β; it starts at the
    one with weights w_j.
    """
    normal, root = Lorentz(beta).normal, beta**0.5
    mean = normal.centroid(u, weight)
    for step in range(1, MAX_STEPS + 1):
        theta = normal.dist(mean.unsqueeze(-2), u) / root
        moved = normal.centroid(u, torch.where(theta > 0, weight * theta / torch.sinh(theta), weight))
        if normal.dist(mean, moved).max() <= ARRIVED * root:
            return step
        mean = moved
    raise ArithmeticError(f"the Fréchet mean was not reached in {MAX_STEPS} steps")


@dataclass(frozen=True)
class Centroid:
    """One row.

    Attributes:
        name, space: as in the table.
        mean: normal coordinates ``(g, m, d)``, weights ``(g, m)`` and β to means ``(g, d)``.
        sum_dis, closed_form: what the paper prints.
        steps: how many iterations it takes; None for a formula.
    """

    name: str
    space: str
    mean: Callable[[Tensor, Tensor, float], Tensor]
    sum_dis: bool
    closed_form: bool
    steps: Callable[[Tensor, Tensor, float], int] | None = None


FRECHET, EINSTEIN, MOEBIUS, LORENTZ = "Fréchet", "Einstein", "Möbius", "Lorentz"
CENTROIDS = (
    Centroid(FRECHET, "any", frechet, True, False, fixed_point_steps),
    Centroid(EINSTEIN, "Klein ball", einstein, False, True),
    Centroid(MOEBIUS, "Poincaré ball", moebius, False, True),
    Centroid(LORENTZ, "hyperboloid", lorentz, True, True),
)
COLUMNS = {
    "centroid": "centroid",
    "space": "space",
    "sum_lorentz": "sum-dis d_L²",
    "sum_intrinsic": "sum-dis d_H²",
    "apart": "to the Lorentz centroid",
    "closed_form": "closed form (steps)",
}


def centroids(seed: int = 0) -> PaperTable:
    """Measure the paper's Table 2."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        samples = [
            Groups(random_points(GROUPS, m, radius=radius, beta=beta), torch.rand(GROUPS, m, dtype=torch.float64), beta)
            for radius, beta in CASES
            for m in SIZES
        ]
        rows = {centroid.name: _measure(centroid, samples) for centroid in CENTROIDS}
        solver = largest(
            _apart(frechet(groups.members, groups.weight, groups.beta), groups.minimum("intrinsic"), groups.beta)
            for groups in samples
        )
    return PaperTable(
        experiment="centroids",
        title="Table 2, measured (the paper's tick or cross where it says otherwise)",
        columns=COLUMNS,
        rows=[{"centroid": c.name, "space": c.space, **rows[c.name]} for c in CENTROIDS],
        remarks=_remarks(rows, solver),
        settings={"seed": seed, "tolerance": TOLERANCE},
    )


def _measure(centroid: Centroid, samples: list[Groups]) -> dict[str, Tick | float]:
    """The largest value of each column over all samples."""
    found = []
    for groups in samples:
        u, weight, beta = groups.members, groups.weight, groups.beta
        mean = centroid.mean(u, weight, beta)
        away = _apart(mean, lorentz(u, weight, beta), beta)
        needed = centroid.steps(u, weight, beta) if centroid.steps else 0
        found.append((groups.excess(mean, "lorentz"), groups.excess(mean, "intrinsic"), away, needed))
    sum_lorentz, sum_intrinsic, apart, steps = (largest(column) for column in zip(*found, strict=True))
    # a cross says that no sum of squared distances is minimised, a tick that the centroid's own is
    own = "sum_intrinsic" if centroid.steps else "sum_lorentz"
    printed = {key: centroid.sum_dis if key == own or not centroid.sum_dis else None for key in COLUMNS}
    return {
        "sum_lorentz": Tick(sum_lorentz, sum_lorentz <= TOLERANCE, printed["sum_lorentz"]),
        "sum_intrinsic": Tick(sum_intrinsic, sum_intrinsic <= TOLERANCE, printed["sum_intrinsic"]),
        "apart": apart,
        "closed_form": Tick(steps, steps == 0, centroid.closed_form),
    }


def _apart(a: Tensor, b: Tensor, beta: float) -> float:
    """Largest d_H/√β between points ``(g, d)``."""
    return float(Lorentz(beta).normal.dist(a, b).max()) / beta**0.5


def _remarks(rows: dict[str, dict[str, Tick | float]], solver: float) -> list[str]:
    def value(name: str, key: str) -> str:
        cell = rows[name][key]
        return number(cell.value if isinstance(cell, Tick) else cell)

    return [
        "sum-dis: largest part by which Σ_j w_j d² at the centroid exceeds the minimum found by Newton's method; "
        f"✓ stands for at most {TOLERANCE:.0e}. Closed form: 0 for a formula, else the steps of an iteration. "
        f"Distances are in units of √β. Random positive weights, float64, d = {DIM}, {min(SIZES)} to {max(SIZES)} "
        "points, radii up to 4.",
        "The Einstein midpoint and the Möbius gyromidpoint are the Lorentz centroid seen on the two balls (at most "
        f"{value(EINSTEIN, 'apart')} and {value(MOEBIUS, 'apart')} √β away), so they do minimise the sum of squared "
        f"Lorentzian distances (excess {value(EINSTEIN, 'sum_lorentz')} and {value(MOEBIUS, 'sum_lorentz')}): the "
        "paper's two crosses are wrong. None of the three minimises the sum of squared intrinsic distances (excess "
        f"{value(LORENTZ, 'sum_intrinsic')}).",
        "The Fréchet mean has no formula: the first-order fixed-point iteration takes up to "
        f"{value(FRECHET, 'closed_form')} steps to {ARRIVED:.0e}. It lies up to {value(FRECHET, 'apart')} √β from the "
        f"Lorentz centroid. This library's solver and the independent minimum differ by {number(solver)} √β.",
    ]
