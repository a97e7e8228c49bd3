import os
import pickle

import numpy as np
import pytest

from hyperboloid.errors import InputError
from hyperboloid.graphs.pickles import load_pickle


class Trap:
    """Pickled, it calls a function of the attacker's choice when it is read."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_a_booby_trap_does_not_go_off(tmp_path):
    marker = tmp_path / "marker"
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps(Trap(os.system, f"touch {marker}"), protocol=2))
    with pytest.raises(InputError, match=r"ind\.cora\.x refers to posix\.system"):
        load_pickle(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes())
    assert marker.exists(), "the trap was no trap"


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02cbuiltins\neval\nU\x011\x85R.",
        b"\x80\x02c__builtin__\ngetattr\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.",
        b"\x80\x04\x8c\x0bcollections\x8c\x10defaultdict.copy\x93.",
        b"\x80\x02cnumpy.core.multiarray\nscalar\n.",
    ],
)
def test_only_the_names_planetoid_uses_are_admitted(tmp_path, content):
    path = tmp_path / "ind.cora.x"
    path.write_bytes(content)
    with pytest.raises(InputError, match="which no Planetoid file does"):
        load_pickle(path)


def python2_array(dtype: bytes, data: bytes, shape: int) -> bytes:
    """What Python 2 and an old numpy write for a flat array."""
    return (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R("
        + b"K\x01K"
        + bytes([shape])
        + b"\x85cnumpy\ndtype\nU"
        + bytes([len(dtype)])
        + dtype
        + b"K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U"
        + bytes([len(data)])
        + data
        + b"tb."
    )


def test_reads_a_python_2_array(tmp_path):
    values = np.array([1, -2, 300], dtype="<i4")
    (tmp_path / "y").write_bytes(python2_array(b"i4", values.tobytes(), 3))
    loaded = load_pickle(tmp_path / "y")
    assert loaded.dtype == np.int32
    assert loaded.tolist() == [1, -2, 300]


@pytest.mark.parametrize(
    ("dtype", "data", "shape"), [(b"O8", b"\x00" * 8, 1), (b"i4", b"\x00" * 4, 200), (b"V4", b"\x00" * 4, 1)]
)
def test_arrays_of_objects_or_of_a_wrong_size_are_refused(tmp_path, dtype, data, shape):
    (tmp_path / "y").write_bytes(python2_array(dtype, data, shape))
    with pytest.raises(InputError, match="not a readable Planetoid file"):
        load_pickle(tmp_path / "y")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x02", b"\x80\x02K\x01."])
def test_anything_else_is_one_sentence(tmp_path, content):
    (tmp_path / "y").write_bytes(content)
    with pytest.raises(InputError, match="replace it"):
        load_pickle(tmp_path / "y")
