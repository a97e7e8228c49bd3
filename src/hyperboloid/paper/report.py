"""``docs/reproduction.md``: every cell measured beside printed, and a verdict on what the paper says in words."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperboloid.analysis.numbers import percent
from hyperboloid.errors import InputError
from hyperboloid.training.checkpoint import write_atomically
from hyperboloid.training.grids import DROPOUTS, DROPOUTS_OF_PAPER, LEARNING_RATES, PENALTIES, SHALLOW_FACTORS
from hyperboloid.training.many import RUNGS
from hyperboloid.training.patience import LONGEST_WAIT

from .board import (
    ROUNDING,
    Board,
    chosen_lines,
    current_lines,
    lines_beside,
    measured_board,
    printed_board,
    short_of_print,
)
from .cell_jobs import MASKS
from .cells import CELL_EXPERIMENTS, MODELS, Cell, all_cells, cells
from .claims import CLAIMS, Claim, Finding, verdict
from .depth import depth_section, other_depths, preferred_lines
from .experiments import run_experiment
from .figure_report import drawn_sections
from .markdown import ABOVE, BELOW, MISSING, NARROW, WITHIN, ablation_table, main_table, mark, paper_table, table
from .pictures import draw_tables
from .protocol import ROUNDS, SPLIT, RunProtocol, gave_up_early, judged_by_three, kept_one_hot
from .published_mean import published_mean_section
from .results import Key, Line, cell_key, key_of, read_results
from .shortfalls import read_tried, short_falls
from .zinc_report import CLAIM as ZINC_CLAIM
from .zinc_report import zinc_section

TITLES = {
    "link": "Table 4: link prediction, test ROC AUC in %",
    "node": "Table 5: node classification, test accuracy in %",
    "ablation": "Table 6: variants of LGCN and HGCN, d = 64",
}


@dataclass(frozen=True)
class Report:
    """What the page says, in short.

    Attributes:
        page: where it is.
        pictures: where its pictures are.
        cells: cells of the three tables.
        measured: how many of them have a number.
        verdicts: on each claim, by its name.
    """

    page: Path
    pictures: list[Path]
    cells: int
    measured: int
    verdicts: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """The same, in types that JSON has."""
        return {**dataclasses.asdict(self), "page": str(self.page), "pictures": [str(path) for path in self.pictures]}


def write_report(results: Path, page: Path) -> Report:
    """Write the page and its pictures.

    Args:
        results: folder of ``link.jsonl``, ``node.jsonl``, ``ablation.jsonl``, ``zinc.jsonl`` and the figures' files;
            those that are not there are empty.
        page: the Markdown file; pictures go to ``figures`` beside it.

    Raises:
        InputError: there is no such folder, or a file in it holds something else.
    """
    if not results.is_dir():
        raise InputError(f"There is no folder {results} of measured numbers; give it by --results.")
    everything = read_results(results)
    lines = chosen_lines(everything, SPLIT)
    current, on_others = current_lines(everything, lines), _other_splits(everything)
    measured, printed = measured_board(lines), printed_board()
    of_today = [line for line in lines if line in current]
    counted, beside = measured_board(of_today), lines_beside(everything, SPLIT)
    others = other_depths(beside)
    preferred = preferred_lines(of_today, others)
    findings = [(claim, claim.judge(counted)) for claim in CLAIMS]
    pictures = draw_tables(measured, printed, page.parent / "figures")
    drawn = drawn_sections(results, page.parent / "figures")
    molecules, about_molecules = zinc_section(results)
    judged: list[tuple[Claim[Any], Finding]] = [*findings, (ZINC_CLAIM, about_molecules)]
    for section in drawn:
        pictures += section.pictures
        judged += section.findings
    sections = [
        _head(),
        _in_short(measured, counted, measured_board(preferred), printed, judged),
        _method(lines, on_others, current, beside),
        *_tables(measured, counted, printed),
        molecules,
        _splits(on_others, current, measured),
        _claims(findings, counted, printed),
        depth_section(of_today, others),
        published_mean_section(of_today, beside),
        short_falls(preferred, _elsewhere(on_others, current), read_tried(results)),
        *(section.text for section in drawn),
        _operations(),
        _provenance(lines),
    ]
    write_atomically(page, ("\n\n".join(section for section in sections if section) + "\n").encode())
    verdicts = {claim.name: verdict(finding) for claim, finding in judged}
    return Report(page, pictures, len(all_cells()), len(lines), verdicts)


def _head() -> str:
    return (
        "# The paper's tables, measured again\n\n"
        "Written by `hyperboloid paper report` from the lines of `results/link.jsonl`, `results/node.jsonl`, "
        "`results/ablation.jsonl` and `results/zinc.jsonl`, and of one file for each figure; every number here is "
        "computed from them, none is typed in. A cell is measured by `hyperboloid paper run link --datasets cora "
        "--dims 16 --models lgcn`, a figure by its name, like `hyperboloid paper run delta`."
    )


def _in_short(
    measured: Board, counted: Board, preferred: Board, printed: Board, findings: Sequence[tuple[Claim[Any], Finding]]
) -> str:
    counts = []
    for experiment in CELL_EXPERIMENTS:
        own = cells(experiment)
        counts.append(f"{experiment} {sum(measured.of(cell) is not None for cell in own)} of {len(own)}")
    shared = len(cells("ablation")) - sum(cell.experiment == "ablation" for cell in all_cells())
    lines = [
        f"- Measured: {len(measured.scores)} of {len(all_cells())} cells ({', '.join(counts)}; {shared} cells of the "
        f"ablation are cells of the other two tables). {len(measured.scores) - len(counted.scores)} of them, marked "
        f"{NARROW}, were made by an earlier protocol and count nowhere below.",
        f"- Against the paper: {_against_print(all_cells(), counted, printed)}",
        f"- LGCN: {_targets(counted)}",
    ]
    if preferred.scores != counted.scores:
        lines.append(
            f"- LGCN with as many layers as validation prefers, where both were measured: {_targets(preferred)}"
        )
    rows = [[claim.name, f"**{verdict(f)}**", f"{f.compared} of {f.of}"] for claim, f in findings]
    claims = table(["claim", "verdict", "comparisons it rests on"], rows)
    return "## In short\n\n" + "\n".join(lines) + f"\n\n{claims}"


def _against_print(among: Sequence[Cell], measured: Board, printed: Board) -> str:
    marks: Counter[str] = Counter()
    for cell in among:
        ours, theirs = measured.of(cell), printed.of(cell)
        if cell.comparable and ours is not None and theirs is not None:
            marks[mark(ours, theirs)] += 1
    return (
        f"of {marks.total()} measured cells that can be compared, {marks[WITHIN]} agree within the noise, "
        f"{marks[ABOVE]} are better than printed by more than the noise, {marks[BELOW]} worse."
    )


def _targets(measured: Board, *, of_splits: bool = False) -> str:
    """How many of LGCN's cells are within one printed standard deviation, or better; some have no other splits."""
    own = [c for c in all_cells() if c.model == "lgcn" and c.comparable and not (of_splits and c.public_split)]
    scores = [(cell, score) for cell in own if (score := measured.of(cell)) is not None]
    reached = sum(short_of_print(cell, score.mean) <= 0 for cell, score in scores)
    return (
        f"within one printed standard deviation of the paper or better in {reached} of {len(scores)} measured cells; "
        f"{len(own)} cells can be compared."
    )


