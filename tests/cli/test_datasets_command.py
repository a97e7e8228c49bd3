"""``hyperboloid datasets``: what is here beside what the paper counted, and why something is not here."""

import urllib.error
import urllib.request

import pytest

PAPER = {
    "cora": [2708, 5429, 7, 1433],
    "citeseer": [3327, 4732, 6, 3703],
    "pubmed": [19717, 44338, 3, 500],
    "amazon": [13381, 245778, 10, 767],
    "usa": [1190, 13599, 4, None],
    "disease_nc": [1044, 1043, 2, 1000],
}


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """A machine that has neither the data nor a network."""

    def unreachable(*_args, **_options):
        raise urllib.error.URLError("no network")

    monkeypatch.delenv("HYPERBOLOID_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", unreachable)


def test_lists_all_and_says_what_is_absent(cli, no_data):
    result = cli("datasets", "--json")
    assert result.code == 0, result.err
    rows = {row["name"]: row for row in result.json["datasets"]}
    assert {name: row["paper"] for name, row in rows.items() if row["paper"]} == PAPER
    assert {name for name, row in rows.items() if row["loaded"]} == {"karate", "disease"}
    assert rows["karate"]["loaded"] == [34, 78, 2, None]
    for name in PAPER:
        assert "put it at" in rows[name]["note"]
        assert name in result.out


def test_lists_only_what_is_asked_for(cli, no_data):
    rows = cli("datasets", "Karate", "disease", "--json").json["datasets"]
    assert [row["name"] for row in rows] == ["karate", "disease"]


def test_training_on_absent_data_says_where_to_put_it(cli, no_data):
    result = cli("train", "cora", "--out", "run")
    assert result.code == 2
    assert "put it at" in result.error


def test_with_the_data_the_nodes_are_the_papers(cli, data_dir):
    names = ["cora", "usa", "disease_nc"]
    rows = cli("datasets", *names, "--data-dir", data_dir, "--json").json["datasets"]
    assert [row["loaded"][0] for row in rows] == [PAPER[name][0] for name in names]
