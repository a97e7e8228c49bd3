"""By which rules lines were measured: an order of versions, of which not every one concerns every cell."""

import pytest

from hyperboloid.paper.alike import by_age, measured_apart
from hyperboloid.paper.cells import all_cells
from hyperboloid.paper.protocol import behind, counts_still


def line(task, dataset, model, search):
    return {"task": task, "dataset": dataset, "model": model, "dim": 8, "protocol": {"search": search}}


@pytest.mark.parametrize(
    ("task", "dataset", "model", "searches"),
    [
        # 4 and 6 changed nothing for most links, 4 and 5 nothing for nodes
        ("link", "cora", "gat", {8: 0, 5: 1, 3: 2}),
        ("link", "cora", "gcn", {8: 0, 5: 1, 4: 2}),  # 4: neighbours are averaged
        ("link", "usa", "gat", {8: 0, 6: 1, 5: 2, 3: 3}),  # 6: dropout of one-hot features
        ("link", "usa", "kgcn", {8: 0, 6: 1, 5: 2, 4: 3}),
        ("node", "cora", "gcn", {8: 0, 7: 1, 6: 2, 3: 3}),  # 6: rounds
        ("node", "usa", "gat", {8: 0, 7: 1, 6: 2}),
    ],
)
def test_how_far_lines_are_behind_and_which_count(task, dataset, model, searches):
    for search in range(1, 9):
        one = line(task, dataset, model, search)
        if search in searches:
            assert behind(one) == searches[search]
        assert counts_still(one) == (min(searches) <= search < 8)
    assert by_age([line(task, dataset, model, search) for search in searches]) == (1, 1, len(searches) - 2)


def test_the_shallow_embeddings_have_had_one_search():
    one = line("link", "cora", "deepwalk", None)
    del one["protocol"]["search"]
    assert (behind(one), counts_still(one), by_age([one])) == (0, False, (1, 0, 0))


def test_cells_are_named_on_the_side_of_the_later_rules():
    first, second = (next(c for c in all_cells() if (c.dataset, c.model) == ("cora", m)) for m in ("lgcn", "gat"))
    old, new = line("link", "cora", "gat", 3), line("link", "cora", "gat", 5)
    told = measured_apart([(first, old, new), (second, new, old), (second, new, new)], "here", "there")
    assert told.endswith("those of here for link cora d=8 gat; those of there for link cora d=8 lgcn.")
    # what concerns others does not set them apart
    assert not measured_apart([(first, old, line("link", "cora", "gcn", 4)), (second, new, new)], "here", "there")
    assert not measured_apart([], "here", "there")
