"""HGNN in its geometries, against loops over single molecules in the coordinates of the papers."""

import geoopt
import pytest
import torch
from molecules import APART, CHAIN, LONE, MOLECULES, RING, batch_of, molecule_set, neighbours, random_molecules
from torch.nn.functional import leaky_relu

from hyperboloid import InputError
from hyperboloid.geometry import Lorentz, PoincareBall
from hyperboloid.geometry.pairwise import pairwise_dist
from hyperboloid.nn import HGNN, HGNNConv
from hyperboloid.nn.ball_activation import ball_activation
from hyperboloid.nn.graph_model import GraphSizes, messages
from hyperboloid.nn.hgnn import GEOMETRIES, REACH, drawn_in
from hyperboloid.training.batches import Batches

SIZES = GraphSizes(kinds=4, features=0, relations=4, targets=2)
D = 5


def network(geometry, *, beta=1.0, layers=2, scale=1.0):
    torch.manual_seed(1)
    model = HGNN(SIZES, D, layers, geometry=geometry, centroids=3, beta=beta).double()
    for part in (*model.convs, model.readout):
        part.curvature.reset_parameters()  # β as float64 holds it
    with torch.no_grad():
        for p in model.embedding.parameters():
            p.mul_(scale)
    return model


# ---- one molecule after the other, in the papers' own coordinates


def by_hand_lorentz(model, molecule, beta, *, scaled=False):
    """Points on the hyperboloid: matvec, centroid and pointwise activation of `Lorentz`, distances of geoopt."""
    space = Lorentz(beta)
    kinds = torch.tensor([*molecule[0], 3])
    x = space.exp0(model.embedding.weight[kinds])
    for conv in model.convs:
        rows = []
        for row in neighbours(molecule):
            sent = torch.stack([space.matvec(conv.lin.weight[r], x[j]) for j, r in row])
            log, reach = space.log0(sent), REACH * beta**0.5
            length = log.norm(dim=-1, keepdim=True)
            mean = space.centroid(space.exp0(log / length * reach * torch.tanh(length / reach)))
            if scaled:
                mean = space.exp0(len(row) ** 0.5 * space.log0(mean))
            rows.append(space.pointwise(lambda v: leaky_relu(v, 0.5), mean))
        x = torch.stack(rows)
    return read_by_hand(model, x, space.exp0(model.readout.centroids), beta)


def by_hand_hyperboloid(model, molecule, beta):
    """HGNN_H: sums in the tangent space of the origin, the activation on the ball and back."""
    space = Lorentz(beta)
    x = space.exp0(model.embedding.weight[torch.tensor([*molecule[0], 3])])
    for conv in model.convs:
        log = space.log0(x)
        sums = torch.stack([sum(conv.lin.weight[r] @ log[j] for j, r in row) for row in neighbours(molecule)])
        x = space.from_poincare(leaky_relu(space.to_poincare(space.exp0(sums)), 0.5))
    return read_by_hand(model, x, space.exp0(model.readout.centroids), beta)


def by_hand_ball(model, molecule, beta):
    """HGNN_P with geoopt's ball: logarithm, sums, exponential, activation of the coordinates."""
    ball = geoopt.PoincareBall(c=torch.tensor(1 / beta, dtype=torch.float64))
    p = ball.expmap0(model.embedding.weight[torch.tensor([*molecule[0], 3])], project=False)
    for conv in model.convs:
        log = ball.logmap0(p)
        sums = torch.stack([sum(conv.lin.weight[r] @ log[j] for j, r in row) for row in neighbours(molecule)])
        p = leaky_relu(ball.expmap0(sums, project=False), 0.5)
    centroids = ball.expmap0(model.readout.centroids, project=False)
    distance = ball.dist(p.unsqueeze(1), centroids.unsqueeze(0))
    return model.readout.lin(distance.mean(0))


def read_by_hand(model, x, centroids, beta):
    inner = -x[:, :1] * centroids[:, 0] + x[:, 1:] @ centroids[:, 1:].T
    distance = beta**0.5 * torch.acosh((-inner / beta).clamp_min(1))
    return model.readout.lin(distance.mean(0))


