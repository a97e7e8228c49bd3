"""The pictures of embeddings: what colours say, and that large graphs give files one can open."""

import networkx
import numpy as np
import pytest
import torch

import hyperboloid
from hyperboloid import InputError
from hyperboloid.analysis.disk_picture import COLOUR_BY, MOST_EDGES, colouring, draw_disk
from hyperboloid.analysis.style import save_figure


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        task: hyperboloid.fit("karate", task=task, dim=4, epochs=3, out=folder / task).best for task in ("link", "node")
    }


def groups(found):
    return {name: np.flatnonzero(chosen).tolist() for name, chosen, _ in found.groups}


def test_colours_by_label(runs):
    found, y = groups(colouring(runs["node"], "label")), runs["node"].graph.y.tolist()
    assert found == {name: [i for i, c in enumerate(y) if c == k] for k, name in enumerate(("Mr. Hi", "Officer"))}


def test_classes_differ_in_shape_too_so_that_grey_print_tells_them_apart(runs):
    looks = [look["marker"] for _, _, look in colouring(runs["node"], "label").groups]
    assert len(set(looks)) == len(looks)


def test_colours_by_degree_and_depth(runs):
    club = networkx.karate_club_graph()
    degree = colouring(runs["link"], "degree").numbers
    np.testing.assert_allclose(10**degree - 1, [len(club[i]) for i in range(34)])
    depth = colouring(runs["link"], "depth").numbers
    (centre,) = np.flatnonzero(depth == 0)
    assert depth.tolist() == [networkx.shortest_path_length(club, centre, i) for i in range(34)]


def test_colours_by_split(runs):
    split = runs["node"].task.split
    found = groups(colouring(runs["node"], "split"))
    assert found["training"] == sorted(split.train.tolist())
    assert found["test"] == sorted(split.test.tolist())
    assert sum(map(len, found.values())) == 34


@pytest.mark.parametrize("task", ["link", "node"])
@pytest.mark.parametrize("by", COLOUR_BY)
def test_every_colouring_draws(runs, task, by, tmp_path):
    save_figure(draw_disk(runs[task], by), tmp_path / "disk.svg")
    text = (tmp_path / "disk.svg").read_text()
    assert ("test edges" in text) == (task == "link" and by == "split")


def test_unknown_colours_and_missing_labels_are_refused(runs, tmp_path):
    with pytest.raises(InputError, match="label, degree, depth, split, not 'colour'"):
        colouring(runs["link"], "colour")
    ring = networkx.cycle_graph(40)
    run = hyperboloid.fit(ring, dim=2, epochs=1, out=tmp_path / "run").best
    assert colouring(run, None).title == "log10(1 + degree)"
    with pytest.raises(InputError, match="has no labels"):
        colouring(run, "label")


def test_a_large_graph_becomes_a_small_file_that_says_what_it_leaves_out(tmp_path):
    many = MOST_EDGES + 5000
    graph = networkx.gnm_random_graph(8000, many, seed=0)
    run = hyperboloid.fit(graph, dim=2, epochs=1, out=tmp_path / "run").best
    save_figure(draw_disk(run), tmp_path / "disk.svg")
    text = (tmp_path / "disk.svg").read_text()
    assert f"{MOST_EDGES:,} of {many:,} edges" in text
    assert "<image" in text  # edges and nodes are pixels
    assert len(text) < 3_000_000


def test_a_euclidean_model_is_drawn_in_the_plane_and_a_relu_is_named(tmp_path):
    flat = hyperboloid.fit("karate", model="gcn", dim=4, epochs=2, out=tmp_path / "gcn").best
    save_figure(draw_disk(flat), tmp_path / "flat.svg")
    assert "Euclidean" in (tmp_path / "flat.svg").read_text()
    assert "orthant" not in (tmp_path / "flat.svg").read_text()
    bent = hyperboloid.fit("karate", dim=4, epochs=2, last_activation=True, out=tmp_path / "relu").best
    assert float(bent.encode().min()) == 0  # one orthant indeed
    save_figure(draw_disk(bent), tmp_path / "bent.svg")
    assert "one orthant" in (tmp_path / "bent.svg").read_text()


@pytest.mark.parametrize("size", [0.1, 3.0])
def test_points_near_the_middle_are_looked_at_closely(tmp_path, runs, size, monkeypatch):
    run = hyperboloid.load(runs["link"].folder).best
    monkeypatch.setattr(run, "encode", lambda: size * torch.randn(34, 4, generator=torch.Generator().manual_seed(0)))
    save_figure(draw_disk(run), tmp_path / "disk.svg")
    assert ("of the disk's radius" in (tmp_path / "disk.svg").read_text()) == (size < 1)
