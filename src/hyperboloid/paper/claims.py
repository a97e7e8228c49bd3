"""What the paper says in words about Tables 4 to 6, held against scores.

Each claim is a function of a :class:`Board`, so that the same arithmetic judges the measured and the printed numbers.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from .board import Board, Score, noise_between
from .cells import ABLATION_DATASETS, ABLATION_DIM, DATASETS, DIMS, MODELS
from .printed import printed_tables

HYPERBOLIC = ("lgcn", "hgcn", "kgcn", "hat")
EUCLIDEAN = ("gcn", "gat", "graphsage")
SHALLOW = ("deepwalk", "poincare_emb")
RIVALS = tuple(model for model in MODELS if model != "lgcn")
TASKS = {"link": "link prediction", "node": "node classification"}
#: What is said about δ must rest on so many graphs with low and with high δ.
GRAPHS_A_SIDE = 2

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"


@dataclass(frozen=True)
class Finding:
    """What scores say about a claim.

    Attributes:
        verdict: :data:`HOLDS`, :data:`PARTLY`, :data:`FAILS`, or in a word why none of them can be told; it counts if
            enough comparisons are there.
        compared: comparisons that it rests on.
        of: how many the whole table allows.
        text: sentences with the numbers.
    """

    verdict: str
    compared: int
    of: int
    text: str

    @property
    def enough(self) -> bool:
        """Whether at least half of the comparisons are there."""
        return 2 * self.compared >= self.of


Evidence = TypeVar("Evidence")


@dataclass(frozen=True)
class Claim(Generic[Evidence]):
    """A sentence of the paper.

    Attributes:
        name: short, for lists.
        said: what the paper says.
        judge: finds what the evidence, such as a board of scores, says about it.
    """

    name: str
    said: str
    judge: Callable[[Evidence], Finding]


def verdict(finding: Finding) -> str:
    """The finding's verdict, or that it rests on too little."""
    return finding.verdict if finding.enough else UNKNOWN


def told(claim: Claim[Any], finding: Finding) -> str:
    """Claim, verdict and numbers as one paragraph."""
    measured = f"Measured ({finding.compared} of {finding.of} comparisons): {finding.text}"
    return f"**{claim.name}: {verdict(finding)}.** The paper: {claim.said}. {measured}"


@dataclass(frozen=True)
class _Duel:
    """One score against another of the same graph and split."""

    where: str
    a: Score
    b: Score
    rival: str = ""

    @property
    def margin(self) -> float:
        """In points."""
        return 100 * (self.a.mean - self.b.mean)

    @property
    def clear(self) -> bool:
        """Whether it is more than the noise."""
        return abs(self.a.mean - self.b.mean) > noise_between(self.a, self.b)


def _count(duels: list[_Duel], whom: str, what: str) -> str:
    """Wins and losses in words."""
    ahead = [d for d in duels if d.margin > 0]
    behind = [d for d in duels if d.margin <= 0]
    text = f"{whom} in {len(ahead)} of {len(duels)} {what}, by more than the noise in {sum(d.clear for d in ahead)}"
    if behind:
        text += f", and behind by more than the noise in {sum(d.clear for d in behind)}"
    return text


def _field(board: Board, dataset: str, task: str, dim: int) -> bool:
    """Whether all GCNs are there: to be best of a few says little."""
    return all(board.get(dataset, task, model, dim) is not None for model in (*HYPERBOLIC, *EUCLIDEAN))


def points(value: float) -> str:
    """A difference in points with its sign, but without that of a rounded nothing."""
    return f"{round(value, 1) + 0.0:+.1f}"


def _mean_margin(duels: list[_Duel]) -> float:
    return statistics.mean(d.margin for d in duels)


def judged(yes: int, of: int) -> str:
    """The verdict on what should always be so: on more than half it holds in part."""
    return HOLDS if yes == of else PARTLY if 2 * yes > of else FAILS


def _wins_all(duels: list[_Duel]) -> str:
    return judged(sum(d.margin > 0 for d in duels), len(duels))


