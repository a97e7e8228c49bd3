"""``advise``."""


def test_advice_ends_in_a_recommendation(cli, own_graph, tmp_path):
    """Each node's features tell its class."""
    ids, _ = own_graph("mine", nodes=200)
    shown = [f"{node},{i % 2},{1 - i % 2}" for i, node in enumerate(ids)]
    (tmp_path / "mine" / "features.csv").write_text("\n".join(["node,odd,even", *shown]) + "\n")
    files = ("mine/edges.csv", "--features", "mine/features.csv", "--labels", "mine/labels.csv", "--task", "node")
    result = cli("advise", *files, "--models", "gcn,lgcn", "--budget", "4s", "--out", "a", "--json")
    assert result.code == 0, result.err
    found = result.json
    assert (found["model"], found["geometry"]) in {("gcn", "euclidean"), ("lgcn", "hyperbolic")}
    assert (
        f"se {found['model']} ({found['geometry']} space) with {found['dim']} dimensions.".lower() in result.out.lower()
    )
    assert (found["nodes"], found["learned"]) == (200, True)
    assert (tmp_path / "a" / "best" / "model.safetensors").exists()
    again = cli("advise", *files, "--budget", "4s", "--out", "a")
    assert again.code == 2
    assert "exists already" in again.error


def test_a_graph_too_small_to_tell_gets_no_recommendation(cli):
    found = cli("advise", "karate", "--models", "gcn,lgcn", "--budget", "3s", "--out", "a", "--json").json
    assert (found["nodes"], found["notes"], found["learned"]) == (34, [], False)
    assert found["advice"].startswith("No model is clearly better than guessing")


def test_what_is_refused(cli):
    for words, sentence in (
        (("karate", "--budget", "soon"), "--budget must be a time"),
        (("karate", "--models", "resnet"), "There is no model 'resnet'"),
        (("karate", "--task", "cook"), "There is no task 'cook'"),
        (("karate", "--resume"), "Resuming needs the folder"),
        (("nothing",), "there is no data set 'nothing'"),
    ):
        result = cli("advise", *words)
        assert result.code == 2
        assert sentence in result.error
