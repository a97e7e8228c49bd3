"""``hyperboloid paper``: a table, sentences, and the same as JSON."""

import pytest

from hyperboloid.paper import experiments
from hyperboloid.paper.experiments import EXPERIMENTS
from hyperboloid.paper.registry import FIGURES
from hyperboloid.paper.table import PaperTable, Tick


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_run_prints_a_table_remarks_and_json(cli, tmp_path, name):
    result = cli("paper", "run", name, "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    assert result.json["experiment"] == name
    assert result.json["seed"] == 0
    assert result.json["tolerance"] == 1e-9
    for row in result.json["rows"]:
        assert list(row) == list(result.json["columns"])
        assert str(next(iter(row.values()))) in result.out
    assert any(cell["contradicts"] for row in result.json["rows"] for cell in row.values() if isinstance(cell, dict))
    assert "✓" in result.out
    assert "(✗)" in result.out
    assert result.out.count("• ") == len(result.json["remarks"])
    assert max(map(len, result.out.splitlines()[:-1])) <= 80
    assert not list(tmp_path.iterdir())


def test_without_json_the_remarks_end_it(cli, monkeypatch):
    small = PaperTable("small", "A title", {"name": "name", "x": "x"}, [{"name": "a", "x": Tick(0.25, True)}], ["So."])
    asked = []
    monkeypatch.setattr(experiments, "run_experiment", lambda *words: asked.append(words) or small)
    lines = cli("paper", "run", "Small", "--seed", 7).out.splitlines()
    assert asked == [("small", 7)]
    assert lines[-1].split() == ["•", "So."]
    assert ["a", "✓", "0.25"] in [line.split() for line in lines]


def test_an_unknown_name_is_refused_with_the_list(cli):
    result = cli("paper", "run", "nosuch")
    assert result.code == 2
    assert result.out == ""
    choice = ", ".join((*EXPERIMENTS, "link", "node", "ablation", "tables", "zinc", *FIGURES))
    assert result.error == f"There is no experiment 'nosuch'; choose one of: {choice}."


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_a_seed_out_of_range_is_refused(cli, seed):
    result = cli("paper", "run", "centroids", "--seed", seed)
    assert result.code == 2
    assert result.error == f"The seed must be a whole number from 0 to 2147483647, not {seed}."


@pytest.mark.parametrize("words", ["paper", "paper nosuch", "paper run", "paper run centroids --seed x"])
def test_words_that_do_not_parse_show_the_usage(cli, words):
    result = cli(*words.split())
    assert result.code == 2
    assert "Usage:" in result.out + result.err


def test_help_names_the_experiments(cli):
    result = cli("paper", "run", "--help")
    assert result.code == 0
    for name in (*EXPERIMENTS, *FIGURES):
        assert name in result.out
