"""attention, efficiency and att_dim: judged on made-up lines, and measured once in small."""

import pytest

from hyperboloid.paper.att_dim import GRAPHS, WIDTHS
from hyperboloid.paper.claims import FAILS, HOLDS, PARTLY, UNKNOWN, verdict
from hyperboloid.paper.efficiency import MODELS
from hyperboloid.paper.figures import Asked, get_figure, run_figure


def judged(name, lines):
    return {claim.name: claim.judge(lines) for claim in get_figure(name).claims}


def same(attention, share=0.5, control=0.0, control_std=0.01):
    return {"nodes": 9, "attention": attention, "share": share, "control": control, "control_std": control_std}


def attention_line(graph, weights, attentions):
    labels = [1, 1, 0, 0, 1, 1, 1]
    around = {"names": [str(i) for i in (3, 0, 12, 13, 14, 15, 16)], "labels": labels, "weights": weights}
    return {
        "graph": graph,
        "around": around if weights else None,
        "same_label": [[same(a) for a in run] for run in attentions],
        "entropy": [[0.5, 0.6]] * len(attentions),
        "self_share": [[0.4, 0.3]] * len(attentions),
        "test_mean": 0.8,
        "test_std": 0.01,
        "runs": len(attentions),
    }


def test_what_attention_says():
    fond, cool = [0.4, 0.1, 0.05, 0.05, 0.1, 0.1, 0.2], [0.2, 0.1, 0.3, 0.3, 0.1, 0.0, 0.0]
    line = attention_line("disease_nc", [[fond, fond]] * 5, [[0.6, 0.6]] * 5)
    found = judged("attention", [line])["Node 3 attends to its class"]
    assert (found.verdict, found.compared, found.of) == (HOLDS, 10, 10)
    assert "its class gets 90.0 %, and is 71.4 % of the nodes" in found.text
    mixed = attention_line("disease_nc", [[fond, fond]] * 3 + [[cool, cool]] * 2, [[0.6, 0.5]] * 5)
    found = judged("attention", [mixed])
    assert found["Node 3 attends to its class"].verdict == PARTLY
    assert found["Same-class attention everywhere"].verdict == FAILS
    assert verdict(found["Same-class attention everywhere"]) == UNKNOWN  # a third of the graphs is too little
    others = [attention_line(name, None, [[0.6, 0.6]] * 5) for name in ("disease_lp", "disease")]
    found = judged("attention", [line, *others])["Same-class attention everywhere"]
    assert (found.verdict, found.compared, found.of) == (HOLDS, 30, 30)
    assert "disease_nc +10.0" in found.text


def efficiency_line(device="2 CPU cores", **changes):
    times = dict(zip(MODELS, (1.0, 1.5, 1.6, 2.0, 6.0, 2.0, 20.0), strict=True))
    scores = dict.fromkeys(MODELS, 0.9) | {"lgcn": 0.95, "lgcn_f": 0.97}
    models = {
        name: {"test_mean": scores[name], "test_std": 0.005, "tests": [0.9] * 3, "seconds_per_100": times[name]}
        | {"settings_from": "shipped"}
        | changes.get(name, {})
        for name in MODELS
    }
    return {"device": device, "models": models}


def test_what_efficiency_says():
    assert {found.verdict for found in judged("efficiency", [efficiency_line()]).values()} == {HOLDS}
    slow_lgcn = efficiency_line("another", lgcn={"seconds_per_100": 7.0}, gcn={"seconds_per_100": 9.0})
    found = {name: finding.verdict for name, finding in judged("efficiency", [slow_lgcn]).items()}
    assert (found["HGCN is slower than LGCN"], found["GCN is the fastest"]) == (FAILS, FAILS)
    both = judged("efficiency", [efficiency_line(), slow_lgcn])["HGCN is slower than LGCN"]
    assert (both.verdict, both.compared) == (PARTLY, 2)
    within = efficiency_line(lgcn_f={"test_mean": 0.951})
    assert judged("efficiency", [within])["LGCN_F is a little better"].verdict == HOLDS
    worse = efficiency_line(lgcn_f={"test_mean": 0.94, "seconds_per_100": 1.0})
    found = judged("efficiency", [worse])
    assert (found["LGCN_F is a little better"].verdict, found["LGCN_F is the slowest"].verdict) == (FAILS, FAILS)


