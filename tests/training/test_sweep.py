"""A sweep: search, selection and test kept apart, resumable, in time."""

import dataclasses
import itertools
import json
import time

import networkx
import pytest
import torch
from torch_geometric.data import Data

from hyperboloid import InputError, TrainingError
from hyperboloid.graphs import load_graph
from hyperboloid.scores import two_errors
from hyperboloid.training import selection
from hyperboloid.training.batch import Outcome
from hyperboloid.training.experiment import load
from hyperboloid.training.grids import grid
from hyperboloid.training.journal import Journal
from hyperboloid.training.selection import ROUNDS, SEARCH_SEED, SELECTION_SEED, sweep_model
from hyperboloid.training.settings import Settings, default_settings
from hyperboloid.training.sweep import sweep, task_factory
from hyperboloid.training.trial import Trial

QUICK = {"dim": 3, "epochs": 4, "tries": 3}
EASY = QUICK | {"epochs": 100}


def lines(folder):
    found = []
    for line in (folder / "trials.jsonl").read_text().splitlines():
        entry = json.loads(line)
        stage, model, settings, seed = json.loads(entry.pop("key"))
        found.append({"stage": stage, "model": model, "settings": settings, "seed": seed, **entry})
    return found


def test_the_grid_is_the_paper_s_and_a_little_more():
    link = grid("gcn", "link", "cora", dim=8, layers=2)
    of_paper = 4 * 9 * 8  # and one dropout more
    # p applies to weights or to features, which is the same where it is 0
    assert len(link) == len(set(link)) == 2 * of_paper - 4 * 8
    assert {s.lr for s in link} == {0.01, 0.008, 0.005, 0.001}
    assert all(s.dim == 8 and s.att_dropout == 0 and 0 in (s.dropout, s.drop_connect) for s in link)
    assert {s.drop_connect for s in link} == {s.dropout for s in link} == {k / 10 for k in range(9)}
    node = grid("hgcn", "node", "cora", dim=8)
    assert len(node) == 3 * of_paper - 2 * 4 * 8
    drops = {(s.att_dropout, s.drop_connect) for s in node if s.dropout == 0.6}
    assert drops == {(0.6, 0.3), (0.3, 0.3), (0.0, 0.0)}
    assert len(grid("gcn", "node", "cora", dim=8)) == len(link)  # it has no use for att_dropout
    either = grid("gcn", "link", "cora", dim=8)
    assert set(either) == {dataclasses.replace(s, layers=n) for s in link for n in (1, 2)}
    assert {s.layers for s in grid("gcn", "link", "cora", short=True)} == {1}
    all_four = grid("lgcn", "link", "cora", dim=8, layers=2)
    assert len(all_four) == 4 * len(link)
    ways = {(distance, cap) for distance in ("intrinsic", "lorentz") for cap in (None, 1.0)}
    assert {(s.distance, s.att_cap) for s in all_four} == ways
    bounded = grid("lgcn", "node", "cora", dim=8)
    assert len(bounded) == 2 * len(node)
    assert {s.att_cap for s in bounded} == {None, 1.0}
    assert len(grid("lgcn_no_att", "link", "cora", dim=8)) == 2 * len(either)
    assert len(grid("lgcn_no_att", "node", "cora", dim=8)) == len(node)
    assert all(not s.train_beta for s in grid("lgcn_no_beta", "link", "cora", dim=8))


@pytest.mark.parametrize("model", ["gcn", "kgcn"])
def test_neighbours_are_averaged_for_links_and_summed_for_nodes(model):
    for task, normalization in (("link", "rows"), ("node", "symmetric")):
        assert {s.normalization for s in grid(model, task, "cora", tries=3)} == {normalization}
        assert default_settings(model, task, "my own").normalization == normalization
    assert {s.normalization for s in grid(model, "link", "cora", tries=3, normalization="symmetric")} == {"symmetric"}


def test_given_settings_leave_no_duplicates():
    settings = grid("gcn", "link", "cora", dim=8, lr=0.02, drop_connect=0.1, dropout=0.0, layers=3)
    assert len(settings) == len(set(settings)) == 8
    assert {s.weight_decay for s in settings} == {0.0, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001}
    assert [s.lr for s in grid("poincare_emb", "link", "cora", dim=8, lr=0.02)] == [0.02]


