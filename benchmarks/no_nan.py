"""Every model on every data set for both tasks: is each number finite, and how long does it take?

    HYPERBOLOID_DATA=… python benchmarks/no_nan.py --epochs 50 --out results/no_nan.jsonl

One line of JSON per combination, written as soon as it is known; combinations that the file already holds, with as many
epochs, are not repeated, so an interrupted sweep goes on where it was. Data sets whose files are absent are named on
the screen and left out. Everything is trained in float32, d = 8, with the package's default settings and no early stop;
only DeepWalk walks less than by default (LIGHTER), to save time.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hyperboloid
from hyperboloid.errors import InputError, TrainingError
from hyperboloid.graphs import Graph, load_graph
from hyperboloid.graphs.datasets import DATASETS
from hyperboloid.nn.registry import MODELS
from hyperboloid.training.tasks import TASKS

DIM = 8
LIGHTER: dict[str, dict[str, Any]] = {"deepwalk": {"walks": 1, "walk_length": 20}}


def try_one(graph: Graph, task: str, model: str, epochs: int, **settings: Any) -> dict[str, Any]:
    """Train once; the line to write down."""
    line: dict[str, Any] = {"model": model, "task": task, "dataset": graph.name, "epochs": epochs}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = Path(folder) / "run"
            experiment = hyperboloid.fit(
                graph, task=task, model=model, dim=DIM, epochs=epochs, patience=epochs, out=run, **settings
            )
        except TrainingError as error:
            line |= {"finite": False, "val": None, "test": None, "error": str(error)}
        else:
            val, test = experiment.summary["val_mean"], experiment.summary["test_mean"]
            finite = math.isfinite(val) and math.isfinite(test)
            line |= {"finite": finite, "val": val if finite else None, "test": test if finite else None}
    return line | {"seconds": round(time.perf_counter() - start, 2)}


def sweep(
    out: Path,
    *,
    epochs: int,
    models: Iterable[str] = tuple(MODELS),
    datasets: Iterable[str] = tuple(DATASETS),
    data_dir: str | Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Write a line to ``out`` for every combination it does not hold yet, and give that line."""
    done = set()
    if out.exists():
        lines = [json.loads(text) for text in out.read_text(encoding="utf-8").splitlines()]
        done = {(line["dataset"], line["task"], line["model"], line["epochs"]) for line in lines}
    models = list(models)
    for dataset in datasets:
        try:
            graph = load_graph(dataset, data_dir=data_dir)
        except InputError as error:
            print(f"{dataset} is left out: {error}", flush=True)
            continue
        tasks = [task for task in TASKS if task != "node" or graph.y is not None]
        for task, model in ((task, model) for task in tasks for model in models):
            if (dataset, task, model, epochs) in done:
                continue
            line = try_one(graph, task, model, epochs, **LIGHTER.get(model, {}))
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results/no_nan.jsonl"))
    parser.add_argument("--only", help="models, separated by commas")
    parser.add_argument("--datasets", help="data sets, separated by commas")
    args = parser.parse_args()
    models = args.only.split(",") if args.only else list(MODELS)
    datasets = args.datasets.split(",") if args.datasets else list(DATASETS)
    unknown = [name for name in models if name not in MODELS] + [name for name in datasets if name not in DATASETS]
    if unknown:
        parser.error(f"there is no {unknown[0]}; models: {', '.join(MODELS)}; data sets: {', '.join(DATASETS)}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    bad = 0
    for line in sweep(args.out, epochs=args.epochs, models=models, datasets=datasets, data_dir=args.data_dir):
        bad += not line["finite"]
        value = f"{line['val']:.3f}" if line["finite"] else line.get("error", "not finite")
        print(f"{line['dataset']:10} {line['task']:4} {line['model']:24} {value}   {line['seconds']:.1f} s", flush=True)
    print(f"{bad} combinations were not finite" if bad else "all finite")


if __name__ == "__main__":
    main()
