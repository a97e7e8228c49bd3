"""The paper's tables as data: every printed number, once, and the ways to ask for some of them."""

import json

import pytest

from hyperboloid import InputError
from hyperboloid.nn.registry import MODELS as REGISTERED
from hyperboloid.paper.cells import CELL_EXPERIMENTS, DATASETS, DIMS, MODELS, all_cells, cells
from hyperboloid.paper.printed import printed_tables


def find(experiment, **wanted):
    (cell,) = [c for c in cells(experiment) if all(getattr(c, k) == v for k, v in wanted.items())]
    return cell


def test_every_cell_is_there_once():
    assert {name: len(cells(name)) for name in CELL_EXPERIMENTS} == {"link": 216, "node": 216, "ablation": 36}
    everything = all_cells()
    assert len(everything) == len(set(everything)) == 456
    assert sum(cell.experiment == "ablation" for cell in everything) == 24
    assert {cell.model for cell in everything} <= set(REGISTERED)
    # 48 cells of LGCN, of which 44 can be compared with the paper
    lgcn = [cell for cell in everything if cell.model == "lgcn"]
    assert (len(lgcn), sum(cell.comparable for cell in lgcn)) == (48, 44)


def test_printed_numbers_are_fractions():
    cell = find("link", dataset="cora", dim=16, model="lgcn")
    assert (cell.paper_mean, cell.paper_std) == (0.936, 0.004)
    cell = find("ablation", dataset="usa", task="node", model="hgcn_c")
    assert (cell.paper_mean, cell.paper_std) == (0.525, 0.008)
    assert all(0.3 < cell.paper_mean < 1 and 0 <= cell.paper_std < 0.03 for cell in all_cells())


def test_printed_numbers_are_those_of_the_paper(data_dir):
    path = data_dir.parent / "paper" / "tables.json"
    if not path.is_file():
        pytest.skip("the paper's tables are not at hand")
    given, ours = json.loads(path.read_text()), printed_tables()
    assert ours["link_prediction"] == given["link_prediction"]["values"]
    assert ours["node_classification"] == given["node_classification"]["values"]
    assert ours["ablation_dim64"] == given["ablation_dim64"]
    assert ours["delta_avg"] == given["delta_avg"]


def test_one_measurement_serves_two_tables():
    shared = [cell for cell in cells("ablation") if cell.model in ("lgcn", "hgcn")]
    assert len(shared) == 12
    ablation = printed_tables()["ablation_dim64"]
    for cell in shared:
        assert cell in cells(cell.task)
        assert cell.experiment == cell.task
        assert cell.paper_mean == pytest.approx(ablation[cell.model][f"{cell.dataset}/{cell.task}"][0] / 100)


def test_which_graph_stands_for_the_paper_s():
    assert find("link", dataset="disease", dim=8, model="gcn").graph == "disease_lp"
    node = find("node", dataset="disease", dim=8, model="gcn")
    assert (node.graph, node.comparable) == ("disease", False)
    assert all(cell.graph == cell.dataset for cell in all_cells() if cell.dataset != "disease")
    public = {cell.dataset for cell in cells("node") if cell.public_split}
    assert public == {"cora", "citeseer", "pubmed"}
    assert not any(cell.public_split for cell in cells("link"))


def test_filters_keep_the_table_s_order():
    some = cells("link", datasets=["usa", "cora"], dims=[16, 8], models=["gcn", "lgcn"])
    assert [(c.dataset, c.dim, c.model) for c in some] == [
        (dataset, dim, model) for dataset in ("usa", "cora") for dim in (8, 16) for model in ("lgcn", "gcn")
    ]
    assert cells("node") == cells("node", datasets=DATASETS, dims=DIMS, models=MODELS)


def test_all_tables_have_each_cell_once_and_the_quickest_graphs_first():
    every = cells("tables")
    assert len(every) == len(set(every)) == 456
    assert set(every) == {cell for experiment in CELL_EXPERIMENTS for cell in cells(experiment)}
    assert list(dict.fromkeys(cell.dataset for cell in every)) == list(DATASETS)
    some = cells("tables", datasets=["usa"], dims=[64, 8], models=["lgcn", "hgcn_c"])
    assert [(c.task, c.dim, c.model) for c in some] == [
        ("link", 8, "lgcn"), ("link", 64, "lgcn"), ("node", 8, "lgcn"), ("node", 64, "lgcn"),
        ("link", 64, "hgcn_c"), ("node", 64, "hgcn_c"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("experiment", "filters", "sentence"),
    [
        ("zinc", {}, "There is no table 'zinc'; choose one of: link, node, ablation, tables."),
        ("tables", {"models": ["hgcn_c"], "dims": [8]}, "No table has such a cell: the variants of Table 6 are there "),
        ("tables", {"models": ["mlp"]}, "There is no model 'mlp' in 'tables'; choose among: lgcn, gcn, "),
        (
            "link",
            {"datasets": ["karate"]},
            "There is no data set 'karate' in 'link'; choose among: disease, usa, ",
        ),
        ("node", {"dims": [12]}, "There is no dimension '12' in 'node'; choose among: 8, 16, 32, 64."),
        ("node", {"models": ["hgcn_c"]}, "There is no model 'hgcn_c' in 'node'; choose among: lgcn, gcn, "),
        ("ablation", {"datasets": ["cora"]}, "There is no data set 'cora' in 'ablation'; choose among: disease, usa, "),
        ("ablation", {"dims": [8]}, "There is no dimension '8' in 'ablation'; choose among: 64."),
        ("link", {"models": []}, "Name at least one model of 'link': lgcn, "),
    ],
)
def test_what_a_table_does_not_have_is_refused(experiment, filters, sentence):
    with pytest.raises(InputError) as error:
        cells(experiment, **filters)
    assert str(error.value).startswith(sentence)
