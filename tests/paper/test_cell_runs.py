"""Cells measured for real, but tiny: one line each, resumed, in time, never half."""

import dataclasses
import json
import math
import time
from pathlib import Path

import pytest

from hyperboloid import InputError
from hyperboloid.paper import cell_runs, cell_work, protocol
from hyperboloid.paper.board import chosen_lines
from hyperboloid.paper.cell_runs import Session, measure_cells
from hyperboloid.paper.cell_work import label
from hyperboloid.paper.cells import cells
from hyperboloid.paper.protocol import RunProtocol, gave_up_early, judged_by_three, kept_one_hot
from hyperboloid.paper.results import append_line, key_of, read_figure_results, read_results
from hyperboloid.training.config import DTYPES

RESULTS = Path(__file__).parents[2] / "results"
TINY = RunProtocol(tries=2, epochs=3, seeds=2)
KEYS = {
    *("experiment", "dataset", "task", "model", "dim", "target", "test_mean", "test_std", "runs", "split"),
    *("paper_mean", "paper_std", "settings", "commit", "device", "seconds"),  # up to here the design's
    *("graph", "val_mean", "tried", "tests", "epochs", "complete", "versions", "protocol"),
}


class Seen:
    """Notes what it is told."""

    def __init__(self):
        self.started, self.stages, self.skips, self.lines = [], [], [], []

    def start(self, what, number, total):
        self.started.append((what, number, total))

    def stage(self, name):
        self.stages.append(name)
        return lambda alive, epoch, best, finished, total: None

    def done(self, line):
        self.lines.append(line)

    def skipped(self, what, reason):
        self.skips.append((what, reason))


def disease(*models):
    return cells("node", datasets=["disease"], dims=[8], models=models)


@pytest.fixture
def measure(tmp_path):
    """Measure into one folder of results; gives what was seen and the session."""

    def call(asked, **options):
        seen = Seen()
        given = {
            "results": tmp_path / "results",
            "work": tmp_path / "work",
            "protocol": TINY,
            "code": "test",
            **options,
        }
        return seen, measure_cells(asked, seen, **given)

    return call


def test_a_line_has_all_it_needs(measure, tmp_path):
    seen, session = measure(disease("gcn"))
    (raw,) = (tmp_path / "results" / "node.jsonl").read_text().splitlines()
    line = json.loads(raw)
    assert session.lines == seen.lines == [line]
    assert set(line) >= KEYS
    assert (line["experiment"], line["dataset"], line["graph"], line["task"]) == ("node", "disease", "disease", "node")
    assert (line["split"], line["parts"], line["comparable"], line["target"]) == (0, "30/10/60, seed 0", False, None)
    assert (line["paper_mean"], line["paper_std"]) == (0.751, 0.011)
    assert line["protocol"] | {"layers": 2, "mean": None} == dataclasses.asdict(TINY) | {"search": protocol.SEARCH}
    assert (line["runs"], line["tried"], line["failed"], line["commit"], line["complete"]) == (2, 2, 0, "test", True)
    assert [0 < epoch <= TINY.epochs for epoch in line["best_epochs"]] == [True, True]
    assert line["test_mean"] == pytest.approx(sum(line["tests"]) / 2)
    assert line["settings"]["dim"] == 8
    assert line["settings"]["epochs"] == 3
    assert "CPU" in line["device"]
    assert {"torch", "python", "hyperboloid"} <= set(line["versions"])
    assert seen.started == [("node disease d=8 gcn", 1, 1)]
    assert seen.stages == ["search", *["selection"] * len(protocol.ROUNDS["node"]), "test"]


def test_another_number_of_layers_is_a_measurement_beside(measure, tmp_path):
    two = measure(disease("gcn"))[1].lines[0]
    one = measure(disease("gcn"), protocol=dataclasses.replace(TINY, layers=1))[1].lines[0]
    assert (two["settings"]["layers"], one["settings"]["layers"]) == (2, 1)
    assert ("layers" in two["protocol"], one["protocol"]["layers"]) == (False, 1)
    assert two["tests"] != one["tests"]
    assert chosen_lines(read_results(tmp_path / "results"), 0) == [two]
    assert measure(disease("gcn"))[1].measured == 0
    # embeddings without layers are the same measurement
    shallow = RunProtocol(layers=1).record("deepwalk")
    assert shallow == RunProtocol().record("deepwalk")


