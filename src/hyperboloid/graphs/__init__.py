"""Where graphs come from: named data sets, generators, the user's files; splits."""

from hyperboloid.graphs.build import build_graph
from hyperboloid.graphs.datasets import DATASETS, load_dataset
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.load import load_graph
from hyperboloid.graphs.load_molecules import load_molecules
from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.graphs.readers import read_graph

__all__ = [
    "DATASETS",
    "Graph",
    "MoleculeSet",
    "build_graph",
    "load_dataset",
    "load_graph",
    "load_molecules",
    "read_graph",
]
