"""``hyperboloid paper run link|node|ablation`` and ``paper report``."""

import json
import re

import pytest

from hyperboloid.cli.paper_table import show
from hyperboloid.paper import report as report_module
from hyperboloid.paper.cell_runs import Session
from hyperboloid.paper.cells import cells
from hyperboloid.paper.table import PaperTable
from hyperboloid.scores import percent

TINY = ("--tries", 2, "--epochs", 3, "--seeds", 2)
DISEASE = ("paper", "run", "node", "--datasets", "disease", "--dims", 8, "--models", "gcn")


def test_run_measures_shows_and_resumes(cli, tmp_path):
    result = cli(*DISEASE, *TINY, "--commit", "abc", "--json")
    assert result.code == 0, result.err
    assert result.json["experiment"] == "node"
    assert (result.json["measured"], result.json["left"], result.json["skipped"]) == (1, 0, {})
    (line,) = (tmp_path / "results" / "node.jsonl").read_text().splitlines()
    assert json.loads(line) == result.json["lines"][0]
    assert json.loads(line)["commit"] == "abc"
    assert result.err.startswith("1 of 1: node disease d=8 gcn: ")
    assert "(paper, not comparable, 75.1 ± 1.1)" in result.err
    assert "comparable" in result.out  # nor is there a difference
    assert (tmp_path / "runs" / "paper").is_dir()

    again = cli(*DISEASE, *TINY, "--json")
    assert (again.code, again.err, again.json["measured"]) == (0, "", 0)
    assert again.json["lines"] == result.json["lines"]
    assert (tmp_path / "results" / "node.jsonl").read_text() == line + "\n"


def test_one_command_goes_on_with_all_tables(cli, tmp_path, data_dir):
    words = ("paper", "run", "tables", "--datasets", "disease", "--dims", 64, "--models", "gcn,hgcn_c", *TINY)
    result = cli(*words, "--data-dir", data_dir, "--commit", "abc", "--json")
    assert result.code == 0, result.err
    assert (result.json["experiment"], result.json["measured"]) == ("tables", 4)
    made = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "results").iterdir()}
    assert made == {"link.jsonl": 1, "node.jsonl": 1, "ablation.jsonl": 2}


def test_out_of_time_the_rest_is_left(cli, tmp_path):
    result = cli(*DISEASE, "--epochs", 100_000, "--budget", "0.1s", "--json")
    assert result.code == 0
    assert (result.json["measured"], result.json["left"], result.json["lines"]) == (0, 1, [])
    assert "There was no time for 1: the same command goes on with them." in " ".join(result.out.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("link --datasets karate", "There is no data set 'karate' in 'link'; choose among: disease, usa, cora, "),
        ("link --models mlp", "There is no model 'mlp' in 'link'; choose among: lgcn, gcn, "),
        ("node --dims 7", "There is no dimension '7' in 'node'; choose among: 8, 16, 32, 64."),
        ("node --dims x", "--dims must be a number, a list like 0,3 or a range like 0-4, not 'x'."),
        ("node --splits x", "--splits must be a number, "),
        ("node --datasets ,", "Name at least one data set of 'node': "),
        ("ablation --dims 8", "There is no dimension '8' in 'ablation'; choose among: 64."),
        ("link --budget soon", "--budget must be a time like 90s, 10m or 2h, not 'soon'."),
        ("link --tries 0", "tries must be at least 1, not 0."),
        ("link --seeds 20000", "--seeds must be at least 1 and at most 10000, not 20000."),
        (
            "link --datasets cora --results taken",
            "Nothing can be kept in taken, for taken is no folder: choose another folder.",
        ),
        (
            "link --datasets cora --work taken",
            "Nothing can be kept in taken, for taken is no folder: choose another folder.",
        ),
        ("zinc --results taken/below", "Nothing can be kept in taken/below, for taken is no folder: "),
        ("zinc --models ,", "Name at least one model of 'zinc': "),
        ("link --workers 0", "There must be at least 1 worker, not 0."),
        ("delta --workers 2", "--workers means nothing for 'delta'; it belongs to: link, node, ablation, tables."),
        ("link --dtype half", "dtype must be one of float32, float64, not 'half'."),
        ("link --masks authors", "Only the nodes of amazon come with the authors' masks"),
        ("link --seed 1", "--seed means nothing for 'link'; it belongs to: operations, centroids"),
        (
            "centroids --data-dir x",
            "--data-dir means nothing for 'centroids'; it belongs to: link, node, ablation, tables, zinc",
        ),
    ],
)
def test_bad_input_is_one_sentence(cli, tmp_path, words, sentence):
    (tmp_path / "taken").touch()
    result = cli("paper", "run", *words.split())
    assert result.code == 2
    assert result.error.startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_help_tells_of_the_tables(cli):
    result = cli("paper", "run", "--help")
    for word in ("link", "node", "ablation", "--datasets", "--budget", "--results"):
        assert word in result.out


