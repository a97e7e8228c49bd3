"""Shallow models end to end: trained, judged, resumed and used like any other."""

import dataclasses
import json
import signal
import subprocess
import sys

import pytest
import torch

import hyperboloid
from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs import load_graph
from hyperboloid.training import predict_labels, predict_links
from hyperboloid.training.loop import start_training
from hyperboloid.training.settings import Settings
from hyperboloid.training.shallow import C_GRID, embeddings_kept, logistic_regression
from hyperboloid.training.tasks import LinkTask, NodeTask

MODELS = ("deepwalk", "poincare_emb")
SETTINGS = {
    "deepwalk": {"dim": 8, "epochs": 6, "walks": 2, "window": 5},
    "poincare_emb": {"dim": 8, "epochs": 40, "patience": 40},
}
FILES = ("model.safetensors", "metrics.jsonl", "embeddings.parquet")
CHILD = """
import json, os, signal, sys, hyperboloid, hyperboloid.training.runner as runner
runner.CHECKPOINT_EVERY = -1.0

class Killer:
    def start(self, config): pass
    def finish(self, summary): pass
    def epoch(self, training, metrics):
        if training.epoch == 4:
            os.kill(os.getpid(), signal.SIGKILL)

hyperboloid.fit("karate", out=sys.argv[1], progress=Killer(), **json.loads(sys.argv[2]))
"""


@pytest.fixture(scope="module", params=[(m, t) for m in MODELS for t in ("link", "node")], ids="-".join)
def run(request, tmp_path_factory):
    model, task = request.param
    folder = tmp_path_factory.mktemp(model) / "run"
    return hyperboloid.fit("karate", model=model, task=task, out=folder, **SETTINGS[model]).best


def test_a_run_scores_the_same_when_read_back(run):
    again = hyperboloid.load(run.folder).best
    for part in ("val", "test"):
        assert again.score(part).metric == run.summary[part]
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, run.summary["epochs"] + 1))
    judged = [line for line in lines if f"val_{run.task.metric}" in line]
    # links are judged in every epoch, nodes when all is learned
    assert len(judged) == (len(lines) if run.config.task == "link" else 1)
    assert max(line[f"val_{run.task.metric}"] for line in judged) == run.summary["val"]


def test_it_predicts(run):
    if run.config.task == "node":
        labels = predict_labels(run)
        assert (labels.label == run.graph.y).double().mean() > 0.8
        return
    links = predict_links(run, 10)
    assert (links.probability.diff() <= 0).all()
    known = {tuple(e) for e in run.graph.edge_index.T.tolist()}
    assert not known & set(zip(links.source.tolist(), links.target.tolist(), strict=True))


def test_it_knows_no_other_graph(run):
    with pytest.raises(InputError, match="knows no other graph"):
        run.encode(load_graph("disease"))


