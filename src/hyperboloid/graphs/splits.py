"""Which edges and nodes are for training, which for validation, which for the test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from hyperboloid.errors import InputError
from hyperboloid.graphs.graph import UNLABELLED, Graph
from hyperboloid.kernels import Key, random_numbers
from hyperboloid.kernels.backend import chosen_backend, kernels_for

DISEASE_NAMES = frozenset({"disease", "disease_lp", "disease_nc"})


def pair_rank(pairs: Tensor) -> Tensor:
    """The rank of each pair u < v in the order (0,1), (0,2), (1,2), (0,3), …: v(v − 1)/2 + u.

    Args:
        pairs: ``(2, P)`` int64, each column u < v. Exact for node numbers up to 1e9.

    Returns:
        ``(P,)`` int64; the pairs of ``n`` nodes have the ranks 0 … n(n − 1)/2 − 1.
    """
    u, v = pairs
    return _pairs_below(v) + u


def pair_of_rank(rank: Tensor) -> Tensor:
    """The pairs u < v of the given ranks, ``(P,)`` int64 to ``(2, P)``: the inverse of :func:`pair_rank`."""
    v = ((1 + (8 * rank + 1).to(torch.float64).sqrt()) / 2).to(torch.int64)
    # Rounding in the square root can miss the integer by one in either direction.
    v = v - (_pairs_below(v) > rank).to(torch.int64)
    v = v + (_pairs_below(v + 1) <= rank).to(torch.int64)
    return torch.stack([rank - _pairs_below(v), v])


def _pairs_below(v: Tensor) -> Tensor:
    """Number of pairs of the nodes 0 … v − 1."""
    # A shift, because integer division is several times slower and this runs in every epoch.
    return v * (v - 1) >> 1


class Buckets(NamedTuple):
    """Edges by how many non-edges lie below them: the b-th bucket has those with b 2^shift of them and more.

    Attributes:
        shift: a bucket's width is a power of 2.
        start: ``(B + 1,)`` int64, where each starts among the edges.
        largest: how many edges the largest has.
    """

    shift: int
    start: Tensor
    largest: int


class NonEdges:
    """The pairs u < v that are not among some given edges, numbered 0 … ``count`` − 1 without listing them.

    Below the i-th edge, by rank, lie ``rank_i − i`` non-edges. A binary search for k in these numbers tells
    how many edges precede the k-th non-edge, hence its own rank: exact, without rejection, as quick for dense
    graphs as for sparse ones, in memory proportional to the edges.

    Attributes:
        count: number of non-edges.
        below: ``(E,)`` int64, how many of them lie below each edge, in the edges' order.
    """

    def __init__(self, pairs: Tensor, num_nodes: int) -> None:
        ranks = pair_rank(pairs).sort().values
        self.count = num_nodes * (num_nodes - 1) // 2 - ranks.numel()
        self.below = ranks - torch.arange(ranks.numel(), device=ranks.device)

    @cached_property
    def buckets(self) -> Buckets:
        """About as many as there are edges, for a search that begins in the right one."""
        shift = max(self.count // max(self.below.numel(), 1), 1).bit_length() - 1
        size = torch.bincount(self.below >> shift, minlength=(self.count >> shift) + 1)
        return Buckets(shift, torch.cat([size.new_zeros(1), size.cumsum(0)]), int(size.max()))

    def __getitem__(self, k: Tensor) -> Tensor:
        """The non-edges numbered ``k``: ``(…)`` int64 to ``(2, …)``."""
        return pair_of_rank(k + torch.searchsorted(self.below, k, right=True))


class NegativeSampler:
    """Draws training negatives: pairs u < v, uniform over all pairs that are not *training* edges.

    Validation and test edges may come up: to avoid them would tell the model where they are.

    Args:
        train: ``(2, T)`` int64 training edges, each once as u < v.
        num_nodes: nodes of the graph.
    """

    def __init__(self, train: Tensor, num_nodes: int) -> None:
        self._train = train.int() if train.is_cuda else train  # of what a GPU reads, half
        self._non_edges = NonEdges(train, num_nodes)
        if self._non_edges.count == 0:
            raise InputError(
                f"all pairs of the {num_nodes} nodes are training edges, so there are no negatives to draw"
            )

    def sample(self, key: Key, count: int) -> Tensor:
        """Pairs ``(2, count)`` int64 that follow from the key alone, ``(M, 2, count)`` for keys ``(M,)``.

        A pair may come twice.
        """
        return self._after(self._non_edges.below.new_empty(2, 0), key, count)

    def with_edges(self, key: Key) -> Tensor:
        """Pairs ``(…, 2, 2T)``: the training edges, then as many of :meth:`sample`; int32 on a GPU."""
        return self._after(self._train, key, self._train.size(1))

    def _after(self, edges: Tensor, key: Key, count: int) -> Tensor:
        """Some edges, then random non-edges."""
        pairs = self._non_edges
        if chosen_backend(pairs.below) == "reference":
            numbers = random_numbers(key, count, pairs.below.device)  # of a range far larger than the number of pairs
            drawn = pairs[numbers % pairs.count].movedim(0, -2).to(edges.dtype)
            return torch.cat([edges.expand(*drawn.shape[:-1], -1), drawn], dim=-1)
        kernels = kernels_for(pairs.below, "gpu_non_edges", "cpu_non_edges")
        after: Tensor = kernels.random_non_edges(edges, key, count, pairs.below, pairs.count, pairs.buckets)
        return after


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """The edges of a graph in three parts, with fixed negatives for validation and test.

    Attributes:
        edge_index: ``(2, 2T)`` int64, the message-passing graph: the training edges in both directions,
            sorted by (row, column). No validation or test edge is in it.
        edge_weight: ``(2T,)`` their weights, or None.
        train: ``(2, T)`` int64 training edges, each once as u < v.
        val: ``(2, V)`` validation edges, likewise.
        test: ``(2, S)`` test edges, likewise.
        val_neg: ``(2, V)`` pairs u < v that are not edges of the whole graph, distinct.
        test_neg: ``(2, S)`` likewise, none of them in ``val_neg``.
    """

    edge_index: Tensor
    edge_weight: Tensor | None
    train: Tensor
    val: Tensor
    test: Tensor
    val_neg: Tensor
    test_neg: Tensor


def split_links(graph: Graph, seed: int = 0, *, val_share: float = 0.05, test_share: float = 0.10) -> LinkSplit:
    """Split the undirected edges at random, by default into 85 % training, 5 % validation and 10 % test.

    The validation and test parts are rounded down, but never empty. Their negatives are drawn without
    replacement, uniformly from the non-edges of the whole graph. The same graph and seed always give the same
    split; torch's global random state is neither read nor changed.

    Args:
        graph: the graph; its split lies on the graph's device.
        seed: of the split.
        val_share: share of the edges held out for validation.
        test_share: share of the edges held out for the test.

    Raises:
        InputError: when the shares leave nothing to train on, the graph has fewer than three edges, or it has
            too few non-edges for the negatives.
    """
    if not (val_share > 0 and test_share > 0 and val_share + test_share < 1):
        raise InputError(
            f"the shares of validation and test edges must be positive and sum to less than 1, "
            f"not {val_share} and {test_share}"
        )
    edge_index = graph.edge_index
    pairs = edge_index[:, edge_index[0] < edge_index[1]]
    num_edges = pairs.size(1)
    num_val = max(1, int(val_share * num_edges))
    num_test = max(1, int(test_share * num_edges))
    if num_val + num_test >= num_edges:
        raise InputError(
            f"graph '{graph.name}' has {num_edges} edges, too few to split into training, validation and test"
        )
    non_edges = NonEdges(pairs, graph.num_nodes)
    if non_edges.count < num_val + num_test:
        raise InputError(
            f"graph '{graph.name}' has {num_edges} edges and only {non_edges.count} pairs without one, "
            f"too few to split: validation and test need {num_val + num_test} negatives"
        )

    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(num_edges, generator=generator)
    val, test, train = (
        pairs[:, part.sort().values] for part in order.split([num_val, num_test, num_edges - num_val - num_test])
    )
    negatives = non_edges[_distinct(non_edges.count, num_val + num_test, generator)]

    # The graph's own order is kept, so the result is sorted and its weights stay aligned.
    kept = torch.isin(pair_rank(edge_index.sort(0).values), pair_rank(train))
    return LinkSplit(
        edge_index=edge_index[:, kept],
        edge_weight=None if graph.edge_weight is None else graph.edge_weight[kept],
        train=train,
        val=val,
        test=test,
        val_neg=negatives[:, :num_val],
        test_neg=negatives[:, num_val:],
    )


def _distinct(high: int, count: int, generator: torch.Generator) -> Tensor:
    """``(count,)`` distinct integers of 0 … high − 1 in random order; every choice is equally likely."""
    if high <= 4 * count:
        return torch.randperm(high, generator=generator)[:count]
    drawn = torch.empty(0, dtype=torch.int64)
    while drawn.numel() < count:
        more = torch.randint(high, (2 * count,), generator=generator)
        drawn = torch.cat([drawn, more]).unique()
    # `unique` sorts, and cutting off the largest would favour small numbers.
    return drawn[torch.randperm(drawn.numel(), generator=generator)[:count]]


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """The labelled nodes of a graph in three disjoint parts.

    Attributes:
        train: int64 node indices, sorted.
        val: likewise.
        test: likewise.
        name: how they were chosen (``public``, or ``20 per class, 500 and 1000 at random, seed 0``), for reports.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    name: str


