"""How to read the page of results: what its marks, its noise and its verdicts mean, and how cells were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hyperboloid.training.grids import DROPOUTS, DROPOUTS_OF_PAPER, LEARNING_RATES, PENALTIES, SHALLOW_FACTORS
from hyperboloid.training.group import RUNGS
from hyperboloid.training.patience import LONGEST_WAIT

from .board import ROUNDING
from .cells import ALL_MODELS
from .claims import TASKS
from .markdown import ABOVE, BELOW, MISSING, NARROW, WITHIN, table
from .protocol import (
    ROUNDS,
    SPLIT,
    RunProtocol,
    gave_up_early,
    judged_by_three,
    kept_one_hot,
    rested_on_luck,
    searched_less,
)
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
    early, kept, three, lucky = (
        sum(map(of, used)) for of in (gave_up_early, kept_one_hot, judged_by_three, rested_on_luck)
    )
    narrow = len(lines) - len(here)
    points = [
        "A cell shows **measured** (printed), both mean ± standard deviation over runs, then the difference in points. "
        f"{WITHIN} within the noise, {ABOVE} better than printed by more than the noise, {BELOW} worse; {MISSING} not "
        "measured.",
        f"Noise between a measured and a printed number: 2·√(s² + s_p²) + {100 * ROUNDING:g} points, s and s_p the two "
        "standard deviations over runs. They are not divided by the number of runs, because they only know "
        "initialisations: the paper's split is unknown, and the split moves a score by more than initialisations do. "
        f"{100 * ROUNDING:g} is the rounding.",
        "Within one printed standard deviation of the paper, or better: the measured mean, rounded to a tenth of a "
        "point like the paper's numbers, is not below the printed mean less the printed deviation.",
        "Noise between two models measured here, which share the split: 2·√(s₁²/n₁ + s₂²/n₂), n the number of runs.",
        "A claim has a verdict if at least half of its comparisons are measured. Where the paper says “all” or "
        "“always”, more than half is “holds in part”; where it says “most”, more than half holds. Whatever asks for a "
        "best model counts only where all seven GCNs are measured. Claims weigh means, whether or not they differ by "
        "more than the noise; how many do is said beside. Only for an “obvious” advantage no lead within the noise "
        "counts.",
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
        "models leave open, like LGCN's attention and distance, multiplies their settings. The shallow embeddings have "
        f"only a learning rate, of which {len(SHALLOW_FACTORS)} values are tried.",
        f"{narrow} of the {len(lines)} measured cells were made by another protocol: a part of the grid, or an earlier "
        "one, which had fewer dropouts or places for them, no cap for links, half as many finalists, counted the first "
        "epochs for patience, stopped slow models early, had Kipf's normalisation for links, a validation part of "
        "nodes without rare classes, or no dropout on one-hot features for nodes. "
        f"They are marked {NARROW} until they are measured again, and neither claims nor counts look at them.",
        f"{early} of the {len(used)} lines that this page rests on, other splits, layers and means included, were "
        "measured when patience counted whether or not a model had begun to learn. For links all points lie in one "
        "place at the start, where gradients are about 0, and for nodes all classes are equally likely; runs could "
        "end there, and such runs of a test raise its deviation. Since then epochs "
        f"before the loss has moved by a tenth do not count, up to {LONGEST_WAIT * usual.patience} of them. A search "
        "that halves its settings still stops most of those that are so slow. "
        f"{kept} of the lines are of the links of USA, whose nodes have no features but their names, and were "
        "measured when dropout of features left such one-hot features as they are; "
        f"{three} are of nodes, with settings that were selected as those for links are. In {lucky} others a best "
        "score from before a model had begun to learn could start its patience, and end it with that score; a run that "
        "found a better one in time is the same either way. "
        "`hyperboloid paper run link --again`, or `node`, measures such cells anew. How many there are [by "
        "model](#by-model) tells how far comparisons are like with like.",
        "Disease: links are those of HGCN's `disease_lp`. The features of the graph whose nodes the paper classifies "
        "are lost; a generated epidemic, `disease`, stands in. Its numbers cannot be compared with the printed ones "
        "and are left out of the counts against the paper; claims that compare models on one graph include them.",
    ]
    return "## How to read it\n\n" + "\n".join(f"- {point}" for point in points) + f"\n\n{_by_model(here)}"


def _by_model(here: Sequence[Line]) -> str:
    """How many of each model's cells that count are of an earlier search."""
    rows = []
    for model in ALL_MODELS:
        own = [[line for line in here if (line["model"], line["task"]) == (model, task)] for task in TASKS]
        if any(own):
            rows.append([model, *(f"{sum(map(searched_less, found))} of {len(found)}" for found in own)])
    text = (
        "Cells that count, but were measured by an earlier rule: of stopping or, for nodes, of selecting settings from "
        "the search. Where a model has fewer of them than its rivals, it has had the better search."
    )
    return f"### By model\n\n{text}\n\n" + table(["model", *(f"earlier, {name}" for name in TASKS.values())], rows)


def _selected(task: str) -> str:
    """A selection in words."""
    (most, inits), *rounds = ROUNDS[task]
    of_those = [f"the best {most} of those by {inits}" for most, inits in rounds]
    return ", ".join([f"the best {most} of the search by {inits} of them", *of_those])
