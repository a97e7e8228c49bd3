"""One LGCN layer: the paper's section 4, in every form of input that PyG knows."""

import pytest
import torch
from torch_geometric import EdgeIndex

from hyperboloid import InputError
from hyperboloid.geometry import Lorentz
from hyperboloid.kernels import Adjacency, lorentz_aggregate
from hyperboloid.nn import LGCNConv

N, K, D = 8, 5, 4


def layer(in_channels=K, out_channels=D, *, spread=50, **options):
    """A layer in float64 whose attention has left its near-uniform start."""
    conv = LGCNConv(in_channels, out_channels, **options).double()
    conv.reset_parameters()  # β as float64 holds it
    if conv.att is not None:
        conv.att.weight.data *= spread
    if conv.lin.bias is not None:
        conv.lin.bias.data.normal_(0, 0.3)
    return conv


def features(n=N, k=K):
    return torch.randn(n, k, dtype=torch.float64)


def edge_list(n=N):
    """A directed graph without duplicates, in no order; node n − 1 is isolated, node 0 has a loop."""
    pairs = [(0, 0), (3, 1), (2, 1), (1, 2), (0, 3), (5, 4), (4, 5), (6, 5), (2, 6), (5, 0), (6, 1), (0, 6)]
    assert max(max(pair) for pair in pairs) == n - 2
    return torch.tensor(pairs).t().contiguous()


def weights(edges):
    return torch.rand(edges.size(1), dtype=torch.float64) + 0.1


# ---- the formula


@pytest.mark.parametrize("att_dim", [1, 4, 9])
@pytest.mark.parametrize("beta", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("bias", [True, False])
def test_section_4_on_points(att_dim, beta, bias):
    conv, x, edges = layer(att_dim=att_dim, beta=beta, bias=bias), features(), edge_list()
    M = Lorentz(beta)
    h = M.matvec(conv.lin.weight, M.exp0(x))  # Eq. 14
    if bias:
        h = M.pointwise(lambda v: v + conv.lin.bias, h)
    a = M.matvec(conv.att.weight, h)
    expected = []
    for i in range(N):
        hood = sorted({i} | {int(j) for j, target in edges.t() if target == i})
        mu = -M.lorentz_sqdist(a[i].expand(len(hood), -1), a[hood])  # Eq. 19
        expected.append(M.centroid(h[hood], torch.softmax(mu, 0)))  # Eq. 16, 20
    expected = M.pointwise(torch.relu, torch.stack(expected))  # Eq. 21
    torch.testing.assert_close(M.exp0(torch.relu(conv(x, edges))), expected, rtol=1e-9, atol=1e-9)


def test_without_attention_all_neighbours_count_the_same():
    conv, x, edges = layer(attention=False), features(), edge_list()
    u, out = conv.lin(x), conv(x, edges)
    M = Lorentz(1.0)
    for i in range(N):
        hood = sorted({i} | {int(j) for j, target in edges.t() if target == i})
        torch.testing.assert_close(out[i], M.normal.centroid(u[hood]), rtol=1e-10, atol=1e-10)


def test_the_flat_limit_is_mean_aggregation():
    x, edges = features(), edge_list()
    loops = torch.arange(1, N).repeat(2, 1)  # node 0 has its own
    dense = torch.zeros(N, N, dtype=torch.float64)
    dense[torch.cat([edges, loops], 1)[1], torch.cat([edges, loops], 1)[0]] = 1
    conv = layer(attention=False)
    mean = dense @ conv.lin(x) / dense.sum(1, keepdim=True)
    errors = []
    for beta in (1e3, 2e3, 4e3):
        flat = layer(attention=False, beta=beta)
        flat.lin.load_state_dict(conv.lin.state_dict())
        errors.append(float((flat(x, edges) - mean).detach().norm()))
    assert 0 < errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.01)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.01)


def test_renaming_the_nodes_renames_the_output():
    conv, x, edges = layer(), features(), edge_list()
    name = torch.randperm(N)
    renamed = torch.empty_like(x)
    renamed[name] = x
    torch.testing.assert_close(conv(renamed, name[edges])[name], conv(x, edges))


# ---- forms of the graph


def as_sparse(edges, weight):
    """The transposed adjacency, row = target, as a COO tensor."""
    weight = torch.ones(edges.size(1), dtype=torch.float64) if weight is None else weight
    return torch.sparse_coo_tensor(edges.flip(0), weight, (N, N), check_invariants=True).coalesce()


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", ["edge_index", "int32", "csr", "coo", "csc", "EdgeIndex", "sorted", "Adjacency"])
def test_every_form_of_the_graph_is_the_same_graph(form, weighted):
    conv, x, edges = layer(), features(), edge_list()
    weight = weights(edges) if weighted else None
    shuffled = torch.randperm(edges.size(1))
    expected = conv(x, edges[:, shuffled], weight[shuffled] if weighted else None)
    if form in ("csr", "coo", "csc"):
        adj_t = as_sparse(edges, weight)
        adj_t = {"csr": adj_t.to_sparse_csr, "csc": adj_t.to_sparse_csc, "coo": lambda: adj_t}[form]()
        out = conv(x, adj_t)
    elif form == "EdgeIndex":
        out = conv(x, EdgeIndex(edges, sparse_size=(N, N)), weight)
    elif form == "sorted":
        ordered, perm = EdgeIndex(edges, sparse_size=(N, N)).sort_by("col")
        out = conv(x, ordered, weight[perm] if weighted else None)
    elif form == "Adjacency":
        out = conv(x, Adjacency.from_edges(edges[0], edges[1], (N, N), self_loops=True), weight)
    else:
        out = conv(x, edges.to(torch.int32) if form == "int32" else edges, weight)
    torch.testing.assert_close(out, expected)
    assert not torch.allclose(conv(x, edges.flip(0)), expected)  # a transposed graph would be noticed