def test_a_setting_goes_to_the_models_that_have_a_use_for_it(tmp_path):
    found = sweep("karate", models=["gcn", "lgcn"], seeds=1, out=tmp_path / "s", beta=2.0, distance="lorentz", **QUICK)
    by_name = {v.model: v.settings for v in found.verdicts}
    assert (by_name["lgcn"].beta, by_name["lgcn"].distance) == (2.0, "lorentz")
    assert (by_name["gcn"].beta, by_name["gcn"].distance) == (1.0, "intrinsic")
    with pytest.raises(InputError, match="None of the models has a use for the setting 'walks'"):
        sweep("karate", models=["gcn"], seeds=1, out=tmp_path / "t", walks=3, **QUICK)


@pytest.mark.parametrize("in_grid", [False, True])
def test_a_value_that_no_model_has_a_use_for_is_refused(tmp_path, in_grid):
    (tmp_path / "grid.json").write_text('{"distance": ["intrinsic", "lorentz"]}')
    given = {"grid": tmp_path / "grid.json"} if in_grid else {"distance": "lorentz"}
    with pytest.raises(InputError, match="None of the models has a use for the setting 'distance=lorentz'"):
        sweep("karate", models=["gcn", "hgcn"], seeds=1, out=tmp_path / "s", **given, **QUICK)


def test_a_model_without_room_is_left_out_and_the_others_are_not(tmp_path):
    found = sweep("karate", models=["lgcn", "gcn"], seeds=1, att_dim=10**12, out=tmp_path / "s", **QUICK)
    assert [v.model for v in found.verdicts] == ["gcn"]
    assert found.skipped == {"lgcn": "There is no room for even one model: use a smaller --dim."}
    with pytest.raises(TrainingError, match="None of the models could be trained: There is no room"):
        sweep("karate", models=["lgcn"], seeds=1, att_dim=10**12, out=tmp_path / "t", **QUICK)


def test_a_model_that_only_fails_is_left_out(tmp_path):
    graph = load_graph("karate")
    with pytest.raises(InputError, match="could be trained"):
        sweep_model(
            "poincare_emb",
            graph,
            "node",
            task_factory(graph, "node", 0, torch.float32, "cpu"),
            seeds=1,
            budget=0.01,
            dim=4,
        )


def test_a_part_of_the_grid_is_the_same_for_every_model():
    def points(model):
        settings = grid(model, "link", "usa", 20, dim=8)
        return [(s.lr, s.drop_connect, s.dropout, s.weight_decay) for s in settings]

    assert len(set(points("gcn"))) == 20
    assert points("gcn") == points("gat") == points("hat")


def test_stages_seeds_and_the_test(tmp_path):
    found = sweep("karate", task="node", models=["gcn", "mlp"], seeds=2, out=tmp_path / "s", **QUICK)
    trials = lines(tmp_path / "s")
    for model in ("gcn", "mlp"):
        own = [t for t in trials if t["model"] == model]
        by_stage = {stage: [t for t in own if t["stage"] == stage] for stage in ("search", "selection", "test")}
        ((_, inits),) = ROUNDS
        assert [len(by_stage[s]) for s in by_stage] == [3, 3 * inits, 2]
        assert {t["seed"] for t in by_stage["search"]} == {SEARCH_SEED}
        assert {t["seed"] for t in by_stage["selection"]} == {SELECTION_SEED + k for k in range(inits)}
        assert {t["seed"] for t in by_stage["test"]} == {0, 1}
        # test values exist only in the last stage, for one setting: the one with the best mean validation score
        assert all(t["test"] is None for t in own if t["stage"] != "test")
        means = {}
        for t in by_stage["selection"]:
            means.setdefault(json.dumps(t["settings"]), []).append(t["val"])
        best = max(sum(v) / len(v) for v in means.values())
        (chosen,) = {json.dumps(t["settings"]) for t in by_stage["test"]}
        assert sum(means[chosen]) / inits == pytest.approx(best)
        verdict = next(v for v in found.verdicts if v.model == model)
        assert verdict.tested == [t["test"] for t in by_stage["test"]]
    assert found.verdicts[0].val >= found.verdicts[1].val
    assert json.loads((tmp_path / "s" / "summary.json").read_text())["best"] == found.verdicts[0].model


