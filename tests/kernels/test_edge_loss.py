"""The loss of links, by every backend, against torch's cross-entropy."""

import pytest
import torch
from torch.func import vmap
from torch.nn import functional as F

from hyperboloid.errors import InputError
from hyperboloid.kernels import edge_loss

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 3e-9), (torch.float32, 2e-6)]
)  # softplus x is x from 20
@pytest.mark.parametrize("shape", [(2,), (3, 6), (2, 2, 2600)])
def test_loss_and_gradient_are_those_of_cross_entropy(shape, dtype, tolerance):
    generator = torch.Generator().manual_seed(0)
    logits = 10.0 ** torch.randint(-3, 3, shape, generator=generator) * torch.randn(shape, generator=generator)
    logits, is_edge = logits.to(dtype).requires_grad_(), torch.arange(shape[-1]) < shape[-1] // 2
    each = torch.rand(shape[:-1], generator=generator)  # how much each model's loss counts
    loss = edge_loss(logits)
    (gradient,) = torch.autograd.grad((loss * each).sum(), logits)
    exact = logits.detach().double()
    expected = 2 * F.binary_cross_entropy_with_logits(exact, is_edge.expand(shape).double(), reduction="none").mean(-1)
    slope = torch.where(is_edge, -torch.sigmoid(-exact), torch.sigmoid(exact)) * each.unsqueeze(-1) * 2 / shape[-1]
    assert loss.shape == shape[:-1]
    assert loss.dtype == gradient.dtype == dtype
    assert ((loss - expected).abs() <= tolerance * expected).all()
    # relative, so that what is almost certain keeps its small gradient; a float32 ends at 1e-38
    assert ((gradient - slope).abs() <= tolerance * slope.abs() + 1e-37).all()


def test_what_is_no_number_shows():
    logits = torch.zeros(2, 8)
    logits[1, 3] = torch.nan
    loss = edge_loss(logits.requires_grad_())
    assert loss.isnan().tolist() == [False, True]
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient.isnan().nonzero().tolist() == [[1, 3]]


def test_what_is_almost_certain_has_a_small_loss():
    logits = torch.tensor([30.0, 31.0, -30.0, -31.0])
    expected = float(logits.abs().neg().double().exp().log1p().sum() / 2)
    assert edge_loss(logits).item() == pytest.approx(expected, rel=1e-5)


def test_it_can_be_mapped_and_differentiated_twice():
    logits = torch.randn(3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    torch.testing.assert_close(vmap(edge_loss, in_dims=1)(logits.T), edge_loss(logits))
    assert torch.autograd.gradcheck(edge_loss, logits)
    assert torch.autograd.gradgradcheck(edge_loss, logits)


def test_as_many_edges_as_non_edges():
    with pytest.raises(InputError, match="not 5 pairs"):
        edge_loss(torch.zeros(2, 5))
