"""The bars on a terminal of 80 columns: how many settings are alive, the best validation score, the time left."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from io import StringIO

import pytest
from rich.console import Console, Group

from hyperboloid.cli.progress import StageDisplay, _Bars, _CellDisplay

#: The longest name that a cell has, with the longest stage's.
LONGEST = "link citeseer d=64 lgcn_no_att_no_centroid, split 0-9"


class Screen:
    """A terminal of 80 columns, and what stands on it."""

    def __init__(self):
        self.console = Console(width=80, force_terminal=True, color_system=None, file=StringIO())
        self.bars = _Bars(self.console)

    @property
    def lines(self):
        with self.console.capture() as capture:
            self.console.print(Group(*self.bars.get_renderables()))
        return [line.rstrip() for line in capture.get().splitlines()]


@pytest.fixture
def screen():
    return Screen()


def test_a_stage_tells_everything(screen):
    tell = StageDisplay(screen.bars, float("inf")).stage("poincare_emb, selection")
    tell(16, 0, 0.0, 0, 2176)
    name, bar, note = screen.lines
    assert name == "poincare_emb, selection"
    assert re.fullmatch(r"0 of 2176 .* 0:00:0\d, -:--:-- left", bar)
    assert note == "16 of 16 alive at epoch 0"
    tell(13, 375, 0.921, 1600, 2176)
    tell(12, 400, 0.9, 1600, 2176)  # the best one has left
    name, bar, note = screen.lines
    assert re.fullmatch(r"1604 of 2176 +━.* 0:00:0\d, about 0:00:0\d left", bar)
    assert note == "12 of 16 alive at epoch 400, best validation 92.1 %"


def test_diverged_models_have_no_best_score(screen):
    tell = StageDisplay(screen.bars, float("inf")).stage("lgcn, search")
    tell(16, 0, 0.0, 0, 16)
    tell(3, 25, -float("inf"), 0, 16)
    assert screen.lines[-1] == "3 of 16 alive at epoch 25"


def test_a_stage_ends_when_time_is_up(screen):
    tell = StageDisplay(screen.bars, time.monotonic() + 60).stage("lgcn, search")
    tell(16, 0, 0.0, 0, 10**9)
    time.sleep(0.1)
    tell(15, 25, 0.5, 0, 10**9)
    assert re.fullmatch(r"1 of .* 0:00:0\d, at most 0:0[01]:\d\d left", screen.lines[1])


def test_what_was_there_before_took_no_time(screen):
    bar = screen.bars.add()
    bar.begin("resumed", 1000)
    bar.show(500, 1000)
    assert screen.lines[1].endswith("-:--:-- left")
    time.sleep(1.1)
    bar.show(501, 1000)
    left = re.search(r"0:00:0\d, about 0:(\d\d):\d\d left$", screen.lines[1])
    assert int(left[1]) >= 8  # a second or more for each of the rest


def test_cells_tell_everything_whatever_their_names(screen):
    display = _CellDisplay(StageDisplay(screen.bars, time.monotonic() + 7265))
    display.start(LONGEST, 3, 12)
    tell = display.stage("selection")
    tell(10_000, 0, 0.0, 0, 10_000)
    tell(9_000, 2000, 0.5, 0, 10_000)
    cells, name, bar, note = screen.lines
    assert re.fullmatch(r"2 of 12 +━.* 0:00:0\d, at most 2:0[01]:\d\d left", cells)
    assert name == f"{LONGEST}, selection"
    assert re.fullmatch(r"1000 of 10000 +━.* 0:00:0\d, about 0:00:0\d left", bar)
    assert note == "9000 of 10000 alive at epoch 2000, best validation 50.0 %"


def test_processes_take_the_place_of_the_stage(screen):
    display = _CellDisplay(StageDisplay(screen.bars, time.monotonic() + 60))
    texts = [f"node disease d=8 {model}, search: 16 of 1600, 9 alive at epoch 1025, best 88.5 %" for model in "ab"]
    display.at_work(texts, 1, 12)
    cells, *others = screen.lines
    assert re.fullmatch(r"1 of 12 +━.* 0:00:0\d, (at most|about) 0:0\d:\d\d left", cells)
    assert others == texts


def test_a_sweep_on_a_terminal(tmp_path, take_interrupts):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    words = ["sweep", "karate", "--models", "gcn", "--dim", "4", "--out", "s"]
    running = subprocess.Popen(
        [sys.executable, "-m", "hyperboloid", *words],
        cwd=tmp_path,
        env=env | {"OMP_NUM_THREADS": "1", "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=take_interrupts,
        start_new_session=True,
    )
    os.close(theirs)
    wanted = (
        r"gcn, search\s",
        r"\d+ of \d+ +\S.* 0:0\d:\d\d, about \d+:\d\d:\d\d left",
        r"\d+ of \d+ alive at epoch \d+, best validation \d+\.\d %",
    )
    seen, sent, ended = "", False, False
    deadline = time.monotonic() + 120
    while not ended:
        try:
            seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(ours, 4096).decode(errors="replace"))
        except OSError:  # nobody is there any more
            ended = True
        if not sent and (all(re.search(what, seen) for what in wanted) or time.monotonic() > deadline):
            running.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    assert running.wait(60) == 130
    assert all(re.search(what, seen) for what in wanted), seen
    assert "…" not in seen
