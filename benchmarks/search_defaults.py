"""Random search for the package's default settings, by validation scores only.

    python benchmarks/search_defaults.py --data-dir DATA --out search.jsonl link:cora:16 node:citeseer:64 …

Every setting is trained on three (split, initialisation) pairs; the line written for it holds the three validation
scores and no test score. `--best` prints the winners of such files as entries of `defaults.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import time
from pathlib import Path

SPACES = {
    "link": {
        "lr": [0.01, 0.005],
        "weight_decay": [0.0, 1e-4, 5e-4, 1e-3, 5e-3],
        "drop_connect": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
        "distance": ["intrinsic", "lorentz"],
        "activation": ["relu", "elu"],
        "last_activation": [False, True],
    },
    "node": {
        "lr": [0.01, 0.005],
        "weight_decay": [1e-4, 5e-4, 1e-3, 5e-3, 1e-2],
        "dropout": [0.0, 0.3, 0.5, 0.6, 0.7],
        "att_dropout": [0.0, 0.3, 0.6],
        "drop_connect": [0.0, 0.2],
        "activation": ["relu", "elu"],
    },
}
RUNS = [(0, 100), (1, 101), (2, 102)]


def one(job: dict) -> dict:
    import torch

    from hyperboloid.errors import TrainingError
    from hyperboloid.graphs import load_graph
    from hyperboloid.training.loop import Training
    from hyperboloid.training.settings import Settings
    from hyperboloid.training.tasks import get_task

    torch.set_num_threads(1)
    start = time.perf_counter()
    settings = Settings(**job["settings"])
    graph = load_graph(job["dataset"], data_dir=job["data_dir"])
    task = get_task(job["task"])(graph, settings, job["split"], torch.float32, "cpu")
    training = Training("lgcn", task, settings, job["seed"])
    try:
        while not training.done:
            training.step()
    except TrainingError as error:
        return job | {"failed": str(error)}
    seconds = time.perf_counter() - start
    return job | {"val": training.best.metric, "epochs": training.epoch, "seconds": seconds}


def jobs_of(cell: str, count: int, epochs: int, data_dir: str, rng: random.Random) -> list[dict]:
    task, dataset, dim = cell.split(":")
    jobs = []
    for index in range(count):
        settings = {name: rng.choice(values) for name, values in SPACES[task].items()}
        settings |= {"dim": int(dim), "epochs": epochs, "normalize": not dataset.startswith("disease")}
        base = {"task": task, "dataset": dataset, "index": index, "settings": settings, "data_dir": data_dir}
        jobs += [base | {"split": split, "seed": seed} for split, seed in RUNS]
    return jobs


def best(paths: list[Path]) -> None:
    cells: dict[tuple[str, str], dict[str, list[dict]]] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            run = json.loads(line)
            if "val" in run:
                by_setting = cells.setdefault((run["task"], run["dataset"]), {})
                by_setting.setdefault(json.dumps(run["settings"], sort_keys=True), []).append(run)
    for (task, dataset), by_setting in sorted(cells.items()):
        complete = {k: v for k, v in by_setting.items() if len(v) == len(RUNS)}
        means = {k: statistics.mean(r["val"] for r in v) for k, v in complete.items()}
        for key in sorted(means, key=means.__getitem__, reverse=True)[:6]:
            epochs = statistics.mean(r["epochs"] for r in complete[key])
            print(f"{task} {dataset} {means[key]:.4f} of {len(means)} settings, {epochs:.0f} epochs: {key}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", help="task:dataset:dim")
    parser.add_argument("--best", nargs="+", type=Path)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--count", type=int, default=40, help="settings per cell")
    parser.add_argument("--epochs", type=int, default=800)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=540.0, help="stop after this long")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.best:
        best(args.best)
        return
    rng = random.Random(args.seed)
    jobs = [job for cell in args.cells for job in jobs_of(cell, args.count, args.epochs, args.data_dir, rng)]
    # settings interleave, so that stopping early leaves every cell with complete settings
    jobs.sort(key=lambda job: job["index"])
    deadline = time.monotonic() + args.seconds
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool, args.out.open("a") as file:
        for done, result in enumerate(pool.imap_unordered(one, jobs), 1):
            file.write(json.dumps(result) + "\n")
            file.flush()
            if done % 20 == 0:
                print(f"{done}/{len(jobs)}", flush=True)
            if time.monotonic() > deadline:
                pool.terminate()
                break


if __name__ == "__main__":
    main()
