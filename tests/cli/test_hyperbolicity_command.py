"""``hyperboloid hyperbolicity``."""

import xml.etree.ElementTree as ElementTree

import pytest

KEYS = ["nodes", "delta_avg", "delta_avg_ci", "delta_worst", "delta_worst_exact", "seconds"]


def ring(n):
    return [f"{i},{(i + 1) % n}" for i in range(n)]


def test_a_user_s_file(cli, tmp_path):
    (tmp_path / "ring.csv").write_text("\n".join(ring(12)))
    result = cli("hyperbolicity", "ring.csv", "--out", "ring.svg", "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    found = result.json
    assert set(KEYS) <= set(found)
    assert (found["nodes"], found["delta_worst"], found["delta_worst_exact"]) == (12, 3.0, True)
    assert found["delta_avg_ci"] == [found["delta_avg"]] * 2
    assert found["quadruples"] == sum(found["counts"]) == 495
    assert found["delta_relative"] == 1
    assert found["notes"] == []
    assert f"δ_avg   {found['delta_avg']:.4f}, 495 quadruples of 12 nodes\nδ_worst 3 (exact)\n" in result.out
    assert ElementTree.parse(tmp_path / "ring.svg").getroot().tag.endswith("svg")


def test_what_was_done_to_the_graph_is_said(cli, tmp_path):
    links = [*ring(130), "3,3", "1,0", "200,201", "201,202"]
    (tmp_path / "links.csv").write_text("\n".join(["source,target", *links]))
    result = cli("hyperbolicity", "links.csv", "--precision", "0.9", "--seed", 5, "--json")
    assert result.code == 0, result.err
    assert result.json["notes"] == [
        "The largest of 2 components is measured: 130 of 133 nodes.",
        "131 of 132 edges go one way in the source; here they go both ways.",
        "Self loops are left out; the source has 1.",
    ]
    assert result.out.startswith("\n".join(result.json["notes"]))
    low, high = result.json["delta_avg_ci"]
    assert low < result.json["delta_avg"] < high <= low + 1.8
    assert (result.json["delta_worst"], result.json["seed"]) == (32, 5)


def test_only_what_is_certain_comes_without_an_interval(cli, tmp_path):
    """A star's δ_avg is 0; with a ring of 4 beside it there are quadruples above 0, but a sample has none of them."""
    star = [f"0,{i}" for i in range(1, 3000)]
    for name, links, interval in (
        ("tree", star, ""),
        ("ring", [*star, "1,3000", "2,3000"], " ± 0.0000, 95 % confidence"),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(links))
        result = cli("hyperbolicity", f"{name}.csv")
        assert result.out.splitlines()[0].startswith(f"δ_avg   0.0000{interval}, "), result.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nosuch", "there is no data set 'nosuch'"),
        ("three.csv", "The largest component of graph 'three.csv' has 3 nodes: hyperbolicity is about four."),
        ("karate --precision 0", "The precision must be above 0 and at most 1, not 0.0."),
        ("karate --seed -1", "The seed must not be negative, but it is -1."),
        ("karate --out delta.pdf", "The picture must be a .png or .svg file, not 'delta.pdf'."),
        ("karate --out nowhere/delta.png", "There is no folder nowhere to write delta.png into."),
    ],
)
def test_bad_input_is_one_sentence(cli, tmp_path, words, sentence):
    (tmp_path / "three.csv").write_text("a,b\nb,c\nx,y")
    result = cli("hyperbolicity", *words.split())
    assert result.code == 2
    assert result.error.startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["three.csv"]
