"""Cells measured by several processes: the same numbers, nothing lost when one is killed, nobody left behind."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import torch

from hyperboloid import InputError, TrainingError
from hyperboloid.paper.cell_runs import measure_cells
from hyperboloid.paper.cells import cells
from hyperboloid.paper.protocol import RunProtocol
from hyperboloid.paper.results import read_results

TINY = RunProtocol(tries=2, epochs=3, seeds=2)
ENDLESS = RunProtocol(tries=2, epochs=1_000_000, patience=1_000_000, halving=False)


class Quiet:
    """An observer that notes what has ended, and may do something when it is told of it, or of what is at work."""

    def __init__(self, at_work=lambda texts: None, done=lambda line: None):
        self.started, self.counted, self.done = [], [], done
        self._at_work = at_work

    def at_work(self, texts, ended, total):
        self.counted.append((ended, total))
        self._at_work(texts)

    def start(self, what, number, total):
        self.started.append((what, number, total))

    def stage(self, name):
        return lambda alive, epoch, best, finished, total: None

    def skipped(self, what, reason):
        pass


def disease(*models):
    return cells("node", datasets=["disease"], dims=[8], models=models)


def measure(folder, asked, observer, **options):
    given = {"results": folder / "results", "work": folder / "work", "protocol": TINY, "code": "test", **options}
    return measure_cells(asked, observer, **given)


def children(of):
    """Workers that a process has started; multiprocessing has a helper of its own besides."""
    pids = Path(f"/proc/{of}/task/{of}/children").read_text().split()
    return [int(pid) for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def is_running(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what, seconds=240.0):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


@pytest.fixture
def torch_threads():
    """Sets how many threads torch has, until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_several_processes_find_what_one_finds(tmp_path, monkeypatch, torch_threads):
    asked = disease("gcn", "lgcn", "hgcn")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # sums by other numbers of threads are not the same to the bit
    torch_threads(1)
    alone = measure(tmp_path / "alone", asked, Quiet(), splits=[0, 1])
    seen = Quiet()
    at_once = measure(tmp_path / "at once", asked, seen, splits=[0, 1], workers=2)
    assert at_once.measured == 6
    for line, other in zip(alone.lines, at_once.lines, strict=True):
        same = ("model", "split", "settings", "tests", "val_mean", "epochs")
        assert {name: line[name] for name in same} == {name: other[name] for name in same}
        assert (line["workers"], other["workers"]) == (1, 2)
    assert sorted(number for _, number, total in seen.started) == [1, 2, 3, 4, 5, 6]
    assert seen.counted == sorted(seen.counted)
    assert {total for _, total in seen.counted} == {6}
    assert len(read_results(tmp_path / "at once" / "results")) == 6
    assert measure(tmp_path / "at once", asked, Quiet(), splits=[0, 1], workers=2).measured == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
def test_a_process_that_is_killed_is_told_of_and_the_rest_stops(tmp_path):
    killed = []

    def kill_one(texts):
        assert all("node disease d=8" in text for text in texts)
        if not killed:
            killed.extend(children(os.getpid()))
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(TrainingError, match=r"exit code -9; killed, .*fewer --workers"):
        measure(tmp_path, disease("lgcn", "hgcn"), Quiet(kill_one), protocol=ENDLESS, workers=2)
    assert len(killed) == 2
    assert not any(map(is_running, killed))
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
def test_processes_killed_between_two_cells_lose_no_line(tmp_path):
    asked, killed = disease("gcn", "lgcn", "hgcn", "gat"), []

    def kill_all(line):
        killed.extend(children(os.getpid()))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(is_running, killed)))

    with pytest.raises(TrainingError, match="exit code -9"):
        measure(tmp_path, asked, Quiet(done=kill_all), workers=2)
    assert killed
    ended = [line["model"] for line in read_results(tmp_path / "results")]
    assert 1 <= len(ended) < len(asked)
    assert measure(tmp_path, asked, Quiet()).measured == len(asked) - len(ended)


@contextmanager
def two_workers(folder, take_interrupts, *options):
    """The command with two processes, and a list of those that must not outlive the test."""
    words = "paper run node --datasets disease --dims 8 --models lgcn,hgcn --workers 2"
    command, workers = [sys.executable, "-m", "hyperboloid", *words.split(), *options], []
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=take_interrupts
    ) as parent:
        try:
            yield parent, workers
        finally:
            parent.kill()
            for pid in filter(is_running, workers):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nobody_works_on_when_the_command_is_stopped(tmp_path, number, take_interrupts):
    with two_workers(tmp_path, take_interrupts, "--epochs", "1000000", "--no-halving") as (parent, workers):
        wait_for(lambda: len(list(tmp_path.glob("runs/paper/*/spent.json"))) == 2)  # both are at work
        workers += children(parent.pid)
        assert len(workers) == 2
        # Ctrl-C reaches all processes of a terminal, a kill only the one
        (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
        _, told = parent.communicate(timeout=240)
        wait_for(lambda: not any(map(is_running, workers)))
    if number == signal.SIGINT:
        assert (parent.returncode, told) == (130, "Interrupted; the same command goes on where it stopped.\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-C twice", "SIGTERM"])
def test_nothing_is_left_of_processes_that_were_still_starting(tmp_path, how, take_interrupts):
    with two_workers(tmp_path, take_interrupts) as (parent, workers):
        wait_for(lambda: len(children(parent.pid)) == 2)  # which import for seconds
        workers += children(parent.pid)
        if how == "SIGTERM":
            parent.terminate()
        else:
            os.killpg(parent.pid, signal.SIGINT)
        if how == "Ctrl-C twice":
            time.sleep(0.1)
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGINT)
        _, told = parent.communicate(timeout=240)
        wait_for(lambda: not any(map(is_running, workers)))
    interrupted = 130, "Interrupted; the same command goes on where it stopped.\n"
    assert (parent.returncode, told) == ((143, "") if how == "SIGTERM" else interrupted)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow  # it waits for most of its time
def test_out_of_time_all_of_them_stop(tmp_path):
    seen = []
    session = measure(
        tmp_path, disease("lgcn", "hgcn", "gcn"), Quiet(seen.append), protocol=ENDLESS, workers=2, budget=20.0
    )
    assert (session.measured, session.left) == (0, 3)
    assert 20 <= session.seconds < 240
    assert seen  # they were at work by then


def test_what_a_process_cannot_read_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("HYPERBOLOID_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = cells("link", datasets=["amazon"], dims=[8], models=["gcn", "lgcn"])
    with pytest.raises(InputError, match="amazon"):
        measure(tmp_path, asked, Quiet(), data_dir=tmp_path, workers=2)
    with pytest.raises(InputError, match="at least 1 worker, not 0"):
        measure(tmp_path, asked, Quiet(), workers=0)
    assert dataclasses.asdict(measure(tmp_path, [], Quiet(), workers=2)) | {"seconds": 0} == {
        "lines": [], "measured": 0, "skipped": {}, "left": 0, "seconds": 0,
    }  # fmt: skip
