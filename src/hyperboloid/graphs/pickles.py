"""Planetoid's files are Python 2 pickles; a pickle can run any code, so this reader runs none.

The few names that these files refer to are replaced by inert stand-ins defined here, which only hold what they are
given. Arrays and matrices are made from that afterwards, by us: nothing of numpy or scipy is called by the file.
"""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hyperboloid.errors import InputError

# No object dtype: an array of objects would hold whatever the file likes.
_PLAIN_NUMBER = re.compile(r"[iuf][1248]")


class _Dtype:
    """Stands for ``numpy.dtype``: a code such as ``i4`` and its byte order."""

    def __init__(self, code: str, *_align_and_copy: object) -> None:
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def build(self) -> np.dtype[Any]:
        if not _PLAIN_NUMBER.fullmatch(self.code) or self.order not in ("<", ">", "|"):
            raise ValueError(f"the dtype {self.order}{self.code} is no plain number")
        return np.dtype(self.order + self.code)


class _Array:
    """Stands for the array that ``numpy.core.multiarray._reconstruct`` makes."""

    def __init__(self, *_empty_array: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self) -> np.ndarray:
        _version, shape, dtype, fortran, data = self.state
        if not isinstance(dtype, _Dtype):
            raise ValueError("an array has no dtype")
        flat = np.frombuffer(data.encode("latin1"), dtype=dtype.build())
        return flat.reshape(shape, order="F" if fortran else "C")


class _Matrix:
    """Stands for ``scipy.sparse.csr_matrix``."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def build(self) -> Any:
        from scipy.sparse import csr_matrix

        parts = tuple(self.state[key].build() for key in ("data", "indices", "indptr"))
        matrix = csr_matrix(parts, shape=self.state["_shape"])
        matrix.check_format(full_check=True)
        return matrix


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): "ndarray",  # only ever an argument
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, encoding="latin1")
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise InputError(
                f"{self._path} refers to {module}.{name}, which no Planetoid file does: it was not loaded, "
                "replace it with the original file"
            ) from None


def load_pickle(path: str | Path) -> Any:
    """The array, CSR matrix or adjacency dictionary in one of Planetoid's pickles; no code in it is run.

    Raises:
        InputError: the file refers to anything but the arrays, matrices, dictionaries and lists of those files,
            or is no such file at all.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, path).load()
        if isinstance(content, _Array | _Matrix):
            return content.build()
        if isinstance(content, defaultdict):
            return dict(content)
    except InputError:
        raise
    except Exception as error:
        # A malformed pickle can fail in any way; for the user it is one and the same.
        raise InputError(f"{path} is not a readable Planetoid file ({error}); replace it") from error
    raise InputError(f"{path} holds a {type(content).__name__}, not an array, a matrix or a graph; replace it")
