"""``attention``."""

import shutil
import xml.etree.ElementTree as ElementTree

import hyperboloid


def test_a_node_and_the_graph(cli, node_run, tmp_path):
    result = cli("attention", node_run, "--node", 5, "--out", "a.png", "--json")
    assert result.code == 0, result.err
    graph = hyperboloid.load(node_run).graph
    others = graph.edge_index[1][graph.edge_index[0] == 5].tolist()
    rows = result.json["attends_to"]
    assert [row["node"] for row in rows] == ["5", *map(str, others)]
    assert {row["label"] for row in rows} <= {"Mr. Hi", "Officer"}
    for layer in range(2):
        assert abs(sum(row["weights"][layer] for row in rows) - 1) < 1e-6
    assert [layer["layer"] for layer in result.json["layers"]] == [1, 2]
    assert "5 (itself)" in result.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_without_a_node_and_as_svg(cli, link_run, tmp_path):
    result = cli("attention", link_run, "--out", "a.svg", "--json")
    assert result.code == 0, result.err
    assert result.json["attends_to"] == []
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_what_is_refused(cli, node_run, tmp_path):
    for words, sentence in (
        (("--node", "99"), "Graph 'karate' has no node '99'; its 34 nodes are 0 … 33."),
        (("--node", "5 "), "has no node '5 '"),
        (("--out", "a.pdf"), "must be a .png or .svg file"),
        (("--out", "nowhere/a.png"), "There is no folder nowhere"),
    ):
        result = cli("attention", node_run, *words)
        assert result.code == 2
        assert sentence in result.error
    assert not list(tmp_path.glob("*.png"))
    assert cli("train", "karate", "--model", "gcn", "--dim", 4, "--epochs", 1, "--out", "gcn").code == 0
    plain = cli("attention", "gcn")
    assert plain.code == 2
    assert "without attention" in plain.error


def test_a_run_folder_with_another_graph(cli, node_run, tmp_path):
    assert cli("train", "disease", "--epochs", 1, "--dim", 4, "--out", "other").code == 0
    shutil.copytree(node_run, tmp_path / "mixed")
    shutil.copy(tmp_path / "other" / "graph.safetensors", tmp_path / "mixed" / "graph.safetensors")
    result = cli("attention", "mixed", "--node", 5)
    assert result.code == 2
    assert "is not the graph of this run" in result.error
