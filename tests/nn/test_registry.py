"""Every registered model loads, can be built from settings, has settings to train with, and has tests of its own."""

import ast
import dataclasses
from pathlib import Path

import pytest
import torch

from hyperboloid import InputError
from hyperboloid.nn import Encoder
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.registry import MODELS, base_name, get_model
from hyperboloid.nn.settings import ModelSettings
from hyperboloid.training.settings import default_settings
from hyperboloid.training.tasks import TASKS

VARIANTS = [name for name in MODELS if base_name(name) != name]


@pytest.mark.parametrize("name", MODELS)
def test_a_registered_model_embeds_a_graph(name):
    encoder = get_model(name).load()
    assert issubclass(encoder, Encoder)
    model = encoder.from_settings(Sizes(10, 5, 3), MODELS[name].settle(ModelSettings(dim=6)))
    out = model(torch.randn(10, 5), torch.randint(10, (2, 20)))
    assert out.shape == (10, 3)
    assert torch.isfinite(out).all()
    assert model.manifold.normal.sqdist(out[0], out[0]) == 0


# ---- tests


def names_used(source: str) -> set[str]:
    """What a test file imports from hyperboloid and then uses inside a function or a parametrisation."""
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hyperboloid")
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    has_tests = any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))
    return {original for name, original in imported.items() if name in used} if has_tests else set()


@pytest.mark.parametrize("name", MODELS)
def test_a_registered_model_has_tests_of_its_own(name):
    module, encoder = MODELS[name].path.split(":")
    path = Path(__file__).parent / f"test_{module.rpartition('.')[2]}.py"
    assert path.is_file(), f"{path.name}: the model '{name}' needs a test file"
    assert encoder in names_used(path.read_text(encoding="utf-8")), f"{path.name} never uses {encoder}"


def test_a_file_that_only_mentions_a_class_does_not_count():
    use = "def test_it():\n    GCN(1, 2)\n"
    assert names_used(f"from hyperboloid.nn import GCN\n{use}") == {"GCN"}
    assert names_used(f"from hyperboloid.nn import GCN as Net\n{use.replace('GCN', 'Net')}") == {"GCN"}
    assert names_used(f"from torch_geometric.nn import GCN\n{use}") == set()
    assert names_used("from hyperboloid.nn import GCN\ndef test_it():\n    'GCN'\n") == set()
    assert names_used("from hyperboloid.nn import GCN\nGCN(1, 2)\n") == set()


# ---- names


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="no model 'gnc'") as caught:
        get_model("gnc")
    for name in MODELS:
        assert name in str(caught.value)


def test_a_variant_is_named_after_its_architecture():
    assert base_name("lgcn") == "lgcn"
    assert base_name("gcn") == "gcn"
    assert "lgcn_no_att" in VARIANTS
    for name in VARIANTS:
        base = base_name(name)
        assert name.startswith(f"{base}_")
        assert MODELS[base].fixed == {}
        assert MODELS[name].fixed != {}
        assert MODELS[name].load() is MODELS[base].load()


def test_no_two_models_are_the_same():
    lines = [(line.path, tuple(sorted(line.fixed.items()))) for line in MODELS.values()]
    assert len(set(lines)) == len(lines)


# ---- settings


@pytest.mark.parametrize("name", VARIANTS)
def test_fixed_settings_make_another_network(name):
    """They reach the encoder: its layers differ from those of the architecture."""
    line, base = MODELS[name], MODELS[base_name(name)]
    variant, plain = (m.load().from_settings(Sizes(10, 5, None), m.settle(ModelSettings(dim=6))) for m in (line, base))
    assert repr(variant) != repr(plain)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("task", TASKS)
def test_fixed_settings_cannot_be_changed(name, task):
    fixed = MODELS[name].fixed
    settings = default_settings(name, task, "cora")
    for key, value in fixed.items():
        assert getattr(settings, key) == value
        assert default_settings(name, task, "cora", **{key: value}) == settings  # to say it again is no contradiction
        other = "origin" if isinstance(value, str) else not value
        with pytest.raises(InputError, match=f"{key} is .* in model '{name}'"):
            default_settings(name, task, "cora", **{key: other})
        with pytest.raises(InputError, match=f"{key} is .* in model '{name}'"):
            default_settings(name, task, "cora", **{key: None})


def test_attention_is_refused_by_the_model_without():
    with pytest.raises(InputError, match="attention is false in model 'lgcn_no_att': that is what makes it this model"):
        default_settings("lgcn_no_att", "link", "cora", attention=True)
    assert default_settings("lgcn", "link", "cora", attention=False).attention is False


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("dataset", ["cora", "disease_lp", "never seen"])
def test_variants_share_their_architectures_defaults(name, task, dataset):
    base = default_settings(base_name(name), task, dataset)
    assert default_settings(name, task, dataset) == dataclasses.replace(base, **MODELS[name].fixed)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", TASKS)
def test_every_model_has_default_settings(name, task):
    for dataset in ("cora", "disease_lp", "never seen"):
        settings = default_settings(name, task, dataset, dim=6)
        assert settings.dim == 6
        assert settings.lr > 0
        MODELS[name].load().from_settings(Sizes(10, 5, 3), MODELS[name].settle(settings))


def test_a_setting_that_the_model_lacks_is_refused():
    with pytest.raises(InputError, match="gcn has no use for the setting 'attention'; it has: activation"):
        default_settings("gcn", "link", "cora", attention=True)
    with pytest.raises(InputError, match="hgcn decodes links by the intrinsic distance only"):
        default_settings("hgcn", "link", "cora", distance="lorentz")
    assert default_settings("hgcn", "link", "cora", attention=True, mean="origin").mean == "origin"