def test_another_mean_is_a_measurement_beside(measure, tmp_path):
    own = measure(disease("hgcn"))[1].lines[0]
    origin = dataclasses.replace(TINY, mean="origin")
    other = measure(disease("hgcn"), protocol=origin)[1].lines[0]
    assert (own["settings"]["mean"], other["settings"]["mean"]) == (None, "origin")
    assert ("mean" in own["protocol"], other["protocol"]["mean"]) == (False, "origin")
    assert own["tests"] != other["tests"]
    assert chosen_lines(read_results(tmp_path / "results"), 0) == [own]
    assert measure(disease("hgcn"), protocol=origin)[1].measured == 0
    for model in ("gcn", "hgcn_c", "deepwalk"):
        with pytest.raises(InputError, match=f"^{model} averages neighbours in one way only"):
            origin.check_model(model)
    with pytest.raises(InputError, match="There is no mean 'median'"):
        RunProtocol(mean="median")


@pytest.mark.parametrize("model", ["gcn", "kgcn"])
def test_links_found_with_kipf_s_normalisation_are_measured_again(model):
    (old,) = [
        line for line in read_results(RESULTS)
        if (line["dataset"], line["task"], line["dim"], line["model"]) == ("cora", "link", 16, model)
        and line["protocol"].get("search") == 3
    ]  # fmt: skip
    today = RunProtocol().record(model)
    assert not RunProtocol().made(old)
    assert RunProtocol().made(old | {"protocol": today})


def test_lines_whose_models_were_not_waited_for_count_and_are_told_of():
    lines = [line for line in read_results(RESULTS) if line["split"] == 0 and line["protocol"].get("layers", 2) == 2]
    early = [line for line in lines if gave_up_early(line) and RunProtocol().made(line)]
    assert {line["task"] for line in early} == {"link", "node"}
    assert {"lgcn", "gcn", "kgcn", "hat"} <= {line["model"] for line in early}
    assert not {"deepwalk", "poincare_emb"} & {line["model"] for line in early}
    for task in ("link", "node"):
        one = next(line for line in early if line["task"] == task)
        now = one | {"protocol": RunProtocol().record(one["model"])}
        assert RunProtocol().made(now)
        assert not gave_up_early(now)
        assert not RunProtocol().made(one | {"protocol": one["protocol"] | {"search": 2}})


def test_lines_of_before_dropout_reached_one_hot_features_count_for_links_only():
    lines = [line for line in read_results(RESULTS) if line["dataset"] == "usa" and line["model"] in ("lgcn", "hat")]
    links = [line for line in lines if kept_one_hot(line) and RunProtocol().made(line)]
    assert {line["task"] for line in links} == {"link"}
    before = (line for line in lines if line["protocol"].get("search", 1) < protocol.IN_ROUNDS)
    nodes = [line for line in before if line["task"] == "node"]
    assert nodes
    assert not any(RunProtocol().made(line) for line in nodes)


@pytest.mark.parametrize(("task", "dataset", "search"), [("link", "amazon", 5), ("link", "usa", 6), ("node", "usa", 7)])
def test_lines_whose_patience_a_lucky_start_could_begin_count(task, dataset, search):
    """They give way to today's, and lines of searches before them give way to both."""
    lines = read_results(RESULTS)
    one = next(
        x for x in lines if (x["task"], x["dataset"]) == (task, dataset) and x["protocol"].get("search") == search
    )
    assert RunProtocol().made(one)
    assert protocol.rested_on_luck(one)
    assert not protocol.searched_less(one)
    of_search = {n: one | {"protocol": one["protocol"] | {"search": n}, "commit": f"{n}"} for n in (3, search, 8)}
    assert not protocol.counts_still(of_search[8])
    for versions, chosen in (((3, search), search), ((search, 3), search), ((8, search), 8), ((search, 8), 8)):
        (found,) = chosen_lines([of_search[n] for n in versions], 0)
        assert found["commit"] == f"{chosen}"


def test_nodes_selected_without_rounds_count_and_are_told_of():
    before = [line for line in read_results(RESULTS) if judged_by_three(line) and RunProtocol().made(line)]
    assert {line["task"] for line in before} == {"node"}
    assert {"amazon", "pubmed"} <= {line["dataset"] for line in before}
    assert "usa" not in {line["dataset"] for line in before}
    assert not {"deepwalk", "poincare_emb"} & {line["model"] for line in before}


