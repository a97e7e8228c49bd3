"""Table 7's part of the page: measured beside printed, and whether HGNN_L is the better HGNN."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hyperboloid.graphs.zinc import TARGETS

from .markdown import MISSING, table
from .results import Line
from .zinc import MODELS, ZincCell, read_zinc

TITLE = "Table 7: molecular properties on ZINC, test MAE × 100"
RIVALS = ("hgnn_h", "hgnn_p")


def chosen_zinc(lines: Sequence[Line]) -> dict[ZincCell, Line]:
    """One line for each cell: all molecules before few, then the most epochs, the most runs, the latest."""
    found: dict[ZincCell, Line] = {}
    for line in lines:
        cell = ZincCell(line["model"], line["property"])
        if cell not in found or _weight(line) >= _weight(found[cell]):
            found[cell] = line
    return found


def _weight(line: Line) -> tuple[float, ...]:
    made = line["protocol"]
    return made["molecules"] or float("inf"), made["dim"], made["epochs"], len(made["lrs"]), line["runs"]


def zinc_section(results: Path) -> str:
    """The section, from the lines of ``zinc.jsonl``."""
    lines = read_zinc(results)
    if not lines:
        return f"## {TITLE}\n\nNothing has been measured: `hyperboloid paper run zinc --device cuda`."
    found = chosen_zinc(lines)
    rows = [[model, *(_cell(ZincCell(model, name), found) for name in TARGETS)] for model in MODELS]
    made = sorted({_words(line) for line in found.values()})
    parts = [
        f"## {TITLE}",
        "A cell shows **measured** (printed), mean ± standard deviation over runs; errors in the property's own units, "
        "times 100. `hgnn_l_scaled` is not in the paper: HGNN_L whose centroids are stretched by the root of the "
        "number of messages, because a mean forgets how many there were. HGNN_P and HGNN_H are the same network up to "
        "the size of the first embedding and of the centroids, see `nn/hgnn.py`.",
        table(["model", *TARGETS], rows),
        "\n".join(f"- {words}" for words in made),
        _claim(found),
    ]
    return "\n\n".join(parts)


def _cell(cell: ZincCell, found: dict[ZincCell, Line]) -> str:
    mean, std = cell.printed
    printed = "" if mean is None or std is None else f" ({_hundred(mean, std)})"
    line = found.get(cell)
    if line is None:
        return MISSING + printed
    return f"**{_hundred(line['test_mean'], line['test_std'] if line['runs'] > 1 else None)}**{printed}"


def _hundred(mean: float, std: float | None) -> str:
    return f"{100 * mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}")


def _words(line: Line) -> str:
    made = line["protocol"]
    few = "all molecules" if made["molecules"] is None else f"only {made['molecules']} training molecules"
    lrs = " or ".join(f"{lr:g}" for lr in made["lrs"])
    if len(made["lrs"]) > 1 and made["trial_epochs"] is not None:
        length = "one epoch" if made["trial_epochs"] == 1 else f"{made['trial_epochs']} epochs"
        lrs += f" (the better on validation in runs of {length})"
    return (
        f"d = {made['dim']}, at most {made['epochs']} epochs of batches of {line['settings']['batch_size']}, {few}, "
        f"learning rate {lrs}, {line['runs']} run{'s' if line['runs'] > 1 else ''}, {line['device']}, "
        f"code {line['commit']}."
    )


def _claim(found: dict[ZincCell, Line]) -> str:
    """Whether HGNN_L and its scaled variant are better than HGNN_H and HGNN_P, property by property."""
    sentences = []
    for model in ("hgnn_l", "hgnn_l_scaled"):
        verdicts = []
        for name in TARGETS:
            own = found.get(ZincCell(model, name))
            others = [found.get(ZincCell(rival, name)) for rival in RIVALS]
            if own is None or any(other is None or other["protocol"] != own["protocol"] for other in others):
                verdicts.append(f"{name} not yet comparable")
                continue
            best = min(other["test_mean"] for other in others if other is not None)
            verdicts.append(f"{name} {'better' if own['test_mean'] < best else 'worse'}")
        sentences.append(f"{model} against the better of HGNN_H and HGNN_P, same protocol: {', '.join(verdicts)}.")
    return "The paper: HGNN_L is better than HGNN_H and HGNN_P in all three. Measured: " + " ".join(sentences)
