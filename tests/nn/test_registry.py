"""Every registered model loads, can be built from settings, and has tests."""

from pathlib import Path

import pytest
import torch

from hyperboloid import InputError
from hyperboloid.nn import Encoder
from hyperboloid.nn.encoder import Sizes
from hyperboloid.nn.registry import MODELS, get_model
from hyperboloid.nn.settings import ModelSettings


@pytest.mark.parametrize("name", MODELS)
def test_a_registered_model_embeds_a_graph(name):
    encoder = get_model(name).load()
    assert issubclass(encoder, Encoder)
    model = encoder.from_settings(Sizes(10, 5, 3), MODELS[name].settle(ModelSettings(dim=7)))
    out = model(torch.randn(10, 5), torch.randint(10, (2, 20)))
    assert out.shape == (10, 3)
    assert torch.isfinite(out).all()
    assert model.manifold.normal.sqdist(out[0], out[0]) == 0


@pytest.mark.parametrize("name", MODELS)
def test_a_registered_model_has_a_test_file(name):
    module = MODELS[name].path.split(":")[0].rpartition(".")[2]
    assert (Path(__file__).parent / f"test_{module}.py").is_file()


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="no model 'gnc'") as caught:
        get_model("gnc")
    for name in MODELS:
        assert name in str(caught.value)
