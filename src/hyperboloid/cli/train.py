"""``hyperboloid train``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperboloid.scores import score

from .options import (
    DataDir,
    Device,
    Dtype,
    Epochs,
    Features,
    GraphArgument,
    Json,
    Labels,
    Smiles,
    Task,
    Weight,
    check_runs,
    integer,
    interrupted,
    numbers,
    run_line,
    settings_from,
    target_lines,
    unit,
    words,
)
from .starting import AGAIN, starting

if TYPE_CHECKING:
    from hyperboloid.training.experiment import Experiment


def command(
    graph: GraphArgument,
    task: Task = "link",
    model: Annotated[
        str | None, typer.Option(help="Which model.", show_default="lgcn, for --task graph hgnn_l")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(parser=integer, help="Width of the embeddings.", show_default="the data set's")
    ] = None,
    epochs: Epochs = None,
    seeds: Annotated[int, typer.Option(parser=integer, help="Number of initialisations.")] = 1,
    seed: Annotated[int, typer.Option(parser=integer, help="The first initialisation's seed.")] = 0,
    split: Annotated[
        str,
        typer.Option(help="Seed of the split; 0-4 or 0,3 for several. Molecules by scaffolds: --set masks=scaffold."),
    ] = "0",
    features: Features = None,
    labels: Labels = None,
    weight: Weight = None,
    smiles: Smiles = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="What to predict for molecules, like logp or logp,qed."),
    ] = None,
    data_dir: DataDir = None,
    device: Device = "cpu",
    dtype: Dtype = "float32",
    out: Annotated[Path | None, typer.Option(help="The run folder.", show_default="a new one below runs/")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the unfinished runs of --out.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter, e.g. lr=0.005.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on a graph, or on molecules (--task graph; zinc, or a table of SMILES), and keep everything.

    All of it lies in a run folder, from which `evaluate`, `predict`, `plot` and `report` go on.
    """
    settings = settings_from(set_ or [], epochs=epochs, dim=dim)
    check_runs(seeds)
    splits = numbers(split, "--split")

    with starting():
        from hyperboloid.training.fitting import fit
        from hyperboloid.training.settings import check_names

        from .progress import progress_display

    check_names(settings)
    try:
        with progress_display(len(splits) * seeds) as progress:
            experiment = fit(
                graph,
                task=task,
                model=model,
                seeds=seeds,
                seed=seed,
                split=splits,
                features=features,
                labels=labels,
                weight=weight,
                smiles=smiles,
                target=None if target is None else words(target),
                data_dir=data_dir,
                device=device,
                dtype=dtype,
                out=out,
                resume=resume,
                progress=progress,
                notice=lambda text: typer.echo(text, err=True),
                **settings,
            )
    except KeyboardInterrupt as interrupt:
        # without a folder nothing has begun
        how = f"go on with the same command and --resume --out {interrupt}" if interrupt.args else AGAIN
        raise interrupted(how) from interrupt
    summary = experiment.summary
    runs, metric = summary["runs"], summary["metric"]
    several = len(runs) > 1
    for line in (*(run_line(run, metric) for run in runs if several), *target_lines(summary)):
        typer.echo(line)
    spread = (summary["val_std"], summary["test_std"]) if several else (None, None)
    typer.echo(
        f"{summary['model']} on {graph}, {task}, d = {summary['dim']}: test {metric} "
        f"{score(metric, summary['test_mean'], spread[1])} (validation "
        f"{score(metric, summary['val_mean'], spread[0])}){unit(summary)}, "
        f"{summary['epochs']} epochs in {summary['seconds']:.0f} s\nRun folder: {summary['run']}"
    )
    if task == "graph":
        summary |= _molecules(experiment)
    if as_json:
        del summary["runs"]
        typer.echo(json.dumps(summary))


def _molecules(experiment: Experiment) -> dict[str, int]:
    """Draw what was predicted against what is true, and count the molecules."""
    from hyperboloid.analysis.parity import draw_parity
    from hyperboloid.analysis.style import save_figure

    for run in experiment.runs:
        save_figure(draw_parity(run), run.folder / "parity.png")
    molecules = experiment.molecules
    return {"molecules": len(molecules), "skipped": len(molecules.problems)}
