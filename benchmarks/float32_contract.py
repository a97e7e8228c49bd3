"""Worst float32 errors against float64, for points 0.25 apart at a given radius: the table in docs/mathematics.md.

    python benchmarks/float32_contract.py

The tests hold the same quantities to their bounds with 50-digit arithmetic, on fewer points.
"""

from __future__ import annotations

import torch

from hyperboloid.geometry import Lorentz

POINTS = 5000
MEMBERS = 8


def worst(radius: float) -> tuple[float, float]:
    """Largest relative error of the distance and of the centroid over dimensions and curvatures."""
    generator = torch.Generator().manual_seed(0)
    dist, mean = 0.0, 0.0
    for beta in (1e-3, 1.0, 1e3):
        exact, single = Lorentz(torch.tensor(beta).double()), Lorentz(beta)
        for d in (2, 5, 16, 64):
            centre = torch.randn(POINTS, 1, d, dtype=torch.float64, generator=generator)
            centre = centre / centre.norm(dim=-1, keepdim=True) * radius * beta**0.5
            step = torch.randn(POINTS, MEMBERS, d, dtype=torch.float64, generator=generator)
            step = step / step.norm(dim=-1, keepdim=True) * 0.25 * beta**0.5
            near = exact.normal.exp_at(centre.expand_as(step), step).float()
            base = centre.float().expand_as(near)
            true = exact.normal.dist(base.double(), near.double())
            dist = max(dist, float(((single.normal.dist(base, near) - true) / true).abs().max()))
            weight = torch.rand(POINTS, MEMBERS, generator=generator)
            true = exact.normal.centroid(near.double(), weight.double())
            error = (single.normal.centroid(near, weight) - true).norm(dim=-1) / true.norm(dim=-1)
            mean = max(mean, float(error.max()))
    return dist, mean


def main() -> None:
    print("radius  distance  centroid")
    for radius in (0.1, 1.0, 3.0, 6.0, 9.0, 12.0):
        dist, mean = worst(radius)
        print(f"{radius:6.1f}  {dist:.1e}   {mean:.1e}")


if __name__ == "__main__":
    main()