def test_nodes_judged_by_parts_without_rare_classes_are_measured_again():
    lines = [line for line in read_results(RESULTS) if line["split"] == 0 and line["parts"].startswith("20 per class/")]
    assert {line["dataset"] for line in lines} == {"usa", "amazon"}
    assert not any(RunProtocol().made(line) for line in lines)


def test_what_is_there_is_not_measured_again(measure, tmp_path):
    measure(disease("gcn"))
    before = (tmp_path / "results" / "node.jsonl").read_bytes()
    seen, session = measure(disease("gcn"))
    assert (seen.started, session.measured, len(session.lines), session.left) == ([], 0, 1, 0)
    assert (tmp_path / "results" / "node.jsonl").read_bytes() == before
    # another protocol is another measurement
    seen, session = measure(disease("gcn"), protocol=dataclasses.replace(TINY, seeds=1))
    assert session.measured == 1
    assert len(read_results(tmp_path / "results")) == 2


def test_what_is_there_is_measured_again_if_asked_for(measure, tmp_path):
    measure(disease("gcn"))
    seen, session = measure(disease("gcn"), again=True, code="other")
    assert (len(seen.started), session.measured, session.left) == (1, 1, 0)
    first, second = read_results(tmp_path / "results")
    assert (first["commit"], second["commit"]) == ("test", "other")
    assert session.lines == [second]
    assert first["tests"] == second["tests"]
    assert measure(disease("gcn"), again=True, code="third", budget=0.0)[1].left == 1
    # the same command goes on where it stopped, and does not repeat what it has measured
    session = measure(disease("gcn", "gat"), again=True, code="other")[1]
    assert (session.measured, session.lines[0]) == (1, second)


def test_splits_are_measured_again_with_the_search_that_chooses_for_them(measure):
    measure(disease("gcn"))
    assert measure(disease("gcn"), code="other", splits=[0, 1])[1].measured == 1
    session = measure(disease("gcn"), again=True, code="other", splits=[0, 1])[1]
    assert (session.measured, [line["commit"] for line in session.lines]) == (2, ["other", "other"])
    assert measure(disease("gcn"), again=True, code="other", splits=[0, 1])[1].measured == 0


def test_a_line_over_splits_tells_of_the_search_that_chose_its_settings(measure, tmp_path, data_dir):
    asked = cells("link", datasets=["disease"], dims=[8], models=["gcn"])
    quick = RunProtocol(tries=1, epochs=1, seeds=1)
    measure(asked, protocol=quick, data_dir=data_dir)
    (now,) = read_results(tmp_path / "results")
    early = now | {"protocol": now["protocol"] | {"search": protocol.AVERAGED}}
    (tmp_path / "results" / "link.jsonl").write_text(json.dumps(early) + "\n")
    _, session = measure(asked, protocol=quick, splits=[0, 1], data_dir=data_dir)
    assert session.measured == 1
    chosen, ten = read_results(tmp_path / "results")
    assert chosen["protocol"] == ten["protocol"] == early["protocol"]
    assert gave_up_early(ten)


def test_one_line_for_the_ablation_too(measure, tmp_path):
    asked = cells("ablation", datasets=["disease"], models=["lgcn", "lgcn_no_att"])
    quick = RunProtocol(tries=1, epochs=1, seeds=1)
    measure([cell for cell in asked if cell.task == "node"], protocol=quick)
    assert [key_of(line) for line in read_results(tmp_path / "results", ["node"])] == [("disease", "node", "lgcn", 64)]
    assert [line["model"] for line in read_results(tmp_path / "results", ["ablation"])] == ["lgcn_no_att"]
    _, session = measure(cells("node", datasets=["disease"], dims=[64], models=["lgcn"]), protocol=quick)
    assert session.measured == 0


def test_an_interrupted_cell_goes_on_where_it_stopped(measure, monkeypatch, tmp_path):
    whole = measure(disease("gcn"), results=tmp_path / "other", work=tmp_path / "elsewhere")[1].lines[0]
    real, trained = cell_work.sweep_model, []

    def killed_before_the_test(*args, watch, **options):
        def stage(name):
            if name == "test":
                raise KeyboardInterrupt
            return watch(name)

        return real(*args, watch=stage, **options)

    monkeypatch.setattr(cell_work, "sweep_model", killed_before_the_test)
    with pytest.raises(KeyboardInterrupt):
        measure(disease("gcn"))
    assert not (tmp_path / "results").exists()
    (folder,) = (tmp_path / "work").iterdir()
    spent = json.loads((folder / "spent.json").read_text())["seconds"]
    monkeypatch.setattr(cell_work, "sweep_model", real)
    from hyperboloid.training import selection

    train = selection.train_many
    monkeypatch.setattr(
        selection, "train_many", lambda m, t, runs, **o: trained.append(len(runs)) or train(m, t, runs, **o)
    )
    _, session = measure(disease("gcn"))
    assert trained == [0, *[0] * len(protocol.ROUNDS["node"]), 2]  # the search, the selection's rounds, the test
    assert session.lines[0]["tests"] == whole["tests"]
    assert session.lines[0]["seconds"] > spent > 0


