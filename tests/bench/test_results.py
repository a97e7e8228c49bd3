"""The file of results: a case is replaced as a whole, so that every ratio is within one run."""

import json

import pytest

from hyperboloid.bench.results import Measured, read_lines
from hyperboloid.errors import InputError

BOTH = "forward + backward"


def test_a_newer_case_takes_the_place_of_the_older_one_and_of_nothing_else(record):
    small, large = {"graph": "cora", "dim": 16}, {"graph": "cora", "dim": 64}
    record("layers", "cpu", small, ("LGCNConv", BOTH, 1.0, "ms"), ("GATConv", BOTH, 2.0, "ms"))
    record("layers", "cpu", large, ("LGCNConv", BOTH, 3.0, "ms"))
    record("layers", "cuda", small, ("LGCNConv", BOTH, 4.0, "ms"))
    path = record("layers", "cpu", small, ("LGCNConv", BOTH, 5.0, "ms"), commit="def5678")
    lines = read_lines(path)
    found = sorted((line["device"], line["case"]["dim"], line["name"], line["value"]) for line in lines)
    # the older GATConv is gone as well: it would be compared with an LGCNConv of another run
    assert found == [("cpu", 16, "LGCNConv", 5.0), ("cpu", 64, "LGCNConv", 3.0), ("cuda", 16, "LGCNConv", 4.0)]
    assert {line["commit"] for line in lines if line["value"] == 5.0} == {"def5678"}
    assert [p.name for p in path.parent.iterdir()] == ["bench.jsonl"]


def test_a_line_says_where_its_number_comes_from(record):
    path = record("growth", "cpu", {"edges": 100}, ("LGCNConv", BOTH, 2.0, "ms"), load=3.5)
    (line,) = (json.loads(text) for text in path.read_text().splitlines())
    assert line == {
        "part": "growth",
        "device": "cpu",
        "case": {"edges": 100},
        "name": "LGCNConv",
        "quantity": BOTH,
        "value": 2.0,
        "unit": "ms",
        "busy": 3.0,
        "repeats": 7,
        "machine": "2 CPU cores, some processor",
        "commit": "abc1234",
        "versions": {"torch": "2.11.0"},
        "load": 3.5,
    }


@pytest.mark.parametrize("damage", ["{", "[]", '{"part": "layers"}', "null"])
def test_a_damaged_line_is_named(record, damage):
    path = record("growth", "cpu", {"edges": 100}, ("LGCNConv", BOTH, 2.0, "ms"))
    path.write_text(path.read_text() + damage + "\n")
    with pytest.raises(InputError, match=r"bench\.jsonl, line 2 is not a measured number"):
        read_lines(path)


def test_a_number_that_is_none_is_refused(record):
    path = record("growth", "cpu", {"edges": 100}, ("LGCNConv", BOTH, 2.0, "ms"))
    path.write_text(path.read_text().replace("2.0", "NaN"))
    with pytest.raises(InputError, match="line 1 is not a measured number"):
        read_lines(path)


def test_a_file_that_is_not_there_has_no_lines(tmp_path):
    assert read_lines(tmp_path / "none.jsonl") == []


def test_ratios_are_of_the_same_case(record):
    record("layers", "cpu", {"dim": 16}, ("LGCNConv", BOTH, 2.0, "ms"))
    path = record("layers", "cpu", {"dim": 64}, ("LGCNConv", BOTH, 4.0, "ms"), ("GATConv", BOTH, 10.0, "ms"))
    measured = Measured(read_lines(path))
    assert measured.select("layers", "cpu", dim=64).ratio("GATConv", "LGCNConv", BOTH) == 2.5
    assert measured.select("layers", "cpu", dim=16).ratio("GATConv", "LGCNConv", BOTH) is None
