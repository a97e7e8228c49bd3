"""Table 7: cells, lines of results, resuming, and the page."""

import json

import pytest

from hyperboloid import InputError
from hyperboloid.paper.claims import PARTLY
from hyperboloid.paper.printed import printed_tables
from hyperboloid.paper.zinc import MODELS, ZincCell, ZincProtocol, measure_zinc, read_zinc, zinc_cells
from hyperboloid.paper.zinc_report import chosen_zinc, zinc_section

SMALL = ZincProtocol(seeds=2, epochs=2, dim=4, lrs=(0.001, 0.01), molecules=40)


class Quiet:
    def __init__(self):
        self.finished = []

    def start(self, what, number, total):
        pass

    def done(self, line):
        self.finished.append(line)

    def skipped(self, what, reason):
        raise AssertionError(reason)


@pytest.fixture
def measure(data_dir, tmp_path):
    if not (data_dir / "zinc").is_dir():
        pytest.skip("the files of zinc are absent")

    def call(cells, **given):
        where = {"results": tmp_path / "results", "work": tmp_path / "work", "data_dir": data_dir, "code": "test"}
        return measure_zinc(cells, Quiet(), **{**where, "protocol": SMALL, **given})

    return call


def test_the_cells_are_the_papers_and_the_variant():
    cells = zinc_cells()
    assert len(cells) == 18
    assert {cell.model for cell in cells if cell.printed[0] is not None} == set(printed_tables()["zinc_mae_x100"])
    assert ZincCell("hgnn_l", "logp").printed == (0.022, 0.0003)
    assert ZincCell("hgnn_h", "qed").printed == (0.047, 0.0)
    assert ZincCell("hgnn_l_scaled", "sas").printed == (None, None)
    assert [cell.target for cell in zinc_cells(models=["mpnn"], properties=["sas", "logp"])] == ["logp", "sas"]


def test_a_cell_is_measured_once_and_by_validation(measure, tmp_path):
    cells = zinc_cells(models=["hgnn_l", "hgnn_l_scaled"], properties=["qed"])
    session = measure(cells)
    assert session.measured == 2
    assert session.left == 0
    line = session.lines[0]
    needed = (
        "experiment dataset task model dim target test_mean test_std runs split paper_mean paper_std settings commit"
    )
    assert set(f"{needed} device seconds property protocol".split()) <= line.keys()
    assert (line["property"], line["runs"], len(line["tests"]), line["tried"]) == ("qed", 2, 2, 2)
    best = min(line["val_by_lr"], key=line["val_by_lr"].get)
    assert line["settings"]["lr"] == float(best)
    assert line["comparable"] is False  # few molecules
    assert json.loads((tmp_path / "results" / "zinc.jsonl").read_text().splitlines()[0]) == line
    assert measure(cells).measured == 0
    assert measure(cells, protocol=ZincProtocol(epochs=1, dim=4, molecules=40)).measured == 2
    assert len(read_zinc(tmp_path / "results")) == 4
    assert session.table("zinc").texts()[1][5] == "–"  # the paper has no such method


def test_learning_rates_can_be_tried_by_short_runs(measure):
    told = []
    protocol = ZincProtocol(seeds=2, epochs=3, dim=4, lrs=(0.001, 0.01), trial_epochs=1, molecules=40)
    (line,) = measure(zinc_cells(["ggnn"], ["logp"]), protocol=protocol, tell=told.append).lines
    assert sum("epoch 1 of 1" in text for text in told) == 2
    assert sum("epoch 3 of 3" in text for text in told) == len(line["tests"]) == 2
    assert (line["epochs"], line["settings"]["epochs"]) == (8, 3)
    assert line["settings"]["lr"] == float(min(line["val_by_lr"], key=line["val_by_lr"].get))


def test_without_time_nothing_is_measured_and_later_it_goes_on(measure, tmp_path):
    cells = zinc_cells(models=["ggnn"], properties=["logp"])
    assert measure(cells, budget=0.0).left == 1
    told = []
    assert measure(cells, tell=told.append).measured == 1
    # of two learning rates and one more initialisation, each an epoch after the other
    assert sum("epoch 2 of 2" in text for text in told) == 3


def line_of(model, name, error, **protocol):
    made = {**ZincProtocol().as_json(), **protocol}
    return {
        "experiment": "zinc", "dataset": "zinc", "task": "graph", "model": model, "dim": made["dim"],
        "property": name, "test_mean": error, "test_std": 0.0, "runs": 1, "protocol": made,
        "settings": {"batch_size": 128}, "split": "hgnn", "device": "x", "commit": "y",
    }  # fmt: skip


def write(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / "zinc.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_page_has_measured_beside_printed_and_judges_the_claim(tmp_path):
    assert "Nothing has been measured" in zinc_section(tmp_path)[0]
    lines = [line_of("hgnn_l", "logp", 0.5, molecules=40), line_of("hgnn_l", "logp", 0.03)]
    lines += [line_of("hgnn_h", "logp", 0.04), line_of("hgnn_p", "logp", 0.05)]
    lines += [line_of("hgnn_l", "qed", 0.06), line_of("hgnn_h", "qed", 0.05), line_of("hgnn_p", "qed", 0.07)]
    lines += [line_of("hgnn_l", "sas", 0.06), line_of("hgnn_h", "sas", 0.05, epochs=7), line_of("hgnn_p", "sas", 0.07)]
    write(tmp_path, lines)
    page, found = zinc_section(tmp_path)
    assert "**3.00** [1] (2.20 ± 0.03)" in page  # of one run nothing is known of the spread
    assert "– (4.10 ± 0.02)" in page
    assert "| hgnn_h | **4.00** [1] (2.40 ± 0.02) | **5.00** [1] (4.70 ± 0.00) | **5.00** [2] (7.70 ± 0.06) |" in page
    # SAS of HGNN_H had fewer epochs, and GGNN and MPNN are not there
    assert (found.verdict, found.compared, found.of) == (PARTLY, 5, 12)
    assert "After 300 of 300 epochs, HGNN_L has the smaller error in 4 of 5 comparisons" in page
    assert "; not against hgnn_h (qed)." in page
    assert "at most 300 epochs of batches of 128, all molecules" in page
    write(tmp_path, [line_of("hgnn_l", "logp", 0.03, lrs=[0.1, 0.2], trial_epochs=2), *lines])
    assert "learning rate 0.1 or 0.2 (the better on validation in runs of 2 epochs)" in zinc_section(tmp_path)[0]
    assert len(chosen_zinc(read_zinc(tmp_path))) == 9


def test_lines_of_something_else_are_refused(tmp_path):
    write(tmp_path, [line_of("hgnn_l", "mass", 0.1)])
    with pytest.raises(InputError, match=r"zinc\.jsonl, line 1 belongs to no cell of 'zinc'"):
        read_zinc(tmp_path)
    write(tmp_path, [{**line_of("hgnn_l", "logp", 0.1), "runs": 0}])
    with pytest.raises(InputError, match="is not a measured cell"):
        read_zinc(tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"molecules": 5}, "molecules must be at least 10"),
        ({"lrs": ()}, "Learning rates must be positive"),
        ({"lrs": (0.1, 0.1)}, "Learning rates must be positive and differ"),
    ],
)
def test_protocols_that_cannot_be(given, message):
    with pytest.raises(InputError, match=message):
        ZincProtocol(**given)
    assert set(MODELS) >= set(printed_tables()["zinc_mae_x100"])
