"""Layers and encoders in PyG's style, one file per architecture."""

from .centroid import LorentzCentroid
from .decoders import FermiDirac
from .deepwalk import DeepWalk
from .encoder import Encoder, Network
from .features import SparseFeatures
from .gat import GAT, GATLayer
from .gcn import GCN, GCNLayer
from .graphsage import GraphSAGE, SAGELayer
from .hat import HAT, HATConv
from .hgcn import HGCN, HGCNConv
from .hnn import HNN, HNNLayer
from .kgcn import KGCN, KGCNConv
from .lgcn import LGCN, LGCNConv
from .linear import GyroLinear, TangentLinear
from .mlp import MLP, LinearLayer
from .poincare_emb import PoincareEmbedding
from .riemannian_sgd import RiemannianSGD
from .shallow import ShallowEncoder

__all__ = [
    "GAT",
    "GCN",
    "HAT",
    "HGCN",
    "HNN",
    "KGCN",
    "LGCN",
    "MLP",
    "DeepWalk",
    "Encoder",
    "FermiDirac",
    "GATLayer",
    "GCNLayer",
    "GraphSAGE",
    "GyroLinear",
    "HATConv",
    "HGCNConv",
    "HNNLayer",
    "KGCNConv",
    "LGCNConv",
    "LinearLayer",
    "LorentzCentroid",
    "Network",
    "PoincareEmbedding",
    "RiemannianSGD",
    "SAGELayer",
    "ShallowEncoder",
    "SparseFeatures",
    "TangentLinear",
]