def test_report_writes_the_page(cli, tmp_path, monkeypatch):
    quick = PaperTable("x", "t", {"a": "a"}, [{"a": "ten"}])
    monkeypatch.setattr(report_module, "run_experiment", lambda name: quick)
    (tmp_path / "results").mkdir()
    result = cli("paper", "report", "--out", "page.md", "--json")
    assert result.code == 0, result.err
    assert result.out.startswith("0 of 456 cells measured; written: page.md")
    assert result.json["measured"] == 0
    assert (tmp_path / "page.md").read_text().startswith("# The paper's tables, measured again")
    assert (tmp_path / "figures" / "link.svg").exists()


def test_report_refuses_what_it_cannot_read(cli, tmp_path):
    assert cli("paper", "report").error.startswith("There is no folder docs ")
    assert cli("paper", "report", "--out", "page.md").error.startswith("There is no folder results of measured")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link.jsonl").write_text("nonsense\n{}\n")
    result = cli("paper", "report", "--out", "page.md")
    assert result.code == 2
    assert "link.jsonl, line 1 is not a measured cell" in result.error
    assert not (tmp_path / "page.md").exists()


def test_an_interrupt_says_how_to_go_on(cli, monkeypatch):
    def interrupted(*cells, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hyperboloid.paper.cell_runs.measure_cells", interrupted)
    result = cli(*DISEASE)
    assert result.code == 130
    assert result.err == "Interrupted; the same command goes on where it stopped.\n"


LONG = "lgcn_no_att_no_centroid"


@pytest.mark.parametrize("split", [0, "0-9"])
def test_the_table_of_the_ablation_fits_into_80_columns(capsys, monkeypatch, split):
    lines = []
    for cell in cells("ablation", models=["lgcn", LONG]):
        what = {name: getattr(cell, name) for name in ("dataset", "task", "model", "dim")}
        told = {name: getattr(cell, name) for name in ("paper_mean", "paper_std", "comparable")}
        lines.append(
            {**what, **told, "split": split, "test_mean": 0.5, "test_std": 0.0123, "runs": 10, "seconds": 1234}
        )
    monkeypatch.setenv("COLUMNS", "80")
    show(Session(lines=lines).table("ablation"))
    shown = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in shown)
    for line in lines:
        what = (line["dataset"], line["task"], line["model"], "64", str(split), r"50\.0 ± 1\.2")
        row = (*what, percent(line["paper_mean"], line["paper_std"]), r"(–|-\d+\.\d)", "1234")
        assert any(re.fullmatch(" +".join(row) + " *", text) for text in shown), (row, shown)


def test_no_word_of_a_table_is_broken_where_there_is_room_for_words(capsys, monkeypatch):
    headings = {"a": "attention on the same class, %", "b": "share", "c": "correlation of distances"}
    rows = [{"a": "84.5 ± 1.0", "b": "68.8 ± 0.3", "c": "disease_nc, layer 1"}]
    for columns in (80, 50, 42, 34):
        monkeypatch.setenv("COLUMNS", str(columns))
        show(PaperTable("x", "t", headings, rows))
        shown = capsys.readouterr().out
        assert {word for text in (*headings.values(), *rows[0].values()) for word in text.split()} <= set(shown.split())
        assert all(len(line) <= columns for line in shown.splitlines())
        assert columns < 42 or "84.5 ± 1.0" in shown
