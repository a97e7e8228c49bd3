"""The fused operator for float32, by every backend, against the reference in float64 on the same numbers."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch.func import vmap

from hyperboloid.errors import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import Adjacency, adjacency, lorentz_aggregate, use_backend
from hyperboloid.kernels.fused import _flat, aggregate
from hyperboloid.kernels.threads import over_rows
from hyperboloid.nn import LGCNConv

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "triton"])
def backend(request):
    if request.param == "triton" and torch.cuda.is_available():
        pytest.skip("compiles for a GPU: see test_gpu.py")
    pytest.importorskip("triton" if request.param == "triton" else "numba")
    with use_backend(request.param):
        yield request.param


def graph(n=12, e=40, symmetric=False, self_loops=True, seed=0):
    """Random edges with duplicates, one node with many neighbours, one without any."""
    edges = torch.randint(n, (2, e), generator=torch.Generator().manual_seed(seed))
    edges[1, : e // 3] = 3
    edges = edges[:, (edges != n - 1).all(0)]
    if symmetric:
        edges = torch.cat([edges, edges.flip(0)], 1)
    return Adjacency.from_edges(edges[0], edges[1], (n, n), self_loops=self_loops)


def draw(*shape, seed, scale=1.0):
    t = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (scale / shape[-1] ** 0.5 * t).float() if len(shape) > 1 else t.float()


def results(adj, u, beta, weight=None, query=None, key=None, keep=None, cap=None, dtype=torch.float32, exact=False):
    """Output and gradients in u, β, weight, query and key, as far as they are given."""
    given = {"u": u, "beta": beta, "weight": weight, "query": query, "key": key}
    given = {k: t.detach().to(dtype).requires_grad_() for k, t in given.items() if t is not None}
    attention = None if key is None else (given.get("query", given["key"]), given["key"])
    with use_backend("reference") if exact else use_backend_as_it_is():
        options = {"attention": attention, "keep": keep, "cap": cap}
        out = lorentz_aggregate(given["u"], adj, given["beta"], given.get("weight"), **options)
        probe = torch.linspace(-1, 1, out.numel(), dtype=dtype).view(out.shape)
        gradients = torch.autograd.grad((out * probe).sum(), list(given.values()))
    return dict(zip(["out", *given], [out.detach(), *gradients], strict=True))


class use_backend_as_it_is:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


def assert_right(adj, *inputs, tolerance=2e-6, **more):
    ours = results(adj, *inputs, **more)
    exact = results(adj, *inputs, **more, dtype=torch.float64, exact=True)
    for name, mine in ours.items():
        assert mine.dtype == torch.float32
        scale = exact[name].norm() if name != "beta" else max(exact[name].abs(), 0.05 * exact["u"].norm())
        # what is less than float32 has is 0
        assert (mine.double() - exact[name]).norm() <= tolerance * scale + 1e-30, name


# ---- values and gradients


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("weighted", "dropped"), [(False, False), (True, False), (False, True), (True, True)])
def test_attention_weights_and_dropped_entries(weighted, dropped, shared, symmetric, self_loops):
    adj = graph(symmetric=symmetric, self_loops=self_loops)
    entries = torch.Generator().manual_seed(3)
    weight = torch.rand(adj.row.numel(), generator=entries) if weighted else None
    keep = torch.rand(adj.row.numel(), generator=entries) > 0.4 if dropped else None
    query = None if shared else draw(12, 3, seed=4)
    assert_right(adj, draw(12, 5, seed=1), torch.tensor(1.3), weight, query, draw(12, 3, seed=2), keep)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_attention_with_a_cap(shared, symmetric):
    query, key = None if shared else draw(12, 3, seed=4, scale=0.7), draw(12, 3, seed=2, scale=0.7)
    adj = graph(symmetric=symmetric)
    square = Lorentz(1.3).normal.lorentz_sqdist((key if shared else query)[adj.row], key[adj.col])
    assert 0.2 < (square < 1).float().mean() < 0.8  # some are below it, some above
    assert_right(adj, draw(12, 5, seed=1), torch.tensor(1.3), query=query, key=key, cap=1.0)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dropped", [True, False])
def test_without_attention(weighted, dropped):
    adj = graph()
    weight = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(3)) if weighted else None
    keep = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(4)) > 0.4 if dropped else None
    assert_right(adj, draw(12, 5, seed=1), torch.tensor(0.6), weight, keep=keep)


@pytest.mark.parametrize(("d", "a"), [(1, 1), (1, 7), (3, 16), (16, 1), (33, 5), (64, 64), (127, 2), (256, 200)])
@pytest.mark.parametrize("beta", [0.1, 9.0])
def test_any_width(d, a, beta):
    assert_right(graph(6, 12), draw(6, d, seed=1), torch.tensor(beta), key=draw(6, a, seed=2, scale=0.5))


def test_bipartite_directed_graph():
    edges = torch.tensor([[0, 4, 2, 1, 4, 4], [1, 1, 0, 1, 2, 1]])
    adj = Adjacency.from_edges(edges[0], edges[1], (5, 4), self_loops=False)
    assert_right(adj, draw(5, 4, seed=1), torch.tensor(2.0), query=draw(4, 3, seed=2), key=draw(5, 3, seed=3))


@pytest.mark.parametrize("symmetric", [True, False])
def test_hubs_in_pieces(symmetric, monkeypatch):
    monkeypatch.setattr(adjacency, "PIECE", 4)
    adj = graph(symmetric=symmetric)
    assert adj.index.rows.in_hubs >= 4
    assert symmetric == adj.index.symmetric
    pieces = adj.index.rows.pieces
    assert int((pieces[:, 2] - pieces[:, 1]).max()) == 4
    covered = torch.cat([torch.arange(a, b) for _, a, b in pieces.tolist()]).sort().values
    assert torch.equal(covered, torch.arange(adj.row.numel()))
    weight = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(3))
    keep = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(5)) > 0.3
    for query in (None, draw(12, 3, seed=4)):
        assert_right(adj, draw(12, 5, seed=1), torch.tensor(1.3), weight, query, draw(12, 3, seed=2), keep)


def test_a_graph_without_entries():
    none = torch.empty(2, 0, dtype=torch.long)
    adj = Adjacency.from_edges(none[0], none[1], (3, 3), self_loops=False)
    found = results(adj, draw(3, 4, seed=1), torch.tensor(1.0), key=draw(3, 4, seed=2))
    for t in found.values():
        assert torch.equal(t, torch.zeros_like(t))


@pytest.mark.parametrize("radius", [1, 6, 9, 12])
def test_siblings_far_out(radius):
    # the promise of docs/mathematics.md: points 0.25 apart, where float32 formulas in Minkowski space lose everything
    steps = torch.nn.functional.normalize(torch.randn(12, 6, generator=torch.Generator().manual_seed(1)).double())
    centre = torch.nn.functional.normalize(torch.ones(1, 6).double())
    u = Lorentz(1.0).normal.exp_at((radius * centre).expand(12, 6), 0.25 * steps).float()
    key = Lorentz(1.0).normal.exp_at((radius * centre).expand(12, 6), 0.25 * steps.flip(0)).float()
    assert_right(graph(), u, torch.tensor(1.0), key=key)


@pytest.mark.parametrize("apart", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("radius", [10, 15, 20, 40, 75])
def test_points_in_about_the_same_direction(radius, apart, monkeypatch):
    """Beyond r = 10 Minkowski space cancels in double precision too, where directions hardly differ."""
    monkeypatch.setattr(adjacency, "PIECE", 8)  # some rows are in several pieces
    adj = graph()
    draws = torch.Generator().manual_seed(radius)
    around = torch.randn(1, 4, generator=draws) + apart * torch.randn(12, 4, generator=draws)
    u = torch.nn.functional.normalize(around) * (radius + torch.rand(12, 1, generator=draws))
    weight = torch.rand(adj.row.numel(), generator=draws)
    keep = torch.rand(adj.row.numel(), generator=draws) > 0.3
    assert_right(adj, u, torch.tensor(1.0), tolerance=1e-5)
    assert_right(adj, u, torch.tensor(1.0), weight, keep=keep, tolerance=1e-5)
    assert_right(adj, u, torch.tensor(1.0), weight, torch.roll(0.02 * u, 1, 0), 0.02 * u, keep, tolerance=1e-5)
    for factor in (0.02, 12 / radius):  # of attention features: near the origin, far out
        assert_right(adj, u, torch.tensor(1.0), key=factor * u, tolerance=1e-5)


@pytest.mark.parametrize("radius", [9.0, 25.0])
def test_features_on_one_slanting_ray(radius):
    """Whole multiples of one vector, which rounding turns: far out attention would have a gradient of that."""
    steps = radius / 30**0.5 + torch.rand(12, generator=torch.Generator().manual_seed(0)) / 8
    key = ((2**10 * steps).round() / 2**10)[:, None] * torch.tensor([1.0, 2.0, -5.0])
    assert_right(graph(), draw(12, 5, seed=1), torch.tensor(1.0), key=key)


@pytest.mark.parametrize("cap", [1.0, 5.0])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_few_features_far_out_and_close(shared, symmetric, cap, backend):
    """As features under a cap come to be: far out in all directions, but for nodes with the same neighbours."""
    adj, draws = graph(40, 100, symmetric=symmetric), torch.Generator().manual_seed(1)
    query, key = torch.nn.functional.normalize(torch.randn(2, 40, 6, generator=draws), dim=-1) * 11
    query = key if shared else query
    row, col = next((i, j) for i, j in zip(adj.row.tolist(), adj.col.tolist(), strict=True) if i < j)
    query[row] = 1.01 * key[col]
    u, beta = draw(40, 5, seed=1), torch.tensor(1.0)
    query = None if shared else query
    assert_right(adj, u, beta, query=query, key=key, cap=cap, tolerance=1e-5)
    if backend == "triton":  # the others are not computed again
        given = (t if t is None else t.unsqueeze(0) for t in (u, query, key, beta, None, None))
        *_, of_keys, of_queries, _flags = aggregate(*given, _flat(adj.index), symmetric, True, cap)
        again = [(numbers[0, :, 0] < 0).nonzero().flatten().tolist() for numbers in (of_keys, of_queries)]
        assert again == ([sorted({row, col}), []] if shared else [[col], [row]])


@pytest.mark.parametrize("radius", [15, 30, 80])
def test_what_is_far_beyond_the_cap_is_not_computed_again(radius, backend):
    """Directions that differ by 1e-4: too little is left of d² for itself, and plenty to say that the cap is below."""
    adj, draws = graph(40, 100, symmetric=True), torch.Generator().manual_seed(1)
    around = torch.ones(40, 6) + 1e-4 * torch.randn(40, 6, generator=draws)
    key, u, beta = radius * torch.nn.functional.normalize(around), draw(40, 5, seed=1), torch.tensor(1.0)
    assert_right(adj, u, beta, key=key, cap=1.0, tolerance=1e-5)
    if backend == "triton":
        given = (t if t is None else t.unsqueeze(0) for t in (u, None, key, beta, None, None))
        *_, flags = aggregate(*given, _flat(adj.index), True, True, 1.0)
        assert not flags[0, 0]


@pytest.mark.parametrize("edges", [((0, 1, 1, 2), (1, 0, 2, 1)), ((0, 1, 1, 2, 0), (1, 0, 2, 1, 2))])
@pytest.mark.parametrize("shared", [True, False])
def test_a_close_neighbour_and_one_that_is_not(shared, edges):
    """Entries between a node that is computed again and one that is not have their whole share of the gradient in β."""
    angle = torch.tensor([0.3, 1.5], dtype=torch.float64).sqrt().cumsum(0) / math.cosh(9.5)  # d² is 0.3, and 1.5
    angle = torch.cat([torch.zeros(1, dtype=torch.float64), angle])
    key = (9.5 * torch.stack([angle.cos(), angle.sin()], 1)).float()
    adj = Adjacency.from_edges(*torch.tensor(edges), (3, 3), self_loops=True)
    assert adj.index.symmetric == (len(edges[0]) == 4)
    query = None if shared else 1.0001 * key.flip(0)
    assert_right(adj, draw(3, 4, seed=1), torch.tensor(1.0), query=query, key=key)


def test_a_far_row_may_have_the_origin_among_its_points():
    u = torch.tensor([[30.0, 1e-6], [30.5, 0.0], [0.0, 0.0]])
    every = torch.tensor([[i, j] for i in range(3) for j in range(3)]).t()
    adj = Adjacency.from_edges(every[0], every[1], (3, 3), self_loops=False)
    assert_right(adj, u, torch.tensor(1.0))


@pytest.mark.parametrize("radius", [20.0, 60.0])
def test_a_lonely_point_stays_where_it_is(radius):
    # out there s_0 − ‖s⃗‖ is all rounding
    u = radius * torch.nn.functional.normalize(draw(5, 7, seed=1))
    loops = torch.arange(5)
    adj = Adjacency.from_edges(loops, loops, (5, 5), self_loops=True)
    out = lorentz_aggregate(u, adj, torch.tensor(1.0), attention=(u, u))
    torch.testing.assert_close(out, u, rtol=1e-5, atol=0)
    u.requires_grad_()
    out = lorentz_aggregate(u, adj, torch.tensor(1.0), attention=(u, u))
    probe = draw(5, 7, seed=2)
    torch.testing.assert_close(torch.autograd.grad((out * probe).sum(), u)[0], probe)


# ---- transformations of the program


def test_a_batch_of_models_equals_models_one_by_one():
    adj = graph()
    keep = torch.rand(3, adj.row.numel(), generator=torch.Generator().manual_seed(5)) > 0.3
    weight = torch.rand(adj.row.numel(), generator=torch.Generator().manual_seed(6))
    u, key, beta = draw(3, 12, 4, seed=1), draw(3, 12, 3, seed=2), torch.tensor([0.3, 1.0, 7.0])
    batched = [t.clone().requires_grad_() for t in (u, key, beta)]

    def model(u, key, beta, keep):
        return lorentz_aggregate(u, adj, beta, weight, attention=(key, key), keep=keep)

    out = vmap(model)(*batched, keep)
    probe = draw(3, 12, 4, seed=7)
    gradients = torch.autograd.grad((out * probe).sum(), batched)
    for m in range(3):
        alone = [t[m].clone().requires_grad_() for t in (u, key, beta)]
        expected = model(*alone, keep[m])
        assert torch.equal(out[m], expected)
        for mine, other in zip(gradients, torch.autograd.grad((expected * probe[m]).sum(), alone), strict=True):
            torch.testing.assert_close(mine[m], other, rtol=1e-6, atol=1e-6)


def test_models_may_lie_along_any_axis():
    adj = graph()
    weight = torch.rand(adj.row.numel(), 3, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    u = draw(12, 3, 4, seed=1)
    out = vmap(lambda u, w: lorentz_aggregate(u, adj, torch.tensor(1.0), w), in_dims=1)(u, weight)
    for m in range(3):
        assert torch.equal(out[m], lorentz_aggregate(u[:, m], adj, torch.tensor(1.0), weight[:, m]))


# dynamo looks at .grad of whatever crosses a break in its graph
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("raw", [True, False])
def test_a_layer_compiles_whole(raw):
    torch.manual_seed(0)
    conv, x, adj = LGCNConv(6, 4, att_dropout=0.0), draw(12, 6, seed=1), graph()
    edges = adj.edge_index if raw else adj
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    expected = conv(inputs[0], edges)
    # a raw edge list is sorted first, which no compiler can look into
    out = torch.compile(conv, fullgraph=not raw, backend="aot_eager")(inputs[1], edges)
    torch.testing.assert_close(out, expected)
    gradients = [torch.autograd.grad(o.square().sum(), i)[0] for o, i in zip((expected, out), inputs, strict=True)]
    torch.testing.assert_close(*gradients)


def test_the_operator_keeps_torchs_contracts(backend):
    if backend == "triton":
        pytest.skip("the contracts concern shapes, which both backends share")
    adj = graph()
    tensors = [draw(1, 12, 4, seed=1), None, draw(1, 12, 3, seed=2), torch.ones(1)]
    tensors = [t if t is None else t.requires_grad_() for t in tensors]
    weight = torch.rand(1, adj.row.numel(), requires_grad=True)
    arguments = (*tensors, weight, None, _flat(adj.index), adj.index.symmetric, adj.index.looped, 1e30)
    torch.library.opcheck(aggregate, arguments)


def test_autocast_computes_in_float32():
    torch.manual_seed(0)
    conv, x, adj = LGCNConv(6, 4), draw(12, 6, seed=1), graph()
    with torch.autocast("cpu", torch.bfloat16):
        u = conv.lin(x)
        out = conv(x, adj)
    assert u.dtype == torch.bfloat16
    assert out.dtype == torch.float32
    with torch.no_grad():
        key = conv.att(u.float())
        exact = lorentz_aggregate(u.float(), adj, conv.curvature(), attention=(key, key))
    torch.testing.assert_close(out, exact, rtol=2e-3, atol=2e-3)
    out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


def test_the_same_bits_every_time(backend, monkeypatch):
    monkeypatch.setattr("hyperboloid.kernels.threads.WORTHWHILE", 1)
    adj, key = graph(200 if backend == "cpu" else 12, 2000 if backend == "cpu" else 40), None
    n = adj.num_rows
    u, key = draw(n, 5, seed=1), draw(n, 3, seed=2)
    before = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(results(adj, u, torch.tensor(1.0), key=key))
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(before)
    for again in found[1:]:
        assert all(torch.equal(again[name], found[0][name]) for name in again)


# ---- the CPU's threads, and the choice of a backend


def test_threads_take_every_row_once(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    lengths = np.array([0, 5, 100_000, 3, 0, 1, 70_000, 70_000])
    ptr = np.concatenate([[0], lengths.cumsum()])
    taken = []
    over_rows(lambda first, last: taken.append((first, last)), ptr, 64)
    rows = sorted(row for first, last in taken for row in range(first, last))
    assert rows == list(range(8))
    assert len(taken) == 3
    # none has more than its third, up to one row
    assert all(ptr[last] - ptr[first] <= ptr[-1] / 3 + 100_000 for first, last in taken)


def test_models_are_shared_out_whole_and_errors_pass_on(monkeypatch):
    from hyperboloid.kernels import threads

    monkeypatch.setattr(threads, "WORTHWHILE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    meet, done = threading.Barrier(3), []

    def work(m):
        if m < 3:
            meet.wait(timeout=30)  # passed only if three threads are at work
        taken = []
        threads.over_rows(lambda first, last: taken.append((first, last)), np.arange(101), 64)
        assert taken == [(0, 100)]  # what a model does stays on its thread
        assert not torch.is_grad_enabled()
        done.append(m)

    threads.over_models(work, 8, 1000)
    assert sorted(done) == list(range(8))
    with pytest.raises(ZeroDivisionError):
        threads.over_models(lambda m: 1 // (m - 5), 8, 1000)
    taken = []
    threads.over_rows(lambda first, last: taken.append((first, last)), np.arange(101), 64)
    assert len(taken) == 3  # and outside all threads share the rows again


ALONE = """
import os, torch
torch.set_num_threads(2)
import hyperboloid.kernels.threads as threads
from hyperboloid.kernels import Adjacency, lorentz_aggregate
"""


def run_alone(code):
    done = subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forked_process_computes_too(backend):
    if backend == "triton":
        pytest.skip("a matter of the CPU's threads")
    run_alone("""
