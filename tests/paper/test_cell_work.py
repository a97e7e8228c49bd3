"""The measurement of a cell that is stopped amid its training goes on there."""

import math
import time

import pytest

from hyperboloid.paper.cell_work import Bench, BenchPlan, OutOfTime
from hyperboloid.paper.cells import cells
from hyperboloid.paper.protocol import RunProtocol

PROTOCOL = RunProtocol(tries=4, epochs=60, seeds=2)
(CELL,) = cells("node", datasets=["disease"], dims=[8], models=["gcn"])


def measured(folder, seconds=math.inf, chosen=None):
    """A line, and how often the time was up before it was there."""
    times = 0
    while times < 100:
        try:
            there = Bench(BenchPlan(PROTOCOL, folder, None, "cpu", "test", math.inf))
            there.load(CELL)
            there.until = time.monotonic() + seconds
            if chosen is None:
                return there.measure(CELL, None, quiet), times
            return there.measure_splits(CELL, chosen, [0, 1], quiet), times
        except OutOfTime:
            times += 1
    raise AssertionError("it never ends")


def quiet(name):
    return lambda alive, epoch, best, finished, total: None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    line, _ = measured(tmp_path_factory.mktemp("whole"))
    return line


def same(line):
    """What does not hang on the clock."""
    return {name: value for name, value in line.items() if name != "seconds"}


def test_a_cell_whose_time_is_ever_so_short_is_measured_in_the_end(whole, tmp_path):
    line, times = measured(tmp_path, whole["seconds"] / 4)
    assert times >= 2
    assert same(line) == same(whole)
    assert not list(tmp_path.glob("*/unfinished*"))


def test_so_are_other_splits(whole, tmp_path):
    all_at_once, _ = measured(tmp_path / "whole", chosen=whole)
    line, times = measured(tmp_path / "parts", all_at_once["seconds"] / 4, chosen=whole)
    assert times >= 2
    assert same(line) == same(all_at_once)
