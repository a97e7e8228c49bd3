"""Graphs that are made, not read: they need no file."""

from __future__ import annotations

import numpy as np

from hyperboloid.errors import InputError
from hyperboloid.graphs.build import build_graph
from hyperboloid.graphs.graph import Graph

MIN_CHILDREN, MAX_CHILDREN = 2, 6
# P(N(0, 1) > THRESHOLD) = 0.62: the share of the exposed nodes that fall ill in the published `disease_nc`.
THRESHOLD = -0.3055
# The measurements of `disease_lp` are noisier (0.25 to 0.8), but there 40 % of the nodes are infected: with a fifth,
# small models would not learn more than to call everybody healthy.
SIGNAL, NOISE = 0.7, 0.6
MIN_NODES = 32


def disease(seed: int = 0, *, num_nodes: int = 1044, num_features: int = 11) -> Graph:
    """A simulated epidemic on a random tree, in the manner of HGCN's Disease graphs.

    The published 1044-node graph lost its features; this one stands in for it, of the same size and with
    features built like those of ``disease_lp``.

    **Tree.** Nodes are numbered breadth first from the root 0. In that order each node gets 2 to 6 children,
    all five numbers equally likely, until there are ``num_nodes`` nodes; the last inner node gets as many as
    are left.

    **Epidemic.** Node v has the susceptibility s_v ~ N(0, 1). The root and its children are ill from the
    start (they all are in both published graphs); every other node is infected when its parent is and
    s_v > −0.3055, which has probability 0.62. The susceptibilities are drawn again until the epidemic reaches
    the last generation and spares someone, so both classes always occur. With the default size about a fifth
    of the nodes is infected, varying with the seed.

    **Features.** Columns 0 … k − 2 are independent noisy measurements of the susceptibility, 0.7 s_v + 0.6 ε
    with ε ~ N(0, 1). The last column is the node's place: the root owns the interval [−1, 1], each node's
    interval is cut into equal pieces for its children, and the place is the middle of the node's own piece,
    without noise. So a child lives close to its parent, which makes links predictable, but close to its
    siblings and cousins too; and neither the measurements nor the place determine the class, which depends on
    all ancestors as well.

    Args:
        seed: the same seed gives the same graph.
        num_nodes: nodes of the tree, at least 32.
        num_features: columns of ``x``, at least 2.

    Returns:
        A connected tree named ``disease`` with ``num_nodes − 1`` edges, ``x`` of shape
        ``(num_nodes, num_features)`` and the classes ``healthy`` (0) and ``infected`` (1).
    """
    if num_nodes < MIN_NODES:
        raise InputError(f"an epidemic needs at least {MIN_NODES} nodes, not {num_nodes}")
    if num_features < 2:
        raise InputError(f"the nodes of an epidemic have at least 2 features, not {num_features}")
    rng = np.random.Generator(np.random.PCG64(seed))

    # Enough draws even if every node had the least number of children.
    children = rng.integers(MIN_CHILDREN, MAX_CHILDREN + 1, size=(num_nodes + 1) // MIN_CHILDREN)
    parent = np.concatenate([[0], np.repeat(np.arange(children.size), children)[: num_nodes - 1]])
    generations = _generations(parent)

    susceptibility, infected = _epidemic(rng, parent, generations)
    while infected.all() or not infected[generations[-1]].any():
        susceptibility, infected = _epidemic(rng, parent, generations)

    noise = rng.standard_normal((num_nodes, num_features - 1))
    measured = SIGNAL * susceptibility[:, None] + NOISE * noise
    x = np.column_stack([measured, _places(parent, generations)])

    node = np.arange(1, num_nodes)
    return build_graph(
        "disease", parent[1:], node, num_nodes, x=x, y=infected.astype(np.int64), class_names=["healthy", "infected"]
    )


def _generations(parent: np.ndarray) -> list[slice]:
    """The nodes of each depth, which are consecutive because nodes are numbered breadth first."""
    generations = [slice(0, 1)]
    while generations[-1].stop < parent.size:
        start = generations[-1].stop
        # Parents never decrease: this generation ends where the children of its first node begin.
        generations.append(slice(start, int(np.searchsorted(parent, start))))
    return generations


def _epidemic(rng: np.random.Generator, parent: np.ndarray, generations: list[slice]) -> tuple[np.ndarray, np.ndarray]:
    """Susceptibilities, and who is infected: ``(N,)`` float64 and ``(N,)`` bool."""
    susceptibility = rng.standard_normal(parent.size)
    infected = np.ones(parent.size, dtype=bool)
    for nodes in generations[2:]:
        infected[nodes] = infected[parent[nodes]] & (susceptibility[nodes] > THRESHOLD)
    return susceptibility, infected


def _places(parent: np.ndarray, generations: list[slice]) -> np.ndarray:
    """The middle of each node's piece of [−1, 1], ``(N,)`` float64."""
    width = np.full(parent.size, 2.0)
    place = np.zeros(parent.size)
    children = np.bincount(parent[1:], minlength=parent.size)
    eldest_child = 1 + np.cumsum(children) - children
    for nodes in generations[1:]:
        of = parent[nodes]
        width[nodes] = width[of] / children[of]
        birth_order = np.arange(nodes.start, nodes.stop) - eldest_child[of]
        place[nodes] = place[of] - width[of] / 2 + (birth_order + 0.5) * width[nodes]
    return place
