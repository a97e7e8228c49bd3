"""Patience does not count while a model has not begun to learn."""

import dataclasses
import json
import math

import pytest
import torch

import hyperboloid
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.generators import disease
from hyperboloid.training.batch import Batch
from hyperboloid.training.checkpoint import load_checkpoint, save_checkpoint
from hyperboloid.training.loop import Training, start_training
from hyperboloid.training.many import train_many
from hyperboloid.training.patience import LONGEST_WAIT
from hyperboloid.training.settings import Settings, default_settings
from hyperboloid.training.tasks import LinkTask, NodeTask

PATIENCE = 10
SLOW = Settings(dim=8, lr=0.01, epochs=1000, patience=PATIENCE, scaling="none")


@pytest.fixture(scope="module")
def small():
    """An epidemic whose features are so small that all points start in one place."""
    graph = disease(num_nodes=150, seed=0)
    return dataclasses.replace(graph, x=graph.x * 0.03)


def to_the_end(training):
    """Validation scores and losses of all epochs."""
    found = []
    while not training.done:
        metrics = training.step()
        found.append((metrics["val_auc"], metrics["val_loss"]))
    return found


def test_the_plateau_is_the_loss_of_points_in_one_place(small):
    # logits are r = 2 wherever the squared distance is 0
    assert LinkTask.plateau == pytest.approx(math.log1p(math.exp(-2)) + math.log1p(math.exp(2)), abs=1e-6)
    task = LinkTask(small, SLOW, 0, torch.float32, "cpu")
    training = Training("lgcn", task, SLOW, 0)
    assert -training.score("val").negative_loss == pytest.approx(LinkTask.plateau, rel=1e-2)


def test_a_slow_model_is_waited_for(small):
    task = LinkTask(small, SLOW, 0, torch.float64, "cpu")
    training = Training("gcn", task, SLOW, 0)
    found = to_the_end(training)
    left = 1 + next(i for i, (_, loss) in enumerate(found) if abs(loss / LinkTask.plateau - 1) > 0.1)
    scores = [auc for auc, _ in found]
    best_before = 1 + scores.index(max(scores[: left - 1]))
    # with patience from the start it would have been over, at a score that is beaten later
    assert max(best_before, PATIENCE) + PATIENCE < left
    better = 1 + next(i for i, auc in enumerate(scores) if i + 1 >= left and auc > scores[best_before - 1])
    assert left <= training.learning_since == better < training.best_epoch
    assert training.epoch == training.best_epoch + PATIENCE

    (trial,) = train_many("gcn", lambda _: task, [(SLOW, 0)])
    assert (trial.outcome.best_epoch, trial.outcome.epochs) == (training.best_epoch, training.epoch)


def test_citeseer_is_learned_though_its_features_are_good_from_the_start(data_dir):
    """Its AUC is 0.87 at epoch 72, when nothing is learned, and falls for 130 epochs before it rises to 0.97."""
    settings = Settings(
        layers=1, lr=0.001, weight_decay=0.001, dropout=0.8, distance="lorentz", att_cap=1.0, epochs=400
    )
    training = Training(
        "lgcn", LinkTask(load_graph("citeseer", data_dir=data_dir), settings, 1, torch.float32, "cpu"), settings, 1
    )
    scores = [auc for auc, _ in to_the_end(training)]
    assert max(scores[100:200]) < max(scores[:100]) < 0.88
    assert training.epoch == 400
    assert training.best.metric > 0.92


def test_amazon_is_learned_though_its_first_points_are_good(data_dir):
    """GCN's AUC falls from 0.91 to 0.87 when the loss begins to, for longer than patience has, and rises to 0.94."""
    settings = Settings(dim=8, lr=0.01, dropout=0.1, normalization="rows", epochs=320)
    task = LinkTask(load_graph("amazon", data_dir=data_dir), settings, 0, torch.float32, "cpu")
    training = Training("gcn", task, settings, 0)
    found = to_the_end(training)
    first = max(range(200), key=lambda i: found[i][0])
    assert first < 10
    assert min(loss for _, loss in found[100:200]) < 0.9 * LinkTask.plateau
    assert training.epoch == 320
    assert training.best.metric > found[first][0] + 0.01