def test_a_killed_and_resumed_run_equals_an_uninterrupted_one(run, tmp_path):
    model, task = run.config.model, run.config.task
    settings = {"model": model, "task": task, **SETTINGS[model]}
    folder = tmp_path / "run"
    child = subprocess.run([sys.executable, "-c", CHILD, str(folder), json.dumps(settings)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert (folder / "checkpoint.safetensors").exists()
    assert not (folder / "summary.json").exists()
    resumed = hyperboloid.fit("karate", out=folder, resume=True, **settings)
    for name in FILES:
        assert (folder / name).read_bytes() == (run.folder / name).read_bytes(), name
    assert resumed.best.summary["test"] == run.summary["test"]


def test_several_splits_and_seeds_differ(tmp_path):
    settings = {"model": "poincare_emb", "dim": 4, "epochs": 3}
    experiment = hyperboloid.fit("karate", seeds=2, split=[0, 1], out=tmp_path / "run", **settings)
    tables = [one.encode() for one in experiment.runs]
    assert len(tables) == 4
    assert all(not torch.equal(a, b) for i, a in enumerate(tables) for b in tables[:i])


@pytest.mark.parametrize("model", MODELS)
def test_a_graph_of_the_users_own(tmp_path, model):
    (tmp_path / "graph.csv").write_text(
        "source,target,weight\n" + "\n".join(f"a{i},a{(i + k) % 12},{k}" for i in range(12) for k in (1, 2)) + "\n"
    )
    settings = SETTINGS[model] | {"epochs": 3}
    run = hyperboloid.fit(tmp_path / "graph.csv", weight="weight", model=model, out=tmp_path / "run", **settings).best
    assert run.graph.edge_weight is not None
    assert 0 <= run.summary["test"] <= 1
    assert run.encode().shape == (12, 8)


def test_hidden_edges_are_not_learned_from(tmp_path):
    """A table cannot look at edges: only what training is given may shape it."""
    graph = load_graph("karate")
    task = LinkTask(graph, Settings(), 0, torch.float32, "cpu")
    training = start_training("poincare_emb", task, Settings(epochs=3), 0)
    lone = start_training("poincare_emb", task, Settings(epochs=3), 0)
    for epoch in range(1, 4):
        training.step()
        lone.encoder.train_epoch(task.split.edge_index, lr=Settings().lr, seed=0, epoch=epoch, epochs=3)
    assert torch.equal(training.encoder.table, lone.encoder.table)


def node_training(model="poincare_emb", graph=None, **settings):
    settings = Settings(**{"dim": 4, "epochs": 2, "lr": 0.1, "burn_in": 0, **settings})
    task = NodeTask(graph or load_graph("karate"), settings, 0, torch.float64, "cpu")
    return start_training(model, task, settings, 0)


def test_the_classifier_is_scikit_learns_with_the_best_penalty():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    training = node_training(epochs=30)
    while not training.done:
        training.step()
    split, y = training.task.split, training.task.graph.y
    v = training.encoder.embedding.detach().numpy()
    judged = []
    for strength in C_GRID:
        model = LogisticRegression(C=strength, max_iter=1000).fit(v[split.train], y[split.train].numpy())
        loss = log_loss(y[split.val], model.predict_proba(v[split.val]), labels=model.classes_)
        judged.append((model.score(v[split.val], y[split.val]), -loss, model))
    best = max(judged, key=lambda line: line[:2])
    shares = training.encoder(None, None).detach().softmax(-1)
    torch.testing.assert_close(shares, torch.from_numpy(best[2].predict_proba(v)), rtol=1e-9, atol=1e-12)
    assert training.best.metric == best[0]


@pytest.mark.parametrize("seen", [[0, 1, 2], [0, 2], [1, 3]])
def test_logits_give_the_probabilities_of_the_classes_seen(seen):
    from sklearn.linear_model import LogisticRegression

    generator = torch.Generator().manual_seed(0)
    v = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    y = torch.tensor(seen)[torch.randint(len(seen), (60,), generator=generator)]
    weight, bias = logistic_regression(v, y, 4, 1.0)
    shares = (v @ weight.T + bias).softmax(-1)
    expected = LogisticRegression().fit(v.numpy(), y.numpy()).predict_proba(v.numpy())
    torch.testing.assert_close(shares[:, seen], torch.from_numpy(expected), rtol=0, atol=1e-6)
    assert set(shares.argmax(-1).tolist()) <= set(seen)


def test_training_nodes_of_one_class_are_refused():
    graph = load_graph("karate")
    first, second = ((graph.y == c).nonzero().squeeze(1) for c in (0, 1))
    masks = {"public": {"train": first[:3], "val": second[:3], "test": second[3:]}}
    with pytest.raises(InputError, match="of one class"):
        node_training(graph=dataclasses.replace(graph, masks=masks))


@pytest.mark.parametrize(
    ("model", "task", "module", "package"),
    [
        ("deepwalk", "node", "sklearn", "scikit-learn"),
        ("poincare_emb", "node", "sklearn", "scikit-learn"),
    ],
)
def test_a_missing_package_is_one_sentence_before_anything_is_written(
    tmp_path, monkeypatch, model, task, module, package
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"^This model needs {package}: .*pip install 'hyperboloid\[shallow\]'`\.$"):
        hyperboloid.fit("karate", model=model, task=task, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_trained_model_is_used_without_the_packages(tmp_path):
    run = hyperboloid.fit("karate", model="deepwalk", task="node", dim=4, epochs=1, walks=1, out=tmp_path / "run").best
    code = (
        "import sys, hyperboloid.nn, hyperboloid.training.shallow\n"
        "assert 'sklearn' not in sys.modules\n"
        "sys.modules['sklearn'] = None\n"
        "print(hyperboloid.load(sys.argv[1]).best.score('test').metric)"
    )
    words = [sys.executable, "-c", code, str(run.folder)]
    out = subprocess.run(words, check=True, capture_output=True, text=True)
    assert float(out.stdout) == run.summary["test"]


def test_a_parameter_gone_bad_is_named():
    training = node_training()
    with torch.no_grad():
        training.encoder.table[3, 1] = torch.nan
    with pytest.raises(TrainingError, match="Epoch 1: parameter table is not finite; try a smaller learning rate"):
        training.step()


@pytest.mark.parametrize("model", MODELS)
def test_embeddings_of_nodes_are_learned_once_for_all_splits(model):
    graph, settings = load_graph("karate"), Settings(**SETTINGS[model])

    def train(split, seed):
        """Score and state of a run, and the steps that it took."""
        training = start_training(model, NodeTask(graph, settings, split, torch.float32, "cpu"), settings, seed)
        steps = 0
        while not training.done:
            training.step()
            steps += 1
        return training.score("test"), training.best_state, training.epoch, steps

    runs = [(split, seed) for split in (0, 1) for seed in (0, 1)]
    alone = [train(*run) for run in runs]
    with embeddings_kept():
        together = [train(*run) for run in runs]
    for (score, state, epochs, _), (own_score, own_state, own_epochs, _) in zip(alone, together, strict=True):
        assert (score, epochs) == (own_score, own_epochs)
        assert all(torch.equal(state[name], own_state[name]) for name in state)
    assert [steps for *_, steps in together] == [settings.epochs] * 2 + [1] * 2
    assert train(0, 0)[-1] == settings.epochs  # and nothing is kept any longer
    link = LinkTask(graph, settings, 0, torch.float32, "cpu")
    with embeddings_kept():  # links are hidden by the split
        for _ in range(2):
            training = start_training(model, link, settings, 0)
            training.step()
            assert not training.done
