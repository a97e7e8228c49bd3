"""Whatever is wrong with the input: one sentence, exit code 2, no traceback, and nothing written."""

import random
import shutil

import pytest

PATH = "\n".join(f"n{i},n{i + 1}" for i in range(12))

FILES = {
    "path.csv": PATH,
    "weights.csv": "source,target,w\na,b,1\nb,c,x\nc,d,2",
    "negative.csv": "source,target,w\na,b,1\nb,c,-2\nc,d,2",
    "ragged.csv": "a,b\nb,c\nc\nd,e",
    "column.csv": "a\nb\nc",
    "empty.csv": "",
    "comments.csv": "# nothing\n\n",
    "header.csv": "source,target\n",
    "loops.csv": "a,a\nb,b",
    "two.csv": "a,b\nb,c",
    "complete.csv": "a,b\na,c\nb,c\na,d\nb,d\nc,d",
    "latin.csv": "caf\xe9,b\nb,c".encode("latin-1"),
    "junk.csv": random.Random(0).randbytes(500) + b"\0",
    "junk.parquet": random.Random(0).randbytes(500),
    "junk.npz": random.Random(0).randbytes(500),
    "junk.graphml": random.Random(0).randbytes(500),
    "junk.gml": random.Random(0).randbytes(500),
    "graph.pkl": b"\x80\x04N.",
    "graph.xlsx": "a,b",
    "words.csv": "node,f\n" + "\n".join(f"n{i},{'blue' if i == 4 else i}" for i in range(13)),
    "nan.csv": "node,f\n" + "\n".join(f"n{i},{'nan' if i == 4 else i}" for i in range(13)),
    "inf.csv": "node,f\n" + "\n".join(f"n{i},{'1e60' if i == 4 else i}" for i in range(13)),
    "stranger.csv": "node,f\n" + "\n".join(f"n{i},{i}" for i in range(14)),
    "few.csv": "node,f\nn0,1\nn1,2",
    "again.csv": "node,f\nn0,1\nn0,2",
    "one_class.csv": "node,label\n" + "\n".join(f"n{i},same" for i in range(13)),
    "two_nodes.csv": "node,label\nn0,a\nn1,b",
    "known.csv": "node,label\n" + "\n".join(f"n{i},{i % 2}" for i in range(13)),
    "taken/file": "",
    "a_file": "",
}


@pytest.fixture
def files(tmp_path):
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def everything_below(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} | {
        path: 0 for path in folder.rglob("*") if path.is_dir()
    }


def refused(cli, words, folder):
    """The sentence that a command is refused with, once all else has been checked."""
    before = everything_below(folder)
    result = cli(*words)
    assert result.code == 2, result
    assert result.out == ""
    assert everything_below(folder) == before
    return result.error