def test_a_kill_between_cells_loses_nothing(measure, monkeypatch, tmp_path):
    real = cell_runs.append_line

    def append_and_die(folder, line):
        real(folder, line)
        raise KeyboardInterrupt

    monkeypatch.setattr(cell_runs, "append_line", append_and_die)
    with pytest.raises(KeyboardInterrupt):
        measure(disease("gcn", "lgcn"))
    assert [line["model"] for line in read_results(tmp_path / "results")] == ["lgcn"]
    monkeypatch.setattr(cell_runs, "append_line", real)
    seen, session = measure(disease("gcn", "lgcn"))
    assert [what for what, _, _ in seen.started] == ["node disease d=8 gcn"]
    assert len(session.lines) == len(read_results(tmp_path / "results")) == 2


def test_out_of_time_nothing_is_written(measure, tmp_path):
    began = time.monotonic()
    long = dataclasses.replace(TINY, tries=None, epochs=100_000, patience=100_000)
    seen, session = measure(disease("gcn", "lgcn"), protocol=long, budget=1.0)
    assert time.monotonic() - began < 60  # instead of hours
    assert (session.measured, session.left, session.lines) == (0, 2, [])
    assert not (tmp_path / "results").exists()
    assert [what for what, _, _ in seen.started] == ["node disease d=8 lgcn"]
    # nothing that was cut short counts as a trial
    (folder,) = (tmp_path / "work").iterdir()
    assert not (folder / "trials.jsonl").exists()


def test_several_splits_share_the_chosen_setting(measure, tmp_path):
    seen, session = measure(disease("gcn"), splits=[0, 1, 2])
    one, three = session.lines
    assert (one["split"], three["split"], three["parts"]) == (0, "0-2", "30/10/60, seeds 0-2")
    assert three["settings"] == one["settings"]
    assert three["runs"] == 6
    assert three["test_by_split"]["0"] == one["tests"]
    assert three["tests"] == [test for tests in three["test_by_split"].values() for test in tests]
    assert len({tuple(tests) for tests in three["test_by_split"].values()}) == 3
    assert seen.started[1] == ("node disease d=8 gcn, split 0-2", 2, 2)
    assert measure(disease("gcn"), splits=[0, 1, 2])[1].measured == 0
    # another search has chosen otherwise: the splits are measured again, with its choice
    append_line(tmp_path / "results", one | {"settings": one["settings"] | {"lr": 0.002}})
    again = measure(disease("gcn"), splits=[0, 1, 2])[1]
    assert (again.measured, again.lines[1]["settings"]["lr"]) == (1, 0.002)


def test_a_public_split_has_no_others():
    jobs = cell_runs._jobs(cells("node", dims=[8], models=["gcn"]), list(range(10)), None)
    assert {job.cell.dataset for job in jobs if job.split == "0-9"} == {"disease", "usa", "amazon"}


def test_masks_are_for_the_nodes_of_amazon():
    jobs = cell_runs._jobs(cells("ablation"), [], "authors")
    assert {(job.cell.dataset, job.cell.task, job.split) for job in jobs} == {("amazon", "node", "authors")}
    assert len(jobs) == 6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"masks": "authors"}, "Only the nodes of amazon come with the authors' masks, "),
        ({"masks": "public"}, "There are no masks 'public'; choose: authors."),
        ({"masks": "authors", "splits": [0, 1]}, "Give either masks or splits"),
        ({"splits": [3]}, "Give at least two splits, each once, not 3."),
        ({"splits": [3, 3]}, "Give at least two splits, each once, not 3, 3."),
        ({"device": "cuda:99"}, "device cuda:99 was asked for, "),
    ],
)
def test_what_makes_no_sense_is_refused(measure, options, sentence):
    with pytest.raises(InputError) as error:
        measure(disease("gcn"), **options)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize("given", [{"tries": 0}, {"seeds": 0}, {"epochs": 0}, {"layers": 0}, {"dtype": "half"}])
