"""A model trained in a batch is the model trained alone."""

import dataclasses
import itertools
import math
from importlib.util import find_spec

import pytest
import torch
from sklearn.metrics import roc_auc_score

from hyperboloid import InputError, TrainingError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.generators import disease
from hyperboloid.kernels import use_backend
from hyperboloid.nn.registry import MODELS
from hyperboloid.training import group, memory
from hyperboloid.training.batch import Batch
from hyperboloid.training.loop import Training, can_be_batched
from hyperboloid.training.many import train_many
from hyperboloid.training.memory import batch_is_faster, capacity
from hyperboloid.training.metrics import roc_auc
from hyperboloid.training.one_by_one import OneByOne
from hyperboloid.training.settings import NORMALIZATION, Settings
from hyperboloid.training.tasks import get_task

BASE = Settings(dim=5, epochs=50)
RATES = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1)
RUNS = [
    (BASE, 0),
    (dataclasses.replace(BASE, lr=0.02, weight_decay=5e-4, dropout=0.5, att_dropout=0.2, drop_connect=0.1), 1),
    (dataclasses.replace(BASE, lr=0.005, weight_decay=1e-3, dropout=0.2, drop_connect=0.3, beta=2.0), 7),
]


def task_of(graph, task, settings=BASE, dtype=torch.float64):
    return get_task(task)(graph, settings, 0, dtype, "cpu")


def check_same(batch, runs, model, task, epochs):
    for index, (settings, seed) in enumerate(runs):
        alone = Training(model, task, settings, seed)
        while alone.epoch < epochs and not alone.done:
            alone.step()
        outcome, state = batch.outcomes[index], batch.state(index)
        assert outcome.best_epoch == alone.best_epoch
        assert outcome.val == pytest.approx(alone.best.metric, abs=1e-12)
        assert outcome.val_loss == pytest.approx(-alone.best.negative_loss, abs=1e-6)
        assert alone.best_state.keys() == state.keys()
        for name, expected in alone.best_state.items():
            torch.testing.assert_close(state[name], expected, rtol=0, atol=1e-6, msg=name)
        alone.encoder.load_state_dict(state)
        assert batch.metrics("test")[index] == pytest.approx(alone.score("test").metric, abs=1e-12)


@pytest.mark.parametrize("task", ["link", "node"])
@pytest.mark.parametrize("model", ["lgcn", "gcn", "gat", "hgcn"])
def test_fifty_epochs_in_a_batch_equal_fifty_epochs_alone(model, task):
    graph = load_graph("karate")  # without features: a lookup
    the_task = task_of(graph, task)
    runs = [(dataclasses.replace(settings, normalization=NORMALIZATION[task]), seed) for settings, seed in RUNS]
    batch = Batch(model, the_task, runs)
    for _ in range(50):
        batch.step()
    check_same(batch, runs, model, the_task, 50)


@pytest.mark.parametrize("model", [name for name in MODELS if can_be_batched(name, BASE)])
def test_every_model_that_can_be_batched_is_the_same_there(model):
    graph = disease(num_nodes=60, seed=1)  # with features
    the_task = task_of(graph, "link", dataclasses.replace(BASE, scaling="none"))
    batch = Batch(model, the_task, RUNS)
    for _ in range(5):
        batch.step()
    check_same(batch, RUNS, model, the_task, 5)


@pytest.mark.skipif(find_spec("triton") is None or torch.cuda.is_available(), reason="runs Triton's interpreter")
@pytest.mark.parametrize("task", ["link", "node"])
def test_a_batch_by_the_kernels_of_a_gpu_is_the_same(task):
    the_task = task_of(load_graph("karate"), task)
    with use_backend("triton"):
        batch = Batch("gcn", the_task, RUNS)
        for epoch in range(6):
            batch.step()
            if epoch == 2:
                batch.keep([1, 2])
    check_same(batch, RUNS[1:], "gcn", the_task, 6)


def sparse_graph(nodes=40, share=0.03):
    x = (torch.rand(nodes, 60, generator=torch.Generator().manual_seed(0)) < share).float()
    edges = torch.randint(nodes, (2, 3 * nodes), generator=torch.Generator().manual_seed(1))
    edges = torch.cat([edges, edges.flip(0)], 1)[:, edges.repeat(1, 2)[0] != edges.repeat(1, 2)[1]].unique(dim=1)
    return Graph(name="sparse", num_nodes=nodes, edge_index=edges, x=x)