def _wins_most(duels: list[_Duel]) -> str:
    return HOLDS if 2 * sum(d.margin > 0 for d in duels) > len(duels) else FAILS


def best_model(task: str, always: bool, board: Board) -> Finding:
    """LGCN against the best of the other models, for each graph and dimension where all GCNs are there."""
    duels, whole = [], 0
    for dataset in DATASETS:
        for dim in DIMS:
            ours, theirs = board.get(dataset, task, "lgcn", dim), board.best(dataset, task, RIVALS, dim)
            if _field(board, dataset, task, dim) and ours is not None and theirs is not None:
                duels.append(_Duel(f"{dataset} d={dim}", ours, theirs[1], theirs[0]))
                whole += all(board.get(dataset, task, model, dim) is not None for model in RIVALS)
    total = len(DATASETS) * len(DIMS)
    if not duels:
        return Finding(UNKNOWN, 0, total, "No graph and dimension has all GCNs.")
    text = (
        f"{_count(duels, 'LGCN is best', 'pairs of a graph and a dimension')}; its mean margin over the best rival is "
        f"{points(_mean_margin(duels))} points. All {len(RIVALS)} rivals are there in {whole} of the {len(duels)}"
        + ("." if whole == len(duels) else ", in the others a shallow embedding is missing.")
    )
    behind = sorted((d for d in duels if d.margin <= 0), key=lambda d: d.margin)
    if behind:
        text += " It is not ahead on " + ", ".join(f"{d.where} ({points(d.margin)}, {d.rival})" for d in behind) + "."
    return Finding(_wins_all(duels) if always else _wins_most(duels), len(duels), total, text)


def low_dimension(task: str, board: Board) -> Finding:
    """LGCN's margin at the lowest dimension against that at the highest, over the rivals that both have."""
    low, high = DIMS[0], DIMS[-1]
    by_dim, pairs = [], []
    for dim in DIMS:
        found = [
            _margin(board, dataset, task, RIVALS, dim) for dataset in DATASETS if _field(board, dataset, task, dim)
        ]
        if found:
            by_dim.append(f"d={dim} {points(statistics.mean(found))} ({_graphs(len(found))})")
    for dataset in DATASETS:
        if all(_field(board, dataset, task, dim) for dim in (low, high)):
            common = [m for m in RIVALS if all(board.get(dataset, task, m, dim) is not None for dim in (low, high))]
            pairs.append([_margin(board, dataset, task, common, dim) for dim in (low, high)])
    text = f"Mean margin of LGCN over the best rival, in points: {', '.join(by_dim) or 'none'}."
    if not pairs:
        return Finding(UNKNOWN, 0, len(DATASETS), f"{text} No graph has all GCNs at d={low} and d={high}.")
    at_low, at_high = (statistics.mean(column) for column in zip(*pairs, strict=True))
    grown = sum(a > b for a, b in pairs)
    text += (
        f" Where both ends are there ({_graphs(len(pairs))}), against the same rivals, it is {points(at_low)} at "
        f"d={low} and {points(at_high)} at d={high}; it is larger at d={low} on {grown} of {len(pairs)}."
    )
    says = FAILS if at_low <= max(0, at_high) else HOLDS if 2 * grown > len(pairs) else PARTLY
    return Finding(says, len(pairs), len(DATASETS), text)


