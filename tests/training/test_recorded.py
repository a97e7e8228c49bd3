"""The training that a GPU records is that of a CPU; without a GPU it runs unrecorded, which tests its program."""

import dataclasses

import pytest
import torch

from hyperboloid.errors import TrainingError
from hyperboloid.graphs.generators import disease
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.checkpoint import load_checkpoint, save_checkpoint
from hyperboloid.training.loop import Training, can_be_batched, start_training
from hyperboloid.training.recorded import RecordedTraining
from hyperboloid.training.recording import WARMING
from hyperboloid.training.settings import Settings
from hyperboloid.training.tasks import get_task

DEVICE, DTYPE, TOLERANCE = ("cuda", torch.float32, 1e-3) if torch.cuda.is_available() else ("cpu", torch.float64, 1e-9)
EPOCHS = WARMING + 4  # of which three are played
SETTINGS = Settings(dim=5, dropout=0.2, drop_connect=0.1, weight_decay=1e-3, scaling="none")
RECORDED = [name for name in MODELS if can_be_batched(name, SETTINGS)]


def make(kind, model="lgcn", task="link", device=DEVICE, graph=None):
    graph = disease(num_nodes=120, seed=1) if graph is None else graph
    return kind(model, get_task(task)(graph, SETTINGS, 0, DTYPE, device), SETTINGS, 3)


@pytest.mark.parametrize("task", ["link", "node"])
@pytest.mark.parametrize("model", RECORDED)
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
    before = [p.detach().clone() for p in training.encoder.parameters()]
    with pytest.raises(TrainingError, match=r"Epoch 1: the output of layer convs\.0\.lin \(TangentLinear\)"):
        training.step()
    assert all(torch.equal(p, q) for p, q in zip(training.encoder.parameters(), before, strict=True))


def test_gradients_may_lie_in_any_order(data_dir):
    # those of the first layer on sparse features do
    from hyperboloid.graphs import load_graph

    training = make(RecordedTraining, graph=load_graph("cora", data_dir=data_dir))
    first = training.step()["loss"]
    assert [training.step()["loss"] for _ in range(EPOCHS)][-1] < first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("model", "recorded"), [("lgcn", True), ("gcn", True), ("lgcn_f", False), ("hat", True)])
def test_a_gpu_records_what_is_always_the_same(model, recorded):
    assert (type(make(start_training, model)) is RecordedTraining) == recorded
