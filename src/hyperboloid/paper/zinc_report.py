"""Table 7's part of the page: measured beside printed, and whether HGNN_L is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hyperboloid.graphs.zinc import TARGETS

from .claims import UNKNOWN, Claim, Finding, judged, told
from .markdown import MISSING, table
from .results import Line
from .zinc import MODELS, ZincCell, ZincProtocol, read_zinc, zinc_cells

TITLE = "Table 7: molecular properties on ZINC, test MAE × 100"
#: The verdict where models have been compared before their training ended: the paper's are trained to the end.
TOO_EARLY = "too early to say"


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


def zinc_section(results: Path) -> tuple[str, Finding]:
    """The section, from the lines of ``zinc.jsonl``, and what they say about the paper's claim."""
    found = chosen_zinc(read_zinc(results))
    finding = CLAIM.judge(found)
    if not found:
        return f"## {TITLE}\n\nNothing has been measured: `hyperboloid paper run zinc --device cuda`.", finding
    made = sorted({_words(line) for line in found.values()})
    rows = [[model, *(_cell(ZincCell(model, name), found, made) for name in TARGETS)] for model in MODELS]
    parts = [
        f"## {TITLE}",
        "A cell shows **measured** (printed), mean ± standard deviation over runs; errors in the property's own units, "
        "times 100. The number in square brackets says how it was measured: the command's own protocol has "
        f"{ZincProtocol.epochs} epochs, and where there were far fewer the error is that of a model on its way. "
        "`hgnn_l_scaled` is not in the paper: HGNN_L whose centroids are stretched by the root of the "
        "number of messages, because a mean forgets how many there were. HGNN_P and HGNN_H are the same network up to "
        "the size of the first embedding and of the centroids, see `nn/hgnn.py`.",
        table(["model", *TARGETS], rows),
        "\n".join(f"- [{number}] {words}" for number, words in enumerate(made, start=1)),
        told(CLAIM, finding),
    ]
    return "\n\n".join(parts), finding


def zinc_in_short(results: Path) -> str:
    """How many cells of Table 7 there are, and how far their models were trained."""
    found = chosen_zinc(read_zinc(results))
    if not found:
        return "no cell of Table 7 has been measured."
    epochs = sorted({line["protocol"]["epochs"] for line in found.values()})
    between = f"{epochs[0]}" if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
    return (
        f"{len(found)} of {len(zinc_cells())} cells of Table 7 have a number, after {between} of the "
        f"{ZincProtocol.epochs} epochs that the protocol has"
        + (": errors of models on their way." if epochs[0] < ZincProtocol.epochs else ".")
    )


def _cell(cell: ZincCell, found: Mapping[ZincCell, Line], made: Sequence[str]) -> str:
    mean, std = cell.printed
    printed = "" if mean is None or std is None else f" ({_hundred(mean, std)})"
    line = found.get(cell)
    if line is None:
        return MISSING + printed
    error = _hundred(line["test_mean"], line["test_std"] if line["runs"] > 1 else None)
    return f"**{error}** [{made.index(_words(line)) + 1}]{printed}"


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


def best_of_all(found: Mapping[ZincCell, Line]) -> Finding:
    """HGNN_L against every other method of the paper, property by property, where both have the same protocol."""
    rivals = [model for model in MODELS if model not in ("hgnn_l", "hgnn_l_scaled")]
    ahead: list[str] = []
    behind: list[str] = []
    epochs: set[int] = set()
    for name in TARGETS:
        for rival in rivals:
            own, other = found.get(ZincCell("hgnn_l", name)), found.get(ZincCell(rival, name))
            if own is not None and other is not None and own["protocol"] == other["protocol"]:
                epochs.add(own["protocol"]["epochs"])
                (ahead if own["test_mean"] < other["test_mean"] else behind).append(f"{rival} ({name})")
    compared, total = len(ahead) + len(behind), len(TARGETS) * len(rivals)
    if not compared:
        return Finding(UNKNOWN, 0, total, "HGNN_L has not been measured by the protocol of another method.")
    text = (
        f"After {' or '.join(map(str, sorted(epochs)))} of {ZincProtocol.epochs} epochs, HGNN_L has the smaller error"
    )
    text += f" in {len(ahead)} of {compared} comparisons by the same protocol"
    text += f"; not against {', '.join(behind)}." if behind else "."
    says = judged(len(ahead), compared) if min(epochs) >= ZincProtocol.epochs else TOO_EARLY
    return Finding(says, compared, total, text)


CLAIM: Claim[Mapping[ZincCell, Line]] = Claim(
    "HGNN_L is best on ZINC", "“HGNN_L achieves best performance among all the baselines”", best_of_all
)
