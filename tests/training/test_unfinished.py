"""Training that is stopped amid a group of models goes on where it stood, and comes to the same."""

import contextlib
import dataclasses
import itertools
import json
import signal
import subprocess
import sys
import time

import pytest
import torch

import hyperboloid
from hyperboloid import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.training import group, memory
from hyperboloid.training.checkpoint import read_tensors, write_tensors
from hyperboloid.training.journal import Journal
from hyperboloid.training.many import train_many
from hyperboloid.training.settings import Settings
from hyperboloid.training.sweep import sweep, task_factory

BASE = Settings(dim=4, epochs=130, patience=30)
#: Slow and fast ones, with masks and without, so that they leave at different times.
RUNS = [
    (dataclasses.replace(BASE, lr=lr, dropout=p, weight_decay=penalty), seed)
    for seed, (lr, p, penalty) in enumerate([(0.001, 0.0, 0.0), (0.05, 0.5, 1e-4), (0.02, 0.2, 0.0), (0.01, 0.8, 0.1)])
]

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
#: Model, device, and whether its models are one program; on a GPU they always are, and their epochs are recorded.
WAYS = [("gcn", "cpu", True), ("gcn", "cpu", False)]
WAYS += [pytest.param(model, "cuda", True, marks=GPU) for model in ("gcn", "lgcn", "gat")]


class Stopped(Exception):
    pass


def train(journal, task, model="gcn", runs=RUNS, every=None, dtype=torch.float64, device="cpu", **options):
    """Train what is missing; with ``every``, training is stopped at every so many looks at the clock, and goes on."""
    task_for = task_factory(load_graph("karate"), task, 0, dtype, device)
    for stops in range(1000):
        looks = itertools.count(1)

        def check(looks=looks):
            if every is not None and next(looks) == every:
                raise Stopped

        try:
            train_many(
                model,
                task_for,
                journal.missing("search", model, runs),
                check=check,
                save=lambda trials: journal.add("search", model, trials),
                shelf=journal.shelf("search", model),
                **options,
            )
        except Stopped:
            continue
        return journal.read("search", model, runs), stops
    raise AssertionError("it never ends")


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize("task", ["link", "node"])
@pytest.mark.parametrize(("model", "device", "together"), WAYS)
def test_stopped_again_and_again_it_comes_to_the_same(model, device, together, task, halving, tmp_path, monkeypatch):
    """Every 30 epochs, or amid an epoch of models that take turns, which is where some leave."""
    monkeypatch.setattr(memory, "CACHED", memory.CACHED if together else 0)
    options = {"device": device, "halving": halving, "test": not halving}
    whole, _ = train(Journal(None), task, model, **options)
    journal = Journal(tmp_path / "trials.jsonl")
    broken, stops = train(journal, task, model, every=31 if together else 83, **options)
    assert stops >= 3
    assert len({t.outcome.epochs for t in whole}) > 1
    for ours, theirs in zip(broken, whole, strict=True):
        a, b = ours.outcome, theirs.outcome
        assert (a.settings, a.seed, a.best_epoch, a.epochs, a.done) == (
            b.settings,
            b.seed,
            b.best_epoch,
            b.epochs,
            b.done,
        )
        assert (a.val, a.val_loss) == pytest.approx((b.val, b.val_loss), rel=1e-9)
        assert ours.test == (None if theirs.test is None else pytest.approx(theirs.test, abs=1e-9))
    assert [path.name for path in tmp_path.iterdir()] == ["trials.jsonl"]


