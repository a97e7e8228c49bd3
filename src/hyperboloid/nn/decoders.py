"""From embeddings to the probability of a link."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor, nn

from hyperboloid.errors import InputError
from hyperboloid.geometry import Euclidean, Lorentz
from hyperboloid.kernels import pair_sqdist

Distance = Literal["intrinsic", "lorentz"]


class FermiDirac(nn.Module):
    r"""Probability of a link by distance, :math:`p(i, j) = 1 / (e^{(d^2(i, j) - r)/t} + 1)`.

    Args:
        distance: ``intrinsic`` for the space's own squared distance (d_H², or ‖·‖² in flat space), ``lorentz`` for the
            paper's squared Lorentzian distance d_L². The latter grows exponentially in d_H and is cut off at ``cap``.
        r: squared distance at which p = 1/2.
        t: temperature.
        cap: largest d_L² that is told apart.
    """

    def __init__(self, distance: Distance = "intrinsic", *, r: float = 2.0, t: float = 1.0, cap: float = 50.0) -> None:
        super().__init__()
        if distance not in get_args(Distance):
            raise InputError(f"There is no distance '{distance}'; choose one of: {', '.join(get_args(Distance))}.")
        self.distance = distance
        self.r = r
        self.t = t
        self.cap = cap

    def forward(self, u: Tensor, v: Tensor, manifold: Lorentz | Euclidean) -> Tensor:
        """Logits ``(…)`` of links between embeddings in normal coordinates ``(…, d)``."""
        if self.distance == "lorentz" and isinstance(manifold, Lorentz):
            square = manifold.normal.lorentz_sqdist(u, v).clamp(max=self.cap)
        else:
            square = manifold.normal.sqdist(u, v)
        return self._logits(square)

    def of_pairs(self, z: Tensor, pairs: Tensor, manifold: Lorentz | Euclidean) -> Tensor:
        """The same for pairs ``(2, P)`` of embedded nodes ``(N, d)``, without a copy of their embeddings: ``(P,)``."""
        beta = manifold.beta(z) if isinstance(manifold, Lorentz) else None
        lorentz = beta is not None and self.distance == "lorentz"
        square = pair_sqdist(z, pairs, beta, lorentz=lorentz)
        return self._logits(square.clamp(max=self.cap) if lorentz else square)

    def _logits(self, square: Tensor) -> Tensor:
        logits = self.r - square
        return logits if self.t == 1 else logits / self.t  # there are many pairs, and usually t is 1

    def extra_repr(self) -> str:
        """Its constants."""
        return f"distance={self.distance!r}, r={self.r}, t={self.t}"
