"""``docs/reproduction.md``: every cell measured beside printed, and a verdict on what the paper says in words."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.nn.registry import base_name
from hyperboloid.training.checkpoint import write_atomically

from .alike import by_age, measured_apart
from .board import Board, chosen_lines, current_lines, lines_beside, measured_board, printed_board
from .cells import CELL_EXPERIMENTS, Cell, all_cells, cells
from .claims import CLAIMS, SHALLOW, Claim, Finding, verdict
from .depth import depth_section, other_depths, preferred_lines
from .experiments import run_experiment
from .figure_report import drawn_sections
from .markdown import ABOVE, BELOW, NARROW, WITHIN, ablation_table, main_table, mark, paper_table, table
from .method import how_to_read
from .origin import origin_section
from .other_splits import other_splits, scores_elsewhere, splits_section
from .pictures import draw_tables
from .protocol import SPLIT
from .published_mean import published_mean_section
from .results import Key, Line, cell_key, key_of, read_results
from .shortfalls import read_tried, short_falls, targets
from .zinc_report import CLAIM as ZINC_CLAIM
from .zinc_report import zinc_in_short, zinc_section

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
    current, on_others = current_lines(everything, lines), other_splits(everything)
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
        _in_short(measured, of_today, others, printed, zinc_in_short(results), judged),
        how_to_read(lines, on_others, current, beside),
        *_tables(measured, of_today, printed),
        molecules,
        splits_section(on_others, current, lines),
        _claims(findings, counted, printed),
        depth_section(of_today, others),
        published_mean_section(of_today, beside),
        short_falls(preferred, scores_elsewhere(on_others, current), read_tried(results)),
        *(section.text for section in drawn),
        _operations(),
        origin_section(lines),
    ]
    write_atomically(page, ("\n\n".join(section for section in sections if section) + "\n").encode())
    verdicts = {claim.name: verdict(finding) for claim, finding in judged}
    return Report(page, pictures, len(all_cells()), len(lines), verdicts)


def _head() -> str:
    return (
        "# The paper's tables, measured again\n\n"
        "Written by `hyperboloid paper report` from the lines of `results/link.jsonl`, `results/node.jsonl`, "
        "`results/ablation.jsonl`, `results/zinc.jsonl` and `results/shortfall.jsonl`, and of one file for each "
        "figure; Tables 1 and 2 are measured as it is written. No measured number is typed in. A cell is measured by "
        "`hyperboloid paper run link --datasets cora --dims 16 --models lgcn`, a figure by its name, like "
        "`hyperboloid paper run delta`."
    )


def _in_short(
    measured: Board,
    of_today: Sequence[Line],
    others: dict[Key, list[Line]],
    printed: Board,
    molecules: str,
    findings: Sequence[tuple[Claim[Any], Finding]],
) -> str:
    counted, counts = measured_board(of_today), []
    for experiment in CELL_EXPERIMENTS:
        own = cells(experiment)
        counts.append(f"{experiment} {sum(measured.of(cell) is not None for cell in own)} of {len(own)}")
    shared = len(cells("ablation")) - sum(cell.experiment == "ablation" for cell in all_cells())
    narrow, of_gcns = len(measured.scores) - len(counted.scores), [x for x in of_today if x["model"] not in SHALLOW]
    today, before, earlier = by_age(of_gcns)
    lines = [
        f"- Measured: {len(measured.scores)} of {len(all_cells())} cells ({', '.join(counts)}; {shared} cells of the "
        f"ablation are cells of the other two tables). {narrow} of them, marked {NARROW}, were made by a protocol so "
        f"different that they count nowhere below. Of the others {len(of_gcns)} are of GCNs: {today} by today's rules "
        f"of stopping and selection, {before} by those before and {earlier} by earlier ones, which count until they "
        "are measured again; not the same share of every model, see [by model](#by-model) and [by graph](#by-graph). "
        "The rules of shallow embeddings have never changed.",
        f"- Against the paper: {_against_print(all_cells(), counted, printed)}",
        f"- Disease: {_assumed(counted)}",
        f"- LGCN: {targets(counted)}",
    ]
    preferred = measured_board(preferred_lines(of_today, others))
    if preferred.scores != counted.scores:
        deep = [key for key in others if key in counted.scores]
        ours = sum(model == "lgcn" for _, _, model, _ in deep)
        lines.append(
            f"- LGCN with as many layers as validation prefers, where both were measured: {targets(preferred)} Both "
            f"were measured in {ours} of its cells, and in {len(deep) - ours} of all its rivals': this holds LGCN "
            "against the print, not against them; for that see [One layer or two](#one-layer-or-two)."
        )
    lines.append(f"- ZINC: {molecules}")
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


def _assumed(measured: Board) -> str:
    """How many cells rest on what the paper does not say: which graph its links of Disease are of."""
    own = [c for c in all_cells() if c.graph != c.dataset and measured.of(c) is not None]
    return (
        f"{len(own)} of these cells, {sum(c.model == 'lgcn' for c in own)} of them LGCN's, are links of Disease, which "
        "are taken to be those of `disease_lp`. That is an assumption: the paper names no other graph than the one "
        "whose nodes it classifies."
    )


def _tables(measured: Board, of_today: Sequence[Line], printed: Board) -> list[str]:
    out, counted = [], measured_board(of_today)
    narrow = measured.scores.keys() - counted.scores.keys()
    for name, title in TITLES.items():
        if name == "ablation":
            body = "\n\n".join(filter(None, [ablation_table(measured, printed, narrow), _variants_apart(of_today)]))
        else:
            body = main_table(name, measured, printed, narrow)
        count = _against_print(cells(name), counted, printed)
        picture = f"![{title}, measured against printed](figures/{name}.png)"
        out.append(f"## {title}\n\n{count[0].upper()}{count[1:]}\n\n{picture}\n\n{body}")
    return out


def _variants_apart(lines: Sequence[Line]) -> str:
    """Which variants were measured by other rules than the model that they are variants of."""
    by_key = {key_of(line): line for line in lines}
    pairs = []
    for cell in cells("ablation"):
        own, whole = (by_key.get((*cell_key(cell)[:2], name, cell.dim)) for name in (cell.model, base_name(cell.model)))
        if own is not None and whole is not None:
            pairs.append((cell, whole, own))
    return measured_apart(pairs, "LGCN or HGCN itself", "the variant")


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


def _operations() -> str:
    """Tables 1 and 2, measured as this page is written."""
    parts = []
    for name, heading in (("operations", "Table 1: graph operations"), ("centroids", "Table 2: centroids")):
        found = run_experiment(name)
        intro = "✓ holds, ✗ does not, with the number that decides; in brackets what the paper says where it differs."
        parts.append(f"## {heading}\n\n{intro}\n\n{paper_table(found)}")
    return "\n\n".join(parts)