TRAIN = [
    # names
    ("nosuch", "no data set 'nosuch': choose one of cora, "),
    ("karate --model nosuch", "no model 'nosuch'; choose one of: lgcn"),
    ("karate --task colour", "no task 'colour'; choose one of: link, node"),
    # the graph's file
    ("missing.csv", "no file missing.csv"),
    ("taken/", "taken is a folder"),
    ("ragged.csv", "ragged.csv line 3: expected 2 columns, found 1"),
    ("column.csv", "column.csv has a single column"),
    ("empty.csv", "empty.csv is empty"),
    ("comments.csv", "comments.csv has no rows"),
    ("header.csv", "header.csv has a header but no edges"),
    ("loops.csv", "'loops.csv' has no edges between two different nodes"),
    ("two.csv", "'two.csv' has 2 edges, too few to split"),
    ("complete.csv", "'complete.csv' has 6 edges and only 0 pairs without one"),
    ("latin.csv", "latin.csv is not UTF-8 text"),
    ("junk.csv", "junk.csv is not a text file"),
    ("junk.parquet", "junk.parquet is not a readable Parquet file"),
    ("junk.npz", "junk.npz"),
    ("junk.graphml", "junk.graphml is not a readable graphml file"),
    ("junk.gml", "junk.gml is not a readable gml file"),
    ("graph.pkl", "graph.pkl is a pickle"),
    ("./graph.xlsx", "cannot tell what graph.xlsx is"),
    # weights, features, labels
    ("path.csv --weight w", "path.csv has no column 'w'"),
    ("weights.csv --weight w", "weights.csv line 3: the weight in column 'w' is 'x', not a number"),
    ("negative.csv --weight w", "negative.csv line 3: the weight is -2"),
    ("path.csv --features missing.csv", "no file missing.csv"),
    ("path.csv --features words.csv", "words.csv line 6: the feature in column 'f' is 'blue', not a number"),
    ("path.csv --features nan.csv", "nan.csv line 6: the feature in column 'f' is nan"),
    ("path.csv --features inf.csv", "inf.csv line 6: the feature in column 'f' is inf"),
    ("path.csv --features stranger.csv", "stranger.csv line 15: features for node 'n13'"),
    ("path.csv --features few.csv", "few.csv has no features for 11 of the graph's 13 nodes"),
    ("path.csv --features again.csv", "again.csv line 3: a second row of features for node 'n0'"),
    ("path.csv --features junk.npz", "junk.npz"),
    ("path.csv --task node", "'path.csv' has no labels"),
    ("path.csv --task node --labels missing.csv", "no file missing.csv"),
    ("path.csv --task node --labels stranger.csv", "stranger.csv line 15: labels for node 'n13'"),
    ("path.csv --task node --labels one_class.csv", "of one class"),
    ("path.csv --task node --labels two_nodes.csv", "too few for training, validation and test"),
    ("karate --labels known.csv", "'karate' comes with what it has"),
    # settings
    ("karate --dim 0", "dim must be at least 1, not 0"),
    ("karate --dim -4", "dim must be at least 1, not -4"),
    ("karate --epochs 0", "epochs must be at least 1, not 0"),
    ("karate --set att_dim=1e18", "att_dim must be at least 1 and below 1099511627776, not 1e+18"),
    ("karate --set weight_decay=1e39", "weight_decay must be at least 0 and below 1e+38, not 1e+39"),
    ("karate --set beta=-1", "beta must be at least 0.001 and below 1000, not -1"),
    ("karate --set beta=0", "beta must be at least 0.001"),
    ("karate --set lr=abc", "lr must be a number, not 'abc'"),
    ("karate --set lr=NaN", "lr must be at least 0"),
    ("karate --set lr=-.5", "lr must be at least 0 and below 100, not -0.5"),
    ("karate --set dropout=.5.5", "dropout must be a number, not '.5.5'"),
    ("karate --set layers=1.5", "layers must be a whole number, not 1.5"),
    ("karate --set bias=1", "bias must be true or false"),
    ("karate --set dropout=1", "dropout must be at least 0 and below 1"),
    ("karate --set activation=step", "activation must be one of relu, "),
    ("karate --set nosuch=1", "no setting 'nosuch'; the settings are: activation, "),
    ("karate --set task=node", "no setting 'task'"),
    ("karate --set out=x", "no setting 'out'"),
    ("karate --set lr", "name=value, not 'lr'"),
    ("karate --seeds 0", "--seeds must be at least 1"),
    ("karate --seeds -2", "--seeds must be at least 1"),
    ("karate --seeds 9999999999", "--seeds must be at least 1 and at most"),
    ("karate --seed -1", "seeds must be whole numbers from 0"),
    ("karate --split a", "--split must be a number, a list like 0,3 or a range like 0-4, not 'a'"),
    ("karate --split 0,", "--split must be a number"),
    ("karate --split -1", "--split must be a number"),
    ("karate --split 3-1", "--split must be a number"),
    ("karate --split ²", "--split must be a number"),
    ("karate --split 0-9999999999", "--split must name at most"),
    ("karate --split 9999999999", "splits must be whole numbers from 0 to 2147483647"),
    ("karate --split 1,0-2", "splits must differ from each other"),
    ("karate --dtype int8", "dtype must be one of float32, float64, not 'int8'"),
    ("karate --device tpu", "device must be cpu or cuda, not 'tpu'"),
    ("karate --device cpu:x", "device must be cpu or cuda"),
    ("karate --device cuda:999", "use --device cpu"),
    # the run folder
    ("karate --resume", "give it by --out"),
    ("karate --out taken", "taken exists already"),
    ("karate --out a_file", "a_file exists already"),
    ("karate --out taken --resume", "taken is not a run folder"),
    ("karate --out a_file --resume", "a_file is not a run folder"),
    ("karate --out a_file/below/run", "Cannot make the run folder a_file/below/run: Not a directory"),
    (f"karate --out {'x' * 300}", "File name too long"),
]