threads.WORTHWHILE = 1
u = torch.randn(50, 4)
edges = torch.randint(50, (2, 400))
adj = Adjacency.from_edges(edges[0], edges[1], (50, 50), self_loops=True)
out = lorentz_aggregate(u, adj, torch.tensor(1.0))
child = os.fork()
if child == 0:
    same = torch.equal(lorentz_aggregate(u, adj, torch.tensor(1.0)), out)
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")


def test_nothing_is_written_per_edge_but_numbers(backend):
    if backend == "triton":
        pytest.skip("its interpreter is too slow for a million edges")
    # a single feature tensor per edge would take 512 MB
    grown = run_alone("""
import resource
n, e, d = 5_000, 2_000_000, 64
u = torch.randn(n, d, requires_grad=True)
key = torch.randn(n, d, requires_grad=True)
edges = torch.randint(n, (2, e))
adj = Adjacency.from_edges(edges[0], edges[1], (n, n), self_loops=True)
adj.index
small = Adjacency.from_edges(edges[0, :10], edges[1, :10], (n, n), self_loops=True)
lorentz_aggregate(u, small, torch.tensor(1.0), attention=(0.1 * key, 0.1 * key)).sum().backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lorentz_aggregate(u, adj, torch.tensor(1.0), attention=(0.1 * key, 0.1 * key)).sum().backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
""")
    assert int(grown) < 100


def test_the_environment_chooses_a_backend(monkeypatch):
    from hyperboloid.kernels import backend

    token = backend._forced.set(None)
    try:
        monkeypatch.setitem(os.environ, "HYPERBOLOID_BACKEND", "reference")
        assert backend.chosen_backend(torch.zeros(1)) == "reference"
        with use_backend("cpu"):
            assert backend.chosen_backend(torch.zeros(1)) == "cpu"
        monkeypatch.setitem(os.environ, "HYPERBOLOID_BACKEND", "fast")
        with pytest.raises(InputError, match="HYPERBOLOID_BACKEND must be one of reference, cpu, triton, not 'fast'"):
            lorentz_aggregate(torch.ones(12, 2), graph(), torch.tensor(1.0))
    finally:
        backend._forced.reset(token)