def by_hyperbolicity(task: str, board: Board) -> Finding:
    """The best hyperbolic GCN against the best Euclidean one, graphs in the order of δ."""
    delta = printed_tables()["delta_avg"]
    middle = statistics.median(delta.values())
    gaps: dict[str, list[float]] = {}
    for dataset in sorted(DATASETS, key=lambda dataset: delta[dataset]):
        for dim in DIMS:
            curved, flat = (board.best(dataset, task, models, dim) for models in (HYPERBOLIC, EUCLIDEAN))
            if _field(board, dataset, task, dim) and curved is not None and flat is not None:
                gaps.setdefault(dataset, []).append(100 * (curved[1].mean - flat[1].mean))
    means = {dataset: statistics.mean(found) for dataset, found in gaps.items()}
    low = [gap for dataset, gap in means.items() if delta[dataset] < middle]
    high = [gap for dataset, gap in means.items() if delta[dataset] > middle]
    total, compared = len(DATASETS) * len(DIMS), sum(map(len, gaps.values()))
    listed = ", ".join(f"{dataset} (δ {delta[dataset]:.2f}) {points(gap)}" for dataset, gap in means.items())
    text = f"Best hyperbolic less best Euclidean GCN, mean over dimensions, in points: {listed or 'none'}."
    if min(len(low), len(high)) < GRAPHS_A_SIDE:
        return Finding(UNKNOWN, 0, total, f"{text} {GRAPHS_A_SIDE} graphs with low and as many with high δ are needed.")
    at_low, at_high = statistics.mean(low), statistics.mean(high)
    text += f" {_graphs(len(low))} with low δ: {points(at_low)}; {_graphs(len(high))} with high δ: {points(at_high)}."
    says = FAILS if at_low <= 0 else HOLDS if at_low > at_high else PARTLY
    return Finding(says, compared, total, text)


def against_shallow(task: str, always: bool, board: Board) -> Finding:
    """Every GCN against every shallow embedding of the same graph and dimension."""
    duels = []
    for dataset in DATASETS:
        for dim in DIMS:
            for gcn in (*HYPERBOLIC, *EUCLIDEAN):
                for shallow in SHALLOW:
                    a, b = board.get(dataset, task, gcn, dim), board.get(dataset, task, shallow, dim)
                    if a is not None and b is not None:
                        duels.append(_Duel(dataset, a, b, shallow))
    total = len(DATASETS) * len(DIMS) * len(HYPERBOLIC + EUCLIDEAN) * len(SHALLOW)
    if not duels:
        return Finding(UNKNOWN, 0, total, "No GCN and shallow embedding have been measured together.")
    text = _count(duels, "A GCN is ahead of a shallow embedding", "pairs of two models on one graph and dimension")
    lead = {d: _mean_margin([x for x in duels if x.where == d]) for d in DATASETS if any(x.where == d for x in duels)}
    text += f"; mean lead in points: {', '.join(f'{d} {points(gap)}' for d, gap in lead.items())}."
    return Finding(_wins_all(duels) if always else _wins_most(duels), len(duels), total, text)


def citeseer_nodes(board: Board) -> Finding:
    """The best hyperbolic GCN but LGCN against the best Euclidean one on the graph with the largest δ."""
    duels = []
    for dim in DIMS:
        curved = board.best("citeseer", "node", [m for m in HYPERBOLIC if m != "lgcn"], dim)
        flat = board.best("citeseer", "node", EUCLIDEAN, dim)
        if _field(board, "citeseer", "node", dim) and curved is not None and flat is not None:
            duels.append(_Duel(f"d={dim}", curved[1], flat[1]))
    if not duels:
        return Finding(UNKNOWN, 0, len(DIMS), "No dimension has all GCNs.")
    clear = sum(d.margin > 0 and d.clear for d in duels)
    listed = ", ".join(f"{d.where} {points(d.margin)}" for d in duels)
    text = f"Best hyperbolic GCN other than LGCN less best Euclidean one: {listed}; clearly ahead in {clear}."
    return Finding(HOLDS if 2 * clear <= len(duels) else FAILS, len(duels), len(DIMS), text)


def _ablation_duels(board: Board, a: str, b: str) -> list[_Duel]:
    duels = []
    for dataset in ABLATION_DATASETS:
        for task in TASKS:
            ours, theirs = (board.get(dataset, task, model, ABLATION_DIM) for model in (a, b))
            if ours is not None and theirs is not None:
                duels.append(_Duel(f"{dataset} {task}", ours, theirs, b))
    return duels


def ablation_cost(variant: str, board: Board) -> Finding:
    """LGCN against itself without a part."""
    return _ablation(board, "lgcn", variant, "LGCN is ahead", _wins_all)


