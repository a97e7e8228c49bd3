"""Ctrl-C at any time: one sentence and exit code 130, no traceback, and the program does not go on all the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hyperboloid import InputError
from hyperboloid.cli.starting import starting

#: Libraries that are being imported catch what they should not now and then.
SWALLOWS = """
import sys, time
from hyperboloid.cli.starting import starting
with starting("the same command goes on"):
    try:
        print("importing", flush=True)
        time.sleep(60)
    except BaseException:
        pass
print("as though nothing had happened")
"""

#: A library that tidies up at the exit.
TIDIES_UP = """
import atexit, sys, time
from hyperboloid.cli.main import main
def tidy():
    print("tidying up", flush=True)
    time.sleep(1)
atexit.register(tidy)
sys.argv = ["hyperboloid", "--version"]
main()
"""


def has_said(word):
    """Whether a process has printed a line with a word in it."""
    return lambda running: word in running.stdout.readline()


def is_loading_torch(running):
    """Whether some of torch's libraries are in a process, which takes a second or more to have all of it."""
    return "/torch/" in Path(f"/proc/{running.pid}/maps").read_text()


@pytest.fixture
def interrupted(tmp_path, take_interrupts):
    """Start Python and press Ctrl-C once ``ready`` says so of the process; gives code, output and errors."""

    def call(*words, ready):
        running = subprocess.Popen(
            [sys.executable, *words],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=take_interrupts,
        )
        deadline = time.monotonic() + 60
        while not ready(running) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        return running.returncode, out, err

    return call


def test_what_is_imported_cannot_swallow_it(interrupted):
    code, out, err = interrupted("-c", SWALLOWS, ready=has_said("importing"))
    assert (code, out, err) == (130, "", "Interrupted; the same command goes on.\n")


def test_nothing_is_said_once_all_is_done(interrupted):
    code, out, err = interrupted("-c", TIDIES_UP, ready=has_said("tidying up"))
    assert (code, out, err) == (0, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at a process as Linux shows it")
@pytest.mark.parametrize(
    ("words", "how"),
    [
        (
            "paper run node --datasets disease --dims 8 --models gcn --epochs 1000000 --workers 2",
            "goes on where it stopped",
        ),
        ("sweep karate --epochs 1000000", "starts again"),
        ("train karate --epochs 1000000", "starts again"),
    ],
)
def test_a_command_whose_libraries_are_on_their_way_in_ends_with_one_sentence(words, how, interrupted, tmp_path):
    found = interrupted("-m", "hyperboloid", *words.split(), ready=is_loading_torch)
    assert found == (130, "", f"Interrupted; the same command {how}.\n")
    assert not list(tmp_path.iterdir())


def test_afterwards_it_means_what_it_meant():
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(InputError), starting("somehow"):
            raise InputError
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with starting("somehow"):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_commands_that_have_no_sentence_of_their_own_get_one(cli, monkeypatch):
    def interrupt(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr("hyperboloid.paper.experiments.run_experiment", interrupt)
    result = cli("paper", "run", "operations")
    assert (result.code, result.out, result.err) == (130, "", "Interrupted; the same command starts again.\n")
