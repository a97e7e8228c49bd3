"""Advice: what it recommends given scores, and the whole of it on a tree."""

import dataclasses
import math

import networkx
import pytest

from hyperboloid import InputError, fit
from hyperboloid.analysis.advise import Advice, Tried, advise, choose, noise, smallest_good
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.statistics import statistics
from hyperboloid.scores import two_errors
from hyperboloid.training.batch import Outcome
from hyperboloid.training.selection import Verdict
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import Sweep
from hyperboloid.training.trial import Trial


def verdict(model, test, val=None, complete=True):
    trials = [
        Trial(Outcome(Settings(), seed, (val or test)[seed], 0.5, 10, 20, complete), test=score)
        for seed, score in enumerate(test)
    ]
    return Verdict(model, Settings(), trials, 4, 4, 100, 1.0, complete)


def advice(curved, flat, tested=1000):
    verdicts = sorted((curved, flat), key=lambda v: -v.val)
    chosen, rival = choose(verdicts, tested)
    found = Sweep(None, "g", "link", "auc", 0.5, tested, verdicts, {}, 1.0)
    shape = statistics(load_graph("karate"))
    return Advice("g", [], shape, None, found, chosen, rival, [Tried(8, [0.9], [0.9])], 8, 1.0)


def test_hyperbolic_space_is_recommended_where_it_is_clearly_better():
    found = advice(verdict("lgcn", [0.95, 0.96, 0.95]), verdict("gcn", [0.90, 0.91, 0.90]))
    assert (found.chosen.model, found.rival.model, found.clear) == ("lgcn", "gcn", True)
    assert "The geometry matters here" in found.sentences[1]
    assert "hyperbolic space" in found.sentences[0]


def test_a_difference_within_the_noise_is_called_that_and_the_simpler_model_taken():
    found = advice(verdict("lgcn", [0.95, 0.90, 0.93]), verdict("gcn", [0.92, 0.93, 0.90]))
    assert (found.chosen.model, found.clear) == ("gcn", False)
    assert "within the noise" in found.sentences[1]
    few = advice(verdict("lgcn", [0.95, 0.96, 0.95]), verdict("gcn", [0.90, 0.91, 0.90]), tested=8)
    assert few.clear is False  # with eight test edges nothing is certain


def test_euclidean_space_may_win():
    found = advice(verdict("lgcn", [0.80, 0.81, 0.80]), verdict("gat", [0.90, 0.91, 0.90]))
    assert (found.chosen.model, found.clear) == ("gat", True)


def test_what_had_no_time_is_not_judged():
    cut = verdict("lgcn", [0.80, 0.81, 0.80], complete=False)
    found = advice(cut, verdict("gcn", [0.90, 0.91, 0.90]))
    assert (found.settled, found.clear) == (False, False)
    assert "Not settled" in found.sentences[1]
    ahead = advice(verdict("lgcn", [0.95, 0.96, 0.95], complete=False), verdict("gcn", [0.90, 0.91, 0.90]))
    assert (ahead.settled, ahead.clear) == (True, True)  # more time would not have made it worse


def test_where_nothing_was_learned_no_model_is_recommended():
    found = advice(verdict("lgcn", [0.45, 0.44, 0.46]), verdict("gcn", [0.40, 0.41, 0.40]))
    assert found.clear is False
    assert found.sentences[0].startswith("No model is clearly better than guessing (test auc 45.0 ± 1.0 %")
    assert not any(s.startswith("Use") or "geometry" in s for s in found.sentences)
    cut = advice(verdict("lgcn", [0.40, 0.41, 0.40], complete=False), verdict("gcn", [0.45, 0.44, 0.46]))
    assert "a longer --budget may change that" in cut.sentences[1]
    lucky = verdict("lgcn", [0.55, 0.56, 0.57]), verdict("gcn", [0.50, 0.51, 0.50])
    assert not advice(*lucky, tested=200).found.learned  # guessing has 3.5 points of error, and twice that is more
    assert advice(*lucky, tested=2000).found.learned


def test_the_best_of_each_geometry_is_chosen_on_validation():
    verdicts = [
        verdict("gat", [0.70, 0.70], val=[0.95, 0.95]),
        verdict("lgcn", [0.80, 0.80], val=[0.9, 0.9]),
        verdict("gcn", [0.85, 0.85], val=[0.8, 0.8]),
    ]
    chosen, rival = choose(verdicts, 10**6)
    assert (chosen.model, rival.model) == ("lgcn", "gat")


def test_noise_is_two_standard_errors():
    a, b = verdict("lgcn", [0.9, 0.94]), verdict("gcn", [0.8, 0.8])
    expected = 2 * math.sqrt(0.02**2 * 2 / 2 + 0.86 * 0.14 / 500)
    assert noise(a, b, 500) == pytest.approx(expected)
    assert two_errors([0.9], [0.9], 10**9) == pytest.approx(0, abs=1e-4)


def test_the_smallest_dimension_within_the_noise():
    dims = [Tried(4, [0.80, 0.81], []), Tried(8, [0.90, 0.91], []), Tried(16, [0.91, 0.90], [])]
    assert smallest_good(dims, 10**6) == 8
    assert smallest_good(dims, 10) == 4


def test_the_whole_of_it_on_a_tree(tmp_path):
    tree = networkx.balanced_tree(3, 4)
    fit(tree, model="lgcn", dim=4, epochs=1)  # compiles the loops, which the budget does not know about
    found = advise(tree, models=("gcn", "lgcn"), budget=4.0, out=tmp_path / "search")
    assert found.delta.mean == 0
    assert found.shape.forest_share == 1
    # on a busy machine there may be no time for the second, which is then named with the reason
    judged = {v.model for v in found.found.verdicts}
    assert judged
    assert judged | found.found.skipped.keys() == {"gcn", "lgcn"}
    assert found.seconds < 20
    assert found.dim in {t.dim for t in found.dims}
    content = found.as_json()
    assert content["model"] == found.chosen.model
    assert content["nodes"] == 121
    assert dataclasses.asdict(found.shape).items() <= content.items()


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="no labels"):
        advise(networkx.path_graph(40), task="node", out=tmp_path / "a")
    with pytest.raises(InputError):
        advise(networkx.path_graph(2), out=tmp_path / "b")
    assert not (tmp_path / "a").exists()
