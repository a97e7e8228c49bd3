r"""Steps of Poincaré embeddings on a CPU, float32: numba loops that draw negatives, add up gradients and move points.

The gradient of a distance is a unit vector that points away from the other point. Carried to the origin it is −T̂, with
T = log_i(j). In units of √β, with θ = d/√β, r = ‖z‖/√β and y = (cosh r_j, sinh r_j ẑ_j) the point j in Minkowski space,

.. math::  T̂ = \frac{1}{\sinh θ}\big(\vec y + ((\cosh r_i - 1)\, ẑ_i·\vec y - \sinh r_i\, y_0)\, ẑ_i\big)

is the space part of y after the boost that takes i to the origin. The boost is linear: a node adds up its weighted y,
and the sum is boosted. Pairs so close and so far out that this would cancel are added up as logarithms of
`cpu_tangent.py`.

Everything inside is double precision. One thread does it all, so that results do not depend on their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from .cpu_loops import TINY, Array, _radius
from .cpu_pairs import CANCELLED, _careful, _polar
from .cpu_tangent import _log
from .threads import loop

#: Columns of a node's state after the three of `cpu_pairs._polar`: Σ w y₀ with w = ∂L/∂d/sinh θ, how often the node
#: occurs, and whether some of its pairs cancel. A random access for each pair costs most, so they lie side by side.
TIME, COUNT, CANCELS = 3, 4, 5


@loop
def others(node: Array, share: Array, rowptr: Array, col: Array, out: Array) -> None:
    """Nodes that are no neighbours of a node, from their places among all of these.

    Below the m-th neighbour of a node, by number, lie ``neighbour_m − m`` others. A binary search for k in these
    numbers tells how many neighbours precede the k-th other node, hence its number.

    Args:
        node: ``(B,)`` the nodes.
        share: ``(B, K)`` in [0, 1), where among its others.
        rowptr, col: the neighbourhoods, every node among its own; see :class:`Adjacency`.
        out: ``(B, K)`` for the nodes found.
    """
    width = share.shape[1]
    k, low = np.empty(width, np.int64), np.empty(width, np.int64)
    for b in range(node.shape[0]):
        first, left = rowptr[node[b]], rowptr[node[b] + 1] - rowptr[node[b]]
        for c in range(width):
            k[c] = np.int64(share[b, c] * (rowptr.shape[0] - 1 - left))
            low[c] = first
        # all searches of a row make their n-th step together: one by one they would wait for each comparison
        while left > 0:
            half = (left + 1) >> 1
            for c in range(width):
                middle = low[c] + half - 1
                low[c] += half if col[middle] - (middle - first) <= k[c] else 0
            left -= half
        for c in range(width):
            out[b, c] = k[c] + low[c] - first


@loop
def _add_logarithm(near: Array, z: Array, i: int, j: int, state: Array, root: float, pull: float) -> None:
    """Add √β pull T̂ of a pair to what draws node i."""
    t = np.empty(z.shape[1], np.float64)
    s_i, s_j = state[i, 1] * state[i, 2] / root, state[j, 1] * state[j, 2] / root
    theta = _log(z, i, state[i, 2], s_i, z, j, state[j, 2], s_j, root, t)
    for c in range(t.shape[0]):
        near[i, c] += root * pull / theta * t[c]


@loop
def _add_edges(
    z: Array, state: Array, nodes: Array, beta: float, space: Array, near: Array
) -> tuple[float, Array, Array]:
    """The losses of edges; what draws their nodes is added to ``state``, ``near`` and, for i only, to ``space``.

    To add to a random row of ``space`` for every j would wait for memory most of the time where d is large. What these
    rows are to get is returned instead, for :func:`_by_node`.

    Args:
        z: ``(N, d)`` float32, normal coordinates.
        state: ``(N, 6)`` see above.
        nodes: ``(B, 2 + k)`` i, j and negatives of each edge.
        beta: β.
        space: ``(N, d)`` √β Σ w y⃗.
        near: ``(N, d)`` √β Σ ∂L/∂d T̂ of the pairs that would cancel in the other sums.

    Returns:
        The sum of losses, z_i of each edge ``(B, d)``, and its weight in the sum of j and of every negative
        ``(B, 1 + k)``.
    """
    pairs, d, root, loss = nodes.shape[1] - 1, z.shape[1], math.sqrt(beta), 0.0
    distance, share = np.empty(pairs, np.float64), np.empty(pairs, np.float64)
    inverse = np.empty(pairs, np.float64)  # 1/sinh θ, negative where the pair cancels, 0 where two points are one
    own = np.empty(d, np.float64)
    sources, weight = np.empty((nodes.shape[0], d), np.float32), np.zeros((nodes.shape[0], pairs), np.float64)
    for e in range(nodes.shape[0]):
        i = nodes[e, 0]
        nearest = np.inf
        for k in range(pairs):
            j = nodes[e, k + 1]
            dot = 0.0
            for c in range(d):
                dot += np.float64(z[i, c]) * np.float64(z[j, c])
            known = beta * (state[i, 0] + state[j, 0] + state[i, 0] * state[j, 0])
            half = known - state[i, 1] * state[j, 1] * dot
            close = not half > CANCELLED * known
            if close:
                _d, _i, _j, _t, a, tt = _careful(z, i, j, state, root)
                half = (a * a + tt) / 2
            x = half / (2 * beta)  # sinh²(θ/2)
            half_sinh = math.sqrt(x) * math.sqrt(1 + x)
            # of a tiny distance this keeps the digits after the point only; the loss needs no others
            distance[k] = root * math.log(1 + 2 * (x + half_sinh))
            inverse[k] = (-0.5 if close else 0.5) / half_sinh if half_sinh > TINY else 0.0
            nearest = min(nearest, distance[k])
        for k in range(pairs):
            share[k] = math.exp(nearest - distance[k])
        # a loop of its own: the order of a sum in a loop that writes would depend on where in memory the arrays lie
        total = 0.0
        for k in range(pairs):
            total += share[k]
        loss += distance[0] - nearest + math.log(total)

        own[:] = 0.0
        own_time = 0.0
        for k in range(pairs):
            j = nodes[e, k + 1]
            pull = (1.0 if k == 0 else 0.0) - share[k] / total  # ∂L/∂d: towards the neighbour, away from the others
            if inverse[k] < 0:
                _add_logarithm(near, z, i, j, state, root, pull)
                _add_logarithm(near, z, j, i, state, root, pull)
                state[i, CANCELS] = state[j, CANCELS] = 1.0
            else:
                w = pull * inverse[k]
                own_time += w * (1 + state[j, 0])
                state[j, TIME] += w * (1 + state[i, 0])
                weight[e, k] = w * state[i, 1]
                of_j = w * state[j, 1]
                for c in range(d):
                    own[c] += of_j * np.float64(z[j, c])
            state[j, COUNT] += 1
        state[i, TIME] += own_time
        state[i, COUNT] += 1
        for c in range(d):
            space[i, c] += own[c]
            sources[e, c] = z[i, c]
    return loss, sources, weight


@loop
def _by_node(nodes: Array, state: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The pairs of edges by their second node.

    Returns:
        Where those of each node end ``(N,)``, the edges that they belong to and their weights, both
        ``(B(2 + k),)``. They start where the occurrences of all nodes before end; what is left over is not set.
    """
    end = np.empty(state.shape[0], np.int64)
    total: Any = 0
    for i in range(state.shape[0]):
        end[i] = total
        total += np.int64(state[i, COUNT])
    edge, sorted_weight = np.empty(total, np.int64), np.empty(total, np.float64)
    for e in range(nodes.shape[0]):
        for k in range(weight.shape[1]):
            j = nodes[e, k + 1]
            edge[end[j]], sorted_weight[end[j]] = e, weight[e, k]
            end[j] += 1
    return end, edge, sorted_weight


