"""``advise``."""


def test_advice_ends_in_a_recommendation(cli, tmp_path):
    result = cli("advise", "karate", "--models", "gcn,lgcn", "--budget", "3s", "--out", "a", "--json")
    assert result.code == 0, result.err
    found = result.json
    assert (found["model"], found["geometry"]) in {("gcn", "euclidean"), ("lgcn", "hyperbolic")}
    assert (
        f"se {found['model']} ({found['geometry']} space) with {found['dim']} dimensions.".lower() in result.out.lower()
    )
    assert (found["nodes"], found["notes"]) == (34, [])
    assert (tmp_path / "a" / "best" / "model.safetensors").exists()
    again = cli("advise", "karate", "--budget", "4s", "--out", "a")
    assert again.code == 2
    assert "exists already" in again.error


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
