"""``docs/reproduction.md``: every cell measured beside printed, and a verdict on what the paper says in words."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.scores import percent
from hyperboloid.training.checkpoint import write_atomically

from .board import (
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
from .method import how_to_read
from .pictures import draw_tables
from .protocol import SPLIT, searched_less
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
        _in_short(measured, of_today, others, printed, judged),
        how_to_read(lines, on_others, current, beside),
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
    measured: Board,
    of_today: Sequence[Line],
    others: dict[Key, list[Line]],
    printed: Board,
    findings: Sequence[tuple[Claim[Any], Finding]],
) -> str:
    counted, counts = measured_board(of_today), []
    for experiment in CELL_EXPERIMENTS:
        own = cells(experiment)
        counts.append(f"{experiment} {sum(measured.of(cell) is not None for cell in own)} of {len(own)}")
    shared = len(cells("ablation")) - sum(cell.experiment == "ablation" for cell in all_cells())
    narrow, earlier = len(measured.scores) - len(counted.scores), sum(map(searched_less, of_today))
    lines = [
        f"- Measured: {len(measured.scores)} of {len(all_cells())} cells ({', '.join(counts)}; {shared} cells of the "
        f"ablation are cells of the other two tables). {narrow} of them, marked {NARROW}, were made by a protocol so "
        f"different that they count nowhere below; {earlier} others by an earlier rule of stopping or selection, which "
        "count until they are measured again: not the same share of every model, see [by model](#by-model).",
        f"- Against the paper: {_against_print(all_cells(), counted, printed)}",
        f"- LGCN: {_targets(counted)}",
    ]
    preferred = measured_board(preferred_lines(of_today, others))
    if preferred.scores != counted.scores:
        deep = [key for key in others if key in counted.scores]
        ours = sum(model == "lgcn" for _, _, model, _ in deep)
        lines.append(
            f"- LGCN with as many layers as validation prefers, where both were measured: {_targets(preferred)} Both "
            f"were measured in {ours} of its cells, and in {len(deep) - ours} of all its rivals': this holds LGCN "
            "against the print, not against them; for that see [One layer or two](#one-layer-or-two)."
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
    exactly = sum(score.mean >= cell.paper_mean - cell.paper_std for cell, score in scores)
    unrounded = f" ({exactly} if means were not rounded)" if exactly != reached else ""
    return (
        f"within one printed standard deviation of the paper or better in {reached} of {len(scores)} measured "
        f"cells{unrounded}; {len(own)} cells can be compared."
    )


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
