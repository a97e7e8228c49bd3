"""Clocks: who is called how often and in which order. How long it takes is nobody's promise."""

import time

import pytest
import torch

from hyperboloid.bench.timing import LEAST, MOST, WARM, profiled, timed

CPU = torch.device("cpu")


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, LEAST), (60.0, MOST)])
def test_calls_take_turns_after_warming_up(seconds, turns):
    called = []
    times = timed({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, CPU, seconds)
    assert "".join(called) == "a" * WARM + "b" * WARM + "ab" * turns
    assert times["a"].repeats == turns


def test_waiting_costs_no_cpu_time_and_one_slow_call_is_no_median():
    naps = iter([0.0] * (WARM + 2) + [0.2] + [0.0] * LEAST)
    slept = timed({"nap": lambda: time.sleep(0.01), "once": lambda: time.sleep(next(naps))}, CPU, 0.0)
    assert slept["nap"].ms >= 10
    assert slept["nap"].busy < 10
    assert slept["once"].ms < 200


def test_a_profile_names_the_longest_operations_and_sums_up_the_rest():
    x = torch.ones(200, 200)
    numbers = profiled(lambda: (x @ x, x.add(1), x.mul(2), x.exp(), x.sin(), x.cos(), x.sqrt(), x.log()), CPU, "part")
    names = [n.name for n in numbers]
    assert "aten::mm" in names
    assert names[-1] == "all else"
    assert all(n.value > 0 and n.quantity == "part" and n.unit == "ms" for n in numbers)
