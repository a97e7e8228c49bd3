"""The training that a GPU records is that of a CPU; without a GPU it runs unrecorded, which tests its program."""

import dataclasses

import pytest
import torch

from hyperboloid.errors import TrainingError
from hyperboloid.graphs.generators import disease
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.checkpoint import load_checkpoint, save_checkpoint
from hyperboloid.training.loop import Training, start_training
from hyperboloid.training.recorded import RecordedTraining
from hyperboloid.training.recording import WARMING
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import get_task

DEVICE, DTYPE, TOLERANCE = ("cuda", torch.float32, 1e-3) if torch.cuda.is_available() else ("cpu", torch.float64, 1e-9)
EPOCHS = WARMING + 4  # of which three are played
SETTINGS = Settings(dim=5, dropout=0.2, drop_connect=0.1, weight_decay=1e-3, scaling="none")
INDUCTIVE = [name for name, line in MODELS.items() if line.load().inductive]


def make(kind, model="lgcn", task="link", device=DEVICE, graph=None):
    graph = disease(num_nodes=120, seed=1) if graph is None else graph
    return kind(model, get_task(task)(graph, SETTINGS, 0, DTYPE, device), SETTINGS, 3)


@pytest.mark.parametrize("task", ["link", "node"])
@pytest.mark.parametrize("model", INDUCTIVE)
def test_every_epoch_is_that_of_the_plain_training(model, task):
    recorded, plain = make(RecordedTraining, model, task), make(Training, model, task, "cpu")
    for _ in range(EPOCHS):
        ours, theirs = recorded.step(), plain.step()
        assert ours.keys() == theirs.keys()
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=TOLERANCE)
        assert ours["val_loss"] == pytest.approx(theirs["val_loss"], rel=TOLERANCE)
        assert ours["beta"] == pytest.approx(theirs["beta"], rel=TOLERANCE)
    assert recorded.score("val").negative_loss == pytest.approx(-ours["val_loss"], rel=1e-6)


def test_it_goes_on_where_a_checkpoint_left_it(tmp_path):
    whole, begun, resumed = (make(RecordedTraining) for _ in range(3))
    expected = [whole.step()["loss"] for _ in range(2 * EPOCHS)][EPOCHS:]
    for _ in range(EPOCHS):
        begun.step()
    save_checkpoint(tmp_path / "checkpoint", begun)
    load_checkpoint(tmp_path / "checkpoint", resumed)
    assert [resumed.step()["loss"] for _ in range(EPOCHS)] == pytest.approx(expected, rel=1e-5)
    assert resumed.epoch == whole.epoch


def test_a_gradient_that_is_not_finite_is_told_and_moves_nothing():
    graph = disease(num_nodes=120, seed=1)
    training = make(RecordedTraining, graph=dataclasses.replace(graph, x=graph.x * 1e38))
    training.task.x = training.task.x * 1e300  # for double precision, whose numbers end there
    before = [p.clone() for p in training.encoder.parameters()]
    with pytest.raises(TrainingError, match=r"Epoch 1: the output of layer convs\.0\.lin \(TangentLinear\)"):
        training.step()
    assert all(torch.equal(p, q) for p, q in zip(training.encoder.parameters(), before, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_records_graphs_in_float32_only():
    kinds = [type(make(start_training)), type(make(start_training, "poincare_emb")), type(make(start_training, "gcn"))]
    assert kinds[0] is kinds[2] is RecordedTraining is not kinds[1]