def test_the_best_model_is_a_run_folder(tmp_path):
    found = sweep("karate", models=["lgcn"], seeds=2, out=tmp_path / "s", **QUICK)
    run = load(tmp_path / "s" / "best").best
    assert run.score("test").metric == pytest.approx(found.verdicts[0].best.test, abs=1e-12)
    assert run.encode().shape == (34, 3)


def test_a_sweep_goes_on_where_it_was_stopped(tmp_path):
    whole = sweep("karate", models=["gcn", "hgcn"], seeds=2, out=tmp_path / "whole", **QUICK)
    sweep("karate", models=["gcn"], seeds=2, out=tmp_path / "s", **QUICK)
    before = (tmp_path / "s" / "trials.jsonl").read_text()
    with (tmp_path / "s" / "trials.jsonl").open("a") as file:
        file.write('{"key": "cut off')  # a kill amid a line
    resumed = sweep("karate", models=["gcn", "hgcn"], seeds=2, out=tmp_path / "s", resume=True, **QUICK)
    after = (tmp_path / "s" / "trials.jsonl").read_text()
    assert after.startswith(before)
    assert after.count('[\\"search\\", \\"gcn\\"') == 3  # not trained again
    assert [(v.model, v.tested) for v in resumed.verdicts] == [(v.model, v.tested) for v in whole.verdicts]


def test_another_way_to_name_the_graph_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edges = [(a, b) for a in range(12) for b in range(a) if (a + b) % 3]
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    again = {"models": ["mlp"], "seeds": 1, "out": tmp_path / "s", **QUICK}
    sweep("edges.csv", **again)
    before = (tmp_path / "s" / "trials.jsonl").read_text()
    sweep(str(tmp_path / "edges.csv"), resume=True, **again)
    assert (tmp_path / "s" / "trials.jsonl").read_text() == before
    with pytest.raises(InputError, match=r"its graph is edges\.csv, not karate"):
        sweep("karate", resume=True, **again)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges[1:]))
    with pytest.raises(InputError, match="its graph has changed"):
        sweep("edges.csv", resume=True, **again)


