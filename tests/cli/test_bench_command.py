"""`hyperboloid bench` at tiny sizes: every benchmark runs, its numbers are kept, the page is written."""

import json

import pytest

PARTS = ("layers", "growth", "geometry", "epochs")


def test_everything_at_tiny_sizes(cli, tmp_path):
    result = cli("bench", "--quick", "--commit", "abc1234", "--threads", 1, "--json")
    assert result.code == 0, result.err
    told = result.json
    assert set(told["measured"]) == set(PARTS)
    assert told["skipped"] == {}
    lines = [json.loads(text) for text in (tmp_path / told["results"]).read_text().splitlines()]
    assert {line["part"] for line in lines} == set(PARTS)
    assert {line["commit"] for line in lines} == {"abc1234"}
    assert {line["device"] for line in lines} == {"cpu"}
    assert all(line["machine"].startswith("1 CPU core, ") for line in lines)
    layers = {
        (line["name"], line["case"]["memory"])
        for line in lines
        if line["quantity"] == "forward + backward" and line["part"] == "layers"
    }
    assert layers == {
        (name, memory) for name in ("LGCNConv", "GATConv", "GCNConv") for memory in ("handed back", "kept")
    }
    epochs = {line["name"] for line in lines if line["quantity"] == "epoch"}
    assert epochs == {"lgcn", "gat", "gcn", "GATConv, dense features"}
    for part in PARTS:
        assert f"{part}: " in result.err
    page = (tmp_path / told["page"]).read_text()
    assert "| karate | 4 | GATConv |" in page
    assert (tmp_path / "runs" / "quick" / "figures" / "growth.png").exists()

    # the page follows from the numbers alone
    (tmp_path / told["page"]).unlink()
    assert cli("bench", "--quick", "--page-only", "--json").json["measured"] == {}
    assert (tmp_path / told["page"]).read_text() == page

    again = cli("bench", "growth", "--quick", "--commit", "def5678", "--json")
    assert again.json["measured"] == {"growth": 3}
    newer = [json.loads(text) for text in (tmp_path / told["results"]).read_text().splitlines()]
    assert len(newer) == len(lines)
    assert {line["commit"] for line in newer if line["part"] == "growth"} == {"def5678"}
    assert {line["commit"] for line in newer if line["part"] != "growth"} == {"abc1234"}


def test_a_graph_that_is_not_there_skips_its_benchmark_only(cli, tmp_path, monkeypatch):
    from hyperboloid.bench import plan

    monkeypatch.setattr(plan, "QUICK", plan.Plan(growth=(1_000,), epoch_graphs=("nowhere",), seconds=0.0))
    result = cli("bench", "epochs", "growth", "--quick", "--json")
    assert result.code == 0
    assert result.json["measured"] == {"growth": 1}
    assert "nowhere" in result.json["skipped"]["epochs"]
    assert "epochs: skipped." in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["speed"], "There is no benchmark 'speed'; choose from: layers, gather, growth, geometry, epochs."),
        (["gather"], "'gather' is about a GPU's memory: it needs --device cuda."),
        (["--device", "tpu"], "--device must be cpu or cuda, not 'tpu'."),
        (["growth", "--page-only"], "--page-only measures nothing: leave out growth."),
        (["--threads", "0"], "--threads must be at least 1, not 0."),
    ],
)
def test_bad_arguments_are_one_sentence(cli, words, message, tmp_path):
    result = cli("bench", *words)
    assert result.code == 2
    assert result.error == message
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_keeps_what_was_measured(cli, monkeypatch, tmp_path):
    from hyperboloid.bench import growth

    sizes = []

    def interrupted(nodes, edges, device):
        sizes.append(edges)
        if len(sizes) == 2:
            raise KeyboardInterrupt
        return real(nodes, edges, device)

    real = growth.power_law_graph
    monkeypatch.setattr(growth, "power_law_graph", interrupted)
    result = cli("bench", "growth", "--quick")
    assert result.code == 130
    assert "Interrupted; what was measured before is in runs/quick/bench.jsonl." in result.err
    (line,) = (tmp_path / "runs" / "quick" / "bench.jsonl").read_text().splitlines()
    assert json.loads(line)["case"]["edges"] == sizes[0]