@pytest.mark.parametrize("together", [False, True])
def test_what_has_diverged_stays_so(together, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CACHED", memory.CACHED if together else 0)
    runs = [(dataclasses.replace(BASE, lr=lr, epochs=60), seed) for seed, lr in enumerate((0.01, 99.0, 99.0, 99.0))]
    options = {"model": "hgcn", "runs": runs, "dtype": torch.float32}
    whole, _ = train(Journal(None), "link", **options)
    broken, stops = train(Journal(tmp_path / "trials.jsonl"), "link", every=11, **options)
    assert stops >= 3
    assert 0 < sum(t.outcome.failed for t in whole) < 4
    counts = [[(t.outcome.failed, t.outcome.epochs) for t in trials] for trials in (broken, whole)]
    assert counts[0] == counts[1]


def test_no_epoch_is_trained_again(tmp_path, monkeypatch):
    steps = []
    step = group.Batch.step
    monkeypatch.setattr(group.Batch, "step", lambda batch: (steps.append(batch.epoch), step(batch)))
    trials, stops = train(Journal(tmp_path / "trials.jsonl"), "link", every=40)
    assert stops >= 3
    assert steps == list(range(len(steps)))
    assert len(steps) <= max(t.outcome.epochs for t in trials) + group.LOOK_EVERY


@pytest.mark.parametrize("model", ["deepwalk", "poincare_emb"])
def test_a_model_that_is_trained_by_itself_goes_on_too(model, tmp_path):
    runs = [(Settings(dim=4, epochs=9, walks=1, burn_in=2), seed) for seed in (0, 1)]
    whole, _ = train(Journal(None), "link", model, runs)
    broken, stops = train(Journal(tmp_path / "trials.jsonl"), "link", model, runs, every=5)
    assert stops >= 3
    assert [t.outcome for t in broken] == [t.outcome for t in whole]


CHILD = """
import sys, torch
from hyperboloid.training import group
from hyperboloid.training.sweep import sweep
group.KEEP_EVERY, group.KEEP_SHARE = 0.02, 0
sweep("karate", out=sys.argv[1], resume=True, **eval(sys.argv[2]))
"""


@pytest.mark.parametrize("halving", [False, True])
def test_a_sweep_killed_amid_a_batch_goes_on(halving, tmp_path, monkeypatch):
    options = {"models": ["gcn"], "seeds": 2, "dim": 3, "tries": 4, "epochs": 150, "patience": 150, "rounds": ()}
    options["halving"] = halving
    whole = sweep("karate", out=tmp_path / "whole", **options)
    folder = tmp_path / "s"
    kept = folder / "unfinished-search-gcn.safetensors"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), repr(options)])
    deadline = time.monotonic() + 120
    while not kept.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    assert kept.exists()
    steps, step = [], group.Batch.step
    monkeypatch.setattr(group.Batch, "step", lambda batch: (steps.append(batch.epoch), step(batch)))
    resumed = sweep("karate", out=folder, resume=True, **options)
    assert steps[0] > 0
    assert resumed.verdicts[0].tested == whole.verdicts[0].tested
    assert resumed.verdicts[0].settings == whole.verdicts[0].settings
    assert not list(folder.glob("unfinished*"))


@pytest.fixture
def ticks(monkeypatch):
    """A clock that goes on by a second whenever it is read, so that budgets do not hang on the machine."""
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))


@pytest.mark.parametrize(
    ("model", "task", "rounds"),
    [
        ("gcn", "link", ()),
        ("gcn", "node", ((4, 1), (3, 2), (2, 4))),
        ("deepwalk", "link", ()),
        ("deepwalk", "node", ()),
    ],
)
@pytest.mark.parametrize("budget", [60.0, 150.0])
def test_ever_so_short_budgets_come_to_an_end(model, task, rounds, budget, ticks, tmp_path):
    """Each is shorter than a batch takes, which by itself would be begun again for ever."""
    options = {"models": [model], "task": task, "dim": 4, "tries": 4, "epochs": 70, "seeds": 2, "rounds": rounds}
    if model == "deepwalk":
        options |= {"epochs": 12, "walks": 1}
    whole = sweep("karate", out=tmp_path / "whole", **options)
    found = None
    for _ in range(100):
        with contextlib.suppress(InputError):  # there was no time to test anything
            found = sweep("karate", budget=budget, out=tmp_path / "s", resume=True, **options)
        if found is not None and found.verdicts[0].complete:
            break
    assert found.verdicts[0].complete
    assert found.verdicts[0].tested == whole.verdicts[0].tested
    ours, theirs = ((tmp_path / name / "trials.jsonl").read_text().splitlines() for name in ("s", "whole"))
    # besides, settings may have been tested that were the best as long as others had not been tried
    assert set(map(counts, theirs)) <= set(map(counts, ours))
    assert len(set(map(counts, ours))) == len(ours)
    assert not list((tmp_path / "s").glob("unfinished*"))
    best = [hyperboloid.load(tmp_path / name / "best").best for name in ("s", "whole")]
    assert best[0].summary["test"] == best[1].summary["test"]


