"""The report: what it says, that it needs nothing else, and how it looks in a browser."""

import base64
import json
import re
import shutil
import statistics
from html.parser import HTMLParser
from itertools import combinations

import networkx
import pytest

import hyperboloid
from hyperboloid import InputError
from hyperboloid.analysis.report import report


class Page(HTMLParser):
    """Rows of all tables, images, and whatever could fetch something."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.images, self.links, self.tags, self.cell = [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True
        if tag == "img":
            self.images.append(attrs)
        self.links += [attrs[name] for name in ("src", "href", "action", "data") if name in attrs]

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def node_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("node") / "run"
    return hyperboloid.fit("karate", task="node", dim=4, epochs=30, seeds=2, out=folder)


@pytest.fixture(scope="module")
def node_report(node_run):
    return report(node_run)


def test_it_holds_the_runs_numbers(node_run, node_report):
    page = Page(node_report)
    for run in node_run.runs:
        s = run.summary
        row = next(row for row in page.rows if row[1:2] == [f"{run.seed}"])
        assert row[2:6] == [f"{100 * s['val']:.1f} %", f"{100 * s['test']:.1f} %", f"{s['best_epoch']}", "30"]
    best = node_run.best
    last = [json.loads(line) for line in (best.folder / "metrics.jsonl").read_text().splitlines()][-1]
    shown = {row[0]: row for row in page.rows if row}
    assert [shown[name][-1] for name in ("layer 1", "layer 2", "output")] == [f"{beta:.4g}" for beta in last["beta"]]
    assert shown["nodes"][1] == "34"
    assert shown["dim"][1] == "4"
    d = dict(networkx.all_pairs_shortest_path_length(networkx.karate_club_graph()))
    sums = (
        sorted((d[a][b] + d[c][e], d[a][c] + d[b][e], d[a][e] + d[b][c])) for a, b, c, e in combinations(range(34), 4)
    )
    delta = statistics.mean((s[2] - s[1]) / 2 for s in sums)
    assert shown["δ_avg of the graph"][1].startswith(f"{delta:.3f}")
    assert len(page.images) == 3
    assert all(image["alt"] for image in page.images)


def test_it_needs_nothing_else(node_report):
    page = Page(node_report)
    assert "script" not in page.tags
    assert page.links
    assert all(link.startswith("data:") for link in page.links)
    assert "url(" not in node_report
    assert "@import" not in node_report
    for image in page.images:
        svg = re.fullmatch(r"data:image/svg\+xml;base64,(.+)", image["src"])
        if svg:  # what an SVG inside refers to lies inside it
            inside = base64.b64decode(svg[1]).decode()
            assert all(link.startswith(("#", "data:")) for link in re.findall(r'xlink:href="([^"]*)"', inside))


def test_models_without_attention_curvature_or_epochs(tmp_path):
    flat = Page(report(hyperboloid.fit("karate", model="gcn", dim=4, epochs=3, out=tmp_path / "gcn")))
    assert len(flat.images) == 2  # curves, picture
    assert not any("β" in cell for row in flat.rows for cell in row)
    hyperboloid.fit("karate", dim=4, epochs=3, out=tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()  # as in a sweep's best
    text = report(hyperboloid.load(tmp_path / "run"))
    assert "sweeps keep no record" in text


def test_shallow_models(tmp_path):
    page = Page(report(hyperboloid.fit("karate", model="poincare_emb", dim=4, epochs=3, out=tmp_path / "run")))
    assert len(page.images) == 2
    assert any(row[0] == "output" for row in page.rows)


def test_what_the_user_wrote_is_shown_and_not_run(tmp_path):
    name = tmp_path / "<script>alert(1)</script>"
    name.mkdir(parents=True)
    edges = name / "a&b.csv"
    edges.write_text("from,to\n" + "".join(f"<b>{i},<b>{(i + 1) % 20}\n" for i in range(20)))
    labels = tmp_path / "labels.csv"
    labels.write_text("node,label\n" + "".join(f"<b>{i},$x<i>{i % 2}\n" for i in range(20)))
    run = hyperboloid.fit(str(edges), labels=labels, dim=4, epochs=2, out=tmp_path / "run")
    page = Page(report(run))
    assert not {"script", "b", "i"} & set(page.tags)
    assert ["data set", str(edges)] in page.rows


def test_tiny_and_disconnected_graphs(tmp_path):
    two = networkx.disjoint_union(networkx.path_graph(12), networkx.cycle_graph(9))
    two.add_nodes_from(range(21, 24))
    page = Page(report(hyperboloid.fit(two, dim=2, epochs=2, out=tmp_path / "two")))
    assert ["nodes", "24"] in page.rows
    pairs = networkx.Graph([(2 * i, 2 * i + 1) for i in range(12)])  # no component has four nodes
    rows = Page(report(hyperboloid.fit(pairs, dim=2, epochs=2, out=tmp_path / "pairs"))).rows
    assert next(row for row in rows if row[0] == "δ_avg of the graph")[1] == "–"


def test_an_unfinished_or_damaged_run_is_refused(node_run, tmp_path):
    shutil.copytree(node_run.folder, tmp_path / "run")
    log = tmp_path / "run" / "split-0-seed-0" / "metrics.jsonl"
    log.write_text('{"epoch": 1}\n')
    (tmp_path / "run" / "split-0-seed-1" / "metrics.jsonl").write_text("nonsense\n")
    with pytest.raises(InputError, match="is not a log of hyperboloid"):
        report(hyperboloid.load(tmp_path / "run"))
    (tmp_path / "run" / "split-0-seed-0" / "summary.json").unlink()
    with pytest.raises(InputError, match="has not finished"):
        report(hyperboloid.load(tmp_path / "run"))


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


def luminance(colour):
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser, node_run, node_report, tmp_path, scheme):
    path = tmp_path / "report.html"
    path.write_text(node_report, encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    errors, requests = [], []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert errors == []
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    sizes = page.eval_on_selector_all("img", "all => all.map(i => [i.naturalWidth, i.clientWidth, i.clientHeight])")
    assert len(sizes) == 3
    assert all(number > 200 for size in sizes for number in size)
    assert page.inner_text("h1") == "lgcn on karate, node"
    seconds = page.eval_on_selector_all("#scores tr", "all => all.map(row => row.cells[3].innerText)")
    assert seconds[1:] == [f"{100 * run.summary['test']:.1f} %" for run in node_run.runs]
    style = "getComputedStyle(document.body)"
    ink, paper = (luminance(page.evaluate(f"{style}.{name}")) for name in ("color", "backgroundColor"))
    assert (ink < 60 and paper > 240) if scheme == "light" else (ink > 200 and paper < 40)
    for width in (1280, 400):  # a screen, a telephone
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
