"""Layers and encoders in PyG's style, one file per architecture."""

from .centroid import LorentzCentroid
from .decoders import FermiDirac
from .deepwalk import DeepWalk
from .encoder import Encoder, Network
from .features import SparseFeatures
from .gat import GAT, GATLayer
from .gcn import GCN, GCNLayer
from .ggnn import GGNN
from .graph_batch import GraphBatch
from .graph_model import GraphModel
from .graphsage import GraphSAGE, SAGELayer
from .hat import HAT, HATConv
from .hgcn import HGCN, HGCNConv
from .hgnn import HGNN, HGNNConv
from .hnn import HNN, HNNLayer
from .kgcn import KGCN, KGCNConv
from .lgcn import LGCN, LGCNConv
from .linear import GyroLinear, TangentLinear
from .mlp import MLP, LinearLayer
from .mpnn import MPNN
from .poincare_emb import PoincareEmbedding
from .riemannian_sgd import RiemannianSGD
from .shallow import ShallowEncoder

__all__ = [
    "GAT",
    "GCN",
    "GGNN",
    "HAT",
    "HGCN",
    "HGNN",
    "HNN",
    "KGCN",
    "LGCN",
    "MLP",
    "MPNN",
    "DeepWalk",
    "Encoder",
    "FermiDirac",
    "GATLayer",
    "GCNLayer",
    "GraphBatch",
    "GraphModel",
    "GraphSAGE",
    "GyroLinear",
    "HATConv",
    "HGCNConv",
    "HGNNConv",
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
