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

from hyperboloid import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.training import group, memory, selection
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


class Stopped(Exception):
    pass


def train(journal, task, model="gcn", runs=RUNS, every=None, dtype=torch.float64, **options):
    """Train what is missing; with ``every``, training is stopped at every so many looks at the clock, and goes on."""
    task_for = task_factory(load_graph("karate"), task, 0, dtype, "cpu")
    stops = 0
    while True:
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
            stops += 1
        else:
            return journal.read("search", model, runs), stops


@pytest.mark.parametrize("halving", [False, True])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("task", ["link", "node"])
def test_stopped_again_and_again_it_comes_to_the_same(task, together, halving, tmp_path, monkeypatch):
    """Every 30 epochs, or amid an epoch of models that take turns, which is where some leave."""
    monkeypatch.setattr(memory, "CACHED", memory.CACHED if together else 0)
    whole, _ = train(Journal(None), task, halving=halving, test=not halving)
    journal = Journal(tmp_path / "trials.jsonl")
    broken, stops = train(journal, task, every=31 if together else 83, halving=halving, test=not halving)
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
    assert [t.outcome.failed for t in broken] == [t.outcome.failed for t in whole]


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
def test_a_sweep_killed_amid_a_batch_goes_on(halving, tmp_path):
    options = {"models": ["gcn"], "seeds": 2, "dim": 3, "tries": 4, "epochs": 110, "rounds": (), "halving": halving}
    whole = sweep("karate", out=tmp_path / "whole", **options)
    folder = tmp_path / "s"
    kept = folder / "unfinished-search-gcn.safetensors"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), repr(options)])
    seen, deadline = set(), time.monotonic() + 120
    while len(seen) < 3 and child.poll() is None and time.monotonic() < deadline:
        if kept.exists():
            seen.add(kept.stat().st_mtime_ns)
        time.sleep(0.005)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    assert not (folder / "trials.jsonl").exists() or "test" not in (folder / "trials.jsonl").read_text()
    resumed = sweep("karate", out=folder, resume=True, **options)
    assert resumed.verdicts[0].tested == whole.verdicts[0].tested
    assert resumed.verdicts[0].settings == whole.verdicts[0].settings
    assert not list(folder.glob("unfinished*"))


def test_ever_so_short_budgets_come_to_an_end(tmp_path, monkeypatch):
    """Each is shorter than a batch takes, which by itself would be begun again for ever."""
    monkeypatch.setattr(selection, "GRACE", 0.0)
    options = {"models": ["gcn"], "dim": 3, "tries": 6, "epochs": 150, "seeds": 1, "rounds": ()}
    whole = sweep("karate", out=tmp_path / "whole", **options)
    found, times = None, 0
    while (found is None or not found.verdicts[0].complete) and times < 60:
        times += 1
        with contextlib.suppress(InputError):  # there was no time to test anything
            found = sweep("karate", budget=whole.seconds / 4, out=tmp_path / "s", resume=True, **options)
    assert 2 < times < 60
    assert found.verdicts[0].tested == whole.verdicts[0].tested
    ours, theirs = ((tmp_path / name / "trials.jsonl").read_text().splitlines() for name in ("s", "whole"))
    assert sorted(map(counts, ours)) == sorted(map(counts, theirs))


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
def test_a_damaged_file_is_one_sentence(damaged, tmp_path):
    journal, kept = stopped_journal(tmp_path)
    kept.write_bytes(damaged(kept.read_bytes()))
    with pytest.raises(InputError, match=f"{kept.name} is not a checkpoint of this search; remove it to start"):
        train(journal, "link")


def test_what_another_search_has_left_is_forgotten(tmp_path):
    journal, kept = stopped_journal(tmp_path, halving=True)
    others = [(dataclasses.replace(settings, beta=2.0), seed) for settings, seed in RUNS]
    train(journal, "link", runs=others[:2])
    assert not kept.exists()


def test_a_group_that_is_trained_in_another_way_begins_anew(tmp_path, monkeypatch):
    """As where a search goes on on a machine with a GPU."""
    journal, kept = stopped_journal(tmp_path)
    monkeypatch.setattr(memory, "CACHED", 0)
    ours, _ = train(journal, "link")
    theirs, _ = train(Journal(None), "link")
    assert [t.outcome for t in ours] == [t.outcome for t in theirs]
    assert not kept.exists()