def test_weights_of_one_change_nothing():
    conv, x, edges = layer(), features(), edge_list()
    torch.testing.assert_close(conv(x, edges, torch.ones(edges.size(1))), conv(x, edges))


def test_a_weight_of_two_is_a_doubled_edge_and_zero_a_missing_one():
    conv, x, edges = layer(), features(), edge_list()
    weight = torch.ones(edges.size(1), dtype=torch.float64)
    weight[1], weight[5] = 2, 0
    kept = [e for e in range(edges.size(1)) if e != 5]
    torch.testing.assert_close(conv(x, edges, weight), conv(x, edges[:, [*kept, 1]]))


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_the_unit_of_the_weights_is_free(scale):
    conv, x, edges = layer(add_self_loops=False).float(), features().float(), edge_list()
    weight = weights(edges).float()
    torch.testing.assert_close(conv(x, edges, scale * weight), conv(x, edges, weight))


def test_weights_are_differentiable():
    conv, x, edges = layer(), features(), edge_list()
    weight = weights(edges).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: conv(x, edges, w), weight)


@pytest.mark.parametrize("sparse", [True, False])
def test_wrong_number_of_weights(sparse):
    edges = edge_list()
    graph = as_sparse(edges, None).to_sparse_csr() if sparse else edges
    with pytest.raises(InputError, match="edge_weight has 3 entries but the graph has 12 edges"):
        layer()(features(), graph, torch.ones(3))


# ---- attention


def test_attention_weights_sum_to_one_and_give_the_output():
    conv, x, edges = layer(), features(), edge_list()
    out, (index, alpha) = conv(x, edges, return_attention_weights=True)
    assert {tuple(pair) for pair in index.t().tolist()} == {
        *(tuple(pair) for pair in edges.t().tolist()),
        *((i, i) for i in range(N)),
    }
    torch.testing.assert_close(
        torch.zeros(N, dtype=torch.float64).index_add(0, index[1], alpha), torch.ones(N, dtype=torch.float64)
    )
    adj = Adjacency.from_edges(index[0], index[1], (N, N), self_loops=False)
    again = lorentz_aggregate(conv.lin(x), adj, conv.curvature(), adj.sort_weights(alpha))
    torch.testing.assert_close(again, out)
    torch.testing.assert_close(conv(x, edges), out)


def test_given_weights_multiply_the_attention():
    conv, x, edges = layer(), features(), edge_list()
    weight = weights(edges)
    _, (index, alpha) = conv(x, edges, return_attention_weights=True)
    _, (same_index, product) = conv(x, edges, weight, return_attention_weights=True)
    assert torch.equal(index, same_index)
    given = {tuple(pair): float(w) for pair, w in zip(edges.t().tolist(), weight, strict=True)}
    factor = torch.tensor([given.get(tuple(pair), 1.0) for pair in index.t().tolist()], dtype=torch.float64)
    torch.testing.assert_close(product, factor * alpha)


def test_attention_starts_near_uniform():
    x, edges = 3 * features(), edge_list()
    hood = torch.bincount(edges[1][edges[0] != edges[1]], minlength=N) + 1.0
    for spread, near in ((1, True), (100, False)):  # 100: what plain Xavier would be
        _, (index, alpha) = layer(spread=spread)(x, edges, return_attention_weights=True)
        assert bool(((alpha * hood[index[1]] - 1).abs().max() < 0.1).all()) == near


# ---- graphs with little in them


def test_an_isolated_node_keeps_its_own_features():
    conv, x = layer(), features()
    torch.testing.assert_close(conv(x, edge_list())[-1], conv.lin(x)[-1])


def test_an_isolated_node_without_loops_is_the_origin():
    conv, x = layer(add_self_loops=False), features().requires_grad_()
    out = conv(x, edge_list())
    assert torch.equal(out[-1], torch.zeros(D, dtype=torch.float64))
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert torch.equal(x.grad[-1], torch.zeros(K, dtype=torch.float64))


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("attention", [True, False])
def test_no_edges_at_all(n, loops, attention):
    conv, x = layer(add_self_loops=loops, attention=attention), features(n).requires_grad_()
    out = conv(x, torch.empty(2, 0, dtype=torch.long))
    expected = conv.lin(x) if loops else torch.zeros(n, D, dtype=torch.float64)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters() if p.grad is not None)


