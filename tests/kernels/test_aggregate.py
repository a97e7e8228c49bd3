"""Attention and aggregation against the paper's formulas in Minkowski coordinates, node by node."""

import math

import pytest
import torch
from torch.func import vmap

from hyperboloid.errors import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import Adjacency, lorentz_aggregate, lorentz_attention

BETAS = [0.3, 1.0, 7.0]


# ---- the slow, obvious reference

pytestmark = pytest.mark.usefixtures("backend")


def inner(x, y):
    return (x[1:] * y[1:]).sum() - x[0] * y[0]


def to_point(v, beta):
    """exp_0 (Eq. 10), for v ≠ 0."""
    root, length = beta.sqrt(), v.norm()
    return torch.cat([(root * torch.cosh(length / root)).view(1), root * torch.sinh(length / root) * v / length])


def from_point(x, beta):
    """log_0 of a point other than the origin."""
    root, length = beta.sqrt(), x[1:].norm()
    return root * torch.asinh(length / root) * x[1:] / length


def neighbours(adj, i):
    return [e for e in range(adj.row.numel()) if adj.row[e] == i]


def reference_attention(query, key, adj, beta, keep=None, cap=math.inf):
    """Softmax over each row's kept entries of −d_L² = 2β + 2⟨x, y⟩_L (Eq. 17, 19, 20), none below −cap."""
    alpha = [torch.zeros((), dtype=key.dtype)] * adj.row.numel()
    for i in range(adj.num_rows):
        kept = [e for e in neighbours(adj, i) if keep is None or keep[e]]
        if kept:
            x = to_point(query[i], beta)
            scores = [2 * beta + 2 * inner(x, to_point(key[adj.col[e]], beta)) for e in kept]
            for e, a in zip(kept, torch.stack(scores).clamp(min=-cap).softmax(0), strict=True):
                alpha[e] = a
    return torch.stack(alpha)


def reference_aggregate(u, adj, beta, weight):
    """√β s/|‖s‖_L| with s = Σ w x (Eq. 16) of each row; the origin where there is no weight."""
    rows = []
    for i in range(adj.num_rows):
        members = neighbours(adj, i)
        if not members or sum(weight[e] for e in members) == 0:
            rows.append(torch.zeros_like(u[0]))
            continue
        s = sum(weight[e] * to_point(u[adj.col[e]], beta) for e in members)
        rows.append(from_point(beta.sqrt() * s / (-inner(s, s)).sqrt(), beta))
    return torch.stack(rows)


# ---- graphs and inputs


def random_graph(n=9, e=30, seed=0):
    edges = torch.randint(n, (2, e), generator=torch.Generator().manual_seed(seed))
    return Adjacency.from_edges(edges[0], edges[1], (n, n), self_loops=True)