def test_of_a_batch_each_is_waited_for(small):
    task = LinkTask(small, SLOW, 0, torch.float64, "cpu")
    runs = [(dataclasses.replace(SLOW, lr=lr), 0) for lr in (0.0, 0.01, 0.05)]
    batch = Batch("gcn", task, runs)
    while not all(outcome.done for outcome in batch.outcomes):
        batch.step()
    epochs = [outcome.epochs for outcome in batch.outcomes]
    for (settings, seed), ours in zip(runs, batch.outcomes, strict=True):
        alone = Training("gcn", task, settings, seed)
        to_the_end(alone)
        assert (ours.best_epoch, ours.epochs) == (alone.best_epoch, alone.epoch)
    assert epochs[0] == (LONGEST_WAIT + 1) * PATIENCE  # it never learns
    assert epochs[1] > epochs[2]


def test_classes_are_waited_for():
    settings = dataclasses.replace(SLOW, lr=0.0)
    task = NodeTask(load_graph("karate"), settings, 0, torch.float32, "cpu")
    assert task.plateau == pytest.approx(math.log(2))
    training = Training("gcn", task, settings, 0)
    assert -training.score("val").negative_loss == pytest.approx(task.plateau, rel=0.1)
    while not training.done:
        training.step()
    assert training.epoch == (LONGEST_WAIT + 1) * PATIENCE


def test_usa_is_learned_though_an_early_epoch_is_lucky(data_dir):
    """At epoch 7 its accuracy is better than at any other of the first 200, with all classes equally likely."""
    settings = Settings(dim=8, activation="elu", lr=0.008, weight_decay=0.005, dropout=0.6, epochs=500)
    task = NodeTask(load_graph("usa", data_dir=data_dir), settings, 0, torch.float32, "cpu")
    training = Training("lgcn", task, settings, 4)
    found = []
    while not training.done:
        metrics = training.step()
        found.append((metrics["val_accuracy"], metrics["val_loss"]))
    lucky = max(range(200), key=lambda i: found[i][0])
    assert lucky < 20
    assert found[lucky][1] == pytest.approx(task.plateau, rel=0.02)
    assert training.best_epoch > 200
    assert training.best.metric > found[lucky][0]


def test_patience_without_end_is_possible(small):
    settings = dataclasses.replace(SLOW, patience=10**9, epochs=3)
    (trial,) = train_many("gcn", lambda _: LinkTask(small, settings, 0, torch.float32, "cpu"), [(settings, 0)])
    assert (trial.outcome.epochs, trial.outcome.done) == (3, True)


def test_shallow_models_are_not_waited_for():
    settings = default_settings("poincare_emb", "link", "karate", lr=0.0, patience=3)
    task = LinkTask(load_graph("karate"), settings, 0, torch.float32, "cpu")
    training = start_training("poincare_emb", task, settings, 0)
    to_the_end(training)
    assert training.epoch == max(training.best_epoch, 3) + 3


def test_a_resumed_run_knows_since_when_it_learns(small, tmp_path):
    task = LinkTask(small, SLOW, 0, torch.float64, "cpu")
    whole, begun, resumed = (Training("gcn", task, SLOW, 0) for _ in range(3))
    to_the_end(whole)
    while begun.epoch <= begun.learning_since:
        begun.step()
    save_checkpoint(tmp_path / "checkpoint", begun)
    load_checkpoint(tmp_path / "checkpoint", resumed)
    assert resumed.learning_since == whole.learning_since
    to_the_end(resumed)
    assert (resumed.epoch, resumed.best_epoch) == (whole.epoch, whole.best_epoch)


@pytest.mark.parametrize("lr", [0.01, 0.0])
def test_stops_after_patience_and_keeps_the_best_epoch(tmp_path, lr):
    experiment = hyperboloid.fit("karate", task="link", epochs=500, patience=7, lr=lr, out=tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    run = experiment.best.summary
    assert all(abs(line["val_loss"] / LinkTask.plateau - 1) < 0.1 for line in lines) == (lr == 0)
    assert run["epochs"] == len(lines) == (42 if lr == 0 else max(run["best_epoch"], 7) + 7) < 500
    assert (run["best_epoch"] == 1) == (lr == 0)
    assert max(line["val_auc"] for line in lines) == lines[run["best_epoch"] - 1]["val_auc"] == run["val"]
    assert experiment.best.score("val").metric == run["val"]
    assert experiment.best.score("test").metric == run["test"]
