"""The page: numbers, ratios and verdicts follow from the lines, and what was not measured is said."""

import math

import pytest

from hyperboloid.bench.goals import GOALS
from hyperboloid.bench.growth import slope
from hyperboloid.bench.page import write_page

BOTH, FORWARD = "forward + backward", "forward"
GRAPH = {"graph": "power law", "nodes": 1_000_000, "edges": 20_000_000}


def layer(name, both, forward=1.0):
    return (name, BOTH, both, "ms"), (name, FORWARD, forward, "ms")


def verdicts(page):
    """What the page says about each goal: measured, and the word."""
    goals = page.split("## Goals")[1].split("## One whole layer")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in goals.splitlines() if line.startswith("| ")]
    return {row[0]: (row[2], row[3]) for row in rows if row[0] not in ("goal", "---")}


@pytest.fixture
def page(record, tmp_path):
    """The page of some results."""

    def make(path):
        out = tmp_path / "docs" / "performance.md"
        made = write_page(path, out)
        return out.read_text(encoding="utf-8"), made

    return make


def test_goals_on_a_gpu(record, page):
    gat = (*layer("LGCNConv", 10.0), *layer("GATConv", 53.5), *layer("GCNConv", 29.0))
    memory = ("LGCNConv", "peak extra memory", 2.25, "GiB")
    record("layers", "cuda", GRAPH | {"dim": 64}, *gat, memory)
    record("layers", "cuda", GRAPH | {"dim": 16}, *layer("LGCNConv", 5.0), *layer("GATConv", 27.0))
    path = record(
        "gather",
        "cuda",
        GRAPH | {"dim": 64},
        ("copy", "copy bandwidth", 4.24, "TB/s"),
        ("aggregation", "forward", 4.0, "ms"),
        ("aggregation", "bound forward", 3.2, "ms"),
        ("aggregation", "backward", 10.0, "ms"),
        ("aggregation", "bound backward", 6.4, "ms"),
    )
    text, made = page(path)
    found = verdicts(text)
    assert found["power law, d = 64: faster than GATConv"] == ("5.3 times", "reached")  # 5.35 against 4.5
    assert found["power law, d = 64: faster than GCNConv"] == ("2.9 times", "**missed**")
    assert found["power law, d = 64: peak extra memory"] == ("2.25 GiB", "reached")
    assert found["power law, d = 64: aggregation forward, of the gather bound"] == ("80 %", "reached")
    assert found["power law, d = 64: aggregation backward, of the gather bound"] == ("64 %", "**missed**")
    assert found["power law, d = 16: faster than GATConv"] == ("5.4 times", "reached")
    assert "| 64 | GATConv | 1 | 53.5 | 5.35 | – |" in text
    assert "A power-law graph with 1,000,000 nodes and 20,000,000 edges." in text
    assert "**GPU** (NVIDIA H200)" in text
    assert "**CPU** (nothing measured yet)" in text
    assert (made.count(True), made.count(False)) == (4, 2)
    assert sum(goal["reached"] is None for goal in made.as_json()["goals"]) == len(GOALS) - 6


def test_another_graph_reaches_no_goal(record, page):
    small = {"graph": "power law", "nodes": 200, "edges": 2_000, "dim": 64}
    path = record("layers", "cuda", small, *layer("LGCNConv", 1.0), *layer("GATConv", 100.0))
    _, made = page(path)
    assert all(finding is None for _, finding in made.findings)


