"""Milliseconds of one link-prediction epoch on Cora (training step and validation), LGCN beside PyG's GATConv.

    HYPERBOLOID_DATA=… python benchmarks/epoch.py

Both encoders have two layers of width 16 and run in the same loop, on the same split, with the same decoder code;
epochs alternate between them, so that a busy machine slows both. GAT gets the features as PyG users pass them, dense.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch_geometric.nn import GATConv

from hyperboloid.graphs import load_graph
from hyperboloid.nn import Encoder
from hyperboloid.training.features import scaled_features
from hyperboloid.training.loop import Training
from hyperboloid.training.settings import default_settings
from hyperboloid.training.tasks import LinkTask


def trainings(data_dir: str | None, dim: int) -> dict[str, Training]:
    graph = load_graph("cora", data_dir=data_dir)
    settings = default_settings("lgcn", "link", "cora", dim=dim)
    sparse, dense = (LinkTask(graph, settings, 0, torch.float32, "cpu") for _ in range(2))
    dense.x = scaled_features(graph, dense.scaling, torch.float32, trained_on=graph)
    made = {
        "LGCN": Training("lgcn", sparse, settings, 0),
        "LGCN, dense features": Training("lgcn", dense, settings, 0),
        "PyG GATConv": Training("lgcn", dense, settings, 0),
    }
    gat = made["PyG GATConv"]
    gat.encoder = Encoder([GATConv(graph.num_features, dim), GATConv(dim, dim)], activation="relu")
    gat.optimizer = torch.optim.Adam(gat.encoder.parameters(), lr=settings.lr)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    made = trainings(args.data_dir, args.dim)
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for epoch in range(args.epochs + 5):
        for name, training in made.items():
            start = time.perf_counter()
            training.step()
            if epoch >= 5:  # the first few compile and fill caches
                seconds[name].append(time.perf_counter() - start)
    median = {name: 1000 * statistics.median(times) for name, times in seconds.items()}
    print(f"Cora, link prediction, d = {args.dim}, {torch.get_num_threads()} threads, median of {args.epochs} epochs")
    for name, value in median.items():
        print(f"{name:22} {value:6.1f} ms   {value / median['PyG GATConv']:.2f} × GATConv")


if __name__ == "__main__":
    main()
