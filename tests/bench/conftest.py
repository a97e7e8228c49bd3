"""Results as a run would have left them, with times that make the ratios plain."""

import pytest

from hyperboloid.bench.numbers import Case, Number
from hyperboloid.bench.results import lines_of, replace_case


@pytest.fixture
def record(tmp_path):
    """Writes a case into the file of results: ``record(part, device, what, (name, quantity, value, unit), …)``."""
    path = tmp_path / "results" / "bench.jsonl"

    def write(part, device, what, *numbers, load=None, commit="abc1234"):
        machine = "NVIDIA H200" if device == "cuda" else "2 CPU cores, some processor"
        provenance = {"machine": machine, "commit": commit, "versions": {"torch": "2.11.0"}, "load": load}
        busy = {"ms": 1.5}
        made = [Number(n, q, v, u, busy.get(u, 0) * v if device == "cpu" else None, 7) for n, q, v, u in numbers]
        replace_case(path, lines_of(part, device, Case(what, made), provenance))
        return path

    return write