def width_lines(dataset, means):
    return [
        {"dataset": dataset, "att_dim": w, "test_mean": m, "test_std": 0.001, "runs": 10, "settings_from": "shipped"}
        for w, m in zip(WIDTHS, means, strict=True)
    ]


def test_what_the_width_says():
    hill, flat = (0.90, 0.92, 0.94, 0.95, 0.951, 0.95, 0.94), (0.95,) * 7
    jumpy = (0.95, 0.95, 0.95, 0.90, 0.95, 0.92, 0.95)
    lines = [line for dataset in GRAPHS for line in width_lines(dataset, hill)]
    assert {found.verdict for found in judged("att_dim", lines).values()} == {HOLDS}
    lines = width_lines("disease", flat) + width_lines("usa", jumpy)
    found = judged("att_dim", lines)
    assert (found["M_att is stable"].verdict, found["M_att is stable"].compared) == (FAILS, 2)
    three = judged("att_dim", lines + width_lines("amazon", flat))["M_att is stable"]
    assert (three.verdict, three.compared) == (PARTLY, 3)
    assert found["M_att needs a suitable size"].verdict == FAILS
    assert judged("att_dim", width_lines("usa", jumpy))["M_att is stable"].verdict == FAILS
    assert judged("att_dim", width_lines("usa", hill)[:4])["M_att is stable"].compared == 0


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("attention", [attention_line("disease", None, [[0.6, 0.6]])]),
        ("efficiency", [efficiency_line(), efficiency_line("another")]),
        ("att_dim", width_lines("usa", (0.9,) * 7)),
    ],
)
def test_lines_are_drawn_and_listed(name, lines):
    figure = get_figure(name)
    assert figure.draw(lines).axes
    table = figure.table(lines)
    assert len(table.texts()) >= 1
    assert all(len(row) == len(table.columns) for row in table.texts())


def test_attention_is_measured(tmp_path):
    asked = Asked(tmp_path / "r", datasets=["disease"], seeds=2, epochs=2, work=tmp_path / "w")
    (line,) = run_figure(get_figure("attention"), asked, tmp_path / "f").lines
    assert (line["graph"], line["runs"], len(line["tests"]), line["around"]) == ("disease", 2, 2, None)
    assert [len(run) for run in line["same_label"]] == [2, 2]
    assert line["model"] == "lgcn"


def test_the_papers_node_is_measured(tmp_path, data_dir):
    asked = Asked(tmp_path / "r", datasets=["disease_nc"], seeds=1, epochs=2, data_dir=data_dir, work=tmp_path / "w")
    (line,) = run_figure(get_figure("attention"), asked, tmp_path / "f").lines
    around = line["around"]
    assert around["names"] == ["3", "0", "12", "13", "14", "15", "16"]
    assert around["labels"] == [1, 1, 0, 0, 1, 1, 1]
    for layer in around["weights"][0]:
        assert sum(layer) == pytest.approx(1)


def test_the_width_is_measured(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr("hyperboloid.paper.att_dim.WIDTHS", (4, 32))
    asked = Asked(tmp_path / "r", datasets=["disease"], seeds=2, epochs=2, data_dir=data_dir)
    lines = run_figure(get_figure("att_dim"), asked, tmp_path / "f").lines
    assert [(line["att_dim"], line["settings"]["att_dim"], len(line["tests"])) for line in lines] == [
        (4, 4, 2),
        (32, 32, 2),
    ]
    assert lines[0]["tests"] != lines[1]["tests"]


def test_the_time_is_measured(tmp_path, data_dir, monkeypatch):
    for name, value in {"MODELS": ("gcn", "lgcn"), "ROUNDS": 3, "EPOCHS": 2}.items():
        monkeypatch.setattr(f"hyperboloid.paper.efficiency.{name}", value)
    asked = Asked(tmp_path / "r", seeds=1, epochs=2, data_dir=data_dir, work=tmp_path / "w")
    figure = get_figure("efficiency")
    (wanted,) = figure.wanted(asked)
    models = figure.measure(wanted, asked, lambda text: None)["models"]
    assert set(models) == {"gcn", "lgcn"}
    for model in models.values():
        assert len(model["rounds"]) == 3
        assert model["seconds_per_100"] == pytest.approx(sorted(model["rounds"])[1] * 50)
