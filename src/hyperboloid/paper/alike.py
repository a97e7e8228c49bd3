"""Which cells were measured alike: how many by which rules of stopping and selection, and where two of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .cells import ALL_MODELS, DATASETS, Cell
from .claims import EUCLIDEAN, HYPERBOLIC, TASKS
from .markdown import table
from .protocol import behind, rested_on_luck, searched_less
from .results import Line

#: The GCNs that LGCN is compared with. The shallow embeddings, which have no such rules, are left out.
RIVALS = tuple(model for model in (*HYPERBOLIC, *EUCLIDEAN) if model != "lgcn")


def by_age(lines: Sequence[Line]) -> tuple[int, int, int]:
    """How many lines are of today's rules, of those before, which differ in the last step only, and of earlier ones."""
    before, earlier = (sum(map(of, lines)) for of in (rested_on_luck, searched_less))
    return len(lines) - before - earlier, before, earlier


def by_model_and_graph(lines: Sequence[Line]) -> str:
    """Two tables of the lines that count: by model, and on each graph LGCN beside the other GCNs."""
    text = (
        "Cells that count, by the rules that they were measured by: today's · those before · earlier ones. Those "
        "before differ in the last rule of stopping only: a best score from before a model had begun to learn could "
        "start its patience. Earlier ones differ in more: in when patience counts, for nodes in how settings are "
        "selected, for links of USA in dropout of features. The shallow embeddings' have never changed. Where a model "
        "has more of the later ones than its rivals, it has had the better search."
    )
    rows = []
    for model in ALL_MODELS:
        own = [[line for line in lines if (line["model"], line["task"]) == (model, task)] for task in TASKS]
        if any(own):
            rows.append([model, *map(_told, own)])
    return f"### By model\n\n{text}\n\n{table(['model', *TASKS.values()], rows)}\n\n{_by_graph(lines)}"


def _by_graph(lines: Sequence[Line]) -> str:
    """LGCN beside the other GCNs of Tables 4 and 5."""
    text = (
        "The same on each graph, and the pairs of LGCN and another GCN at one dimension: only those that were measured "
        "by the same rules are like with like; in the others LGCN's rules are later or earlier."
    )
    rows = []
    for dataset in DATASETS:
        for task, name in TASKS.items():
            there = [line for line in lines if (line["dataset"], line["task"]) == (dataset, task)]
            ours, theirs = ([x for x in there if x["model"] in models] for models in (("lgcn",), RIVALS))
            leads = [behind(b) - behind(a) for a in ours for b in theirs if a["dim"] == b["dim"]]
            alike, later, earlier = leads.count(0), sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
            if ours or theirs:
                counts = map(str, (len(leads), alike, later, earlier))
                rows.append([f"{dataset}, {name}", _told(ours), _told(theirs), *counts])
    header = ["graph", "lgcn", "the other GCNs", "pairs", "by the same rules", "LGCN's later", "LGCN's earlier"]
    return f"### By graph\n\n{text}\n\n{table(header, rows)}"


def _told(lines: Sequence[Line]) -> str:
    return " · ".join(map(str, by_age(lines)))


def measured_apart(pairs: Iterable[tuple[Cell, Line, Line]], first: str, second: str) -> str:
    """A sentence that names the cells whose two lines were measured by different rules; nothing where there are none.

    Args:
        pairs: cells with the two lines that stand side by side.
        first: what the one line is called; ``second`` the other.
    """
    later: dict[str, list[str]] = {first: [], second: []}
    for cell, a, b in pairs:
        if behind(a) != behind(b):
            later[first if behind(a) < behind(b) else second].append(f"{cell}")
    told = [f"{name} for {', '.join(cells)}" for name, cells in later.items() if cells]
    if not told:
        return ""
    return (
        "Not measured alike, so that a difference may be that of the rules of stopping and selection ([by "
        f"model](#by-model)): the later ones are those of {'; those of '.join(told)}."
    )