def test_folders_of_versions_with_fewer_settings_go_on(tmp_path):
    path = tmp_path / "s" / "trials.jsonl"
    sweep("karate", models=["mlp"], seeds=1, out=tmp_path / "s", **QUICK)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        stage, model, settings, seed = json.loads(line["key"])
        del settings["normalization"]
        line["key"] = json.dumps([stage, model, settings, seed], sort_keys=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = path.read_text()
    sweep("karate", models=["mlp"], seeds=1, out=tmp_path / "s", resume=True, **QUICK)
    assert path.read_text() == before


def test_another_sweep_s_folder_is_refused(tmp_path):
    sweep("karate", models=["mlp"], seeds=1, out=tmp_path / "s", **QUICK)
    with pytest.raises(InputError, match="exists already"):
        sweep("karate", models=["mlp"], seeds=1, out=tmp_path / "s", **QUICK)
    with pytest.raises(InputError, match="its task is link, not node"):
        sweep("karate", task="node", models=["mlp"], seeds=1, out=tmp_path / "s", resume=True, **QUICK)


def test_the_budget_is_kept_and_the_best_so_far_is_given():
    graph = load_graph("karate")
    began = time.monotonic()
    verdict = sweep_model(
        "gcn", graph, "link", task_factory(graph, "link", 0, torch.float32, "cpu"), seeds=3, budget=4.0, dim=3
    )
    assert time.monotonic() - began < 8
    assert not verdict.complete
    assert verdict.tested


def test_where_the_search_has_used_up_the_budget_one_model_is_tested(monkeypatch):
    monkeypatch.setattr(selection, "SEARCH_SHARE", 1.0)
    graph = load_graph("karate")
    task_for = task_factory(graph, "link", 0, torch.float32, "cpu")
    verdict = sweep_model("gcn", graph, "link", task_for, seeds=3, budget=2.0, dim=3)
    assert (len(verdict.tested), verdict.complete) == (1, False)


def test_what_time_cut_short_is_trained_again_when_a_sweep_is_resumed(tmp_path):
    common = {"models": ["gcn"], "seeds": 2, "dim": 3, "tries": 3, "halving": False, "patience": 100}
    hurried = sweep("karate", **common, budget=2.0, out=tmp_path / "s")
    assert not hurried.verdicts[0].complete
    assert "more time may change the order" in hurried.advice
    resumed = sweep("karate", **common, out=tmp_path / "s", resume=True)
    whole = sweep("karate", **common, out=tmp_path / "whole")
    assert resumed.verdicts[0].complete
    assert "more time" not in resumed.advice
    assert resumed.verdicts[0].tested == whole.verdicts[0].tested


def test_a_test_run_that_time_cuts_is_not_averaged_with_finished_ones(tmp_path):
    """As where two of three had ended when a sweep was stopped, and the next one stops at the third's first epochs."""
    common = {
        "models": ["gcn"],
        "dim": 3,
        "tries": 1,
        "epochs": 600,
        "patience": 600,
        "rounds": (),
        "out": tmp_path / "s",
    }
    whole = sweep("karate", seeds=2, **common)
    hurried = sweep("karate", seeds=3, budget=0.2, resume=True, **common)
    assert hurried.verdicts[0].tested == whole.verdicts[0].tested
    assert not hurried.verdicts[0].complete


def test_models_without_a_place_for_the_graph_are_left_out_with_the_reason(tmp_path):
    graph = load_graph("karate")
    weighted = dataclasses.replace(graph, edge_weight=torch.full((graph.edge_index.size(1),), 2.0))
    found = sweep(weighted, models=["gcn", "gat"], seeds=1, out=tmp_path / "s", **QUICK)
    assert [v.model for v in found.verdicts] == ["gcn"]
    assert "edge weights" in found.skipped["gat"]
    with pytest.raises(InputError, match="None of the models"):
        sweep(weighted, models=["gat"], seeds=1, out=tmp_path / "t", **QUICK)


def told_by_features():
    """A ring of 200 nodes, of which each shows its class."""
    y = torch.arange(200) % 2
    ring = torch.stack([torch.arange(200), torch.arange(1, 201) % 200])
    return Data(x=torch.nn.functional.one_hot(y).float(), edge_index=ring, y=y)


def test_advice_names_the_rival_of_the_other_geometry(tmp_path):
    found = sweep(told_by_features(), task="node", models=["gcn", "lgcn"], seeds=2, out=tmp_path / "s", **EASY)
    first, second = found.verdicts
    assert found.advice.startswith(f"Validation prefers {first.model}")
    gap = 100 * (first.test_mean - second.test_mean)
    noise = 100 * two_errors(first.tested, second.tested, found.tested)
    assert second.model in found.advice
    assert f"{gap:+.1f} points here, {'more than' if abs(gap) > noise else 'within'} the noise of {noise:.1f}." in (
        found.advice
    )


def test_a_graph_that_shows_nothing_gets_no_comparison_of_geometries(tmp_path):
    """In a tree without features nobody knows where a leaf was cut off, and far from it looks likelier."""
    tree = networkx.random_labeled_tree(300, seed=1)
    found = sweep(tree, models=["gcn", "lgcn"], seeds=2, out=tmp_path / "s", **(QUICK | {"epochs": 50}))
    assert max(v.test_mean for v in found.verdicts) < 0.5
    assert "No model is clearly better than guessing" in found.advice
    assert "points here" not in found.advice


def test_guessing_nodes_gives_the_share_of_the_largest_class():
    graph = load_graph("karate")
    task = task_factory(graph, "node", 0, torch.float32, "cpu")(Settings())
    constant = [float((graph.y[task.part("test")] == c).double().mean()) for c in range(graph.num_classes)]
    assert task.guess("test") == pytest.approx(max(constant))


def test_a_journal_without_a_file_keeps_trials_in_memory():
    journal, settings = Journal(None), grid("gcn", "link", "cora", 2, dim=8)
    trial = Trial(Outcome(settings[0], 3, 0.9, 0.4, 7, 20, True), 0.8)
    journal.add("search", "gcn", [trial])
    runs = [(s, 3) for s in settings]
    assert journal.read("search", "gcn", runs) == [trial]
    assert journal.missing("search", "gcn", runs) == runs[1:]
    assert journal.missing("test", "gcn", runs) == runs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": []}, "Give the models"),
        ({"models": ["gcn", "gcn"]}, "each once"),
        ({"models": ["gnc"]}, "no model 'gnc'"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"tries": 0}, "tries must be at least 1"),
        ({"rounds": ((0, 3),)}, "rounds must have settings, and ever more initialisations, not 0 and 3"),
        ({"rounds": ((8, 0),)}, "rounds must have settings, and ever more initialisations, not 8 and 0"),
        ({"rounds": ((8, 3), (2, 3))}, "rounds must have settings, and ever more initialisations, not 2 and 3"),
        ({"device": "cuda:99"}, "finds"),
        ({"learning": 1}, "no setting 'learning'"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        sweep("karate", out=tmp_path / "s", **{"models": ["gcn"], **options})
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("model", "task", "count"), [("gcn", "link", 6), ("lgcn", "node", 8), ("deepwalk", "link", 3)])
def test_a_short_search_tries_the_corners_of_the_grid(model, task, count):
    found = grid(model, task, "cora", short=True, distance="intrinsic")
    assert len(set(found)) == len(found) == count
    if model != "deepwalk":
        penalties = (0.001, 0.0001, 0.0) if task == "link" else (0.001, 0.0001)
        corners = set(itertools.product((0.0, 0.5), penalties))
        assert {(s.dropout, s.weight_decay) for s in found} == corners
        assert {s.drop_connect for s in found} == {0.0}
        assert set(found) <= set(grid(model, task, "cora"))


