"""What a layer accepts as its graph: an edge list, a sparse matrix, PyG's EdgeIndex, or an Adjacency."""

from __future__ import annotations

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.kernels import Adjacency, cached_adjacency

GraphInput = Tensor | Adjacency


def resolve_graph(
    graph: GraphInput, edge_weight: Tensor | None, size: tuple[int, int], *, self_loops: bool
) -> tuple[Adjacency, Tensor | None]:
    """Compressed rows of any accepted graph, and its edge weights in their order.

    Args:
        graph: ``(2, E)`` edge list (source, target) or PyG ``EdgeIndex``; a torch.sparse *transposed* adjacency
            ``adj_t`` (row = target, values = edge weights); or an :class:`Adjacency`, taken as it is.
        edge_weight: ``(E,)`` weights of the edge list, or None.
        size: number of source and of target nodes.
        self_loops: add missing self loops.
    """
    if isinstance(graph, Adjacency):
        adj = graph
    elif graph.layout == torch.strided:
        # PyG's EdgeIndex wraps the tensor that the cache should be keyed by
        edges: Tensor = graph.as_tensor() if hasattr(graph, "as_tensor") else graph
        whole = not (edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool)
        if edges.dim() != 2 or edges.size(0) != 2 or not (whole or edges.numel() == 0):
            raise InputError(
                f"edge_index must be (2, E) whole numbers, or a sparse adj_t, not {tuple(edges.shape)} {edges.dtype}."
            )
        adj = cached_adjacency(edges, size, self_loops=self_loops)
    else:
        csr = graph if graph.layout == torch.sparse_csr else graph.to_sparse_csr()
        if tuple(csr.shape) != size[::-1]:
            raise InputError(
                f"adj_t must have a row for each target node and a column for each source node, {size[::-1]}, not "
                f"{tuple(csr.shape)}."
            )
        adj = cached_adjacency(csr, size, self_loops=self_loops)
        edge_weight = csr.values() if edge_weight is None else edge_weight
    if (adj.num_cols, adj.num_rows) != size:
        raise InputError(f"the graph has {adj.num_cols} source and {adj.num_rows} target nodes, the features {size}.")
    if edge_weight is None:
        return adj, None
    if edge_weight.dim() != 1:
        raise InputError(f"edge_weight must have one axis, a number for each edge, not {edge_weight.dim()} axes.")
    if edge_weight.numel() != adj.num_given:
        raise InputError(f"edge_weight has {edge_weight.numel()} entries but the graph has {adj.num_given} edges.")
    return adj, adj.sort_weights(edge_weight)