def split_nodes(graph: Graph, seed: int = 0, *, masks: str | None = None) -> NodeSplit:
    """Split the labelled nodes for classification. Nodes without a label are in no part.

    The first rule that applies is used:

    1. ``masks`` names a split that came with the data (``public``, ``authors``), or the data has a ``public``
       one: that split, whatever the seed. If it has several (``public 0``, ``public 1``, …), the one with the number
       ``seed``.
    2. The graph is not one of the Disease graphs, every class has 20 labelled nodes or more, and 20 of each
       are at most a third of all labelled nodes: 20 of each class for training; of the rest 500 (at most half
       of it) for validation and 1000 (or what is left) for the test.
    3. Otherwise 30/10/60: of each class 30 %, and at least one node, for training; of the rest one seventh,
       and at least one node, for validation, and the other nodes for the test.

    Args:
        graph: the graph, with labels.
        seed: of the random choice in rules 2 and 3, or the number in rule 1.
        masks: name of a split in ``graph.masks``.

    Raises:
        InputError: when ``masks`` is unknown, or when the graph has no labels, only one class, or too few
            labelled nodes for three parts, or came with labels or masks that cannot be used.
    """
    y = torch.empty(0, dtype=torch.int64) if graph.y is None else graph.y
    labelled = (y != UNLABELLED).nonzero().squeeze(1)
    if labelled.numel() == 0:
        raise InputError(graph.problems.get("y", f"graph '{graph.name}' has no labels to learn from: give --labels"))
    sizes = y[labelled].bincount()
    num_classes = int((sizes > 0).sum())
    if num_classes < 2:
        raise InputError(f"all labelled nodes of graph '{graph.name}' are of one class, so there is nothing to learn")

    if not graph.masks and "masks" in graph.problems:
        raise InputError(graph.problems["masks"])
    several = f"public {seed}" if "public 0" in graph.masks else None
    chosen = masks if masks is not None else "public" if "public" in graph.masks else several
    if chosen is not None and chosen not in graph.masks:
        available = ", ".join(sorted(graph.masks)) or "none"
        raise InputError(f"graph '{graph.name}' has no node split named '{chosen}' (it came with: {available})")
    if chosen is not None:
        parts = (graph.masks[chosen][part].sort().values for part in ("train", "val", "test"))
        train, val, test = (nodes[y[nodes] != UNLABELLED] for nodes in parts)
        together = torch.cat([train, val, test])
        if not (train.numel() and val.numel() and test.numel()) or together.unique().numel() < together.numel():
            raise InputError(
                f"the node split '{chosen}' of graph '{graph.name}' has an empty part, or a node in two parts"
            )
        return NodeSplit(train, val, test, chosen)

    generator = torch.Generator().manual_seed(seed)
    shuffled = labelled[torch.randperm(labelled.numel(), generator=generator)]
    twenty_each = (
        graph.name not in DISEASE_NAMES
        and int(sizes[sizes > 0].min()) >= 20
        and 3 * 20 * num_classes <= labelled.numel()
    )
    if twenty_each:
        train, rest = _take_of_each_class(shuffled, y, torch.full_like(sizes, 20))
        # of rare classes training has taken whatever came early, so that the beginning of the rest has none of them
        rest = rest[torch.randperm(rest.numel(), generator=generator)]
        num_val = min(500, rest.numel() // 2)
        num_test = min(1000, rest.numel() - num_val)
        name = f"20 per class, {num_val} and {num_test} at random, seed {seed}"
    else:
        train, rest = _take_of_each_class(shuffled, y, (0.3 * sizes).round().long().clamp(min=1))
        num_val = max(1, round(rest.numel() / 7))
        num_test = rest.numel() - num_val
        name = f"30/10/60, seed {seed}"
        if num_test < 1:
            raise InputError(
                f"graph '{graph.name}' has {labelled.numel()} labelled nodes in {num_classes} classes, "
                "too few for training, validation and test nodes"
            )
    val, test = rest[:num_val], rest[num_val : num_val + num_test]
    return NodeSplit(train.sort().values, val.sort().values, test.sort().values, name)


def _take_of_each_class(nodes: Tensor, y: Tensor, quota: Tensor) -> tuple[Tensor, Tensor]:
    """The first ``quota[c]`` nodes of each class c (``quota`` is ``(C,)``), and the others in their order."""
    labels = y[nodes]
    by_class = labels.argsort(stable=True)
    sizes = labels.bincount(minlength=quota.numel())
    first = sizes.cumsum(0) - sizes
    place = torch.empty_like(by_class)
    place[by_class] = torch.arange(nodes.numel()) - first[labels[by_class]]
    taken = place < quota[labels]
    return nodes[taken], nodes[~taken]