def _method(
    lines: Sequence[Line], others: Sequence[Line], current: Sequence[Line], beside: Mapping[Key, Sequence[Line]]
) -> str:
    usual = RunProtocol()
    here, elsewhere = ([line for line in found if line in current] for found in (lines, others))
    used = [*here, *elsewhere, *(line for found in beside.values() for line in found)]
    early, kept, three = (sum(map(of, used)) for of in (gave_up_early, kept_one_hot, judged_by_three))
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
        "more than the noise; how many do is said beside.",
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
        f"{three} are of nodes, with settings that were selected as those for links are. "
        "`hyperboloid paper run link --again`, or `node`, measures such cells anew.",
        "Disease: links are those of HGCN's `disease_lp`. The features of the graph whose nodes the paper classifies "
        "are lost; a generated epidemic, `disease`, stands in. Its numbers cannot be compared with the printed ones "
        "and are left out of the counts against the paper; claims that compare models on one graph include them.",
    ]
    return "## How to read it\n\n" + "\n".join(f"- {point}" for point in points)


def _selected(task: str) -> str:
    """A selection in words."""
    (most, inits), *rounds = ROUNDS[task]
    of_those = [f"the best {most} of those by {inits}" for most, inits in rounds]
    return ", ".join([f"the best {most} of the search by {inits} of them", *of_those])


def _tables(measured: Board, counted: Board, printed: Board) -> list[str]:
    out = []
    narrow = measured.scores.keys() - counted.scores.keys()
    for name, title in TITLES.items():
        if name == "ablation":
            body = ablation_table(measured, printed, narrow)
        else:
            body = main_table(name, measured, printed, narrow)
        count = _against_print(cells(name), counted, printed)
        picture = f"![{title}, measured against printed](figures/{name}.png)"
        out.append(f"## {title}\n\n{count[0].upper()}{count[1:]}\n\n{picture}\n\n{body}")
    return out


