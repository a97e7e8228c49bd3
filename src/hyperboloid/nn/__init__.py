"""Layers and encoders in PyG's style, one file per architecture."""

from .centroid import LorentzCentroid
from .decoders import FermiDirac
from .encoder import Encoder
from .features import SparseFeatures
from .lgcn import LGCN, LGCNConv
from .linear import TangentLinear

__all__ = ["LGCN", "Encoder", "FermiDirac", "LGCNConv", "LorentzCentroid", "SparseFeatures", "TangentLinear"]
