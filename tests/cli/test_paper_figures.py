"""``hyperboloid paper run`` of a figure."""

import json

import pytest


def test_run_measures_draws_judges_and_stays(cli, tmp_path):
    result = cli("paper", "run", "aggregation", "--commit", "abc", "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    assert (result.json["experiment"], result.json["measured"]) == ("aggregation", 5)
    lines = (tmp_path / "results" / "aggregation.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.json["lines"]
    for picture in result.json["pictures"]:
        assert (tmp_path / picture).stat().st_size > 10_000
    assert "Aggregation in the tangent space is no centroid: holds.\n" in result.out
    assert "5 new lines; pictures: docs/figures/aggregation.png, docs/figures/aggregation.svg\n" in result.out
    assert max(map(len, result.out.splitlines()[:-1])) <= 81
    again = cli("paper", "run", "aggregation", "--figures", "elsewhere", "--json")
    assert again.json["measured"] == 0
    assert (tmp_path / "elsewhere" / "aggregation.svg").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "aggregation --seed 1",
            "--seed means nothing for 'aggregation'; it belongs to: operations, centroids, delta",
        ),
        (
            "delta --models gcn",
            "--models means nothing for 'delta'; it belongs to: link, node, ablation, tables, zinc, distortion",
        ),
        ("distortion --budget 1h", "--budget means nothing for 'distortion'; it belongs to: link, node, ablation"),
        ("link --figures x", "--figures means nothing for 'link'; it belongs to: aggregation, delta, distortion"),
        ("delta --datasets karate", "There is no data set 'karate' in 'delta'; choose among: disease, usa, "),
        ("delta --seed -1 --datasets disease", "The seed must not be negative, but it is -1."),
        ("distortion --seeds 0", "--seeds must be at least 1 and at most 10000, not 0."),
    ],
)
def test_bad_input_is_one_sentence(cli, tmp_path, words, sentence):
    result = cli("paper", "run", *words.split())
    assert result.code == 2
    assert result.error.startswith(sentence)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_says_how_to_go_on(cli, monkeypatch):
    def interrupted(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hyperboloid.paper.figures.run_figure", interrupted)
    result = cli("paper", "run", "aggregation")
    assert result.code == 130
    assert result.err == "Interrupted; the same command goes on where it stopped.\n"
