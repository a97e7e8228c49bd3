"""How to read the page of results: what its marks, its noise and its verdicts mean, and how cells were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyperboloid.training.grids import DROPOUTS, DROPOUTS_OF_PAPER, LEARNING_RATES, PENALTIES, SHALLOW_FACTORS
from hyperboloid.training.group import RUNGS
from hyperboloid.training.patience import LONGEST_WAIT

from .alike import by_age, by_model_and_graph
from .board import ROUNDING
from .markdown import ABOVE, BELOW, MISSING, NARROW, WITHIN
from .protocol import ROUNDS, SPLIT, RunProtocol, gave_up_early, judged_by_three, kept_one_hot
from .results import Key, Line


def how_to_read(
    lines: Sequence[Line], others: Sequence[Line], current: Sequence[Line], beside: Mapping[Key, Sequence[Line]]
) -> str:
    """The section of that name.

    Args:
        lines: one for each cell that has been measured.
        others: lines of other splits.
        current: those of both that count.
        beside: lines of other numbers of layers, or other means.
    """
    usual = RunProtocol()
    here, elsewhere = ([line for line in found if line in current] for found in (lines, others))
    used = [*here, *elsewhere, *(line for found in beside.values() for line in found)]
    early, kept, three = (sum(map(of, used)) for of in (gave_up_early, kept_one_hot, judged_by_three))
    _, lucky, _ = by_age(used)
    narrow = len(lines) - len(here)
    points = [
        "A cell shows **measured** (printed), both mean ± standard deviation over runs, then the difference in points. "
        f"{WITHIN} within the noise, {ABOVE} better than printed by more than the noise, {BELOW} worse; {MISSING} not "
        "measured.",
        f"Noise between a measured and a printed number: 2·√(s² + s_p²) + {100 * ROUNDING:g} points, s and s_p the two "
        "standard deviations over runs. They are not divided by the number of runs, because they only know "
        "initialisations: the paper's split is unknown, but for nodes with a public one, and another split often moves "
        "a score by more than another initialisation does ([Where the split decides](#where-the-split-decides)). "
        f"{100 * ROUNDING:g} is the rounding.",
        "Within one printed standard deviation of the paper, or better: the measured mean, rounded to a tenth of a "
        "point like the paper's numbers, is not below the printed mean less the printed deviation.",
        "Noise between two models measured here, which share the split: 2·√(s₁²/n₁ + s₂²/n₂), n the number of runs. It "
        "knows initialisations alone: on another split, or after another search, the order may be another. The best of "
        "several models is the one with the best mean on the test, the luckier the more there are: that is a handicap "
        "for LGCN against the best of its rivals, and a head start for four hyperbolic GCNs before three Euclidean "
        "ones. The printed numbers are judged likewise.",
        "A claim has a verdict if at least half of its comparisons are measured; while the models have been trained "
        "for a part of their epochs only, it is too early for one. Where the paper says “all” or “always”, more than "
        "half is “holds in part”; where it says “most”, more than half holds. Whatever asks for a best model counts "
        "only where all seven GCNs are measured. Claims weigh means, whether or not they differ by more than the "
        "noise; how many do is said beside. Only for an “obvious” advantage no lead within the noise counts.",
        "More so at low dimension: LGCN has to be ahead at the lowest dimension, and further than at the highest; on "
        "half of the graphs or fewer it holds in part. By δ: hyperbolic GCNs have to be ahead on the graphs with low "
        "δ; if no further than on those with high δ, it holds in part.",
        f"Protocol: the paper's grid of {len(LEARNING_RATES) * len(DROPOUTS_OF_PAPER) * len(PENALTIES)} settings, a "
        f"dropout of {DROPOUTS[-1]:g} beyond it, and in all ways what the paper leaves open (links: dropout on weights "
        "or on features, and both distances where a model has two; nodes: dropout on features alone, or half of it on "
        "weights too, and all or half of it on neighbours; LGCN's attention by the paper's formula and with the cap of "
        "the published code); one initialisation each, "
        f"the worse half of them stopped at epochs {', '.join(map(str, RUNGS))}, but for what is still getting better; "
        "then settings are selected by the mean *validation* score of other initialisations: for links "
        f"{_selected('link')}; for nodes, whose scores vary more from run to run, {_selected('node')}; then there are "
        f"{usual.seeds} fresh initialisations of the best one, and only now the test. At most {usual.epochs} epochs, "
        f"patience {usual.patience} after the first {usual.patience} epochs, {usual.layers} layers, no activation "
        "after the last one, "
        f"{usual.dtype}, split seed {SPLIT} "
        "(Planetoid's public split for the nodes of Cora, Citeseer and Pubmed). For links GCN and κ-GCN average "
        "neighbours instead of summing them by Kipf's normalisation, under which a leaf is far from its hub "
        "([models.md](models.md)). Every model has the same learning rates, dropouts and penalties; what only some "
        "models leave open, like LGCN's attention and distance, multiplies their settings, so that LGCN is tried with "
        "the most ([Where the numbers come from](#where-the-numbers-come-from)), which favours it. The shallow "
        f"embeddings have only a learning rate, of which {len(SHALLOW_FACTORS)} values are tried.",
        f"{narrow} of the {len(lines)} measured cells were made by another protocol: a part of the grid, or an earlier "
        "one, which had fewer dropouts or places for them, no cap for links, half as many finalists, counted the first "
        "epochs for patience, stopped slow models early, had Kipf's normalisation for links, a validation part of "
        "nodes without rare classes, or no dropout on one-hot features for nodes. "
        f"They are marked {NARROW} until they are measured again, and neither claims nor counts look at them.",
        f"{early} of the {len(used)} lines of cells that this page rests on, other splits, layers and means included, "
        "were measured when patience counted whether or not a model had begun to learn. For links all points lie in "
        "one place at the start, where gradients are about 0, and for nodes all classes are equally likely; runs could "
        "end there, and such runs of a test raise its deviation. Since then epochs "
        f"before the loss has moved by a tenth do not count, up to {LONGEST_WAIT * usual.patience} of them. A search "
        "that halves its settings still stops most of those that are so slow. "
        f"{kept} of the lines are of the links of USA, whose nodes have no features but their names, and were "
        "measured when dropout of features left such one-hot features as they are; "
        f"{three} are of nodes, with settings that were selected as those for links are. In all of these, and in "
        f"{lucky} lines of which nothing else is to be said, a best score from before a model had begun to learn could "
        "start its patience, and end it with that score; a run that found a better one in time is the same either way. "
        "`hyperboloid paper run link --again`, or `node`, measures such cells anew. How many there are [by "
        "model](#by-model) and [by graph](#by-graph) tells how far comparisons are like with like.",
        "Disease: the paper lists one graph of that name, of the size of HGCN's `disease_nc`; HGCN predicts the links "
        "of another, `disease_lp`. That the paper, which splits edges as HGCN does, predicted those of `disease_lp` "
        "too is an assumption, made here wherever links of Disease are held against the paper, its figures included. "
        "The features of the graph whose nodes the paper classifies are lost; a generated epidemic, "
        "`disease`, stands in. Its numbers cannot be compared with the printed ones and are left out of the counts "
        "against the paper; claims that compare models on one graph include them.",
    ]
    listed = "\n".join(f"- {point}" for point in points)
    return f"## How to read it\n\n{listed}\n\n{by_model_and_graph(here)}"


def _selected(task: str) -> str:
    """A selection in words."""
    (most, inits), *rounds = ROUNDS[task]
    of_those = [f"the best {most} of those by {inits}" for most, inits in rounds]
    return ", ".join([f"the best {most} of the search by {inits} of them", *of_those])