def test_a_protocol_is_checked(given):
    with pytest.raises(InputError, match=next(iter(given))):
        RunProtocol(**given)
    assert RunProtocol().dtype in DTYPES


def test_a_model_that_lacks_its_library_is_skipped(measure, monkeypatch, tmp_path):
    def missing(*args, **options):
        if args[0] == "deepwalk":
            raise InputError("This model needs scikit-learn.")
        return real(*args, **options)

    real = cell_work.sweep_model
    monkeypatch.setattr(cell_work, "sweep_model", missing)
    seen, session = measure(disease("deepwalk", "gcn"))
    assert session.skipped == {"node disease d=8 deepwalk": "This model needs scikit-learn."}
    assert seen.skips == list(session.skipped.items())
    assert (session.measured, session.left) == (1, 0)
    assert "skipped" in session.table("node").remarks[0]
    assert [line["model"] for line in read_results(tmp_path / "results")] == ["gcn"]


def test_absent_data_is_an_error(measure, tmp_path, monkeypatch):
    monkeypatch.delenv("HYPERBOLOID_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match="amazon"):
        measure(cells("link", datasets=["amazon"], dims=[8], models=["gcn"]), data_dir=tmp_path)


def test_label():
    assert (label([0, 1, 2]), label([0, 3])) == ("0-2", "0,3")


# ---- the file of results


def line_of(model="gcn", **more):
    cell = disease(model)[0]
    base = {"experiment": "node", "dataset": "disease", "task": "node", "model": model, "dim": 8, "split": 0}
    scores = {"test_mean": cell.paper_mean, "test_std": 0.01, "runs": 10, "grid": 256, "settings": {}, "protocol": {}}
    return base | scores | {"parts": "30/10/60, seed 0"} | more


def line_without(name):
    return {key: value for key, value in line_of().items() if key != name}


def test_a_line_cut_off_is_no_line(tmp_path):
    append_line(tmp_path, line_of("gcn"))
    path = tmp_path / "node.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    assert [line["model"] for line in read_results(tmp_path)] == ["gcn"]
    append_line(tmp_path, line_of("lgcn"))
    assert [json.loads(raw)["model"] for raw in path.read_text().splitlines()] == ["gcn", "lgcn"]


def test_a_last_line_without_its_newline_is_kept(tmp_path):
    append_line(tmp_path, line_of("gcn"))
    path = tmp_path / "node.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    assert len(read_results(tmp_path)) == 1
    append_line(tmp_path, line_of("lgcn"))
    assert [line["model"] for line in read_results(tmp_path)] == ["gcn", "lgcn"]


BAD_LINES = {
    "{nonsense": "is not a measured cell: it is not JSON",
    "\0": "is not a measured cell: it is not JSON",
    json.dumps(line_of()) * 2: "is not a measured cell: it is not JSON",
    json.dumps(line_of())[:60]: "is not a measured cell: it is not JSON",
    "[" * 100_000: "is not a measured cell: it is not JSON",
    '{"dim": ' + "9" * 5000 + "}": "is not a measured cell: it is not JSON",
    "[1, 2]": "is not a measured cell: it is not a JSON object",
    "null": "is not a measured cell: it is not a JSON object",
    '{"dataset": "cora"}': "is not a measured cell: it has no task",
    json.dumps(line_without("test_mean")): "it has no test_mean",
    json.dumps(line_without("grid")): "it has no grid",
    json.dumps(line_without("parts")): "it has no parts",
    json.dumps(line_of(test_mean="high")): 'its test_mean is "high", not a number',
    json.dumps(line_of(test_mean=True)): "its test_mean is true, not a number",
    json.dumps(line_of(test_mean=math.nan)): "its test_mean is NaN, not a number",
    json.dumps(line_of(test_mean=10**400)): "not a number; correct",
    json.dumps(line_of(test_std=-1)): "its test_std is -1, not a number of at least 0",
    json.dumps(line_of(val_mean=[])): "its val_mean is [], not a number",
    json.dumps(line_of(seconds=None)): "its seconds is null, not a number of at least 0",
    json.dumps(line_of(paper_mean="x")): 'its paper_mean is "x", not a number or null',
    json.dumps(line_of(tests=[0.5, "x"])): 'its tests is [0.5, "x"], not a list of numbers',
    json.dumps(line_of(test_by_split={"0": []})): "not a JSON object of lists of numbers",
    json.dumps(line_of(runs=0)): "its runs is 0, not a whole number above 0",
    json.dumps(line_of(runs=2.5)): "its runs is 2.5, not a whole number above 0",
    json.dumps(line_of(grid=None)): "its grid is null, not a whole number above 0",
    json.dumps(line_of(tried={})): "its tried is {}, not a whole number above 0",
    json.dumps(line_of(parts=None)): "its parts is null, not text",
    json.dumps(line_of(dataset=["x" * 99])): "its dataset is …, not text",
    json.dumps(line_of(split=True)): "its split is true, not a whole number or text",
    json.dumps(line_of(comparable=1)): "its comparable is 1, not true or false",
    json.dumps(line_of(dim=[8])): "its dim is [8], not a whole number above 0",
    json.dumps(line_of(protocol=[])): "its protocol is [], not a JSON object",
    json.dumps(line_of(protocol={"search": "x"})): 'its search is "x", not a whole number above 0',
    json.dumps(line_of(protocol={"layers": [1]})): "its layers is [1], not a whole number above 0",
    json.dumps(line_of(protocol={"mean": "median"})): "its settings cannot be: mean must be",
    json.dumps(line_of(settings={"nosuch": 1})): "its settings cannot be: There is no setting 'nosuch'; correct",
    json.dumps(line_of(settings={"lr": "x"})): "its settings cannot be: lr must be a number, not 'x'",
    json.dumps(line_of(dim=9)): "belongs to no cell of the paper: disease node gcn 9",
}


@pytest.mark.parametrize("raw", BAD_LINES, ids=BAD_LINES.values())
def test_a_bad_line_is_named(tmp_path, raw):
    (tmp_path / "node.jsonl").write_text(f"{json.dumps(line_of())}\n{raw}\n{json.dumps(line_of())}\n")
    with pytest.raises(InputError) as error:
        read_results(tmp_path)
    assert BAD_LINES[raw] in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'node.jsonl'}, line 2 ")
    assert str(error.value).endswith("; correct or remove the line.")


