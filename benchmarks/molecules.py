"""Molecules per second of a training epoch on ZINC, for every model of whole graphs.

python benchmarks/molecules.py                              # 2 cores, width 64
python benchmarks/molecules.py --device cuda --dim 256 --batch-size 1024
"""

import argparse
import json
import os
import time

os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}  # as the command line does; torch reads it once

import numpy as np
import torch

from hyperboloid.graphs.load_molecules import load_molecules
from hyperboloid.nn.registry import GRAPH_MODELS
from hyperboloid.training.batch_loop import BatchTraining
from hyperboloid.training.graph_task import GraphTask
from hyperboloid.training.settings import default_settings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--models", default=",".join(GRAPH_MODELS))
parser.add_argument("--dim", type=int, default=64)
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--molecules", type=int, default=None, help="default: 8192 on a CPU, 100,000 on a GPU")
parser.add_argument("--epochs", type=int, default=3, help="the first one warms up and is not counted")
parser.add_argument("--device", default="cpu")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--data-dir", default=None)
args = parser.parse_args()

torch.set_num_threads(args.threads)
count = args.molecules or (8192 if args.device == "cpu" else 100_000)
molecules = load_molecules("zinc", data_dir=args.data_dir, targets=["logp"])
parts = molecules.masks["hgnn"]
molecules = molecules.only(np.concatenate([parts["train"][:count], parts["val"][:100], parts["test"][:100]]))


def synchronize() -> None:
    if args.device != "cpu":
        torch.cuda.synchronize()


for model in args.models.split(","):
    settings = default_settings(model, "graph", "zinc", args.dim, batch_size=args.batch_size, epochs=args.epochs)
    training = BatchTraining(model, GraphTask(molecules, settings, 0, torch.float32, args.device), settings, 0)
    seconds, busy = [], []
    for _ in range(args.epochs):
        synchronize()
        start, start_busy = time.perf_counter(), time.process_time()
        training.step()
        synchronize()
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - start_busy)
    found = {
        "model": model,
        "dim": args.dim,
        "batch_size": args.batch_size,
        "device": args.device,
        "molecules_per_second": round(count / min(seconds[1:])),
        "molecules_per_cpu_second": round(count / min(busy[1:])),  # tells little of what others do on the machine
    }
    print(json.dumps(found), flush=True)