# ---- bipartite graphs


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("form", ["edge_index", "csr", "EdgeIndex"])
def test_a_bipartite_graph_is_half_of_its_union(attention, form):
    conv = layer(attention=attention, add_self_loops=False)
    source, target = features(6), features(4)
    edges = torch.tensor([[0, 5, 2, 3, 5], [1, 1, 0, 3, 3]])
    union = conv(torch.cat([source, target]), edges + torch.tensor([[0], [6]]))[6:]
    graph = {
        "edge_index": edges,
        "csr": torch.sparse_coo_tensor(edges.flip(0), torch.ones(5), (4, 6), check_invariants=True).to_sparse_csr(),
        "EdgeIndex": EdgeIndex(edges, sparse_size=(6, 4)),
    }[form]
    conv.add_self_loops = True  # a bipartite graph gets none: node i of one side is not node i of the other
    out = conv((source, target), graph)
    assert out.shape == (4, D)
    torch.testing.assert_close(out, union)


def test_bipartite_attention_needs_both_sides():
    with pytest.raises(InputError, match="target nodes"):
        layer()((features(), None), edge_list())


# ---- curvature and the rest


def test_beta_fixed_or_trained():
    x, edges = features(), edge_list()
    for train in (True, False):
        conv = layer(beta=0.7, train_beta=train)
        assert conv.curvature().item() == pytest.approx(0.7, rel=1e-12)
        conv(x, edges).square().sum().backward()
        assert (conv.curvature.raw.grad is not None) == train
        if train:
            assert conv.curvature.raw.grad != 0


def test_reset_parameters_starts_again():
    conv = LGCNConv(K, D, beta=2.0)
    for p in conv.parameters():
        p.data.fill_(9.0)
    conv.reset_parameters()
    assert conv.curvature().item() == pytest.approx(2.0)
    assert torch.equal(conv.lin.bias, torch.zeros(D))
    bound = (6 / (K + D)) ** 0.5  # Xavier-uniform
    assert 0.5 * bound < conv.lin.weight.abs().max() <= bound
    assert 0 < conv.att.weight.abs().max() < 0.02


def test_repr_names_what_matters():
    text = repr(LGCNConv(16, 32, att_dim=3, beta=2.5, train_beta=False, att_dropout=0.25))
    assert text.startswith("LGCNConv(")
    for part in ("16, 32", "32, 3", "beta=2.5", "trainable=False", "att_dropout=0.25"):
        assert part in text


def test_training_works_after_inference_on_the_same_graph():
    conv, x, edges = layer(), features(), edge_list()
    with torch.inference_mode():
        expected = conv(x, edges)
    out = conv(x, edges)
    out.sum().backward()
    assert torch.equal(out, expected)


@pytest.mark.parametrize("edges", [[[0, 50], [1, 2]], [[0, 1], [1, 7]], [[-1, 1], [0, 2]]])
def test_nodes_that_are_not_there_are_refused(edges):
    with pytest.raises(InputError, match="nodes outside 0 to 4"):
        LGCNConv(4, 3)(torch.randn(5, 4), torch.tensor(edges))


def test_a_graph_of_another_size_is_refused():
    adj = Adjacency.from_edges(torch.tensor([0]), torch.tensor([1]), (9, 9), self_loops=True)
    with pytest.raises(InputError, match="9 source and 9 target nodes"):
        LGCNConv(4, 3)(torch.randn(5, 4), adj)


MATRIX = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 2]]), torch.ones(2), (9, 5), check_invariants=True)


@pytest.mark.parametrize(
    ("x", "edges", "sentence"),
    [
        (torch.ones(5, 4), torch.tensor([[0, 1], [1, 2], [2, 3]]), r"\(2, E\) whole numbers.* not \(3, 2\)"),
        (torch.ones(5, 4), torch.eye(5), r"\(2, E\) whole numbers.* not \(5, 5\) torch.float32"),
        (torch.ones(5, 4), torch.tensor([[0.7, 1.0], [1.0, 2.0]]), r"\(2, E\) whole numbers.* torch.float32"),
        (torch.ones(5, 4), MATRIX, r"each source node, \(5, 5\), not \(9, 5\)"),
        ((torch.ones(9, 4), torch.ones(5, 4)), MATRIX, r"each source node, \(5, 9\), not \(9, 5\)"),
        (torch.ones(1, 5, 4), torch.tensor([[0], [1]]), r"features must be \(N, 4\)"),
    ],
)
def test_what_is_no_graph_is_refused(x, edges, sentence):
    with pytest.raises(InputError, match=sentence):
        LGCNConv(4, 3)(x, edges)


def test_no_edges_may_have_any_type():
    conv, x = LGCNConv(4, 3), torch.randn(5, 4)
    assert torch.equal(conv(x, torch.tensor([[], []])), conv(x, torch.empty(2, 0, dtype=torch.long)))


def test_both_sides_may_be_a_list():
    conv, x, y, edges = LGCNConv(4, 3), torch.randn(6, 4), torch.randn(5, 4), torch.tensor([[0, 5], [1, 2]])
    assert torch.equal(conv([x, y], edges), conv((x, y), edges))
