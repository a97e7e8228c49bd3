"""Molecules from the command line: train, evaluate, predict, plot, and what is refused."""

import csv

import pytest

OWN = [f"{'C' * n}{tail}" for n in range(1, 9) for tail in ("", "O", "N")]
TABLE = "\n".join(["SMILES,solubility", "C1CC,0", *(f"{s},{len(s)}" for s in OWN), "??,1"]) + "\n"


@pytest.fixture
def trained(cli, tmp_path):
    (tmp_path / "own.csv").write_text(TABLE)
    words = "train own.csv --task graph --target solubility,logp --dim 4 --epochs 2 --out run --json"
    return cli(*words.split())


def test_train_evaluate_plot_and_predict(trained, cli, tmp_path):
    assert trained.code == 0, trained.err
    assert trained.json["metric"] == "mae"
    assert "solubility: test MAE" in trained.out
    assert "%" not in trained.out  # an error has no per cent
    assert "the targets' mean in their standard deviations" in trained.out
    assert (trained.json["model"], trained.json["molecules"], trained.json["skipped"]) == ("hgnn_l", 24, 2)
    assert trained.json["targets"]["logp"].keys() >= {"mae_mean", "rmse_mean", "r2_mean"}
    assert "Line 2 skipped: 'C1CC' is not a SMILES that RDKit can read" in trained.err
    assert "2 of 26 rows skipped, 24 molecules read." in trained.err
    assert (tmp_path / "run" / "parity.png").stat().st_size > 1000

    evaluated = cli("evaluate", "run", "--json")
    assert evaluated.json["test_mean"] == pytest.approx(trained.json["test_mean"], rel=1e-5)
    assert "logp: test MAE" in evaluated.out

    assert cli("plot", "run", "--out", "p.svg").code == 0
    assert b"predicted" in (tmp_path / "p.svg").read_bytes()

    (tmp_path / "new.csv").write_text("smiles\nCCO\n[SiH4]\nCC.O\nC[\n")
    predicted = cli("predict", "run", "new.csv", "--out", "out.csv", "--json")
    assert predicted.code == 0, predicted.err
    assert "Line 3 left empty: the model was not trained on atoms like Si4(0)" in predicted.err
    assert "2 of 4 rows left empty." in predicted.err
    assert predicted.json["skipped"] == 2
    assert predicted.json["predictions"][1]["logp"] is None
    assert "2 predictions in out.csv" in predicted.out
    with open(tmp_path / "out.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["line"] for row in rows] == ["2", "3", "4", "5"]
    assert float(rows[0]["solubility"]) != float(rows[2]["solubility"])
    assert (rows[1]["logp"], rows[3]["logp"]) == ("", "")
    assert rows[3]["problem"] == "'C[' is not a SMILES that RDKit can read"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train own.csv --task graph --model hgnn_l", "name what to predict by --target"),
        ("train own.csv --task graph --model hgnn_l --target nosuch", "its columns are: SMILES, solubility"),
        ("train own.csv --task graph --model lgcn --target logp", "lgcn embeds the nodes of one graph"),
        ("train own.csv --task graph --target logp --set masks=scaffold", "too few scaffolds for a training"),
        ("train own.csv --model hgnn_l", "hgnn_l predicts numbers for whole graphs"),
        ("train own.csv --target logp", "give --task graph"),
        ("train own.csv --task graph --model ggnn --target logp --weight w", "weight goes with one graph"),
        ("train own.csv --task graph --model ggnn --target logp --set dropout=0.1", "no use for the setting 'dropout'"),
        ("train empty.csv --task graph --model ggnn --target logp", "empty.csv is empty"),
        ("train missing.csv --task graph --model ggnn --target logp", "no file missing.csv"),
        ("train two.csv --task graph --model ggnn --target logp", "too few molecules for a training"),
        ("train zinc --task link", "'zinc' is a set of molecules"),
        ("hyperbolicity zinc", "'zinc' is a set of molecules"),
        ("sweep own.csv --task graph", "no task 'graph'"),
        ("sweep karate --models hgnn_l", "hgnn_l predicts numbers for whole graphs"),
        ("paper run zinc --models lgcn", "no model 'lgcn' in 'zinc'; choose among: hgnn_l"),
        ("paper run zinc --properties mass", "no property 'mass' in 'zinc'; choose among: logp, qed, sas"),
        ("paper run zinc --molecules 3", "molecules must be at least 10"),
        ("paper run zinc --lrs 0", "Learning rates must be positive"),
        ("paper run zinc --lrs fast", "--lrs must be numbers"),
        ("paper run zinc --dims 8,16", "--dims must be one width"),
        ("paper run zinc --tries 5", "--tries means nothing for 'zinc'"),
        ("paper run link --molecules 5", "--molecules means nothing for 'link'"),
    ],
)
def test_what_is_refused(cli, tmp_path, words, message):
    (tmp_path / "own.csv").write_text(TABLE)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "two.csv").write_text("smiles\nCC\nC\n")
    before = set(tmp_path.iterdir())
    result = cli(*words.split())
    assert result.code == 2, result
    assert message in result.error
    assert set(tmp_path.iterdir()) == before


def test_predict_says_what_it_needs(trained, cli, link_run, tmp_path):
    assert "name a table of SMILES behind it" in cli("predict", "run").error
    (tmp_path / "new.csv").write_text("a,b\nCC,1\n")
    assert (
        "no column called smiles; name it by --smiles; its columns are: a, b" in cli("predict", "run", "new.csv").error
    )
    assert cli("predict", "run", "new.csv", "--smiles", "a").code == 0
    assert "go with runs on one graph" in cli("predict", "run", "new.csv", "--links").error
    assert "trained for task 'link', not on molecules" in cli("predict", link_run, "new.csv").error
    assert "--smiles goes with a table of new molecules" in cli("predict", link_run, "--smiles", "a").error


def test_a_run_on_molecules_has_a_report_but_no_distortion(trained, cli, tmp_path):
    assert cli("report", "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "test RMSE" in page
    assert "predicted against true values" in page
    assert "<td>rows that were none</td><td>2</td>" in page
    assert "trained on many molecules" in cli("distortion", "run").error
