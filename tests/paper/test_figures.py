"""Experiments that are drawn: measured once, with provenance; drawn and judged from their lines alone."""

import json

import pytest

from hyperboloid import InputError
from hyperboloid.analysis import distortion as distortion_of_embeddings
from hyperboloid.paper import delta, report
from hyperboloid.paper.claims import FAILS, HOLDS, PARTLY, UNKNOWN, verdict
from hyperboloid.paper.distortion import DistortionOfModels
from hyperboloid.paper.figure_report import drawn_sections
from hyperboloid.paper.figure_runs import link_settings, searched_settings
from hyperboloid.paper.figures import COMMON_OPTIONS, EVERY_LINE, Asked, get_figure, run_figure
from hyperboloid.paper.printed import printed_tables
from hyperboloid.paper.registry import FIGURES
from hyperboloid.paper.report import write_report
from hyperboloid.paper.table import PaperTable

LINE_NAMES = {*EVERY_LINE, "experiment", "commit", "device", "versions", "seconds"}


def judged(name, lines):
    return {claim.name: claim.judge(lines) for claim in get_figure(name).claims}


@pytest.mark.parametrize("name", FIGURES)
def test_every_one_says_what_it_is(name):
    figure = get_figure(name)
    assert figure.name == name
    assert figure.title
    assert figure.about
    assert figure.options <= set(Asked.__dataclass_fields__) - {"results"}
    assert not figure.options & COMMON_OPTIONS
    for finding in judged(name, []).values():
        assert (verdict(finding), finding.compared) == (UNKNOWN, 0)
        assert finding.of > 0


def test_a_figure_is_measured_once_and_drawn_from_its_lines(tmp_path):
    asked, said = Asked(results=tmp_path / "results"), []
    first = run_figure(get_figure("aggregation"), asked, tmp_path / "figures", code="abc", say=said.append)
    assert first.measured == len(first.lines) == 5
    assert said[0] == "1 of 5: Euclidean on H²"
    written = (tmp_path / "results" / "aggregation.jsonl").read_text()
    lines = [json.loads(line) for line in written.splitlines()]
    assert lines == first.lines
    for line in lines:
        assert set(line) >= LINE_NAMES
        assert (line["experiment"], line["commit"], line["dataset"]) == ("aggregation", "abc", None)
    pictures = [path.read_bytes() for path in first.pictures]
    assert [path.name for path in first.pictures] == ["aggregation.png", "aggregation.svg"]

    again = run_figure(get_figure("aggregation"), asked, tmp_path / "figures")
    assert (again.measured, again.lines) == (0, first.lines)
    assert (tmp_path / "results" / "aggregation.jsonl").read_text() == written
    assert [path.read_bytes() for path in again.pictures] == pictures


