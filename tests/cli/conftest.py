"""The command line called in this process, which is quick; whole processes are for what only they can show."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

import hyperboloid
from hyperboloid.cli.main import main


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out.splitlines()[-1])

    @property
    def error(self):
        """The one sentence of a failure."""
        assert self.err.startswith("Error: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err[len("Error: ") : -1]


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    """Call the command line with words, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr("sys.argv", ["hyperboloid", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        return Result(stop.value.code or 0, *capsys.readouterr())

    return call


@pytest.fixture
def process(tmp_path):
    """Run a Python command line in a process of its own."""

    def call(*words, **options):
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            timeout=120,
            **options,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def link_run(tmp_path_factory):
    """A run of link prediction on karate; not to be written to."""
    folder = tmp_path_factory.mktemp("link") / "run"
    hyperboloid.fit("karate", task="link", dim=4, epochs=5, out=folder)
    return folder


@pytest.fixture(scope="session")
def node_run(tmp_path_factory):
    """A run of node classification on karate; not to be written to."""
    folder = tmp_path_factory.mktemp("node") / "run"
    hyperboloid.fit("karate", task="node", dim=4, epochs=5, out=folder)
    return folder


def write_own_graph(folder, name, nodes=24, features=3, offset=0):
    """A ring with chords as the user might keep it: string ids, weights, features and labels in CSV files."""
    folder.mkdir(exist_ok=True)
    ids = [f"{name}-{i}" for i in range(nodes)]
    pairs = [(i, (i + step) % nodes) for i in range(nodes) for step in (1, 5)]
    edges = ["from,to,trust", *(f"{ids[i]},{ids[j]},{1 + i % 4}" for i, j in pairs)]
    rows = [",".join([ids[i], *(str((i * (k + 2) + offset) % 7 + 1) for k in range(features))]) for i in range(nodes)]
    labels = ["node,label", *(f"{ids[i]},{'even' if i % 2 == 0 else 'odd'}" for i in range(nodes))]
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    header = ",".join(["node", *(f"f{k}" for k in range(features))])
    (folder / "features.csv").write_text("\n".join([header, *reversed(rows)]) + "\n")
    (folder / "labels.csv").write_text("\n".join(labels) + "\n")
    return ids, {frozenset((ids[i], ids[j])) for i, j in pairs}


@pytest.fixture
def own_graph(tmp_path):
    """Writes a graph of the user's into a folder below the working folder."""
    return lambda name, **options: write_own_graph(tmp_path / name, name, **options)
