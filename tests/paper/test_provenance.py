"""The name of the code that measured a number."""

import subprocess

import pytest

from hyperboloid.paper import provenance


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A package and results in a repository of their own; gives a function that calls git there."""

    def git(*words):
        who = ["-c", "user.name=x", "-c", "user.email=x@y.z", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("one = 1\n")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link.jsonl").write_text("{}\n")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    git("init", "--quiet")
    return git


def test_results_do_not_rename_the_code_but_its_own_files_do(repository, tmp_path):
    bare = provenance.code_version()
    assert bare.startswith("source ")  # nothing is committed yet
    repository("add", ".")
    repository("commit", "--quiet", "-m", "all")
    commit = repository("rev-parse", "--short", "HEAD")
    assert provenance.code_version() == commit
    with (tmp_path / "results" / "link.jsonl").open("a") as file:
        file.write("{}\n")  # what measuring a cell does
    assert provenance.code_version() == commit
    repository("commit", "--quiet", "--all", "-m", "results")
    assert provenance.code_version() == commit != repository("rev-parse", "--short", "HEAD")
    (provenance.PACKAGE / "new.py").write_text("two = 2\n")
    changed = provenance.code_version()
    assert changed.startswith(f"{commit}-dirty source ")
    (provenance.PACKAGE / "new.py").write_text("two = 3\n")
    assert provenance.code_version() not in (changed, commit)
