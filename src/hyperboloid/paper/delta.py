"""The hyperbolicity of the paper's graphs, which it prints beside their names in Tables 4 and 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hyperboloid.analysis.hyperbolicity import draw_histogram
from hyperboloid.analysis.style import new_figure
from hyperboloid.errors import check_seed
from hyperboloid.graphs import load_graph
from hyperboloid.graphs.hyperbolicity import hyperbolicity

from .cells import chosen_names
from .claims import FAILS, HOLDS, UNKNOWN, Claim, Finding, judged
from .figures import Asked, FigureExperiment
from .printed import printed_tables
from .results import Line
from .table import PaperTable

#: Half width of the confidence intervals: narrower than the paper's rounding.
PRECISION = 0.002
#: The paper rounds to two digits.
ROUNDING = 0.005


def _agrees(line: Line) -> bool:
    """Whether the printed δ_avg can be a rounded value of the confidence interval."""
    low, high = line["delta_avg_ci"]
    return bool(low - ROUNDING <= line["paper_mean"] <= high + ROUNDING)


def reproduced(lines: Sequence[Line]) -> Finding:
    """δ_avg against the printed ones."""
    total = len(printed_tables()["delta_avg"])
    if not lines:
        return Finding(UNKNOWN, 0, total, "No graph has been measured.")
    right = [line for line in lines if _agrees(line)]
    listed = ", ".join(
        f"{line['dataset']} {line['delta_avg']:.3f} ± {line['delta_avg_half_width']:.3f} ({line['paper_mean']:.2f})"
        for line in lines
    )
    text = f"δ_avg with its 95 % interval (printed): {listed}. {len(right)} of {len(lines)} agree within rounding."
    return Finding(judged(len(right), len(lines)), len(lines), total, text)


def worst_needs_more_than_samples(lines: Sequence[Line]) -> Finding:
    """Whether the largest δ⁺ of the sampled quadruples falls short of δ_worst, on graphs that are no trees."""
    total = sum(delta > 0 for delta in printed_tables()["delta_avg"].values())
    known = [line for line in lines if line["delta_worst_exact"] and line["delta_worst"] > 0]
    if not known:
        return Finding(UNKNOWN, 0, total, "No graph has a δ_worst above 0 that is exact.")
    short = [line for line in known if (len(line["counts"]) - 1) / 2 < line["delta_worst"]]
    listed = ", ".join(
        f"{line['dataset']} {(len(line['counts']) - 1) / 2:g} of {line['delta_worst']:g}"
        f" ({line['quadruples'] / 1e6:.1f} million)"
        for line in known
    )
    text = f"Largest δ⁺ sampled, of δ_worst (quadruples): {listed}. It falls short on {len(short)} of {len(known)}."
    return Finding(HOLDS if 2 * len(short) > len(known) else FAILS, len(known), total, text)


class Delta(FigureExperiment):
    """δ_avg and δ_worst of the six graphs."""

    name = "delta"
    title = "δ-hyperbolicity of the graphs"
    about = (
        "How the δ⁺ of quadruples of nodes are distributed, 0 for a tree. Of each graph the largest component is "
        "measured. δ_avg comes from random quadruples, with a 95 % confidence interval; δ_worst from an exact search "
        "over far-apart pairs. Disease is `disease_nc`, the tree whose nodes the paper classifies. The paper does not "
        "print δ_worst. For Citeseer a second implementation agrees with this one; how the paper came to its number is "
        "unknown."
    )
    options = frozenset({"datasets", "seed", "data_dir"})
    key = ("dataset",)
    needs = ("delta_avg", "delta_avg_ci", "delta_avg_half_width", "delta_worst", "delta_worst_exact", "counts")
    claims = (
        Claim("δ_avg of the graphs", "δ_avg beside the graphs' names in Tables 4 and 5", reproduced),
        Claim(
            "δ_worst cannot be sampled",
            "δ_avg “can be approximated via sampling, while δ_worst cannot”",
            worst_needs_more_than_samples,
        ),
    )

    def wanted(self, asked: Asked) -> list[Line]:
        """A line for each graph."""
        check_seed(asked.seed)
        known = list(printed_tables()["delta_avg"])
        return [
            {
                "dataset": name,
                "graph": "disease_nc" if name == "disease" else name,
                "protocol": {"precision": PRECISION, "seed": asked.seed},
            }
            for name in chosen_names("data set", self.name, asked.datasets, known)
        ]

    def measure(self, wanted: Line, asked: Asked, say: Callable[[str], None]) -> Line:
        """δ of one graph."""
        graph = load_graph(wanted["graph"], data_dir=asked.data_dir)
        found = hyperbolicity(graph, **wanted["protocol"], watch=say)
        return {
            **found.as_json(),
            "paper_mean": printed_tables()["delta_avg"][wanted["dataset"]],
            "device": f"{torch.get_num_threads()} CPU cores",
        }

    def draw(self, lines: Sequence[Line]) -> Any:
        """A histogram for each graph, in the order of δ_avg."""
        columns = min(3, len(lines))
        rows = -(-len(lines) // columns)
        figure = new_figure(4.2 * columns, 3.3 * rows)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, line in zip(panels, sorted(lines, key=lambda line: line["delta_avg"]), strict=False):
            sign = "=" if line["delta_worst_exact"] else "≥"
            title = f"{line['dataset']}: δ_worst {sign} {line['delta_worst']:g}"
            draw_histogram(axes, line["counts"], line["delta_avg"], title)
        for axes in panels[len(lines) :]:
            axes.set_axis_off()
        return figure

    def table(self, lines: Sequence[Line]) -> PaperTable:
        """Measured beside printed."""
        rows = [
            {
                "dataset": line["dataset"],
                "nodes": line["nodes"],
                "average": f"{line['delta_avg']:.3f} ± {line['delta_avg_half_width']:.3f}",
                "printed": f"{line['paper_mean']:.2f}",
                "worst": f"{line['delta_worst']:g}" if line["delta_worst_exact"] else f"≥ {line['delta_worst']:g}",
                "relative": f"{line['delta_relative']:.2f}",
                "seconds": f"{line['seconds']:.1f}",
            }
            for line in lines
        ]
        columns = {
            "dataset": "graph",
            "nodes": "nodes",
            "average": "δ_avg",
            "printed": "printed",
            "worst": "δ_worst",
            "relative": "2δ/diameter",
            "seconds": "seconds",
        }
        return PaperTable(self.name, self.title, columns, rows)
