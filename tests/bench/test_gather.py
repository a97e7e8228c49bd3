"""The gather bound: bytes of the operands over the bandwidth of the same run."""

import pytest
import torch

from hyperboloid.bench.gather import measure
from hyperboloid.bench.graphs import power_law_graph
from hyperboloid.bench.plan import Plan


def test_the_bound_is_the_time_to_read_the_operands():
    nodes, edges, d = 100, 1_000, 8
    (case,) = measure(Plan(power_law=(nodes, edges), dims=(d,), seconds=0.0), torch.device("cpu"), None, print)
    value = {(n.name, n.quantity): n.value for n in case.numbers}
    source, target = power_law_graph(nodes, edges)
    entries = edges + nodes - torch.unique(source[source == target]).numel()  # a loop for each node that has none
    bandwidth = 1e12 * value["copy", "copy bandwidth"]
    for quantity, vectors in (("forward", 2), ("backward", 4)):
        bytes_read = 1e-3 * value["aggregation", f"bound {quantity}"] * bandwidth
        assert bytes_read == pytest.approx(vectors * 4 * d * entries)
        assert value["aggregation", quantity] > 0