@pytest.mark.skipif(find_spec("triton") is None or torch.cuda.is_available(), reason="runs Triton's interpreter")
@pytest.mark.parametrize("model", ["lgcn", "gcn", "gat", "hgcn", "hat"])
def test_float32_by_the_kernels_of_a_gpu_is_that_of_the_cpu(model):
    the_task = task_of(sparse_graph(nodes=8, share=0.1), "link", dtype=torch.float32)
    losses = []
    for backend in ("triton", "cpu"):
        with use_backend(backend):
            batch = Batch(model, the_task, RUNS[:2])
            for _ in range(2):
                batch.step()
        losses.append([outcome.val_loss for outcome in batch.outcomes])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_sparse_features_with_dropout_of_each_model():
    the_task = task_of(sparse_graph(), "link")
    batch = Batch("lgcn", the_task, RUNS)
    for _ in range(10):
        batch.step()
    check_same(batch, RUNS, "lgcn", the_task, 10)


def test_those_who_stay_do_not_notice_that_others_leave():
    the_task = task_of(load_graph("karate"), "link")
    batch = Batch("lgcn", the_task, RUNS)
    for epoch in range(20):
        batch.step()
        if epoch == 7:
            batch.keep([0, 2])
    check_same(batch, [RUNS[0], RUNS[2]], "lgcn", the_task, 20)


def test_patience_is_each_model_s_own():
    runs = [(dataclasses.replace(s, patience=6, epochs=200), seed) for s, seed in RUNS]
    the_task = task_of(load_graph("karate"), "link")
    trials = train_many("gcn", lambda _: the_task, runs, test=True)
    ended = set()
    for trial, (settings, seed) in zip(trials, runs, strict=True):
        alone = Training("gcn", the_task, settings, seed)
        while not alone.done:
            alone.step()
        assert trial.outcome.done
        assert (trial.outcome.best_epoch, trial.outcome.epochs) == (alone.best_epoch, alone.epoch)
        alone.encoder.load_state_dict(alone.best_state)
        assert trial.test == pytest.approx(alone.score("test").metric, abs=1e-12)
        ended.add(alone.epoch)
    assert len(ended) > 1


def test_models_that_are_done_may_stay_where_leaving_does_not_pay(monkeypatch):
    runs = [(dataclasses.replace(s, patience=6, epochs=200), seed) for s, seed in RUNS]
    the_task = task_of(load_graph("karate"), "link")
    left = []
    keep = Batch.keep
    monkeypatch.setattr(Batch, "keep", lambda batch, indices: (left.append(len(indices)), keep(batch, indices)))
    found = {}
    for pays in (True, False):
        monkeypatch.setattr(group.Pace, "pays", lambda *_, pays=pays: pays)
        found[pays] = train_many("gcn", lambda _: the_task, runs, test=True), list(left)
        left.clear()
    assert found[True][1]
    assert not found[False][1]
    for one, other in zip(found[True][0], found[False][0], strict=True):
        assert (one.outcome.best_epoch, one.outcome.epochs) == (other.outcome.best_epoch, other.outcome.epochs)
        assert one.test == pytest.approx(other.test, abs=1e-12)


def test_which_models_go_on_does_not_depend_on_whether_others_have_left(monkeypatch):
    """Models that are done before the others are halved leave at once, or later, as times have it."""
    slow = dataclasses.replace(BASE, scaling="none", dropout=0.8, patience=30, epochs=110)
    runs = [(dataclasses.replace(slow, lr=lr), seed) for seed in (0, 1) for lr in RATES]
    the_task = task_of(disease(num_nodes=120, seed=1), "link", slow)
    found = []
    for pays in (True, False):
        monkeypatch.setattr(group.Pace, "pays", lambda *_, pays=pays: pays)
        found.append([t.outcome for t in train_many("gcn", lambda _: the_task, runs, halving=True)])
    assert found[0] == found[1]
    assert any(o.done and 50 < o.epochs < 100 for o in found[0])
    assert any(not o.done for o in found[0])


def test_leaving_pays_where_epochs_take_long(monkeypatch):
    now = iter([0.0, 12.5, 12.5, 15.0, 15.0, 17.5, 17.5])  # ten seconds to start, then a tenth of a second an epoch
    monkeypatch.setattr(group.time, "monotonic", lambda: next(now))
    pace = group.Pace(0)
    assert pace.pays(0.5, 100)  # nothing is known yet
    for epoch in (25, 50, 75):
        pace.look(epoch)
    assert pace.pays(0.5, 201)
    assert not pace.pays(0.5, 199)