def normal(*shape, seed, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cloud(radius, n, d, seed, apart=0.25):
    """n points (β = 1) that lie ``apart`` from one point at ``radius``: siblings far out in a tree."""
    steps = torch.nn.functional.normalize(normal(n, d, seed=seed))
    centre = torch.nn.functional.normalize(normal(d, seed=seed + 1), dim=0)
    return Lorentz(1.0).normal.exp_at((radius * centre).expand(n, d), apart * steps)


def layer(u, att, adj, beta, weight=None, keep=None):
    alpha = lorentz_attention(att, att, adj, beta, keep=keep)
    return lorentz_aggregate(u, adj, beta, alpha if weight is None else alpha * weight)


# ---- values and gradients


@pytest.mark.parametrize("beta", BETAS)
def test_values_and_gradients_against_minkowski_space(beta):
    adj = random_graph()
    # att at a third: the scores must not saturate, or there would be no gradient to compare
    inputs = [normal(9, 4, seed=1), normal(9, 3, seed=2, scale=0.3)]
    inputs += [torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(3)).double(), torch.tensor(beta)]
    ours = [t.double().requires_grad_() for t in inputs]
    theirs = [t.detach().double().requires_grad_() for t in inputs]

    u, att, weight, b = ours
    out = layer(u, att, adj, b, weight)
    u, att, weight, b = theirs
    expected = reference_aggregate(u, adj, b, weight * reference_attention(att, att, adj, b))
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-10)

    direction = normal(9, 4, seed=4)
    gradients = torch.autograd.grad((out * direction).sum(), ours)
    references = torch.autograd.grad((expected * direction).sum(), theirs)
    for mine, reference in zip(gradients, references, strict=True):
        assert reference.abs().max() > 1e-3
        torch.testing.assert_close(mine, reference, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("beta", BETAS)
def test_gradcheck(beta):
    adj = random_graph(4, 6)
    u, att = normal(4, 3, seed=1).requires_grad_(), normal(4, 2, seed=2, scale=0.5).requires_grad_()
    weight = torch.linspace(0.2, 2, adj.row.numel(), dtype=torch.float64).requires_grad_()
    b = torch.tensor(beta, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda u, att, w, b: layer(u, att, adj, b, w), (u, att, weight, b))


def test_bipartite():
    edges = torch.tensor([[0, 4, 2, 1, 4], [1, 1, 0, 1, 2]])
    adj = Adjacency.from_edges(edges[0], edges[1], (5, 4), self_loops=False)
    query, key, u = normal(4, 3, seed=1), normal(5, 3, seed=2), normal(5, 2, seed=3)
    beta = torch.tensor(2.0, dtype=torch.float64)
    alpha = lorentz_attention(query, key, adj, beta)
    torch.testing.assert_close(alpha, reference_attention(query, key, adj, beta))
    torch.testing.assert_close(lorentz_aggregate(u, adj, beta, alpha), reference_aggregate(u, adj, beta, alpha))


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e9, 1e30])
def test_only_ratios_of_weights_matter(scale):
    adj = random_graph()
    u = cloud(6, 9, 4, seed=1).float()
    weight = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(3))
    beta = torch.tensor(1.0)
    torch.testing.assert_close(
        lorentz_aggregate(u, adj, beta, weight * scale), lorentz_aggregate(u, adj, beta, weight), rtol=1e-5, atol=1e-5
    )