def test_lines_of_figures_are_checked_for_what_they_share(tmp_path):
    (tmp_path / "delta.jsonl").write_text('{"dataset": null, "model": 3}\n')
    with pytest.raises(InputError, match="line 1 is not a measurement of 'delta': its model is 3, not text; correct"):
        read_figure_results(tmp_path, "delta", ["dataset"])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "link.jsonl").write_bytes(b"{}\n\xff\xfe\x00")
    with pytest.raises(InputError, match=r"Cannot read .*link\.jsonl, line 2: it is not UTF-8 text; correct"):
        read_results(tmp_path)
    (tmp_path / "node.jsonl").mkdir()
    with pytest.raises(InputError, match=r"Cannot read .*node\.jsonl: Is a directory; name another folder"):
        read_results(tmp_path, ["node"])


@pytest.mark.parametrize("noted", ["", "[]", '{"seconds": "x"}', '{"seconds": NaN}', '{"seconds": -1}', "[" * 100_000])
def test_damaged_notes_of_the_time_spent_are_told(measure, tmp_path, noted):
    quick = RunProtocol(tries=1, epochs=1, seeds=1)
    measure(disease("gcn"), protocol=quick)
    (folder,) = (tmp_path / "work").iterdir()
    (tmp_path / "results" / "node.jsonl").unlink()
    (folder / "spent.json").write_text(noted)
    _, session = measure(disease("gcn"), protocol=quick)
    (reason,) = session.skipped.values()
    assert reason == f"{folder / 'spent.json'} is damaged: remove its folder to measure the cell from the beginning."


# ---- the table


@pytest.mark.parametrize(
    ("more", "printed", "difference"),
    [
        ({}, None, None),
        ({"paper_mean": 0.75, "paper_std": 0.01, "comparable": True}, "75.0 ± 1.0", "+5.0"),
        ({"paper_mean": 0.75, "paper_std": 0.01, "comparable": False}, "75.0 ± 1.0", None),
    ],
)
def test_the_table_has_a_difference_where_graphs_are_the_same(more, printed, difference):
    table = Session(lines=[line_of(test_mean=0.8, **more)]).table("node")
    (row,) = table.rows
    assert (row["measured"], row["printed"], row["diff"]) == ("80.0 ± 1.0", printed, difference)
    assert ["not comparable" in remark for remark in table.remarks] == ([True] if printed and not difference else [])