def test_a_damaged_line_is_one_sentence(tmp_path):
    path = tmp_path / "aggregation.jsonl"
    for text, sentence in (
        ('nonsense\n{"mean": 1}\n', "line 1 is not a measurement of 'aggregation'"),
        ('{"mean": "x"}\n', "line 1 is not a measurement of 'aggregation': it has no points"),
        ("3\n", "it has no mean"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=sentence):
            run_figure(get_figure("aggregation"), Asked(results=tmp_path), tmp_path)


def test_delta_of_a_graph(tmp_path, data_dir):
    asked = Asked(results=tmp_path, datasets=["usa", "disease"], data_dir=data_dir)
    lines = run_figure(get_figure("delta"), asked, tmp_path / "figures").lines
    assert [(line["dataset"], line["graph"]) for line in lines] == [("disease", "disease_nc"), ("usa", "usa")]
    assert [line["delta_worst"] for line in lines] == [0, 1.5]
    assert lines[1]["delta_avg"] == pytest.approx(0.158, abs=0.004)
    assert lines[1]["protocol"] == {"precision": delta.PRECISION, "seed": 0}
    found = judged("delta", lines)["δ_avg of the graphs"]
    assert (found.verdict, found.compared, found.of) == (HOLDS, 2, 6)
    assert "2 of 2 agree within rounding" in found.text
    # another seed is another measurement, and then it is the one that counts
    other = run_figure(get_figure("delta"), Asked(tmp_path, ["usa"], seed=1, data_dir=data_dir), tmp_path / "figures")
    assert other.measured == 1
    assert [line["protocol"]["seed"] for line in other.lines] == [0, 1]
    (section,) = [one for one in drawn_sections(tmp_path, tmp_path / "figures") if one.pictures]
    assert "left out of the verdicts until they are measured again" in section.text
    assert section.text.count(" replaced since: usa.") == 1
    assert {finding.compared for _, finding in section.findings} == {1, 0}  # of disease, a tree, δ_worst says nothing
    # until it is measured by the experiment's own seed again
    back = run_figure(get_figure("delta"), asked, tmp_path / "figures")
    assert (back.measured, [line["protocol"]["seed"] for line in back.lines]) == (1, [0, 0])


def delta_line(name, average, worst, counts, **more):
    half = 0.002
    return {
        "dataset": name,
        "paper_mean": printed_tables()["delta_avg"][name],
        "delta_avg": average,
        "delta_avg_ci": [average - half, average + half],
        "delta_avg_half_width": half,
        "delta_worst": worst,
        "delta_worst_exact": True,
        "counts": counts,
        "quadruples": sum(counts),
        **more,
    }


def test_verdicts_on_delta():
    usa = delta_line("usa", 0.158, 1.5, [10, 5, 1])  # printed 0.16; 1 of 1.5 sampled
    cora = delta_line("cora", 0.358, 4, [10, 5, 1, 0, 0, 0, 0, 0, 1])  # printed 0.35: 0.358 − 0.002 rounds to 0.36
    pubmed = delta_line("pubmed", 0.3535, 4.5, [10, 5, 1])  # printed 0.36: 0.3535 + 0.002 rounds to 0.36
    averages = [judged("delta", lines)["δ_avg of the graphs"].verdict for lines in ([usa], [usa, pubmed, cora], [cora])]
    assert averages == [HOLDS, PARTLY, FAILS]
    worst = judged("delta", [usa, cora, pubmed])["δ_worst cannot be sampled"]
    assert worst.verdict == HOLDS
    assert "usa 1 of 1.5 (0.0 million), cora 4 of 4 (0.0 million)" in worst.text
    assert worst.text.endswith("It falls short on 2 of 3.")
    assert judged("delta", [cora])["δ_worst cannot be sampled"].verdict == FAILS
    bound = delta_line("usa", 0.158, 1.5, [10, 5, 1], delta_worst_exact=False)
    assert judged("delta", [bound])["δ_worst cannot be sampled"].compared == 0


def distortion_line(model, mean, choice="searched", std=0.01):
    return {"model": model, "choice": choice, "distortion_mean": mean, "distortion_std": std, "runs": 4}


def test_verdicts_on_distortion():
    means = {"gcn": 0.9, "gat": 0.8, "hgcn": 0.5, "kgcn": 0.85, "hat": 0.3, "lgcn": 0.31}
    lines = [distortion_line(*pair) for pair in means.items()]
    found = judged("distortion", lines)
    assert (found["Lowest distortion"].verdict, found["Lowest distortion"].compared) == (PARTLY, 5)
    assert found["Lowest distortion"].text.endswith(
        "LGCN has less in 4 of 5 comparisons, by more than the noise in 4, and more by more than the noise in 0."
    )
    assert found["Hyperbolic GCNs distort less"].verdict == PARTLY  # κGCN lies between GAT and GCN
    assert "in 7 of 8 comparisons" in found["Hyperbolic GCNs distort less"].text
    best = judged("distortion", [distortion_line(*pair) for pair in (means | {"lgcn": 0.295}).items()])
    assert best["Lowest distortion"].verdict == HOLDS
    assert "by more than the noise in 4" in best["Lowest distortion"].text  # 0.005 to HAT is less than 2·√(2·0.01²/4)
    worst = judged("distortion", [distortion_line("gcn", 0.1), distortion_line("lgcn", 0.2)])
    assert worst["Lowest distortion"].verdict == FAILS
    # models are compared with the same choice of settings only
    shipped = [distortion_line("gcn", 0.2, "shipped"), distortion_line("lgcn", 0.25, "shipped")]
    both = judged("distortion", [*lines, *shipped])["Lowest distortion"]
    assert (both.compared, both.of) == (6, 10)
    assert "in 4 of 6 comparisons, by more than the noise in 4, and more by more than the noise in 1." in both.text


def test_distortion_trains_measures_and_goes_on(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr(distortion_of_embeddings, "MOST_PAIRS", 100_000)
    asked = Asked(tmp_path / "results", models=["gat"], seeds=2, epochs=2, data_dir=data_dir, work=tmp_path / "work")
    figure = DistortionOfModels()
    (line,) = run_figure(figure, asked, tmp_path / "figures", code="abc").lines
    assert set(line) >= LINE_NAMES
    assert (line["graph"], line["task"], line["dim"], line["runs"]) == ("disease_lp", "link", 64, 2)
    assert line["settings"]["epochs"] == 2
    assert line["choice"] == "shipped"
    assert len(line["distortions"]) == len(line["tests"]) == 2
    assert line["distortion_mean"] == pytest.approx(sum(line["distortions"]) / 2)
    assert [int(hops) for hops in line["bands"]] == list(range(1, 9))
    # a line of a version that had fewer settings is the same line
    older = line | {"settings": {name: value for name, value in line["settings"].items() if name != "normalization"}}
    (tmp_path / "results" / "distortion.jsonl").write_text(json.dumps(older) + "\n")
    assert run_figure(figure, asked, tmp_path / "figures").measured == 0
    (folder,) = (tmp_path / "work").iterdir()
    trained = (folder / "split-0-seed-1" / "model.safetensors").stat().st_mtime_ns
    # the line is lost, but not what was trained
    (tmp_path / "results" / "distortion.jsonl").unlink()
    (again,) = run_figure(figure, asked, tmp_path / "figures").lines
    assert again["distortions"] == line["distortions"]
    assert (folder / "split-0-seed-1" / "model.safetensors").stat().st_mtime_ns == trained


def test_distortion_takes_the_settings_of_the_nearest_dimension(tmp_path):
    assert searched_settings("gcn", "disease", 64, Asked(tmp_path)) is None
    shipped, source = link_settings("gcn", "disease", "disease_lp", 64, Asked(tmp_path, epochs=7))
    assert (shipped.dim, shipped.epochs, source) == (64, 7, "shipped")
    common = {"task": "link", "model": "gcn", "dataset": "disease", "test_mean": 0.5, "test_std": 0.1, "runs": 3}
    lines = [
        common
        | {"dim": dim, "split": split, "protocol": {}, "grid": 256, "parts": "seed 0"}
        | {"settings": {"dim": dim, "lr": lr}}
        for dim, split, lr in ((8, 0, 0.1), (32, 0, 0.4), (32, 0, 0.2), (64, "0-9", 0.3))  # d = 32 was measured again
    ]
    (tmp_path / "link.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found, source = link_settings("gcn", "disease", "disease_lp", 64, Asked(tmp_path, epochs=7))
    assert (found.dim, found.lr, found.epochs, source) == (64, 0.2, 7, "link d=32")
    wanted = DistortionOfModels().wanted(Asked(results=tmp_path))
    assert [(one["model"], one["choice"]) for one in wanted if one["choice"] == "searched"] == [("gcn", "searched")]
    assert len(wanted) == 7


def test_a_variant_takes_the_settings_of_its_architecture(tmp_path):
    line = {"task": "link", "model": "lgcn", "dataset": "disease", "dim": 16, "test_mean": 0.5, "test_std": 0.1}
    line |= {"runs": 3, "split": 0, "protocol": {}, "grid": 256, "parts": "seed 0", "settings": {"dim": 16, "lr": 0.2}}
    (tmp_path / "link.jsonl").write_text(json.dumps(line) + "\n")
    found, source = link_settings("lgcn_f", "disease", "disease_lp", 64, Asked(tmp_path))
    assert (found.dim, found.lr, found.mean, source) == (64, 0.2, "frechet", "link d=16")


@pytest.mark.parametrize(
    ("name", "asked", "sentence"),
    [
        ("delta", {"datasets": ["karate"]}, "There is no data set 'karate' in 'delta'; choose among: disease, usa"),
        ("distortion", {"models": ["mlp"]}, "There is no model 'mlp' in 'distortion'; choose among: gcn, gat, hgcn, "),
        ("distortion", {"models": []}, "Name at least one model of 'distortion'"),
    ],
)
def test_names_that_are_not_there(tmp_path, name, asked, sentence):
    with pytest.raises(InputError, match=sentence):
        run_figure(get_figure(name), Asked(results=tmp_path, **asked), tmp_path)


def test_the_report_has_a_section_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "run_experiment", lambda name: PaperTable("x", "t", {"a": "a"}, [{"a": "b"}]))
    results = tmp_path / "results"
    run_figure(get_figure("aggregation"), Asked(results=results), tmp_path / "elsewhere", code="abc")
    written = write_report(results, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    for name in FIGURES:
        assert f"\n## {get_figure(name).title}\n" in page
    assert written.verdicts["Aggregation in the tangent space is no centroid"] == HOLDS
    assert written.verdicts["Lowest distortion"] == UNKNOWN
    assert "| Aggregation in the tangent space is no centroid | **holds** | 1 of 1 |" in page
    assert "| Lowest distortion | **not measured** | 0 of 10 |" in page
    assert "](figures/aggregation.png)" in page
    assert "](figures/delta.png)" not in page
    assert {path.name for path in written.pictures} >= {"aggregation.png", "aggregation.svg"}
    assert (tmp_path / "figures" / "aggregation.png").read_bytes() == (
        tmp_path / "elsewhere" / "aggregation.png"
    ).read_bytes()
    assert "code abc." in page