BY_HAND = {
    "lorentz": by_hand_lorentz,
    "lorentz_scaled": lambda *args: by_hand_lorentz(*args, scaled=True),
    "hyperboloid": by_hand_hyperboloid,
    "ball": by_hand_ball,
}


@pytest.mark.parametrize("beta", [1.0, 2.3])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_batch_is_what_loops_over_single_molecules_give(geometry, beta):
    model = network(geometry, beta=beta)
    with torch.no_grad():
        found = model(batch_of())
        expected = torch.stack([BY_HAND[geometry](model, molecule, beta) for molecule in MOLECULES])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_the_geometries_differ():
    batch = batch_of()
    outputs = [network(geometry)(batch) for geometry in GEOMETRIES]
    for k, one in enumerate(outputs):
        for other in outputs[:k]:
            assert (one - other).abs().max() > 1e-3


def test_hgnn_p_is_hgnn_h_with_inputs_and_centroids_of_twice_the_size():
    ball, hyperboloid = network("ball"), network("hyperboloid", scale=2.0)
    with torch.no_grad():
        hyperboloid.readout.centroids.mul_(2)
    batch = batch_of()
    torch.testing.assert_close(ball(batch), hyperboloid(batch), rtol=1e-11, atol=1e-11)


# ---- what a graph is does not depend on how it is written down


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_atoms_and_bonds_have_no_order(geometry):
    model = network(geometry, layers=3)
    (atoms, bonds), new = RING, [3, 0, 4, 1, 2]
    renamed = [0] * 5
    for old, place in enumerate(new):
        renamed[place] = atoms[old]
    turned = [(new[b], new[a], kind) for a, b, kind in reversed(bonds)]
    out = model(batch_of((RING, (renamed, turned), CHAIN)))
    torch.testing.assert_close(out[0], out[1], rtol=1e-11, atol=1e-11)
    assert (out[0] - out[2]).abs().max() > 1e-3


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_molecule_is_the_same_alone_and_in_any_company(geometry):
    model, molecules = network(geometry), random_molecules(12)
    together = model(batch_of(molecules))
    for k in range(len(molecules)):
        torch.testing.assert_close(model(batch_of(molecules, chosen=[k]))[0], together[k], rtol=1e-11, atol=1e-11)
    order = [5, 2, 5, 11, 0]
    torch.testing.assert_close(model(batch_of(molecules, chosen=order)), together[order], rtol=1e-11, atol=1e-11)


def test_the_kind_of_a_bond_matters():
    model = network("lorentz")
    single, double = ([0, 0], [(0, 1, 0)]), ([0, 0], [(0, 1, 1)])
    out = model(batch_of((single, double)))
    assert (out[0] - out[1]).abs().max() > 1e-3


def test_a_mean_forgets_the_size_and_the_scaled_variant_does_not():
    """Two copies of a molecule, apart from each other, look to every atom like one copy."""
    atoms, bonds = APART
    twice = (atoms + atoms, bonds + [(a + 4, b + 4, kind) for a, b, kind in bonds])
    layer = {}
    for geometry in ("lorentz", "lorentz_scaled"):
        conv = HGNNConv(D, 4, geometry=geometry).double()
        batch = batch_of((APART, twice))
        torch.manual_seed(0)
        kind = torch.randn(4, D, dtype=torch.float64)
        kind[3] = 0  # the virtual node sends nothing: what is left is the mean of the atoms
        out = conv(kind[batch.kind], batch)
        virtual = out[batch.kind == 3]
        layer[geometry] = virtual.norm(dim=-1)
    assert layer["lorentz_scaled"][1] / layer["lorentz_scaled"][0] > 1.3
    assert layer["lorentz"][1] / layer["lorentz"][0] < 1.3


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_messages_are_drawn_in(beta):
    beta = torch.tensor(beta, dtype=torch.float64)
    direction = torch.nn.functional.normalize(torch.randn(5, D, dtype=torch.float64), dim=-1)
    length = torch.tensor([1e-3, 1.0, 10.0, 100.0, 1e30], dtype=torch.float64).unsqueeze(-1)
    found = drawn_in(length * direction, beta).norm(dim=-1)
    assert found[:2] == pytest.approx([1e-3, 1.0], rel=0.01)  # what is near stays
    assert (found.diff() > -1e-12).all()
    assert found.max() <= (REACH * beta.sqrt()) * (1 + 1e-14)  # a norm of D numbers has rounding
    at_origin = torch.zeros(2, D, requires_grad=True)
    (gradient,) = torch.autograd.grad(drawn_in(at_origin, beta.float()).sum(), at_origin)
    assert torch.equal(gradient, torch.ones(2, D))


