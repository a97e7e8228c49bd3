"""The README's figures, on fewer runs: minutes, so only in `make test-all`."""

import pytest

import hyperboloid


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "task", "dim", "split", "seeds", "at_least"),
    [
        ("cora", "link", 16, [2, 3, 4], 1, 0.93),
        ("usa", "link", 16, [0, 3], 1, 0.963),
        ("disease_lp", "link", 16, [0, 1], 1, 0.97),
        ("cora", "node", 64, [0], 4, 0.815),
        ("citeseer", "node", 64, [0], 4, 0.71),
    ],
)
def test_reaches_the_papers_numbers(tmp_path, data_dir, dataset, task, dim, split, seeds, at_least):
    experiment = hyperboloid.fit(
        dataset, task=task, dim=dim, split=split, seeds=seeds, data_dir=data_dir, out=tmp_path / "run"
    )
    assert experiment.summary["test_mean"] >= at_least