@pytest.mark.parametrize(
    ("values", "tried"),
    [
        ({"dropout": [0, 0.0, 0.5]}, {"gcn": 2, "deepwalk": 1}),  # 0 and 0.0 are one value
        ({"lr": [0.1, 0.05, 0.025, 0.01, 0.005, 0.001]}, {"gcn": 6, "deepwalk": 6}),
        ({"dim": [2, 4, 6]}, {"gcn": 3, "deepwalk": 3}),
        ({"distance": ["intrinsic", "lorentz"]}, {"gcn": 1, "lgcn": 2}),  # what a model cannot do is not tried
    ],
)
def test_a_grid_of_ones_own_is_tried_as_it_is(tmp_path, values, tried):
    (tmp_path / "grid.json").write_text(json.dumps(values))
    given = {"epochs": 3} | ({} if "dim" in values else {"dim": 4})
    found = sweep("karate", models=list(tried), seeds=1, grid=tmp_path / "grid.json", out=tmp_path / "s", **given)
    assert {v.model: v.tried for v in found.verdicts} == tried
    assert not found.skipped
    for setting, own in values.items():
        searched = [
            x["settings"][setting] for x in lines(tmp_path / "s") if (x["stage"], x["model"]) == ("search", "gcn")
        ]
        assert set(searched) <= set(own)


def test_a_setting_that_diverges_is_not_called_short_of_time(tmp_path):
    grid = tmp_path / "grid.json"
    grid.write_text('{"weight_decay": [0.001, 9e37]}')
    found = sweep("karate", models=["gcn"], seeds=2, dim=3, epochs=5, lr=30.0, grid=grid, out=tmp_path / "s")
    (found,), advice = found.verdicts, found.advice
    assert (found.tried, found.failed, found.failed_runs, found.complete) == (1, 1, 0, True)
    assert found.failures == "1 of 2 settings"
    assert "more time" not in advice


def test_when_everything_diverges_that_is_said(tmp_path):
    grid = tmp_path / "grid.json"
    grid.write_text('{"weight_decay": [8e37, 9e37]}')
    with pytest.raises(
        TrainingError, match="The 2 settings of gcn that were tried diverged: try smaller learning rates or penalties"
    ):
        sweep("karate", models=["gcn"], seeds=2, dim=3, epochs=5, lr=30.0, grid=grid, out=tmp_path / "s")