def centroid_helps(model: str, without: str, always: bool, board: Board) -> Finding:
    """A model with the centroid against the same with HGCN's aggregation."""
    return _ablation(board, model, without, "The centroid is ahead", _wins_all if always else _wins_most)


def _ablation(board: Board, a: str, b: str, whom: str, judge: Callable[[list[_Duel]], str]) -> Finding:
    duels = _ablation_duels(board, a, b)
    total = len(ABLATION_DATASETS) * len(TASKS)
    if not duels:
        return Finding(UNKNOWN, 0, total, f"{a} and {b} have not been measured together.")
    listed = ", ".join(f"{d.where} {points(d.margin)}" for d in duels)
    text = f"{a} less {b}, in points: {listed}; mean {points(_mean_margin(duels))}. {_count(duels, whom, 'cells')}."
    return Finding(judge(duels), len(duels), total, text)


def _margin(board: Board, dataset: str, task: str, rivals: Sequence[str], dim: int) -> float:
    """LGCN's lead over the best rival in points, where both are there."""
    ours, theirs = board.get(dataset, task, "lgcn", dim), board.best(dataset, task, rivals, dim)
    assert ours is not None
    assert theirs is not None
    return 100 * (ours.mean - theirs[1].mean)


def _graphs(count: int) -> str:
    return f"{count} graph{'' if count == 1 else 's'}"


CLAIMS: tuple[Claim[Board], ...] = (
    Claim("LGCN is best, links", "“LGCN performs best in all cases”", partial(best_model, "link", True)),
    Claim("LGCN is best, nodes", "“better than the baselines in most cases”", partial(best_model, "node", False)),
    Claim(
        "More so at low dimension, links",
        "“its superiority is more significant for the low dimension setting”",
        partial(low_dimension, "link"),
    ),
    Claim(
        "More so at low dimension, nodes",
        "“similar results” to those of links, of which it says that LGCN's superiority is larger at low dimension",
        partial(low_dimension, "node"),
    ),
    Claim(
        "Hyperbolic against Euclidean by δ, links",
        "“hyperbolic GCNs perform better than Euclidean GCNs for datasets with lower δ_avg”",
        partial(by_hyperbolicity, "link"),
    ),
    Claim(
        "Hyperbolic against Euclidean by δ, nodes",
        "“hyperbolic GCNs outperform Euclidean GCNs for datasets with lower δ_avg”",
        partial(by_hyperbolicity, "node"),
    ),
    Claim(
        "Graph convolutions against shallow embeddings, links",
        "“compared with network embedding methods, GCNs achieve better performance in most cases”",
        partial(against_shallow, "link", False),
    ),
    Claim(
        "Graph convolutions against shallow embeddings, nodes",
        "“GCNs perform better than network embedding methods”",
        partial(against_shallow, "node", True),
    ),
    Claim(
        "No advantage of hyperbolic GCNs on Citeseer, nodes",
        "“hyperbolic GCNs do not have an obvious advantage compared with Euclidean GCNs on Citeseer”",
        citeseer_nodes,
    ),
    Claim(
        "What a fixed curvature costs",
        "LGCN always does better than with β fixed",
        partial(ablation_cost, "lgcn_no_beta"),
    ),
    Claim(
        "What it costs to do without attention",
        "LGCN always does better than without attention",
        partial(ablation_cost, "lgcn_no_att"),
    ),
    Claim(
        "What it costs to do without attention and centroid",
        "LGCN always does better than without both",
        partial(ablation_cost, "lgcn_no_att_no_centroid"),
    ),
    Claim(
        "The centroid helps HGCN",
        "“HGCN_c achieves better results than HGCN”",
        partial(centroid_helps, "hgcn_c", "hgcn", True),
    ),
    Claim(
        "The centroid helps LGCN",
        "LGCN without attention does better with the centroid than with HGCN's aggregation “in most cases”",
        partial(centroid_helps, "lgcn_no_att", "lgcn_no_att_no_centroid", False),
    ),
)
