"""Adjacency and feature matrices that scipy holds or has saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hyperboloid.errors import InputError
from hyperboloid.graphs.build import build_graph, check_weights
from hyperboloid.graphs.graph import Graph
from hyperboloid.graphs.tables import check_file


def read_npz(path: Path, arrays: tuple[str, ...] = ()) -> Any:
    """The named arrays of an NPZ file as a dictionary if it has the first of them, else its scipy sparse matrix.

    Nothing is unpickled.

    Raises:
        InputError: the file is absent, damaged, or holds neither.
    """
    from scipy.sparse import load_npz

    check_file(path)
    try:
        # Opened here: numpy leaves a file that it cannot read open.
        with path.open("rb") as file:
            with np.load(file, allow_pickle=False) as content:
                if arrays and arrays[0] in content.files:
                    return {key: content[key] for key in arrays if key in content.files}
            file.seek(0)
            matrix = load_npz(file)
    except Exception as error:
        # A damaged archive can fail in any way; for the user it is one and the same.
        wanted = f"neither arrays {' and '.join(arrays)} nor a" if arrays else "no"
        raise InputError(
            f"{path} holds {wanted} scipy sparse matrix, or is damaged; write one with scipy.sparse.save_npz"
        ) from error
    _check_indices(matrix, str(path))
    return matrix


def from_sparse(matrix: Any, name: str) -> Graph:
    """A graph from a square scipy sparse matrix ``(N, N)``; its values are the weights unless all are 1."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"graph '{name}': an adjacency matrix must be square, this one is {matrix.shape}")
    _check_indices(matrix, f"graph '{name}'")
    links = matrix.tocoo(copy=True)
    links.sum_duplicates()
    links.eliminate_zeros()
    row, col = links.row.astype(np.int64), links.col.astype(np.int64)
    if (links.data == 1).all():
        return build_graph(name, row, col, matrix.shape[0])
    if np.iscomplexobj(links.data):
        raise InputError(f"graph '{name}': an adjacency matrix must be real, this one is complex")
    weight = links.data.astype(np.float64)
    check_weights(weight, lambda i: f"graph '{name}': entry ({row[i]}, {col[i]})")
    return build_graph(name, row, col, matrix.shape[0], weight=weight)


def _check_indices(matrix: Any, what: str) -> None:
    """Refuse indices outside the matrix, with which scipy's compiled code would leave its memory."""
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"{what}: the sparse matrix is damaged ({error}); write it again") from error