def test_a_high_learning_rate_does_not_send_nodes_to_infinity():
    """Without drawing messages in, radii pass 200 in these steps, and the loss stays above 1.6."""
    torch.manual_seed(0)
    model = HGNN(SIZES, 64, 4, geometry="lorentz_scaled")
    batch, goal = batch_of((APART, LONE)), torch.tensor([[1.0], [-1.0]])
    optimizer, farthest, losses = torch.optim.Adam(model.parameters(), lr=0.05), [], []
    for conv in model.modules():
        if isinstance(conv, HGNNConv):
            conv.register_forward_hook(lambda module, inputs, out: farthest.append(out.detach().norm(dim=-1).max()))
    for _ in range(100):
        optimizer.zero_grad()
        loss = (model(batch) - goal).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert max(farthest) < 10 * REACH
    assert min(losses[-10:]) < losses[0] / 3


# ---- the ball's activation from normal coordinates


@pytest.mark.parametrize("beta", [0.4, 1.0, 3.0])
def test_ball_activation_is_the_activation_of_ball_coordinates(beta):
    torch.manual_seed(0)
    v = torch.randn(200, 6, dtype=torch.float64) * torch.logspace(-6, 0.5, 200, dtype=torch.float64).unsqueeze(1)
    v = beta**0.5 * torch.cat([v, torch.zeros(1, 6), 3 * torch.rand(20, 6)])
    ball = PoincareBall(beta)
    expected = ball.to_normal(leaky_relu(ball.from_normal(v), 0.5))
    found = ball_activation(v, torch.tensor(beta, dtype=torch.float64), 0.5)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("radius", [0.0, 1e-20, 1e-3, 1.0, 20.0, 100.0, 1e4])
@pytest.mark.parametrize("sign", [1.0, -1.0, None])
def test_ball_activation_is_finite_in_float32_at_any_radius(radius, sign):
    """All-positive vectors stay where they are, which at the border of the ball is infinitely far out."""
    torch.manual_seed(0)
    direction = torch.randn(8) if sign is None else sign * torch.rand(8)
    v = (radius * direction / direction.norm()).requires_grad_()
    out = ball_activation(v, torch.tensor(1.0), 0.5)
    (1e8 * out.sum()).backward()  # with room for what comes from later layers
    assert torch.isfinite(out).all()
    assert torch.isfinite(v.grad).all()
    if sign == 1.0 and radius < 80:
        torch.testing.assert_close(out, v, rtol=1e-5, atol=0)
    if sign is None and radius >= 20:
        assert 1 < out.norm() < 4  # what has a negative coordinate comes back from the border


def test_gradients_of_ball_activation():
    torch.manual_seed(0)
    v = torch.randn(12, 4, dtype=torch.float64) * torch.logspace(-3, 1, 12, dtype=torch.float64).unsqueeze(1)
    v[0] = v[0].abs()
    beta = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ball_activation, (v.requires_grad_(), beta, 0.5))


@pytest.mark.parametrize("radius", [1e-6, 0.1, 3.0, 12.0])
def test_ball_activation_in_float32_is_that_in_float64(radius):
    """Values and gradients, whether or not there is a negative coordinate."""
    torch.manual_seed(0)
    v = torch.randn(50, 8)
    v[:10] = v[:10].abs()
    v = radius * v / v.norm(dim=-1, keepdim=True)
    found = []
    for dtype in (torch.float32, torch.float64):
        x = v.to(dtype, copy=True).requires_grad_()
        out = ball_activation(x, torch.tensor(1.0, dtype=dtype), 0.5)
        (out * torch.linspace(-1, 1, 8, dtype=dtype)).sum().backward()
        found.append((out.double(), x.grad.double()))
    for one, other in zip(*found, strict=True):
        error = (one - other).norm(dim=-1) / other.norm(dim=-1)
        assert error.max() < 2e-5


