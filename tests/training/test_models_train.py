"""Every model trains on every kind of graph without a single number that is not finite."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

import hyperboloid
from hyperboloid import InputError
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.datasets import DATASETS
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.tasks import TASKS

#: to save time: by default ten walks of 80 nodes start from every node in each epoch
FEWER = {"deepwalk": {"walks": 1, "walk_length": 20}}


@pytest.fixture(scope="module", params=["karate", "disease", "usa", "cora"])
def graph(request):
    """Without features, with dense ones, without again but larger, with sparse ones."""
    if request.param in ("usa", "cora"):
        return load_graph(request.param, data_dir=request.getfixturevalue("data_dir"))
    return load_graph(request.param)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", MODELS)
def test_five_epochs_are_finite(graph, model, task, tmp_path):
    experiment = hyperboloid.fit(
        graph, task=task, model=model, dim=8, epochs=5, out=tmp_path / "run", **FEWER.get(model, {})
    )
    summary = experiment.summary
    assert summary["epochs"] == 5
    for part in ("val", "test"):
        assert 0 <= summary[f"{part}_mean"] <= 1
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 5
    for line in lines:
        for key, value in line.items():
            assert all(math.isfinite(v) for v in (value if isinstance(value, list) else [value])), key
    # what was written is what was trained
    assert experiment.best.score("val").metric == pytest.approx(summary["val_mean"], abs=1e-6)


# ---- the whole sweep


@pytest.fixture(scope="module")
def no_nan():
    """The module benchmarks/no_nan.py, which is not part of the package."""
    path = Path(__file__).parents[2] / "benchmarks" / "no_nan.py"
    if not path.is_file():
        pytest.skip("this copy of the tests came without benchmarks/")
    spec = importlib.util.spec_from_file_location("no_nan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sweep_writes_each_combination_once(no_nan, tmp_path):
    out = tmp_path / "no_nan.jsonl"
    first = list(no_nan.sweep(out, epochs=1, models=["mlp"], datasets=["karate"]))
    assert [(line["task"], line["finite"]) for line in first] == [("link", True), ("node", True)]
    second = list(no_nan.sweep(out, epochs=1, models=["mlp", "gcn"], datasets=["karate"]))
    assert [line["model"] for line in second] == ["gcn", "gcn"]
    assert [json.loads(line) for line in out.read_text().splitlines()] == first + second
    assert list(no_nan.sweep(out, epochs=1, models=["mlp", "gcn"], datasets=["karate"])) == []


def test_the_sweep_says_where_a_run_failed(no_nan):
    line = no_nan.try_one(load_graph("karate"), "link", "mlp", 3, lr=99.0, layers=40)
    assert line["finite"] is False
    assert "not finite" in line["error"]
    assert line["val"] is None


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_fifty_epochs_are_finite(no_nan, dataset, model, tmp_path, data_dir):
    try:
        load_graph(dataset, data_dir=data_dir)
    except InputError as error:
        pytest.skip(f"the files of {dataset} are absent: {error}")
    lines = list(no_nan.sweep(tmp_path / "out.jsonl", epochs=50, models=[model], datasets=[dataset], data_dir=data_dir))
    assert {line["task"] for line in lines} == set(TASKS)
    assert all(line["finite"] for line in lines), [line for line in lines if not line["finite"]]