def test_renaming_the_nodes_renames_the_result():
    edges = torch.randint(9, (2, 30), generator=torch.Generator().manual_seed(0))
    name = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    u, att, beta = normal(9, 4, seed=1), normal(9, 3, seed=2), torch.tensor(1.0, dtype=torch.float64)
    renamed_u, renamed_att = torch.empty_like(u), torch.empty_like(att)
    renamed_u[name], renamed_att[name] = u, att

    def on(e):
        return Adjacency.from_edges(e[0], e[1], (9, 9), self_loops=True)

    out, renamed = layer(u, att, on(edges), beta), layer(renamed_u, renamed_att, on(name[edges]), beta)
    torch.testing.assert_close(renamed[name], out, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("beta", BETAS)
def test_attention_may_have_a_cap(beta):
    """As in the code published with the paper: d_L² counts up to 1, so no weight is below 1/e of the largest."""
    adj, beta = random_graph(), torch.tensor(beta, dtype=torch.float64)
    att = beta.sqrt() * normal(9, 3, seed=2, scale=0.3)
    mine, theirs = att.clone().requires_grad_(), att.clone().requires_grad_()
    alpha = lorentz_attention(mine, mine, adj, beta, cap=1.0)
    expected = reference_attention(theirs, theirs, adj, beta, cap=1.0)
    torch.testing.assert_close(alpha, expected)
    probe = normal(adj.row.numel(), seed=5)
    gradients = [torch.autograd.grad((a * probe).sum(), x)[0] for a, x in ((alpha, mine), (expected, theirs))]
    torch.testing.assert_close(*gradients)
    for i in range(9):
        row = alpha[adj.row == i]
        assert row.min() >= math.exp(-1) * row.max() * (1 - 1e-12)
    with pytest.raises(InputError, match="must be positive, not 0"):
        lorentz_attention(att, att, adj, beta, cap=0)


@pytest.mark.parametrize("radius", [20.0, 60.0])
def test_a_lonely_point_stays_where_it_is(radius):
    """Its centroid is itself, whose direction is not to be told from its own however far out it lies."""
    u = (radius * torch.nn.functional.normalize(normal(5, 7, seed=1))).requires_grad_()
    loops = torch.arange(5)
    adj = Adjacency.from_edges(loops, loops, (5, 5), self_loops=True)
    out = lorentz_aggregate(u, adj, torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(out, u)
    probe = normal(5, 7, seed=2)
    torch.testing.assert_close(torch.autograd.grad((out * probe).sum(), u)[0], probe, rtol=1e-9, atol=1e-9)


# ---- dropped neighbours


@pytest.mark.parametrize("seed", range(5))
def test_attention_is_a_softmax_over_what_was_kept(seed):
    adj = random_graph(seed=seed)
    keep = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(seed)) > 0.5
    att, beta = normal(9, 3, seed=seed), torch.tensor(1.0, dtype=torch.float64)
    torch.testing.assert_close(
        lorentz_attention(att, att, adj, beta, keep=keep), reference_attention(att, att, adj, beta, keep)
    )


def test_the_rest_of_a_row_survives_the_loss_of_its_maximum():
    # The node itself scores 0, its neighbours −3e5 and less: a shift by the dropped maximum would underflow them all.
    edges = torch.tensor([[1, 2, 3], [0, 0, 0]])
    adj = Adjacency.from_edges(edges[0], edges[1], (4, 4), self_loops=True)
    att = torch.tensor([[-6.0], [6.0], [6.0], [6.001]], requires_grad=True)
    keep = (adj.row != 0) | (adj.col != 0)
    alpha = lorentz_attention(att, att, adj, torch.tensor(1.0), keep=keep)
    first = alpha[:4]
    assert first[0] == 0
    torch.testing.assert_close(first[1:].detach(), torch.tensor([0.5, 0.5, 0.0]))
    first[1].backward()
    assert torch.isfinite(att.grad).all()
    # α_1 = σ(μ_1 − μ_2) with μ = 2 − 2 cosh(a_0 − a_j): the slope in a_1 is −sinh(12)/2
    assert att.grad[1].item() == pytest.approx(-math.sinh(12.0) / 2, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_without_neighbours_give_the_origin(dtype):
    edges = torch.tensor([[0, 1, 2, 3], [1, 1, 2, 2]])
    adj = Adjacency.from_edges(edges[0], edges[1], (4, 4), self_loops=False)
    keep = adj.row != 2  # rows 0 and 3 have no entries, row 2 loses all of its
    u = normal(4, 3, seed=1).to(dtype).requires_grad_()
    att = normal(4, 3, seed=2).to(dtype).requires_grad_()
    beta = torch.tensor(1.0, dtype=dtype, requires_grad=True)
    out = layer(u, att, adj, beta, keep=keep)
    assert torch.equal(out[[0, 2, 3]], torch.zeros(3, 3, dtype=dtype))
    assert (out[1] != 0).all()
    out.square().sum().backward()
    for t in (u, att, beta):
        assert torch.isfinite(t.grad).all()
    assert (u.grad[:2] != 0).all()
    assert torch.equal(u.grad[2:], torch.zeros(2, 3, dtype=dtype))


# ---- far out


@pytest.mark.parametrize("radius", [1, 6, 9])
def test_float32_is_as_good_as_its_inputs(radius):
    adj = random_graph(40, 400)
    u, att = cloud(radius, 40, 8, seed=1).float(), cloud(radius, 40, 8, seed=3).float()
    one = torch.tensor(1.0)
    alpha = lorentz_attention(att, att, adj, one)
    exact_alpha = reference_attention(att.double(), att.double(), adj, one.double())
    assert (alpha / exact_alpha - 1).abs().max() < 1e-5
    out = lorentz_aggregate(u, adj, one, alpha)
    exact = reference_aggregate(u.double(), adj, one.double(), alpha.double())
    assert ((out - exact).norm(dim=-1) / exact.norm(dim=-1)).max() < 1e-5


@pytest.mark.parametrize("radius", [1e-30, 9, 20, 44, 60, 80])
@pytest.mark.parametrize("directions", ["same", "random", "opposite"])
def test_nothing_is_nan_however_far(radius, directions):
    adj = random_graph(20, 80)
    unit = torch.nn.functional.normalize(normal(20, 5, seed=1)).float()
    if directions != "random":
        unit = unit[:1].repeat(20, 1)
    if directions == "opposite":
        unit[::2] *= -1
    u, att = (radius * unit).requires_grad_(), (radius * unit.flip(1)).requires_grad_()
    beta = torch.tensor(1.0, requires_grad=True)
    out = layer(u, att, adj, beta)
    assert torch.isfinite(out).all()
    assert (out.norm(dim=-1) <= radius * (1 + 1e-5)).all()
    out.sum().backward()
    for t in (u, att, beta):
        assert torch.isfinite(t.grad).all()


def test_attention_that_is_no_number_shows():
    adj = Adjacency.from_edges(*torch.tensor([[0, 2], [1, 3]]), (4, 4), self_loops=True)
    u, key = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.ones(4, 3)
    key[0, 0] = torch.nan
    out = lorentz_aggregate(u, adj, torch.tensor(1.0), attention=(key, key))
    assert out[[1, 3]].isnan().any(1).tolist() == [True, False]


def test_a_hub_with_10000_leaves(backend):
    n, d = 301 if backend == "triton" else 10_001, 8  # its interpreter takes a second for each hundred
    leaves = torch.arange(1, n)
    hub = torch.zeros_like(leaves)
    adj = Adjacency.from_edges(torch.cat([leaves, hub]), torch.cat([hub, leaves]), (n, n), self_loops=True)
    u = (4 * torch.nn.functional.normalize(normal(n, d, seed=1) + 0.3)).float().requires_grad_()
    weight = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(2))
    out = lorentz_aggregate(u, adj, torch.tensor(1.0), weight)
    out[0].sum().backward()

    exact = u.detach().double().requires_grad_()
    length = exact.norm(dim=-1, keepdim=True)
    points = torch.cat([length.cosh(), length.sinh() * exact / length], dim=-1)
    s = (weight[:n, None].double() * points).sum(0)
    expected = from_point(s / (-inner(s, s)).sqrt(), torch.tensor(1.0, dtype=torch.float64))
    expected.sum().backward()
    torch.testing.assert_close(out[0].double(), expected, rtol=1e-5, atol=1e-5)
    assert (u.grad.double() - exact.grad).norm() < 1e-4 * exact.grad.norm()


# ---- transformations of the program


def test_vmap_over_models_equals_a_loop():
    adj = random_graph()
    keep = torch.rand(3, adj.row.numel(), generator=torch.Generator().manual_seed(5)) > 0.3
    inputs = [normal(3, 9, 4, seed=1), normal(3, 9, 3, seed=2), torch.tensor(BETAS, dtype=torch.float64)]
    batched = [t.clone().requires_grad_() for t in inputs]
    alone = [t.clone().requires_grad_() for t in inputs]

    def model(u, att, beta, keep):
        return layer(u, att, adj, beta, keep=keep)

    out = vmap(model)(*batched, keep)
    expected = torch.stack([model(*one, keep[m]) for m, one in enumerate(zip(*alone, strict=True))])
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    direction = normal(3, 9, 4, seed=6)
    gradients = torch.autograd.grad((out * direction).sum(), batched)
    references = torch.autograd.grad((expected * direction).sum(), alone)
    for mine, reference in zip(gradients, references, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-10, atol=1e-10)


# dynamo itself makes an instance of every autograd function it meets
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiled_whole_equals_eager():
    adj = random_graph()
    inputs = [normal(9, 4, seed=1), normal(9, 3, seed=2), torch.tensor(1.5, dtype=torch.float64)]
    compiled_in = [t.clone().requires_grad_() for t in inputs]
    eager_in = [t.clone().requires_grad_() for t in inputs]

    def model(u, att, beta):
        return layer(u, att, adj, beta)

    out = torch.compile(model, fullgraph=True, backend="aot_eager")(*compiled_in)
    expected = model(*eager_in)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(out.square().sum(), compiled_in)
    references = torch.autograd.grad(expected.square().sum(), eager_in)
    for mine, reference in zip(gradients, references, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-10, atol=1e-10)