@pytest.mark.parametrize(("words", "fragment"), TRAIN, ids=[words[:60] for words, _ in TRAIN])
def test_train_refuses(cli, files, words, fragment):
    assert fragment in refused(cli, ["train", *words.split()], files)


def test_train_refuses_cuda_where_there_is_none(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert "torch finds no GPU" in refused(cli, ["train", "karate", "--device", "cuda", "--out", "run"], tmp_path)


def test_train_refuses_a_damaged_data_set_by_its_file(cli, tmp_path):
    damaged = tmp_path / "data" / "airports" / "usa" / "raw" / "labels-usa-airports.txt"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("node label\n")
    assert str(damaged) in refused(cli, ["train", "usa", "--data-dir", tmp_path / "data"], tmp_path)


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ("--set lr=0.5", "its lr is 0.01, not 0.5"),
        ("--dim 5", "its dim is 4, not 5"),
        ("--epochs 6", "its epochs is 5, not 6"),
        ("--task node", "its task is link, not node"),
        ("--seeds 2", "its seeds is [0], not [0, 1]"),
        ("--split 1", "its splits is [0], not [1]"),
        ("--dtype float64", "its dtype is float32, not float64"),
    ],
)
def test_resume_refuses_another_experiment(cli, link_run, tmp_path, change, fragment):
    shutil.copytree(link_run, tmp_path / "run")
    # the last of two options of a kind counts
    words = ["train", "karate", "--dim", 4, "--epochs", 5, "--set", "lr=0.01", *change.split()]
    error = refused(cli, [*words, "--out", "run", "--resume"], tmp_path)
    assert fragment in error
    assert len(error) < 200


def swap_graph(folder):
    import hyperboloid

    hyperboloid.fit("disease", epochs=1, dim=2, out=folder.parent / "other")
    shutil.copy(folder.parent / "other" / "graph.safetensors", folder)