def test_goals_on_a_cpu_show_both_allocators_and_a_busy_machine(record, page):
    case = {"graph": "amazon", "dim": 64}
    for memory, gat, gcn in (("handed back", 240.0, 120.0), ("kept", 90.0, 150.0)):
        numbers = (*layer("LGCNConv", 30.0), *layer("GATConv", gat), *layer("GCNConv", gcn))
        path = record("layers", "cpu", case | {"memory": memory}, *numbers, load=5.25)
    text, _ = page(path)
    found = verdicts(text)
    measured, word = found["amazon, d = 64: faster than GATConv"]
    assert measured == "8.0 times; 3.0 where memory is kept"
    assert word == "reached, **missed** where memory is kept, load 5.2"
    measured, word = found["amazon, d = 64: faster than GCNConv"]
    assert measured == "4.0 times; 5.0 where memory is kept"
    assert word == "**missed**, reached where memory is kept, load 5.2"
    assert "| amazon | 64 | GATConv | 1 | 240 | 8.00 | 360 | 1 | 90 | 3.00 | 135 |" in text
    assert "MALLOC_MMAP_THRESHOLD_=1000000000" in text


def test_goals_of_epochs(record, page):
    epochs = (("lgcn", 30.0), ("gat", 30.0), ("gcn", 19.0))
    numbers = [(name, "epoch", ms, "ms") for name, ms in epochs]
    path = record("epochs", "cpu", {"graph": "cora", "dim": 16}, *numbers, ("aten::mm", "part of lgcn", 12.5, "ms"))
    text, _ = page(path)
    found = verdicts(text)
    assert found["cora: LGCN's epoch against GAT's"] == ("1.00 times", "reached")
    assert found["cora: LGCN's epoch against GCN's"] == ("1.58 times", "**missed**")
    assert found["pubmed: LGCN's epoch against GAT's"] == ("–", "not measured")
    assert "| lgcn | 30 | 1.00 | 45 (published 500) |" in text
    assert "cora, d = 16, ms: aten::mm 12.5" in text


def test_growth_is_fitted_and_drawn(record, page, tmp_path):
    for edges in (100_000, 1_000_000, 20_000_000, 10_000_000):
        what = {"graph": "power law", "nodes": edges // 20, "edges": edges, "dim": 16}
        path = record("growth", "cpu", what, ("LGCNConv", BOTH, 3e-4 * edges**1.05, "ms"))
    text, _ = page(path)
    assert verdicts(text)["time grows linearly up to 20,000,000 edges"] == ("edges^1.05", "reached")
    assert "| directed edges | 1e5 | 1e6 | 1e7 | 2e7 | slope |" in text
    assert "| 2 CPU cores, some processor | 53.3 (533) |" in text
    assert "| 2 CPU cores, some processor: CPU time | 80 (800) |" in text
    for kind in ("png", "svg"):
        assert (tmp_path / "docs" / "figures" / f"growth.{kind}").stat().st_size > 1000


def test_the_slope_is_that_of_the_large_graphs():
    times = {e: max(1.0, 1e-6 * e**1.0) for e in (1e3, 1e4, 1e6, 1e7, 1e8)}
    assert slope(times) == pytest.approx(1.0)
    assert slope({e: t**2 for e, t in times.items()}) == pytest.approx(2.0)
    assert math.isnan(slope({10: 1.0}))


def test_geometry_without_geoopt_is_said(record, page):
    def numbers(name):
        errors = [(name, f"largest relative error at radius {r}", 2.5e-6, "1") for r in (6, 9)]
        lost = [(name, f"not finite at radius {r}", 0.031, "1") for r in (6, 9)]
        return [(name, "time for a million points", 123.0, "ms"), *errors, *lost]

    what = {"operation": "distance", "dim": 16, "points": 1_000_000}
    path = record("geometry", "cpu", what, *numbers("hyperboloid, normal coordinates"), *numbers("textbook"))
    text, _ = page(path)
    assert "| distance | textbook | 123 | 2.5e-06 (3.1 %) | 2.5e-06 (3.1 %) |" in text
    assert verdicts(text)["geometry beside geoopt and textbook formulas"] == ("without geoopt", "**missed**")
    assert "geoopt was not installed there." in text


def test_nothing_measured_is_a_page_too(page, tmp_path):
    text, made = page(tmp_path / "none.jsonl")
    assert all(word == "not measured" for _, word in verdicts(text).values())
    assert len(verdicts(text)) == len(GOALS)
    assert text.count("Not measured.") == 9
    assert (made.count(True), made.count(False)) == (0, 0)
