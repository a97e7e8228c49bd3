"""One-hot and sparse features are shortcuts for dense ones: same values, same gradients, same dropout."""

import pytest
import torch

from hyperboloid.kernels import random_stream
from hyperboloid.nn import HGCNConv, LGCNConv, SparseFeatures, TangentLinear
from hyperboloid.nn.features import compress, drop_features
from hyperboloid.nn.gcn import GCNLayer
from hyperboloid.nn.graphsage import SAGELayer
from hyperboloid.nn.hnn import HNNLayer
from hyperboloid.nn.mlp import LinearLayer

EDGES = torch.randint(30, (2, 90), generator=torch.Generator().manual_seed(1))


def sparse_matrix(n=30, k=12, share=0.1):
    """With empty rows and columns."""
    x = torch.randn(n, k, dtype=torch.float64) * (torch.rand(n, k) < share)
    x[3], x[:, 5] = 0, 0
    return x


def output_and_gradients(conv, x):
    out = conv(x, EDGES)
    return [out, *torch.autograd.grad(out.square().sum(), list(conv.parameters()))]


@pytest.mark.parametrize("bias", [True, False])
def test_no_features_are_one_hot_features(bias):
    conv = LGCNConv(30, 4, bias=bias).double()
    for ours, dense in zip(
        output_and_gradients(conv, None),
        output_and_gradients(conv, torch.eye(30, dtype=torch.float64)),
        strict=True,
    ):
        torch.testing.assert_close(ours, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_sparse_features_are_dense_features(bias):
    x = sparse_matrix()
    conv = LGCNConv(12, 4, bias=bias).double()
    for ours, dense in zip(
        output_and_gradients(conv, SparseFeatures.from_dense(x)), output_and_gradients(conv, x), strict=True
    ):
        torch.testing.assert_close(ours, dense, rtol=1e-12, atol=1e-12)


def test_the_sparse_product_is_differentiable():
    x, weight = SparseFeatures.from_dense(sparse_matrix()), torch.randn(12, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(x.matmul, weight)


def test_sparse_dropout_has_the_moments_of_dense_dropout():
    x, lin, p, runs = sparse_matrix(), TangentLinear(12, 4, bias=False).double(), 0.3, 3000
    w = lin.weight.detach()
    sparse = SparseFeatures.from_dense(x)
    samples = []
    for epoch in range(runs):
        with random_stream(0, epoch):
            samples.append(lin(sparse.dropout(p, training=True)).detach())
    samples = torch.stack(samples)
    # each product is a sum of independent terms x w/(1 − p) · Bernoulli(1 − p)
    mean, variance = x @ w.t(), x.square() @ w.t().square() * p / (1 - p)
    assert ((samples.mean(0) - mean).abs() <= 5 * (variance / runs).sqrt() + 1e-12).all()
    assert samples.var(0).sum().item() == pytest.approx(variance.sum().item(), rel=0.05)


def test_sparse_dropout_reaches_the_gradient():
    sparse, lin = SparseFeatures.from_dense(sparse_matrix()), TangentLinear(12, 4, bias=False).double()
    dropped = sparse.dropout(0.5, training=True)
    dense = torch.zeros(30, 12, dtype=torch.float64)
    dense[dropped.pattern.row, dropped.pattern.col] = dropped.value
    assert 0 < dense.count_nonzero() < sparse.value.numel()
    (ours,) = torch.autograd.grad(lin(dropped).square().sum(), [lin.weight])
    (expected,) = torch.autograd.grad(lin(dense).square().sum(), [lin.weight])
    torch.testing.assert_close(ours, expected)


def test_no_dropout_outside_training():
    x = SparseFeatures.from_dense(sparse_matrix())
    assert x.dropout(0.5, training=False) is x


@pytest.mark.parametrize("layer", [LGCNConv, HGCNConv, GCNLayer, SAGELayer, LinearLayer, HNNLayer])
def test_dropout_reaches_one_hot_features(layer):
    conv = layer(30, 4, dropout=0.4).double()
    for parameter in conv.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # biases too
    with random_stream(5, 1):
        left = drop_features(None, 0.4, True, torch.ones(1, dtype=torch.float64), 30).value
    assert set(left.tolist()) == {0.0, 1 / 0.6}
    with random_stream(5, 1):
        dropped = output_and_gradients(conv.train(), None)
    dense = output_and_gradients(conv.eval(), torch.diag(left))
    for ours, expected in zip(dropped, dense, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
    for ours, whole in zip(
        output_and_gradients(conv, None), output_and_gradients(conv, torch.eye(30).double()), strict=True
    ):
        torch.testing.assert_close(ours, whole, rtol=1e-12, atol=1e-12)


def test_compress_takes_the_sparse_form_only_for_sparse_matrices():
    assert compress(None) is None
    dense = torch.rand(10, 10)
    assert compress(dense) is dense
    one_hot = torch.eye(50)
    compressed = compress(one_hot)
    assert isinstance(compressed, SparseFeatures)
    assert torch.equal(compressed.matmul(torch.eye(50)), one_hot)