def cut(name, share=0.5):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return damage


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def replace(name, old, new):
    def damage(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return damage


def remove(name):
    return lambda folder: (folder / name).unlink()


DEEP = b"[" * 100_000
NOT_ITS_PARAMETERS = "model.safetensors does not hold this run's parameters"

DAMAGES = {
    "no folder": (shutil.rmtree, "There is no run folder run"),
    "empty folder": (lambda f: [p.unlink() for p in f.iterdir()], "run is not a run folder of hyperboloid"),
    "foreign config": (write("config.json", b'{"name": "package", "version": "1"}'), "config.json is not a config"),
    "config of a list": (write("config.json", b"[1, 2]"), "config.json is not a config"),
    "config nested deep": (write("config.json", DEEP), "config.json is not a config"),
    "config cut short": (cut("config.json"), "config.json is not a config"),
    "config of junk": (write("config.json", b"\xff\xfe\0"), "config.json is not a config"),
    "config with a foreign setting": (replace("config.json", '"lr"', '"rate"'), "config.json is not a config"),
    "later format": (replace("config.json", '"format": 1', '"format": 99'), "has format 99"),
    "unknown model": (replace("config.json", "lgcn", "transformer"), "no model 'transformer'"),
    "no graph": (remove("graph.safetensors"), "holds no graph.safetensors"),
    "graph cut short": (cut("graph.safetensors"), "graph.safetensors is not a stored graph"),
    "graph of junk": (write("graph.safetensors", b"junk" * 99), "graph.safetensors is not a stored graph"),
    "graph of another run": (swap_graph, "graph.safetensors is not the graph of this run: its checksum differs"),
    "parameters for the graph": (
        lambda f: shutil.copy(f / "model.safetensors", f / "graph.safetensors"),
        "graph.safetensors is not a stored graph",
    ),
    "no model": (remove("model.safetensors"), NOT_ITS_PARAMETERS),
    "model cut short": (cut("model.safetensors"), NOT_ITS_PARAMETERS),
    "empty model": (write("model.safetensors", b""), NOT_ITS_PARAMETERS),
    "model of junk": (
        write("model.safetensors", b"junk" * 99),
        NOT_ITS_PARAMETERS,
    ),
    "model of another shape": (
        replace("config.json", '"layers": 2', '"layers": 3'),
        NOT_ITS_PARAMETERS,
    ),
    "unfinished": (remove("summary.json"), "has not finished; go on with it by `train … --resume`"),
    "summary cut short": (cut("summary.json"), "summary.json is not a summary"),
    "foreign summary": (write("summary.json", b'{"runs": [{"val": 1}]}'), "summary.json is not a summary"),
    "summary of words": (replace("summary.json", '"val": ', '"val": "?", "was": '), "summary.json is not a summary"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", ["evaluate run", "predict run --out new.csv", "plot run --out new.png"])
def test_a_damaged_run_folder_is_refused(cli, link_run, tmp_path, command, damage):
    shutil.copytree(link_run, tmp_path / "run")
    harm, fragment = DAMAGES[damage]
    harm(tmp_path / "run")
    assert fragment in refused(cli, command.split(), tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("checkpoint.safetensors", b"junk" * 99, "run/checkpoint.safetensors is not a checkpoint of this run"),
        ("summary.json", b"{", "run/summary.json is not a summary"),
        ("config.json", b"{", "run/config.json is not a config"),
    ],
)
def test_resume_refuses_a_damaged_run_folder(cli, link_run, tmp_path, name, content, fragment):
    shutil.copytree(link_run, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    (tmp_path / "run" / name).write_bytes(content)
    result = cli("train", "karate", "--dim", 4, "--epochs", 5, "--out", "run", "--resume")
    assert result.code == 2
    assert fragment in result.error


PREDICT = [
    ("LINK --labels", "was trained for task 'link', not to predict labels"),
    ("NODE --links", "was trained for task 'node', not to predict links"),
    ("LINK --links --labels", "Choose one of --links and --labels"),
    ("LINK --top 0", "--top must be at least 1"),
    ("NODE --top -1", "--top must be at least 1"),
    ("LINK --graph path.csv", "without features: it knows no other graph"),
    ("LINK --graph missing.csv", "no file missing.csv"),
    ("LINK --features few.csv", "--features and --weight go with --graph"),
    ("LINK --out path.csv", "path.csv exists already"),
    ("LINK --out nowhere/x.csv", "no folder nowhere"),
    ("LINK --out a_file/x.csv", "no folder a_file"),
]


@pytest.mark.parametrize(("words", "fragment"), PREDICT, ids=[words for words, _ in PREDICT])
def test_predict_refuses(cli, files, link_run, node_run, words, fragment):
    runs = {"LINK": link_run, "NODE": node_run}
    assert fragment in refused(cli, ["predict", *(runs.get(word, word) for word in words.split())], files)


@pytest.mark.parametrize("name", ["x.pdf", "x", "nowhere/x.png", "a_file/x.svg"])
def test_plot_refuses(cli, files, link_run, name):
    error = refused(cli, ["plot", link_run, "--out", name], files)
    assert ("no folder" if "/" in name else ".png or .svg") in error


def test_datasets_refuses_an_unknown_name(cli, tmp_path):
    assert "'nosuch'; choose one of: cora, " in refused(cli, ["datasets", "nosuch"], tmp_path)


@pytest.mark.parametrize(
    "words", ["nosuch", "train", "train karate --nosuch", "train karate --dim four", "evaluate", "predict a b c"]
)
def test_words_that_do_not_parse_are_refused(cli, tmp_path, words):
    result = cli(*words.split())
    assert result.code == 2
    assert "Usage:" in result.err
    assert "Traceback" not in result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["0-4", "1_0", "5.0", "1e3", "٣", "four", "9" * 5000])
@pytest.mark.parametrize("command", ["train karate --seeds", "sweep karate --tries", "paper run node --epochs"])
def test_what_is_no_whole_number_is_refused(cli, tmp_path, command, word):
    result = cli(*command.split(), word)
    assert result.code == 2
    assert f"Invalid value for '{command.split()[-1]}'" in result.err
    assert "is not a whole number" in " ".join(result.err.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_an_error_of_many_lines_is_said_in_one(cli, tmp_path):
    assert refused(cli, ["train", "no\nsuch\n.csv"], tmp_path) == "there is no file no such .csv; check the path"


def test_too_little_memory_is_said_in_one_line(cli, tmp_path):
    result = cli("train", "karate", "--dim", 10**12)
    assert result.code == 1
    assert "There is not enough memory" in result.error
    assert not list(tmp_path.iterdir())


def test_what_the_system_refuses_is_said_in_words(cli, link_run):
    name = f"{'x' * 300}.png"
    result = cli("plot", link_run, "--out", name)
    assert (result.code, result.error) == (1, f"{name}: File name too long")