def test_initialisations_that_diverge_are_told_of(tmp_path, monkeypatch):
    """Of three, the second has no finite number."""
    train = selection.train_many

    def some_diverge(*args, **options):
        trials = train(*args, **options)
        broken = [t if t.outcome.seed != 1 else Trial(Outcome.broken(t.outcome.settings, 1, 4)) for t in trials]
        options["save"](broken)
        return broken

    monkeypatch.setattr(selection, "train_many", some_diverge)
    (found,) = sweep("karate", models=["gcn"], seeds=3, out=tmp_path / "s", **QUICK).verdicts
    assert (len(found.tested), found.failed, found.failed_runs) == (2, 0, 1)
    assert found.failures == "1 of 3 fresh initialisations of the chosen one"
    assert found.as_json()["failed_runs"] == 1


def test_a_batch_that_time_cuts_while_halving_is_noted_down_as_a_whole(tmp_path):
    """Which of its models go on depends on the others."""
    common = {"models": ["gcn"], "seeds": 1, "dim": 3, "tries": 16, "patience": 2000}
    hurried = sweep("karate", **common, budget=3.0, out=tmp_path / "s")
    assert not hurried.verdicts[0].complete
    assert not any(one["stage"] == "search" for one in lines(tmp_path / "s"))


def test_one_initialisation_tells_no_spread(tmp_path):
    found = sweep(told_by_features(), task="node", models=["gcn", "lgcn"], seeds=1, out=tmp_path / "s", **EASY)
    assert "±" not in found.advice
    assert "a single initialisation does not tell whether that is chance" in found.advice


def test_a_finished_sweep_is_resumed_without_training(tmp_path):
    first = sweep("karate", models=["lgcn"], seeds=2, out=tmp_path / "s", **QUICK)
    best = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s" / "best").iterdir()}
    again = sweep("karate", models=["lgcn"], seeds=2, out=tmp_path / "s", resume=True, budget=0.001, **QUICK)
    assert [v.tested for v in again.verdicts] == [v.tested for v in first.verdicts]
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "s" / "best").iterdir()} == best


def test_damaged_folders_are_one_sentence(tmp_path):
    again = {"models": ["mlp"], "seeds": 1, "out": tmp_path / "s", "resume": True, **QUICK}
    (tmp_path / "s").mkdir()  # killed before anything was written
    sweep("karate", **again)
    journal = tmp_path / "s" / "trials.jsonl"
    journal.write_text("{nonsense\n" + journal.read_text())
    with pytest.raises(InputError, match=r"trials\.jsonl, line 1 is no trial: delete that line"):
        sweep("karate", **again)
    (tmp_path / "s" / "sweep.json").write_text("[")
    with pytest.raises(InputError, match=r"sweep\.json is damaged"):
        sweep("karate", **again)
    (tmp_path / "s" / "sweep.json").unlink()
    with pytest.raises(InputError, match="holds no sweep"):
        sweep("karate", **again)


def test_a_selection_has_rounds_of_fewer_settings_and_more_initialisations(tmp_path):
    words = {"task": "node", "models": ["gcn"], "dim": 4, "seeds": 2, "tries": 9, "epochs": 30, "halving": False}
    sweep("karate", **words, rounds=(), out=tmp_path / "none")
    assert "selection" not in {line["stage"] for line in lines(tmp_path / "none")}
    sweep("karate", **words, rounds=((6, 1), (3, 2), (2, 4)), out=tmp_path / "three")
    trials = lines(tmp_path / "three")

    def judged(seeds):
        """Mean validation score and negative loss of each setting that has trials of all these seeds."""
        found = {}
        for t in trials:
            if t["stage"] == "selection" and t["seed"] - SELECTION_SEED in seeds:
                found.setdefault(json.dumps(t["settings"]), []).append((t["val"], -t["val_loss"]))
        return {
            s: [sum(x) / len(x) for x in zip(*own, strict=True)] for s, own in found.items() if len(own) == len(seeds)
        }

    def best(scores, count):
        return set(sorted(scores, key=scores.get, reverse=True)[:count])

    searched = {json.dumps(t["settings"]): (t["val"], -t["val_loss"]) for t in trials if t["stage"] == "search"}
    first, second, third = (judged(range(inits)) for inits in (1, 2, 4))
    assert [len(round) for round in (first, second, third)] == [6, 3, 2]
    assert set(first) == best(searched, 6)
    assert set(second) == best(first, 3)
    assert set(third) == best(second, 2)
    assert {json.dumps(t["settings"]) for t in trials if t["stage"] == "test"} == best(third, 1)
