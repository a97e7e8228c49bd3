"""How the program starts: at once, without torch, by each of its names."""

import time

import pytest

WITHOUT_TORCH = """
import sys
{code}
heavy = {{"torch", "torch_geometric", "numba", "matplotlib", "scipy", "pyarrow", "networkx"}} & set(sys.modules)
assert not heavy, heavy
"""
HELP = """
from hyperboloid.cli.main import main
sys.argv = ["hyperboloid", "--help"]
try:
    main()
except SystemExit as stop:
    assert not stop.code
"""


@pytest.mark.parametrize(("code", "limit"), [("import hyperboloid", 2.0), (HELP, 1.5)], ids=["import", "help"])
def test_starts_at_once_without_torch(process, code, limit):
    seconds = []
    for _ in range(3):  # the quickest of three, since other processes may be at work
        started = time.perf_counter()
        result = process("-c", WITHOUT_TORCH.format(code=code))
        seconds.append(time.perf_counter() - started)
        assert result.code == 0, result.err
    assert min(seconds) < limit


def test_help_names_every_command(cli):
    result = cli("--help")
    assert result.code == 0
    for command in (
        "train",
        "evaluate",
        "predict",
        "plot",
        "datasets",
        "sweep",
        "paper",
        "hyperbolicity",
        "distortion",
        "attention",
        "advise",
        "report",
        "bench",
    ):
        assert command in result.out
        assert cli(command, "--help").code == 0


def test_version(cli):
    import hyperboloid

    assert cli("--version").out == f"hyperboloid {hyperboloid.__version__}\n"


def test_runs_as_a_module_and_prints_nothing_but_the_result(process, tmp_path):
    result = process("-m", "hyperboloid", "train", "karate", "--epochs", 3, "--out", "run", "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    assert not set(result.out) & set("\r\x1b━")
    assert len(result.out.splitlines()) == 3
    assert result.json["run"] == "run"
    assert (tmp_path / "run" / "summary.json").exists()
