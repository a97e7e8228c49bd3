"""The Lorentz centroid as a PyG aggregation."""

import pytest
import torch
from torch_geometric.nn import MessagePassing

from hyperboloid import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.nn import LorentzCentroid

INDEX = torch.tensor([0, 0, 0, 1, 3, 3, 3, 3])  # group 2 is empty
PTR = torch.tensor([0, 3, 4, 4, 8])


def members(d=3):
    return torch.randn(8, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def weights():
    return torch.rand(8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def aggregation(beta, **options):
    aggr = LorentzCentroid(beta, **options).double()
    aggr.reset_parameters()
    return aggr


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("how", ["index", "unsorted", "ptr"])
def test_equals_the_centroid_of_each_group(beta, weighted, how):
    aggr, x, weight = aggregation(beta), members(), weights() if weighted else None
    if how == "ptr":
        out = aggr(x, ptr=PTR, weight=weight)
    else:
        order = torch.randperm(8, generator=torch.Generator().manual_seed(2)) if how == "unsorted" else torch.arange(8)
        out = aggr(x[order], INDEX[order], dim_size=4, weight=weight[order] if weighted else None)
    assert out.shape == (4, 3)
    for group in (0, 1, 3):
        inside = INDEX.eq(group)
        expected = Lorentz(beta).normal.centroid(x[inside], weight[inside] if weighted else None)
        torch.testing.assert_close(out[group], expected)
    assert torch.equal(out[2], torch.zeros(3, dtype=torch.float64))


def test_without_groups_everything_is_one():
    x = members()
    torch.testing.assert_close(aggregation(2.0)(x), Lorentz(2.0).normal.centroid(x).unsqueeze(0))


def test_the_number_of_groups_is_found():
    aggr = aggregation(1.0)
    assert aggr(members(), INDEX).shape == (4, 3)
    assert aggr(members()[:0], INDEX[:0]).shape == (0, 3)
    assert torch.equal(aggr(members()[:0], INDEX[:0], dim_size=2), torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_only_ratios_of_weights_matter(scale):
    aggr, x, weight = LorentzCentroid(), members().float(), weights().float()
    torch.testing.assert_close(aggr(x, INDEX, weight=scale * weight), aggr(x, INDEX, weight=weight))


class MeanOnTheHyperboloid(MessagePassing):
    def __init__(self, aggr):
        super().__init__(aggr=aggr)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


def test_as_the_aggregation_of_message_passing():
    edges = torch.tensor([[1, 2, 0, 2, 5], [0, 0, 1, 1, 4]])
    x = members()
    out = MeanOnTheHyperboloid(aggregation(0.5))(x, edges)
    for node in range(8):
        hood = edges[0][edges[1] == node]
        expected = Lorentz(0.5).normal.centroid(x[hood]) if len(hood) else torch.zeros(3, dtype=torch.float64)
        torch.testing.assert_close(out[node], expected)


def test_gradients_and_beta():
    x, weight = members().requires_grad_(), weights().requires_grad_()
    aggr = aggregation(1.0, train_beta=True)
    assert torch.autograd.gradcheck(lambda x, w: aggr(x, INDEX, dim_size=4, weight=w), (x, weight))
    aggr(x, INDEX).square().sum().backward()
    assert aggr.curvature.raw.grad != 0
    assert not aggregation(1.0).curvature.raw.requires_grad


def test_weights_have_one_axis():
    with pytest.raises(InputError, match=r"a number for each row, not \(8, 1\)"):
        aggregation(1.0)(members(), INDEX, weight=weights().unsqueeze(1))