# ---- the read-out's distances


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
def test_pairwise_distances_are_those_of_normal_coordinates(beta):
    torch.manual_seed(0)
    u = torch.randn(40, 7, dtype=torch.float64) * torch.logspace(-3, 0.5, 40, dtype=torch.float64).unsqueeze(1)
    c = torch.randn(6, 7, dtype=torch.float64)
    b = torch.tensor(beta, dtype=torch.float64)
    expected = Lorentz(b).normal.dist(u.unsqueeze(1), c.unsqueeze(0))
    torch.testing.assert_close(pairwise_dist(u, c, b), expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(pairwise_dist(u.float(), c.float(), b.float()), expected.float(), rtol=2e-6, atol=1e-6)


def test_gradients_of_pairwise_distances():
    torch.manual_seed(0)
    u, c = (torch.randn(n, 4, dtype=torch.float64, requires_grad=True) for n in (5, 3))
    beta = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(pairwise_dist, (u, c, beta))


@pytest.mark.parametrize("radius", [0.0, 1.0, 9.0, 50.0, 500.0])
def test_pairwise_distances_are_finite_where_points_coincide_or_are_far(radius):
    point = torch.full((1, 4), radius / 2)
    u, c = torch.cat([point, -point, 0 * point]).requires_grad_(), point.clone().requires_grad_()
    beta = torch.tensor(1.0, requires_grad=True)
    out = pairwise_dist(u, c, beta)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in (u, c, beta))
    if radius < 10:
        torch.testing.assert_close(out[:, 0], torch.tensor([0.0, 2 * radius, radius]), rtol=1e-4, atol=1e-3)


# ---- messages


def test_messages_and_their_gradients_are_those_of_every_pair_by_itself():
    torch.manual_seed(0)
    batch = batch_of(random_molecules(6))
    x = torch.randn(len(batch.kind), 3, dtype=torch.float64, requires_grad=True)
    matrices = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    found = messages(x, matrices, batch)
    every = torch.arange(len(x))
    expected = torch.cat(
        [
            x[every if source is None else source] @ matrix.T
            for source, matrix in zip(batch.sources, matrices, strict=True)
        ]
    )
    torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(lambda *args: messages(*args, batch), (x, matrices))


# ---- training


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_float32_stays_finite_at_a_reckless_learning_rate(geometry):
    torch.manual_seed(0)
    model, batch = HGNN(SIZES, 16, 4, geometry=geometry), batch_of(random_molecules(40), dtype=torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    y = torch.randn(40, 2)
    for _ in range(25):
        optimizer.zero_grad()
        loss = (model(batch) - y).abs().mean()
        loss.backward()
        assert torch.isfinite(loss)
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        optimizer.step()


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_parameter_learns(geometry):
    model = HGNN(SIZES, D, 2, geometry=geometry, train_beta=True)
    model(batch_of(dtype=torch.float32)).sum().backward()
    for name, p in model.named_parameters():
        if "tangent" in geometry or not name.startswith("convs") or "raw" not in name:
            assert p.grad is not None, name
            assert p.grad.abs().max() > 0, name


def test_an_unknown_geometry_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="no geometry 'flat'; choose one of: lorentz"):
        HGNN(SIZES, 4, geometry="flat")


def test_one_atom_and_no_bonds_are_a_molecule():
    out = network("lorentz")(batch_of((LONE,)))
    assert out.shape == (1, 2)
    assert torch.isfinite(out).all()


def test_features_of_atoms_reach_the_network():
    torch.manual_seed(0)
    sizes = GraphSizes(kinds=4, features=2, relations=4, targets=1)
    model = HGNN(sizes, D, 2)
    made = [molecule_set(x=torch.randn(13, 2).numpy() * scale) for scale in (1, 2)]
    outputs = []
    for one in made:
        flags = {"self_loops": True, "virtual_node": True, "dtype": torch.float32, "device": torch.device("cpu")}
        outputs.append(model(Batches(one, **flags).take(torch.arange(4).numpy())))
    assert (outputs[0] - outputs[1]).abs().max() > 1e-4
