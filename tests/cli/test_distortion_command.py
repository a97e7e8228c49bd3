"""``hyperboloid distortion``."""

import xml.etree.ElementTree as ElementTree

import pytest

import hyperboloid
from hyperboloid.analysis.distortion import run_distortion


def test_every_run_of_a_folder_is_measured(cli, tmp_path):
    experiment = hyperboloid.fit("karate", dim=4, epochs=5, seeds=2, out=tmp_path / "run")
    result = cli("distortion", "run", "--out", "picture.svg", "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    expected = [run_distortion(run).average for run in experiment.runs]
    assert [run["average"] for run in result.json["runs"]] == expected
    assert result.json["distortion_mean"] == pytest.approx(sum(expected) / 2)
    assert f"split 0 seed 1: average distortion {expected[1]:.4f}, mean average precision " in result.out
    assert "distances against those of the whole graph, 1,122 pairs of nodes.\n" in result.out
    assert ElementTree.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nosuch", "nosuch"),
        ("run --seed -1", "The seed must not be negative, but it is -1."),
        ("run --out picture.pdf", "The picture must be a .png or .svg file, not 'picture.pdf'."),
    ],
)
def test_bad_input_is_one_sentence(cli, link_run, words, sentence):
    result = cli("distortion", *words.replace("run", str(link_run)).split())
    assert result.code == 2
    assert sentence in result.error


def test_logits_are_called_what_they_are(cli, node_run, link_run):
    assert "logits" in cli("distortion", node_run).out
    assert "logits" not in cli("distortion", link_run).out
