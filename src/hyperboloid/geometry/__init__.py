"""Hyperbolic geometry in plain torch: models of the space, the isometries between them, and the curvature."""

from .curvature import BetaLike, Curvature
from .euclidean import Euclidean
from .klein import Klein
from .lorentz import Lorentz
from .normal import NormalCoordinates
from .poincare import PoincareBall

__all__ = ["BetaLike", "Curvature", "Euclidean", "Klein", "Lorentz", "NormalCoordinates", "PoincareBall"]