def test_a_model_that_diverges_takes_no_other_with_it():
    runs = [RUNS[0], (dataclasses.replace(BASE, lr=99.0), 1)]
    the_task = task_of(load_graph("karate"), "node", dtype=torch.float32)
    both, alone = Batch("mlp", the_task, runs), Batch("mlp", the_task, runs[:1])
    with torch.no_grad():
        both._state.named["convs.0.lin.weight"][1] = torch.nan
    for _ in range(10):
        both.step()
        alone.step()
    assert both.outcomes[0] == alone.outcomes[0]
    assert both.outcomes[1].best_epoch == 0


def test_settings_that_change_the_program_are_refused():
    the_task = task_of(load_graph("karate"), "link")
    with pytest.raises(InputError, match="may differ in"):
        Batch("gcn", the_task, [(BASE, 0), (dataclasses.replace(BASE, dim=4), 0)])


def test_groups_of_settings_come_back_in_their_order():
    runs = [(dataclasses.replace(BASE, dim=d, epochs=2, lr=lr), 0) for lr in (0.01, 0.02) for d in (3, 4)]
    graph = load_graph("karate")
    trials = train_many("gcn", lambda s: task_of(graph, "link", s), runs)
    assert [t.outcome.settings for t in trials] == [s for s, _ in runs]
    assert all(t.test is None for t in trials)


def test_the_limit_of_epochs_is_kept_between_two_looks():
    runs = [(dataclasses.replace(BASE, epochs=30, lr=0.01), seed) for seed in (0, 1)]
    the_task = task_of(load_graph("karate"), "link")
    for trial, (settings, seed) in zip(train_many("gcn", lambda _: the_task, runs), runs, strict=True):
        alone = Training("gcn", the_task, settings, seed)
        while not alone.done:
            alone.step()
        assert (trial.outcome.best_epoch, trial.outcome.epochs) == (alone.best_epoch, alone.epoch)


def test_a_model_that_fails_has_no_test_score():
    graph = dataclasses.replace(load_graph("karate"), x=torch.full((34, 4), 3e38))
    settings = dataclasses.replace(BASE, epochs=4, scaling="none")
    the_task = task_of(graph, "link", settings, dtype=torch.float32)
    (trial,) = train_many("gcn", lambda _: the_task, [(settings, 0)], test=True)
    assert trial.outcome.failed
    assert trial.test is None
    assert trial.state is None


def test_halving_stops_the_worse_half():
    """Two models that learn nothing leave; one that is slow stays, for as long as it is getting better."""
    rates = (0.0, 1e-5, 0.0, 0.01, 0.02, 0.03)
    runs = [(dataclasses.replace(BASE, epochs=120, patience=120, lr=lr), seed) for seed, lr in enumerate(rates)]
    the_task = task_of(load_graph("karate"), "node")
    halved = train_many("gcn", lambda _: the_task, runs, halving=True)
    whole = train_many("gcn", lambda _: the_task, runs)
    assert [t.outcome.epochs for t in halved[:3]] == [50, 120, 50]
    best = max(range(6), key=lambda i: whole[i].outcome.val)
    assert halved[best].outcome.epochs > 50


@pytest.mark.parametrize("together", [True, False])
def test_a_check_stops_training_at_once(together, monkeypatch):
    """Also amid an epoch of models that take turns, which takes minutes on a large graph."""
    monkeypatch.setattr("hyperboloid.training.group.batch_is_faster", lambda *_: together)
    looks = itertools.count()

    def check():
        if next(looks) == 5:
            raise InterruptedError

    the_task = task_of(load_graph("karate"), "link")
    with pytest.raises(InterruptedError):
        train_many("gcn", lambda _: the_task, [(BASE, seed) for seed in range(4)], check=check)
    assert next(looks) == 6


def test_no_time_left_means_no_training():
    the_task = task_of(load_graph("karate"), "link")
    assert train_many("gcn", lambda _: the_task, RUNS, until=0.0) == []


def test_a_large_graph_gets_a_small_batch(monkeypatch):
    monkeypatch.setattr(memory, "_free_memory", lambda: 8 * 2**30)
    small, large = load_graph("karate"), disease(num_nodes=20_000, seed=0)
    assert capacity("lgcn", task_of(small, "link"), BASE) == 16
    single = task_of(large, "link", dtype=torch.float32)
    sizes = [capacity("lgcn", single, dataclasses.replace(BASE, dim=dim)) for dim in (64, 256, 100_000)]
    assert sizes[0] == 16
    assert 1 < sizes[1] < 16
    assert sizes[2] == 1
    # models that take turns need no more room than one
    assert capacity("hgcn", single, dataclasses.replace(BASE, dim=256)) == 16


