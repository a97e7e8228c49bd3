"""``evaluate``, ``predict`` and ``plot``: all from the run folder alone."""

import csv
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import hyperboloid


def test_evaluate_scores_exactly_what_training_did(cli, tmp_path):
    words = ("karate", "--dim", 4, "--epochs", 8, "--seeds", 2, "--split", "0-1", "--out", "run", "--json")
    trained = cli("train", *words).json
    scored = cli("evaluate", "run", "--json")
    assert scored.code == 0, scored.err
    for key in ("val_mean", "val_std", "test_mean", "test_std", "metric", "dataset", "model"):
        assert scored.json[key] == trained[key]
    alone = cli("evaluate", "run/split-1-seed-0", "--json").json
    assert alone["test_mean"] == hyperboloid.load("run").runs[2].summary["test"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_evaluate_a_node_run(cli, dtype):
    words = ("karate", "--task", "node", "--epochs", 8, "--dtype", dtype, "--out", "run", "--json")
    trained = cli("train", *words).json
    assert cli("evaluate", "run", "--json").json["test_mean"] == trained["test_mean"]


def test_predict_links(cli, link_run, tmp_path):
    result = cli("predict", link_run, "--links", "--top", 7, "--out", "links.csv", "--json")
    assert result.code == 0, result.err
    found = result.json["predictions"]
    rows = list(csv.DictReader((tmp_path / "links.csv").read_text().splitlines()))
    assert len(found) == len(rows) == 7
    assert [list(row) for row in rows] == [["source", "target", "probability"]] * 7
    assert [float(row["probability"]) for row in rows] == [link["probability"] for link in found]
    assert cli("predict", link_run, "--top", 7, "--json").json["predictions"] == found  # what a link run is for


def test_predict_labels(cli, node_run, tmp_path):
    result = cli("predict", node_run, "--labels", "--top", 3, "--out", "labels.csv")
    assert result.code == 0, result.err
    assert len(result.out.splitlines()) == 1 + 3 + 1
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert [row["node"] for row in rows] == [str(i) for i in range(34)]
    assert {row["label"] for row in rows} <= {"Mr. Hi", "Officer"}
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)


@pytest.mark.parametrize("task", ["link", "node"])
def test_predict_on_another_graph(cli, own_graph, tmp_path, task):
    own_graph("mine")
    _, edges = own_graph("other", nodes=17, offset=2)
    files = [tmp_path / "mine" / f"{name}.csv" for name in ("edges", "features", "labels")]
    words = ("--features", files[1], "--labels", files[2], "--task", task, "--dim", 4, "--epochs", 5, "--out", "run")
    assert cli("train", files[0], *words).code == 0
    other = ("--graph", tmp_path / "other" / "edges.csv", "--features", tmp_path / "other" / "features.csv")
    result = cli("predict", "run", *other, "--top", 1000, "--json")
    assert result.code == 0, result.err
    found = result.json["predictions"]
    if task == "node":
        assert {row["node"] for row in found} == {f"other-{i}" for i in range(17)}
        assert {row["label"] for row in found} <= {"even", "odd"}
    else:
        pairs = {frozenset((row["source"], row["target"])) for row in found}
        assert len(pairs) == len(found) == 17 * 16 // 2 - len(edges)
        assert not pairs & edges


def test_predict_refuses_another_number_of_features(cli, own_graph, tmp_path):
    own_graph("mine")
    own_graph("other", features=5)
    files = [tmp_path / "mine" / f"{name}.csv" for name in ("edges", "features")]
    assert cli("train", files[0], "--features", files[1], "--epochs", 1, "--out", "run").code == 0
    edges = tmp_path / "other" / "edges.csv"
    wider = cli("predict", "run", "--graph", edges, "--features", tmp_path / "other" / "features.csv", "--out", "p.csv")
    assert wider.code == 2
    assert "trained on 3 features per node, but graph 'edges.csv' has 5" in wider.error
    none = cli("predict", "run", "--graph", edges, "--out", "p.csv")
    assert none.code == 2
    assert "but graph 'edges.csv' has 0" in none.error
    assert not (tmp_path / "p.csv").exists()


def test_all_that_is_needed_is_in_the_run_folder(cli, own_graph, tmp_path):
    own_graph("mine")
    files = [tmp_path / "mine" / f"{name}.csv" for name in ("edges", "features")]
    words = ("--features", files[1], "--weight", "trust", "--epochs", 3, "--dim", 4, "--json", "--out", "run")
    trained = cli("train", files[0], *words).json
    predicted = cli("predict", "run", "--json").json["predictions"]
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "run", tmp_path / "elsewhere" / "moved")
    shutil.rmtree(tmp_path / "mine")
    assert cli("evaluate", "elsewhere/moved", "--json").json["test_mean"] == trained["test_mean"]
    assert cli("predict", "elsewhere/moved", "--json").json["predictions"] == predicted
    assert cli("plot", "elsewhere/moved").code == 0
    assert (tmp_path / "elsewhere" / "moved" / "disk.png").stat().st_size > 1000


def test_plot_writes_png_and_svg(cli, node_run, tmp_path):
    assert cli("plot", node_run, "--out", "disk.png").code == 0
    assert (tmp_path / "disk.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert cli("plot", node_run, "--out", "disk.svg").code == 0
    assert ElementTree.parse(tmp_path / "disk.svg").getroot().tag.endswith("svg")


def test_a_run_trained_on_a_gpu_is_read_where_there_is_none(cli, link_run, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    shutil.copytree(link_run, tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    config.write_text(config.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    assert cli("evaluate", "run", "--json").json["test_mean"] == hyperboloid.load(link_run).summary["test_mean"]
