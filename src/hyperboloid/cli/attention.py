"""``hyperboloid attention``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, RunArgument, check_picture, integer

if TYPE_CHECKING:
    from hyperboloid.analysis.attention import LayerSummary


def command(
    run: RunArgument,
    node: Annotated[str | None, typer.Option(metavar="ID", help="Show what this node attends to.")] = None,
    out: Annotated[Path | None, typer.Option(help="PNG or SVG file.", show_default="RUN/attention.png")] = None,
    seed: Annotated[int, typer.Option(parser=integer, help="Seed of the shuffled labels.")] = 0,
    as_json: Json = False,
) -> None:
    """Show what a run's layers attend to; of several runs the best on validation is used."""
    from hyperboloid.analysis.attention import attention_weights, neighbours, summarize
    from hyperboloid.analysis.attention_picture import draw_attention
    from hyperboloid.analysis.style import save_figure
    from hyperboloid.graphs.ids import node_number
    from hyperboloid.training.experiment import load

    path = out or run / "attention.png"
    chosen = load(run).best
    check_picture(path)
    graph = chosen.graph
    number = None if node is None else node_number(graph, node)
    layers = attention_weights(chosen)
    summaries = summarize(layers, graph.y, seed)
    rows: list[dict[str, object]] = []
    if number is not None:
        around, weights = neighbours(layers, number)
        for k, other in enumerate(around.tolist()):
            label = None if graph.y is None or graph.y[other] < 0 else graph.class_name(int(graph.y[other]))
            rows.append({"node": graph.id_of(other), "label": label, "weights": weights[:, k].tolist()})
        _show_node(rows, len(layers))
    for s in summaries:
        typer.echo(_sentence(s))
    save_figure(draw_attention(chosen, layers, summaries, number), path)
    typer.echo(f"Picture: {path}")
    if as_json:
        found = {"run": str(run), "model": chosen.config.model, "node": node, "attends_to": rows}
        typer.echo(json.dumps({**found, "layers": [s.as_json() for s in summaries], "picture": str(path)}))


def _show_node(rows: list[dict[str, object]], layers: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"What node {rows[0]['node']} attends to", box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("node", "label", *(f"layer {k + 1}" for k in range(layers))):
        table.add_column(heading)
    for k, row in enumerate(rows):
        weights = row["weights"]
        assert isinstance(weights, list)
        name = f"{row['node']} (itself)" if k == 0 else f"{row['node']}"
        table.add_row(name, "–" if row["label"] is None else f"{row['label']}", *(f"{w:.3f}" for w in weights))
    Console(highlight=False, markup=False).print(table)


def _sentence(s: LayerSummary) -> str:
    text = (
        f"Layer {s.layer}: {100 * s.self_share:.1f} % of the attention on the node itself (uniform: "
        f"{100 * s.self_uniform:.1f} %), entropy {s.entropy:.2f} of the uniform one's"
    )
    same = s.same_label
    if same is None:
        return f"{text}; no labels to compare."
    verdict = "more than chance" if same.beyond_chance else "no more than chance"
    return (
        f"{text}; {100 * same.attention:.1f} % of that on neighbours goes to those of the same label, who are "
        f"{100 * same.share:.1f} % of them ({same.nodes} nodes that can choose): {100 * same.excess:+.1f} points, "
        f"with shuffled labels {100 * same.control:+.1f} ± {100 * same.control_std:.1f}, so {verdict}."
    )
