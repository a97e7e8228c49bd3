"""Feature dropout, neighbour dropout and DropConnect: only in training, reproducible, and on what they should be."""

import pytest
import torch

from hyperboloid.kernels import random_stream
from hyperboloid.nn import LGCNConv

N = 60
KINDS = ["dropout", "att_dropout", "drop_connect"]


def example(**options):
    conv = LGCNConv(20, 16, **options)
    conv.att.weight.data *= 30
    return conv, torch.randn(N, 20), torch.randint(N, (2, 4 * N))


@pytest.mark.parametrize("kind", KINDS)
def test_only_in_training(kind):
    conv, x, edges = example(**{kind: 0.5})
    plain = LGCNConv(20, 16)
    plain.load_state_dict(conv.state_dict())
    assert torch.equal(conv.eval()(x, edges), plain(x, edges))
    assert not torch.allclose(conv.train()(x, edges), plain(x, edges))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_reproduces_a_step(kind):
    conv, x, edges = example(**{kind: 0.5})
    results = []
    for seed, epoch in ((0, 0), (0, 0), (0, 1), (1, 0)):
        with random_stream(seed, epoch):
            results.append(conv(x, edges))
    assert torch.equal(results[0], results[1])
    for other in results[2:]:
        assert not torch.allclose(results[0], other)


def test_feature_dropout_is_on_the_input():
    conv, x, edges = example(dropout=0.5)
    x.requires_grad_()
    conv(x, edges).square().sum().backward()
    assert 0.4 < (x.grad == 0).float().mean() < 0.6


def test_drop_connect_is_on_both_matrices_and_not_on_the_bias():
    conv, x, edges = example(drop_connect=0.5)
    conv(x, edges).square().sum().backward()
    for weight in (conv.lin.weight, conv.att.weight):
        assert 0.35 < (weight.grad == 0).float().mean() < 0.65
    assert (conv.lin.bias.grad != 0).all()


@pytest.mark.parametrize("attention", [True, False])
def test_neighbour_dropout_never_drops_the_node_itself(attention):
    conv = LGCNConv(20, 16, att_dropout=0.5, attention=attention)
    conv.att_dropout = 1.0
    x, edges = torch.randn(N, 20), torch.randint(N, (2, 4 * N))
    torch.testing.assert_close(conv(x, edges), conv.lin(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", [True, False])
def test_neighbour_dropout_takes_away_edges(attention):
    conv = LGCNConv(20, 16, att_dropout=0.5, attention=attention)
    x, edges = torch.randn(N, 20), torch.randint(N, (2, 4 * N))
    with random_stream(0, 0):
        out, (index, alpha) = conv(x, edges, return_attention_weights=True)
    others = index[0] != index[1]
    assert (alpha[~others] > 0).all()
    kept = alpha > 0
    assert 0.4 < kept[others].float().mean() < 0.6
    # on the graph that is left, without dropout, the layer gives the same
    torch.testing.assert_close(out, conv.eval()(x, index[:, kept]), rtol=1e-4, atol=1e-5)
