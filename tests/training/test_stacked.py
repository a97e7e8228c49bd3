"""Parameters of many models in one tensor."""

import torch

from hyperboloid.training.stacked import ALIGNED, Stacked

SHAPES = {"raw": (), "bias": (5,), "weight": (5, 7), "att": (3, 5)}


def tensors(models=3):
    return {name: torch.randn(models, *shape) for name, shape in SHAPES.items()}


def test_each_tensor_is_a_view_of_the_one():
    given = tensors()
    stacked = Stacked.of(given)
    assert stacked.flat.shape[0] == 3
    assert stacked.flat.size(1) % ALIGNED == 0
    assert stacked.flat.size(1) < sum(t[0].numel() for t in given.values()) + ALIGNED
    for name, t in given.items():
        assert torch.equal(stacked.named[name], t)
    stacked.flat.zero_()
    assert not any(t.any() for t in stacked.named.values())
    assert all(t.any() for t in given.values())


def test_other_tensors_are_joined_in_the_same_order():
    stacked, other = Stacked.of(tensors()), tensors()
    other["weight"] = other["weight"].mT.contiguous().mT  # in another order in memory
    assert torch.equal(stacked.joined(other), Stacked.of(other).flat)
    none = {**other, "att": None}
    assert torch.equal(stacked.joined(none), Stacked.of({**other, "att": torch.zeros(3, 3, 5)}).flat)
    del none["att"]
    assert torch.equal(stacked.joined(none), stacked.joined({**none, "att": None}))


def test_columns_of_some():
    stacked = Stacked.of(tensors())
    chosen = stacked.columns({"weight", "raw"})
    stacked.flat.copy_(chosen)
    assert {name for name, t in stacked.named.items() if t.all()} == {"weight", "raw"}
    assert {name for name, t in stacked.named.items() if not t.any()} == {"bias", "att"}
    assert chosen.sum() == 36


def test_some_of_the_models():
    given = tensors()
    stacked = Stacked.of(given)
    some = stacked.select(torch.tensor([2, 0]))
    copy = stacked.clone()
    stacked.flat.zero_()
    for name, t in given.items():
        assert torch.equal(some.named[name], t[[2, 0]])
        assert torch.equal(copy.model(1)[name], t[1])
