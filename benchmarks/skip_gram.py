"""Words a second of DeepWalk's skip-gram beside gensim's, on the same walks, one thread each.

    python benchmarks/skip_gram.py --graph pubmed --data-dir DATA --widths 4,8,16,32

A width is that of the vectors, half of the model's dim. Needs gensim.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from gensim.models import Word2Vec

from hyperboloid.graphs import load_graph
from hyperboloid.kernels import Adjacency
from hyperboloid.kernels.skip_gram import alias_table, skip_gram
from hyperboloid.nn.deepwalk import POWER, random_walks

WALKS, LENGTH, WINDOW, NEGATIVES, RATES = 4096, 80, 10, 5, (0.025, 0.02)


def by_gensim(walks: torch.Tensor, count: torch.Tensor, width: int) -> float:
    """Seconds for all walks."""
    model = Word2Vec(
        vector_size=width, window=WINDOW, negative=NEGATIVES, workers=1, sg=1, hs=0, sample=0, min_count=1,
        sorted_vocab=0,
    )  # fmt: skip
    model.build_vocab_from_freq(dict(enumerate(count.tolist())))
    sentences = walks.tolist()
    start = time.perf_counter()
    model.train(sentences, total_examples=WALKS, epochs=1, start_alpha=RATES[0], end_alpha=RATES[1])
    return time.perf_counter() - start


def by_us(walks: torch.Tensor, count: torch.Tensor, width: int) -> float:
    """Seconds for all walks, once the loop is compiled."""
    vectors = (np.random.default_rng(0).random((len(count), width), np.float32) - 0.5) / width
    contexts, drawing = np.zeros_like(vectors), alias_table(count.double().pow(POWER).numpy())
    skip_gram(walks[:1].numpy(), vectors, contexts, *drawing, WINDOW, NEGATIVES, *RATES, 1)
    start = time.perf_counter()
    skip_gram(walks.numpy(), vectors, contexts, *drawing, WINDOW, NEGATIVES, *RATES, 1)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--graph", default="pubmed")
    parser.add_argument("--widths", default="4,8,16,32")
    args = parser.parse_args()
    graph = load_graph(args.graph, data_dir=args.data_dir)
    size = (graph.num_nodes, graph.num_nodes)
    adj = Adjacency.from_edges(*graph.edge_index, size, self_loops=False)
    start = torch.randint(graph.num_nodes, (WALKS,), generator=torch.Generator().manual_seed(0))
    walks = random_walks(adj, start, LENGTH, key=1)
    count = torch.bincount(walks[walks >= 0], minlength=graph.num_nodes).clamp_min(1)
    words = int((walks >= 0).sum())
    for width in map(int, args.widths.split(",")):
        theirs, ours = by_gensim(walks, count, width), by_us(walks, count, width)
        print(f"width {width}: {words / ours:,.0f} words/s, gensim {words / theirs:,.0f}: {theirs / ours:.1f} times")


if __name__ == "__main__":
    main()
