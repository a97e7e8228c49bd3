"""``report``."""


def test_report_writes_one_file(cli, node_run, tmp_path):
    result = cli("report", node_run, "--out", "page.html", "--json")
    assert result.code == 0, result.err
    assert result.json["bytes"] == (tmp_path / "page.html").stat().st_size
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_what_is_refused(cli, node_run):
    for words, sentence in (
        ((node_run, "--out", "page.pdf"), "must be an .html file"),
        ((node_run, "--out", "nowhere/page.html"), "There is no folder nowhere"),
        (("nowhere",), "There is no run folder nowhere"),
    ):
        result = cli("report", *words)
        assert result.code == 2
        assert sentence in result.error
