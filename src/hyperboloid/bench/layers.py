"""One whole layer, LGCN's and PyG's: linear maps, attention, aggregation, ReLU; forward, and with all gradients.

On a CPU everything is measured twice, each time in a process of its own. PyG's layers write tensors with a row for each
edge, and glibc hands such large pieces of memory back to the system when they are freed and asks for them again at the
next call; clearing their pages is then a large part of PyG's time. With two of glibc's variables set it keeps them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hyperboloid.errors import InputError

from .graphs import power_law_graph
from .numbers import Case, Number, describe
from .plan import POWER_LAW, Plan
from .timing import Call, peak_memory, profiled, timed

OURS = "LGCNConv"
FORWARD, BOTH, MEMORY, PROFILE = "forward", "forward + backward", "peak extra memory", f"part of {OURS}"
#: What glibc does with large pieces of memory, and the variables that make it so.
ALLOCATORS: dict[str, dict[str, str]] = {
    "handed back": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"},
}


def layer_calls(name: str, x: Tensor, edge_index: Tensor) -> tuple[Call, Call]:
    """Forward without gradients, and forward with all gradients, of a layer d → d with ReLU on nodes ``(N, d)``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = _layer(name, x.size(1)).to(x.device)
    inputs = [x.requires_grad_(), *layer.parameters()]

    def forward() -> None:
        with torch.no_grad():
            torch.relu(layer(x, edge_index))

    def both() -> None:
        out = torch.relu(layer(x, edge_index))
        torch.autograd.grad(out, inputs, out.detach())

    return forward, both


def _layer(name: str, d: int) -> nn.Module:
    if name == OURS:
        from hyperboloid.nn import LGCNConv

        return LGCNConv(d, d)
    import torch_geometric.nn

    layer: nn.Module = getattr(torch_geometric.nn, name)(d, d, **({"cached": True} if name == "GCNConv" else {}))
    return layer


def random_features(nodes: int, d: int, device: torch.device) -> Tensor:
    """Nodes ``(N, d)`` of norms near 1."""
    return torch.randn(nodes, d, generator=torch.Generator(device).manual_seed(1), device=device) / d**0.5


def measure(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    """Cases of the plan; on a CPU once for each allocator."""
    if device.type == "cuda":
        yield from _cases(plan, device, data_dir, say)
        return
    for memory, variables in ALLOCATORS.items():
        yield from _in_another_process(plan, data_dir, say, memory, variables)


def _cases(plan: Plan, device: torch.device, data_dir: Path | None, say: Callable[[str], None]) -> Iterator[Case]:
    for graph in plan.layer_graphs:
        what, nodes, edge_index = _graph(graph, plan, device, data_dir)
        for d in plan.dims:
            case = what | {"dim": d}
            say(describe(case))
            yield Case(case, _numbers(nodes, d, edge_index, plan, device))


def _graph(name: str, plan: Plan, device: torch.device, data_dir: Path | None) -> tuple[dict[str, Any], int, Tensor]:
    """What to call it, its number of nodes and its edges."""
    if name == POWER_LAW:
        nodes, edges = plan.power_law
        return {"graph": name, "nodes": nodes, "edges": edges}, nodes, power_law_graph(nodes, edges, device)
    from hyperboloid.graphs import load_graph

    graph = load_graph(name, data_dir=data_dir)
    return {"graph": name}, graph.num_nodes, graph.edge_index.to(device)


def _numbers(nodes: int, d: int, edge_index: Tensor, plan: Plan, device: torch.device) -> list[Number]:
    x = random_features(nodes, d, device)
    calls = {name: layer_calls(name, x, edge_index) for name in (OURS, *plan.layers)}
    found = []
    for place, quantity in enumerate((FORWARD, BOTH)):
        times = timed({name: both[place] for name, both in calls.items()}, device, plan.seconds)
        found += [time.number(name, quantity) for name, time in times.items()]
    if device.type == "cuda":
        found += [Number(name, MEMORY, peak_memory(both, device), "GiB") for name, (_, both) in calls.items()]
    return found + profiled(calls[OURS][1], device, PROFILE)


def _in_another_process(
    plan: Plan, data_dir: Path | None, say: Callable[[str], None], memory: str, variables: dict[str, str]
) -> Iterator[Case]:
    """The cases as a process measures them that was started with these variables of the allocator."""
    unset = {name for settings in ALLOCATORS.values() for name in settings}
    environment = {name: value for name, value in os.environ.items() if name not in unset} | variables
    order = {
        "plan": dataclasses.asdict(plan),
        "data_dir": None if data_dir is None else str(data_dir),
        "threads": torch.get_num_threads(),
    }
    command = [sys.executable, "-m", __name__, json.dumps(order)]
    # in a session of its own, so that Ctrl-C is this process's business alone
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                told = json.loads(line)
                if "error" in told:
                    raise InputError(told["error"])
                if "say" in told:
                    say(f"{told['say']}, memory {memory}")
                else:
                    yield Case(told["what"] | {"memory": memory}, [Number(**n) for n in told["numbers"]])
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise RuntimeError(f"the process that measures layers ended with exit code {child.returncode}")


def main(order: str) -> None:
    """Measure what the other process asks for, and print a line of JSON for whatever there is to tell."""
    asked = json.loads(order)
    torch.set_num_threads(asked["threads"])
    sizes: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in asked["plan"].items()}
    data_dir = None if asked["data_dir"] is None else Path(asked["data_dir"])

    def tell(**told: Any) -> None:
        print(json.dumps(told), flush=True)

    try:
        for case in _cases(Plan(**sizes), torch.device("cpu"), data_dir, lambda text: tell(say=text)):
            tell(**dataclasses.asdict(case))
    except InputError as error:
        tell(error=str(error))


if __name__ == "__main__":
    main(sys.argv[1])
