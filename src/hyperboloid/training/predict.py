"""Predictions from a trained run: links that are not there yet, and labels of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hyperboloid.errors import InputError

from .experiment import Run
from .tasks import LinkTask

#: Coordinates of pairs handled at a time: bounds the memory of a search over all N² pairs.
COORDINATES_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Links:
    """Predicted links, the likeliest first: ``source`` and ``target`` ``(K,)``, ``probability`` ``(K,)``."""

    source: Tensor
    target: Tensor
    probability: Tensor


@torch.no_grad()
def predict_links(run: Run, top: int, graph: Any = None) -> Links:
    """The ``top`` likeliest links among all pairs of nodes that are not linked yet.

    Messages pass along *all* known edges, those held out in training included. Pairs are scored in chunks of rows, so
    memory does not grow with N²; of equally likely pairs the first come first.

    Args:
        run: trained for link prediction.
        top: how many.
        graph: another graph with the same kind of features, or what :func:`load_graph` takes; the run's own by
            default.
    """
    if not isinstance(run.task, LinkTask):
        raise InputError(f"The run in {run.folder} was trained for task '{run.config.task}', not to predict links.")
    if top < 1:
        raise InputError(f"The number of links must be at least 1, not {top}.")
    graph = run.graph_or_own(graph)
    z = run.encode(graph)
    n = graph.num_nodes
    rowptr = torch.zeros(n + 1, dtype=torch.long)
    torch.cumsum(torch.bincount(graph.edge_index[0], minlength=n), 0, out=rowptr[1:])
    best = z.new_empty(0)
    pairs = torch.empty(0, dtype=torch.long)
    step = max(1, COORDINATES_AT_ONCE // (n * z.size(1)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        # each pair once, no self pairs: row u against the columns above it
        logits = run.encoder.link_logits(z[start:stop].unsqueeze(1), z[start:].unsqueeze(0), run.task.distance)
        known = graph.edge_index[:, rowptr[start] : rowptr[stop]]
        known = known[:, known[1] >= start] - start
        logits[known[0], known[1]] = -torch.inf
        rows = torch.arange(stop - start).unsqueeze(1)
        logits.masked_fill_(torch.arange(n - start) <= rows, -torch.inf)
        flat = logits.flatten()
        least = flat.topk(min(top, flat.numel())).values[-1]
        places = ((flat >= least) & flat.isfinite()).nonzero().squeeze(1)  # with all that tie, in the order of pairs
        best = torch.cat([best, flat[places]])
        row, column = places // (n - start) + start, places % (n - start) + start
        pairs = torch.cat([pairs, row * n + column])
        order = torch.argsort(best, descending=True, stable=True)[:top]
        best, pairs = best[order], pairs[order]
    return Links(pairs // n, pairs % n, torch.sigmoid(best))


@dataclass(frozen=True)
class Labels:
    """Predicted classes: ``label`` ``(N,)`` class numbers, ``probability`` ``(N,)`` of that class."""

    label: Tensor
    probability: Tensor


@torch.no_grad()
def predict_labels(run: Run, graph: Any = None) -> Labels:
    """The likeliest class of every node.

    Args:
        run: trained for node classification.
        graph: another graph with the same kind of features, or what :func:`load_graph` takes; the run's own by
            default.
    """
    if run.config.task != "node":
        raise InputError(f"The run in {run.folder} was trained for task '{run.config.task}', not to predict labels.")
    probability, label = torch.softmax(run.encode(run.graph_or_own(graph)), dim=-1).max(dim=-1)
    return Labels(label, probability)
