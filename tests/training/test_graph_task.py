"""Regression on whole graphs: the error, batches, run folders, resuming, prediction."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from molecules import molecule_set, random_molecules
from pyarrow import parquet
from torch_geometric.data import Data

import hyperboloid
from hyperboloid import InputError
from hyperboloid.graphs import load_molecules
from hyperboloid.nn.registry import GRAPH_MODELS, MODELS, base_name, check_task
from hyperboloid.training.batch_loop import BatchTraining
from hyperboloid.training.checkpoint import load_checkpoint, save_checkpoint
from hyperboloid.training.graph_task import GraphTask
from hyperboloid.training.metrics import regression_metrics
from hyperboloid.training.predict_molecules import predict_smiles
from hyperboloid.training.settings import Settings, default_settings, taken_settings

SETTINGS = Settings(dim=8, layers=2, lr=0.01, epochs=4, batch_size=16, train_beta=False)


def learnable(count=80, targets=1):
    """The number of atoms of each kind, which is easy to learn."""
    molecules = random_molecules(count)
    y = np.array([[atoms.count(k) * 10.0**k for k in range(targets)] for atoms, _ in molecules])
    return molecule_set(molecules, targets=y)


def task_of(molecules=None, **settings):
    given = {**vars(SETTINGS), **settings}
    return GraphTask(molecules or learnable(), Settings(**given), 0, torch.float64, "cpu")


# ---- the error


def test_metrics_by_hand():
    found = regression_metrics(np.array([1.0, 2.0, 5.0]), np.array([1.0, 4.0, 4.0]))
    assert found["mae"] == pytest.approx(1.0)
    assert found["rmse"] == pytest.approx(math.sqrt(5 / 3))
    assert found["r2"] == pytest.approx(1 - 5 / 6)
    assert regression_metrics(np.ones(3), np.ones(3))["r2"] == 0


def test_the_score_is_the_negative_error_in_the_targets_own_units():
    task = task_of()
    training = BatchTraining("hgnn_l", task, task.settings, 0)
    chosen = task.split.val
    score = training.score("val")
    predicted = task.predict(training.encoder, chosen).numpy()
    error = predicted - task.molecules.targets[chosen]
    assert task.shown(score.metric) == pytest.approx(np.abs(error).mean())
    assert score.metric < 0


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_validation_loss_is_the_training_loss_of_other_molecules(loss):
    """In the same units, so that both can be drawn in one picture."""
    task = task_of(loss=loss)
    training = BatchTraining("hgnn_l", task, task.settings, 0)
    task.split = dataclasses.replace(task.split, val=task.split.train)
    with torch.no_grad():
        of_batches = [float(task.loss(training.encoder(b), y)) for b, y in task.epoch(training.encoder, 0, 1)]
    assert -training.score("val").negative_loss == pytest.approx(np.mean(of_batches))


def test_several_targets_count_alike_whatever_their_scale():
    task = task_of(learnable(targets=3))
    training = BatchTraining("ggnn", task, task.settings, 0)
    report = task.report(training.encoder, "test")
    std = task.molecules.targets[task.split.train].std(0)
    expected = np.mean([one["mae"] / s for one, s in zip(report.values(), std, strict=True)])
    assert -training.score("test").metric == pytest.approx(expected)
    assert list(report) == ["y0", "y1", "y2"]


def test_a_target_that_never_changes_is_no_reason_for_nan():
    task = task_of(molecule_set(random_molecules(40), targets=np.full((40, 1), 7.0)))
    training = BatchTraining("hgnn_h", task, task.settings, 0)
    training.step()
    assert math.isfinite(training.best.metric)


# ---- batches


def test_an_epoch_sees_every_training_molecule_once_in_an_order_that_seed_and_epoch_fix():
    task = task_of()
    model = task.build("hgnn_l", SETTINGS)

    def targets(seed, epoch):
        return [y.flatten().tolist() for _, y in task.epoch(model, seed, epoch)]

    first = targets(0, 1)
    assert len(first) == task.steps == 4
    assert {len(batch) for batch in first} == {16}
    everything = sorted(value for batch in first for value in batch)
    y = task.molecules.targets[task.split.train, 0]
    assert everything == pytest.approx(sorted((y - y.mean()) / y.std()))
    assert targets(0, 1) == first
    assert targets(0, 2) != first
    assert targets(1, 1) != first


@pytest.mark.parametrize("model", GRAPH_MODELS)
def test_every_model_learns_to_count_atoms(model):
    task = task_of(learnable(120), epochs=25, lr=0.01)
    training = BatchTraining(model, task, task.settings, 0)
    at_start = -training.score("val").metric
    while not training.done:
        training.step()
    assert -training.best.metric < at_start / 2


def test_the_learning_rate_falls_to_zero_along_a_cosine():
    task = task_of(epochs=2)
    training = BatchTraining("ggnn", task, task.settings, 0)
    training.epoch = 1
    assert training._factor(0) == 1
    training.epoch = 2
    assert training._factor(0) == pytest.approx(0.5)
    assert 0 < training._factor(3) < 0.1
    constant = BatchTraining("ggnn", task, Settings(**{**vars(SETTINGS), "schedule": "constant"}), 0)
    assert constant._factor(3) == 1


def test_a_gradient_is_cut_to_the_length_asked_for():
    task = task_of(clip=1e-6, schedule="constant", epochs=1)
    training = BatchTraining("ggnn", task, task.settings, 0)
    training.step()
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in training.encoder.parameters()))
    assert norm == pytest.approx(1e-6, rel=1e-3)


def test_a_loss_that_is_not_finite_is_reported():
    task = task_of()
    training = BatchTraining("hgnn_l", task, task.settings, 0)
    with torch.no_grad():
        training.encoder.embedding.weight[0] = torch.nan
    with pytest.raises(hyperboloid.TrainingError, match=r"Epoch 1: parameter embedding\.weight is not finite"):
        training.step()


def test_resumed_training_is_the_same_to_the_last_bit(tmp_path):
    straight, halted, resumed = (BatchTraining("hgnn_l", task_of(), SETTINGS, 3) for _ in range(3))
    for _ in range(4):
        straight.step()
    for _ in range(2):
        halted.step()
    save_checkpoint(tmp_path / "c", halted)
    load_checkpoint(tmp_path / "c", resumed)
    lines = [resumed.step() for _ in range(2)]
    assert lines[-1]["epoch"] == 4
    for one, other in zip(straight.encoder.parameters(), resumed.encoder.parameters(), strict=True):
        assert torch.equal(one, other)
    assert straight.best == resumed.best


# ---- run folders


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("molecules")
    smiles = ["C" * n + tail for n in range(1, 16) for tail in ("", "O", "N", "Cl")]
    (folder / "own.csv").write_text("smiles,y\n" + "\n".join(f"{s},{len(s)}" for s in smiles) + "\n")
    hyperboloid.fit(
        folder / "own.csv", task="graph", model="hgnn_l", target=["y", "logp"], dim=8, epochs=3, seeds=2,
        out=folder / "run",
    )  # fmt: skip
    return hyperboloid.load(folder / "run")


def test_a_run_folder_says_everything_again(run):
    summary = run.summary
    assert summary["metric"] == "mae"
    errors = [one.summary["targets"]["test"]["logp"]["rmse"] for one in run.runs]
    assert summary["targets"]["logp"]["rmse_mean"] == pytest.approx(np.mean(errors))
    assert summary["targets"]["logp"]["rmse_std"] == pytest.approx(np.std(errors, ddof=1))
    assert run.best is min(run.runs, key=lambda one: one.summary["val"])
    for one in run.runs:
        again = one.evaluate()
        assert again["test"] == pytest.approx(one.summary["test"], rel=1e-5)
        assert again["targets"]["test"]["y"]["mae"] == pytest.approx(
            one.summary["targets"]["test"]["y"]["mae"], rel=1e-5
        )
        lines = [json.loads(line) for line in (one.folder / "metrics.jsonl").read_text().splitlines()]
        assert min(line["val_mae"] for line in lines) == pytest.approx(one.summary["val"])


def test_predictions_are_kept_beside_the_truth(run):
    table = parquet.read_table(run.best.folder / "predictions.parquet")
    part = np.array(table["part"].to_pylist())
    error = np.abs(table["y"].to_numpy() - table["y_predicted"].to_numpy())[part == "test"]
    assert error.mean() == pytest.approx(run.best.summary["targets"]["test"]["y"]["mae"], rel=1e-6)


def test_new_molecules_get_the_predictions_that_known_ones_had(run, tmp_path):
    table = parquet.read_table(run.best.folder / "predictions.parquet").to_pylist()
    smiles = [line.split(",")[0] for line in (run.folder.parent / "own.csv").read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(["S", *(smiles[row["line"] - 1] for row in table), "[SiH4]", "?", ""]))
    found = predict_smiles(run.best, tmp_path / "new.csv", "S")
    for row, values in zip(table, found.values, strict=False):
        assert values == pytest.approx([row["y_predicted"], row["logp_predicted"]], rel=1e-4, abs=1e-4)
    assert found.problems == {
        len(table) + 2: "the model was not trained on atoms like Si4(0)",
        len(table) + 3: "'?' is not a SMILES that RDKit can read",
    }
    assert np.isnan(found.values[-2:]).all()
    assert not np.isnan(found.values[:-2]).any()


def test_atoms_that_only_the_test_part_has_were_not_trained_on(tmp_path):
    """Known to the file, never seen in training: no prediction."""
    path = tmp_path / "own.csv"
    path.write_text("smiles,y\n" + "\n".join(f"{'C' * (n % 7 + 1)},{n}" for n in range(40)) + "\n[SiH4],1\n")
    made = load_molecules(path, targets=["y"])
    seed = next(s for s in range(20) if 40 not in GraphTask(made, SETTINGS, s, torch.float32, "cpu").split.train)
    with pytest.warns(UserWarning, match="left out with kinds of atoms unseen in training: 1"):
        fitted = hyperboloid.fit(
            path, task="graph", model="ggnn", target="y", dim=4, epochs=1, split=seed, out=tmp_path / "run"
        )
    assert "unseen in training: 1" in fitted.runs[0].summary["split_name"]
    (tmp_path / "new.csv").write_text("smiles\n[SiH4]\nCC\n")
    assert list(predict_smiles(fitted.best, tmp_path / "new.csv").problems) == [2]


def test_pyg_objects_train_and_know_nothing_of_smiles(tmp_path):
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [Data(x=torch.randn(3, 2), edge_index=edges, y=torch.tensor([float(k)])) for k in range(20)]
    fitted = hyperboloid.fit(graphs, task="graph", model="mpnn", dim=4, epochs=1, out=tmp_path / "run")
    assert math.isfinite(fitted.summary["test_mean"])
    (tmp_path / "new.csv").write_text("smiles\nCC\n")
    with pytest.raises(InputError, match="was not trained on molecules: it knows nothing of SMILES"):
        predict_smiles(fitted.best, tmp_path / "new.csv")
    with pytest.raises(InputError, match="embeds no nodes: evaluate"):
        fitted.best.encode()


def test_rows_that_are_no_molecules_are_told_and_kept(tmp_path):
    """From Python by a warning, before anything is trained."""
    (tmp_path / "own.csv").write_text("smiles,y\nC1CC,0\n" + "\n".join(f"{'C' * n},{n}" for n in range(1, 20)) + "\n")
    with pytest.warns(UserWarning, match=r"Line 2 skipped: 'C1CC' is no[\s\S]*1 of 20 rows skipped, 19 molecules read"):
        fitted = hyperboloid.fit(tmp_path / "own.csv", task="graph", target="y", dim=4, epochs=1, out=tmp_path / "run")
    assert fitted.config.model == "hgnn_l"  # by default
    assert (tmp_path / "run" / "skipped.csv").read_text().splitlines()[1].startswith("2,'C1CC' is not")


def test_a_run_on_molecules_has_no_graph(run):
    with pytest.raises(InputError, match="was trained on many molecules, not on the nodes of one graph"):
        _ = run.best.graph
    with pytest.raises(InputError, match="was trained on one graph"):
        _ = hyperboloid.fit("karate", epochs=1, dim=2, out=run.folder.parent / "karate").molecules


# ---- three axes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "lgcn"}, "lgcn embeds the nodes of one graph: for --task graph choose one of hgnn_l"),
        ({"model": "nosuch"}, "no model 'nosuch'; choose one of: lgcn, .*ggnn"),
        ({"model": "hgnn_l", "task": "link"}, "hgnn_l predicts numbers for whole graphs: give --task graph"),
        ({"model": "hgnn_l", "features": "f.csv"}, "features goes with one graph"),
        ({"model": "hgnn_l", "dropout": 0.5}, "hgnn_l has no use for the setting 'dropout'"),
        ({"model": "hgnn_l", "distance": "lorentz"}, "hgnn_l has no use for the setting 'distance'"),
        ({"model": "hgnn_l", "geometry": "ball"}, "geometry is \"lorentz\" in model 'hgnn_l'"),
        ({"model": "hgnn_l", "masks": "scaffold"}, "came without SMILES"),
        ({"model": "hgnn_l", "masks": "own"}, "no split 'own'"),
        ({"model": "hgnn_l", "batch_size": 0}, "batch_size must be at least 1"),
        ({"model": "lgcn", "task": "colour"}, "no task 'colour'; choose one of: link, node, graph"),
    ],
)
def test_what_does_not_go_together_is_refused(given, message, tmp_path):
    with pytest.raises(InputError, match=message):
        hyperboloid.fit(learnable(), **{"task": "graph", "out": tmp_path / "run", **given})
    assert not (tmp_path / "run").exists()


def test_one_graph_takes_no_target_and_no_batches():
    with pytest.raises(InputError, match="go with molecules: give --task graph"):
        hyperboloid.fit("karate", target="y")
    with pytest.raises(InputError, match="lgcn has no use for the setting 'batch_size'"):
        hyperboloid.fit("karate", batch_size=3)
    with pytest.raises(InputError, match="'zinc' is a set of molecules, not one graph"):
        hyperboloid.fit("zinc")


def test_the_two_registries_share_no_name():
    assert not MODELS.keys() & GRAPH_MODELS.keys()
    assert base_name("hgnn_p") == "hgnn_l"
    for name in GRAPH_MODELS:
        check_task(name, "graph")
        settings = default_settings(name, "graph", "zinc")
        assert (settings.dim, settings.layers, settings.train_beta) == (256, 4, False)
        assert "batch_size" in taken_settings(name)