def _splits(others: Sequence[Line], current: Sequence[Line], measured: Board) -> str:
    """Cells that were measured on other splits too."""
    rows = []
    by_key = {cell_key(cell): cell for cell in all_cells()}
    for line in others:
        there = measured.scores.get(key_of(line))
        score = measured_board([line]).scores[key_of(line)]
        cell = by_key[key_of(line)]
        name = "the authors' masks" if line["split"] == MASKS else f"splits {line['split']}"
        means = [statistics.mean(tests) for tests in line.get("test_by_split", {}).values()]
        spread = f"{percent(min(means))} to {percent(max(means))}" if means else MISSING
        own = MISSING if there is None else f"{there}"
        marked = f"{score}{'' if line in current else NARROW}"
        rows.append([f"{cell}", name, marked, spread, f"{line['runs']}", own, _printed(cell)])
    if not rows:
        return "## Where the split decides\n\nNo cell has been measured on other splits."
    header = ["cell", "split", "measured there", "means of the splits", "runs", f"split {SPLIT}", "printed"]
    text = (
        f"Settings are those chosen on split {SPLIT}, but for the authors' masks, which have a search of their own; "
        f"{NARROW} where that choice or the protocol has changed since."
    )
    for split in dict.fromkeys(line["split"] for line in others if line["split"] != MASKS):
        board = measured_board(line for line in others if line["split"] == split and line in current)
        text += f" LGCN over splits {split}: {_targets(board, of_splits=True)}"
    return f"## Where the split decides\n\n{text}\n\n{table(header, rows)}"


def _printed(cell: Cell) -> str:
    text = percent(cell.paper_mean, cell.paper_std)
    return text if cell.comparable else f"{text} (not comparable)"


def _claims(findings: Sequence[tuple[Claim[Board], Finding]], measured: Board, printed: Board) -> str:
    parts = ["## What the paper says in words"]
    same = printed.only(measured.scores.keys())
    for claim, finding in findings:
        text = [f"### {claim.name}: {verdict(finding)}", f"The paper: {claim.said}."]
        text.append(f"Measured ({finding.compared} of {finding.of} comparisons): {finding.text}")
        if finding.compared:
            text.append(f"The printed numbers of the same cells: {claim.judge(same).text}")
        parts.append("\n\n".join(text))
    return "\n\n".join(parts)


def _other_splits(everything: Sequence[Line]) -> list[Line]:
    """Lines of cells that were measured on other splits too, in the order of the tables."""
    others = [split for split in dict.fromkeys(line["split"] for line in everything) if split != SPLIT]
    place = {cell_key(cell): i for i, cell in enumerate(all_cells())}
    found = [line for split in sorted(others, key=str) for line in chosen_lines(everything, split)]
    return sorted(found, key=lambda line: place[key_of(line)])


def _elsewhere(others: Sequence[Line], current: Sequence[Line]) -> dict[Key, str]:
    """Scores over several splits, by cell."""
    return {
        key_of(line): percent(line["test_mean"], line["test_std"])
        for line in others
        if line["split"] != MASKS and line in current
    }


def _operations() -> str:
    """Tables 1 and 2, measured as this page is written."""
    parts = []
    for name, heading in (("operations", "Table 1: graph operations"), ("centroids", "Table 2: centroids")):
        found = run_experiment(name)
        intro = "✓ holds, ✗ does not, with the number that decides; in brackets what the paper says where it differs."
        parts.append(f"## {heading}\n\n{intro}\n\n{paper_table(found)}")
    return "\n\n".join(parts)


def _provenance(lines: Sequence[Line]) -> str:
    """Who computed what: by model the cells, settings tried, time, machine and code."""
    rows = []
    for model in dict.fromkeys([*MODELS, *(line["model"] for line in lines)]):
        own = [line for line in lines if line["model"] == model]
        if own:
            tried = sorted({line["tried"] for line in own if "tried" in line})
            between = MISSING if not tried else f"{tried[0]}" if len(tried) == 1 else f"{tried[0]} to {tried[-1]}"
            minutes = sum(line.get("seconds", 0.0) for line in own) / 60
            where = [", ".join(sorted({str(line.get(key, MISSING)) for line in own})) for key in ("device", "commit")]
            rows.append([model, f"{len(own)}", between, f"{minutes:.1f}", *where])
    heading = "## Where the numbers come from"
    if not rows:
        return f"{heading}\n\nNothing has been measured."
    return f"{heading}\n\n" + table(["model", "cells", "settings tried", "minutes", "device", "code"], rows)