def test_free_memory_is_what_the_system_says(monkeypatch):
    files = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    3000 kB\nCached: 5 kB\n"}
    monkeypatch.setattr(memory, "_text", lambda path: files.get(path, ""))
    assert memory._free_memory() == 3000 * 1024
    files |= {"/sys/fs/cgroup/memory.max": "max\n", "/sys/fs/cgroup/memory.current": "7\n"}
    assert memory._free_memory() == 3000 * 1024
    files["/sys/fs/cgroup/memory.max"] = "1000007\n"
    assert memory._free_memory() == 1_000_000
    files.clear()
    assert memory._free_memory() == 2 * 2**30


@pytest.mark.parametrize("together", [True, False])
def test_a_model_that_diverges_has_failed_whatever_it_was_before(together, monkeypatch):
    """Alone it is refused; what it scored before it broke must not choose its settings."""
    monkeypatch.setattr(memory, "CACHED", memory.CACHED if together else 0)
    wild = dataclasses.replace(BASE, lr=99.0, epochs=200)
    runs = [(dataclasses.replace(BASE, epochs=200), 0), (wild, 0), (wild, 1), (wild, 2)]
    the_task = task_of(load_graph("karate"), "link", dtype=torch.float32)
    broken = []
    for settings, seed in runs:
        try:
            trained = Training("hgcn", the_task, settings, seed)
            while not trained.done:
                trained.step()
        except TrainingError:
            broken.append((settings, seed))
    assert 1 <= len(broken) < 4
    assert (batch_is_faster("hgcn", the_task, BASE)) == together
    trials = train_many("hgcn", lambda _: the_task, runs, test=True)
    failed = [(t.outcome.settings, t.outcome.seed) for t in trials if t.outcome.failed]
    assert failed == broken
    assert [t.test is None for t in trials] == [run in broken for run in runs]
    assert all(t.outcome.done and not t.cut for t in trials)


def test_kinds_of_models_take_turns():
    """A search that is cut short has tried some of each."""
    kinds = [dataclasses.replace(BASE, epochs=3, activation=name) for name in ("relu", "elu")]
    runs = [(dataclasses.replace(kind, lr=0.001 * (k + 1)), 0) for kind in kinds for k in range(40)]
    the_task, saved = task_of(load_graph("karate"), "link"), []
    trials = train_many("gcn", lambda _: the_task, runs, save=lambda some: saved.append(some[0].outcome.settings))
    assert [s.activation for s in saved] == ["relu", "elu"] * 3
    assert [(t.outcome.settings, t.outcome.seed) for t in trials] == runs


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize("task", ["link", "node"])
def test_together_but_one_by_one_gives_the_same_models(task, halving, monkeypatch):
    runs = [(dataclasses.replace(s, epochs=120, patience=40), seed) for s, seed in (*RUNS, (BASE, 4))]
    the_task = task_of(load_graph("karate"), task)
    found = {}
    for cached in (0, memory.CACHED):
        monkeypatch.setattr(memory, "CACHED", cached)
        assert batch_is_faster("gcn", the_task, BASE) == (cached > 0)
        found[cached] = train_many("gcn", lambda _: the_task, runs, test=True, halving=halving)
    for ours, theirs in zip(*found.values(), strict=True):
        assert (ours.outcome.epochs, ours.outcome.best_epoch) == (theirs.outcome.epochs, theirs.outcome.best_epoch)
        assert ours.outcome.done == theirs.outcome.done
        assert (ours.outcome.val, ours.test) == pytest.approx((theirs.outcome.val, theirs.test), abs=1e-9)
        for name, tensor in theirs.state.items():
            torch.testing.assert_close(ours.state[name], tensor, rtol=0, atol=1e-6, msg=name)


def test_a_model_that_diverges_one_by_one_takes_no_other_with_it():
    the_task = task_of(load_graph("karate"), "node", dtype=torch.float32)
    both, alone = OneByOne("mlp", the_task, RUNS[:2]), OneByOne("mlp", the_task, RUNS[:1])
    with torch.no_grad():
        both._trainings[1].encoder.convs[0].lin.weight[0, 0] = torch.nan
    for _ in range(10):
        both.step()
        alone.step()
    assert both.outcomes[0] == alone.outcomes[0]
    assert both.outcomes[1].failed
    assert both.metrics("test")[0] == alone.metrics("test")[0]
    assert math.isnan(both.metrics("test")[1])


def test_auc_of_many_models_with_ties_is_scikit_learn_s():
    generator = torch.Generator().manual_seed(0)
    positive, negative = (torch.randint(6, (5, n), generator=generator).float() for n in (31, 47))
    ours = roc_auc(positive, negative)
    for k in range(5):
        labels = [1] * 31 + [0] * 47
        assert ours[k].item() == pytest.approx(roc_auc_score(labels, torch.cat([positive[k], negative[k]])), abs=1e-12)