@loop
def _move(
    z: Array, state: Array, beta: float, lr: float, largest: float, space: Array, near: Array, sources: Array,
    end: Array, edge: Array, weight: Array,
) -> None:  # fmt: skip
    r"""Move every node that occurs, and clear what :func:`_add_edges` added up.

    A step t, of length θ and in units of √β, leads from r ẑ to the point whose space part is

    .. math::  (\sinh r \cosh θ + \cosh r \sinh θ\, ẑ·t̂)\, ẑ + \sinh θ\, t̂_\perp

    Where t points inwards, the bracket is sinh(r − θ) + cosh r sinh θ (1 + ẑ·t̂), with ‖t̂_⊥‖²/(1 − ẑ·t̂) for the last
    factor. Arguments are those of :class:`PoincareSteps` and :func:`_add_edges`, and what it and :func:`_by_node` gave.
    """
    d, root = z.shape[1], math.sqrt(beta)
    across = np.empty(d, np.float64)  # t_⊥
    start: Any = 0
    for i in range(z.shape[0]):
        if state[i, COUNT] == 0:
            continue
        r, inverse = _radius(state[i, 2], root), 1 / max(state[i, 2], TINY)
        cosh, sinh = 1 + state[i, 0], state[i, 1] * state[i, 2] / root
        for p in range(start, end[i]):
            e, w = edge[p], weight[p]
            for c in range(d):
                space[i, c] += w * np.float64(sources[e, c])
        start += np.int64(state[i, COUNT])
        along = 0.0
        for c in range(d):
            along += space[i, c] * np.float64(z[i, c])
        along *= inverse
        outward = cosh * along - root * sinh * state[i, TIME]  # boosted; across ẑ nothing changes
        if state[i, CANCELS] > 0:
            more = 0.0
            for c in range(d):
                more += near[i, c] * np.float64(z[i, c])
                space[i, c] += near[i, c]
                near[i, c] = 0.0
            along += more * inverse
            outward += more * inverse
        # the sums are √β times, and t is 1/√β of, what the learning rate is meant for
        rate = lr / max(lr * state[i, COUNT] / largest, 1.0) / beta
        outward *= rate
        along *= inverse
        square = 0.0
        for c in range(d):
            across[c] = rate * (space[i, c] - along * np.float64(z[i, c]))
            space[i, c] = 0.0
            square += across[c] * across[c]

        theta = math.sqrt(outward * outward + square)
        sinh_theta = math.sinh(theta)
        stretch = sinh_theta / theta if theta > TINY else 1.0
        if outward < 0:
            radial = math.sinh(r - theta) + cosh * stretch * square / (theta - outward)
        else:
            radial = sinh * math.sqrt(1 + sinh_theta * sinh_theta) + cosh * stretch * outward
        length = math.sqrt(radial * radial + stretch * stretch * square)
        # arsinh; the logarithm, six times as fast, has ten digits from here on
        radius = math.log(length + math.sqrt(1 + length * length)) if length > 1e-6 else length
        back = root * radius / max(length, TINY)
        of_z, of_across = back * radial * inverse, back * stretch
        for c in range(d):
            z[i, c] = of_z * np.float64(z[i, c]) + of_across * across[c]
    # a loop of its own, because sinh here need not wait for the logarithm above
    for i in range(z.shape[0]):
        if state[i, COUNT] > 0:
            _polar(i, i + 1, z, root, state)
            state[i, TIME] = state[i, COUNT] = state[i, CANCELS] = 0.0


class PoincareSteps:
    """Steps of gradient descent on one table, which is changed in place.

    Args:
        table: ``(N, d)`` float32 on a CPU, normal coordinates.
        beta: β.
        lr: learning rate of a single edge.
        largest: what the learning rates of a node's edges add up to at most.
    """

    def __init__(self, table: Tensor, beta: float, lr: float, largest: float) -> None:
        self._table, self._beta, self._rates = table.numpy(), beta, (lr, largest)
        self._state = np.zeros((table.size(0), 6))
        _polar(0, table.size(0), self._table, math.sqrt(beta), self._state)
        self._sums = np.zeros(table.shape), np.zeros(table.shape)

    def __call__(self, nodes: Tensor) -> float:
        """One step on edges, each with its negatives ``(B, 2 + k)``; gives the sum of their losses."""
        edges = nodes.numpy()
        loss, sources, weight = _add_edges(self._table, self._state, edges, self._beta, *self._sums)
        pairs = _by_node(edges, self._state, weight)
        _move(self._table, self._state, self._beta, *self._rates, *self._sums, sources, *pairs)
        return float(loss)