def counts(line):
    entry = json.loads(line)
    return entry["key"], entry["best_epoch"], entry["epochs"]


def stopped_journal(folder, **options):
    """A journal of training that was stopped once, and what it has kept."""
    journal = Journal(folder / "trials.jsonl")
    looks = itertools.count(1)

    def check():
        if next(looks) == 30:
            raise Stopped

    task_for = task_factory(load_graph("karate"), "link", 0, torch.float64, "cpu")
    shelf = journal.shelf("search", "gcn")
    with pytest.raises(Stopped):
        train_many("gcn", task_for, RUNS, check=check, shelf=shelf, **options)
    (kept,) = folder.glob("unfinished*")
    return journal, kept


@pytest.mark.parametrize("damaged", [lambda content: content[:200], lambda content: b"nonsense"])
def test_a_damaged_file_costs_only_the_time(damaged, tmp_path):
    journal, kept = stopped_journal(tmp_path)
    kept.write_bytes(damaged(kept.read_bytes()))
    begins_anew(journal, kept)


def test_so_does_one_of_another_version(tmp_path):
    journal, kept = stopped_journal(tmp_path)
    tensors, counters = read_tensors(kept)
    write_tensors(kept, tensors | {"more": torch.zeros(2)}, counters)
    begins_anew(journal, kept)


def begins_anew(journal, kept):
    ours, _ = train(journal, "link")
    theirs, _ = train(Journal(None), "link")
    assert [t.outcome for t in ours] == [t.outcome for t in theirs]
    assert not kept.exists()


def test_where_nothing_can_be_kept_training_goes_on(tmp_path):
    """A folder in the file's place stands in for a full disk."""
    journal = Journal(tmp_path / "trials.jsonl")
    (tmp_path / "unfinished-search-gcn.safetensors").mkdir()
    task_for = task_factory(load_graph("karate"), "link", 0, torch.float64, "cpu")
    looks = itertools.count(1)

    def check():
        if next(looks) == 30:
            raise Stopped

    with pytest.raises(Stopped):
        train_many("gcn", task_for, RUNS, check=check, shelf=journal.shelf("search", "gcn"))
    assert [path.name for path in tmp_path.iterdir()] == ["unfinished-search-gcn.safetensors"]


@pytest.mark.parametrize("halving", [False, True])
def test_what_was_halved_does_not_go_on_as_what_is_not(halving, tmp_path):
    journal, kept = stopped_journal(tmp_path, halving=halving)
    ours, _ = train(journal, "link", halving=not halving)
    theirs, _ = train(Journal(None), "link", halving=not halving)
    assert [t.outcome for t in ours] == [t.outcome for t in theirs]
    assert not kept.exists()


def test_what_another_search_has_left_is_forgotten(tmp_path):
    journal, kept = stopped_journal(tmp_path, halving=True)
    others = [(dataclasses.replace(settings, beta=2.0), seed) for settings, seed in RUNS]
    ours, _ = train(journal, "link", runs=others[:2], halving=True)
    theirs, _ = train(Journal(None), "link", runs=others[:2], halving=True)
    assert [t.outcome for t in ours] == [t.outcome for t in theirs]
    assert not kept.exists()


def test_what_a_kill_has_left_of_a_group_that_had_ended_is_cleared(tmp_path):
    journal, kept = stopped_journal(tmp_path)
    content = kept.read_bytes()
    train(journal, "link")
    kept.write_bytes(content)
    train(journal, "link")
    assert not kept.exists()


def test_a_group_that_is_trained_in_another_way_begins_anew(tmp_path, monkeypatch):
    """As where a search goes on on a machine with a GPU."""
    journal, kept = stopped_journal(tmp_path)
    monkeypatch.setattr(memory, "CACHED", 0)
    ours, _ = train(journal, "link")
    theirs, _ = train(Journal(None), "link")
    assert [t.outcome for t in ours] == [t.outcome for t in theirs]
    assert not kept.exists()
