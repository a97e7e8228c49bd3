"""Compile every Triton kernel for an H200, without one: run by `test_compile.py`, in a process of its own.

Launches compile their kernel for the arguments they have and do nothing else, so results are never looked at. An
argument is the width of the vectors; `benchmarks/instructions.py` looks at what becomes of them.
"""

import sys

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime import JITFunction

TARGET = GPUTarget("cuda", 90, 32)
TYPES = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "i1",
}
compiled = {}


def type_of(value):
    """What Triton calls an argument's type."""
    if isinstance(value, torch.Tensor):
        return f"*{TYPES[value.dtype]}"
    if isinstance(value, float):
        return "fp32"
    return "i32" if abs(value) < 2**31 else "i64"


def compile_only(kernel, *args, grid, warmup, **options):
    """Takes the place of a launch."""
    given = dict(zip(kernel.arg_names, args, strict=False))
    given |= {name: options.pop(name) for name in kernel.arg_names if name in options}
    signature, constants, known = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        value = given.get(parameter.name, parameter.default)
        if parameter.is_constexpr:
            constants[(place,)] = value
        elif isinstance(value, torch.Tensor) or (value % 16 == 0 and not parameter.do_not_specialize):
            known[(place,)] = [["tt.divisibility", 16]]  # as a launch says it: what follows is read several at a time
        signature[parameter.name] = "constexpr" if parameter.is_constexpr else type_of(value)
    key = (kernel.__name__, *signature.values(), *map(str, constants.values()))
    if key not in compiled:
        source = ASTSource(kernel, signature, constexprs=constants, attrs=known)
        compiled[key] = triton.compile(source, target=TARGET, options=options).asm["cubin"]


JITFunction.run = compile_only

from hyperboloid.kernels import (  # noqa: E402
    Adjacency,
    gpu,
    gpu_linear,
    gpu_non_edges,
    gpu_pairs,
    gpu_random,
    gpu_shares,
    gpu_sums,
    gpu_tangent,
    gpu_training,
)

M, N, P = 2, 3000, 20
D = int(sys.argv[1]) if len(sys.argv) > 1 else 24  # no power of two, so that there are masks
star = torch.stack([torch.arange(N), torch.zeros(N, dtype=torch.long)])  # its hub is in several pieces
adj = Adjacency.from_edges(*torch.cat([star, star[:, 1:].flip(0)], 1), (N, N), self_loops=True)
E = adj.row.numel()
z, beta, weight, keep = torch.randn(M, N, D), torch.ones(M), torch.rand(M, E), torch.rand(M, E) > 0.5
pairs = star[:, :P].expand(M, 2, P)

for ends in (pairs, pairs.int()):
    for lorentz in (True, False):
        squares, *needed = gpu_pairs.pair_squares(z, ends, beta, lorentz)
        gpu_pairs.pair_gradients(squares, z, ends, beta, lorentz, *needed)
    gpu_pairs.flat_pair_gradients(gpu_pairs.flat_pair_squares(z, ends), z, ends)
sums, *needed = gpu_tangent.tangent_sums(z, z, beta, weight, adj)
gpu_tangent.tangent_gradients(sums, z, z, beta, weight, adj, *needed)
grad = gpu_sums.weighted_sums(z, weight, adj)
gpu_sums.column_gradient(grad, weight, adj), gpu_sums.weight_gradient(grad, z, adj)
for softmax in (True, False):
    gpu_shares.shares_gradient(gpu_shares.shares(weight, adj, softmax), weight, adj, softmax)
ends = z[..., 0], z[..., 1]
gpu_shares.attention_gradients(weight, gpu_shares.attention(*ends, adj, 0.2), *ends, adj, 0.2)
for operation in gpu.ROWS.values():
    for rows, scale in ((z, beta.view(M, 1)), (z.double(), beta.double().view(M, 1))):
        values = operation.values(rows, rows, scale)
        operation.gradients(rows, rows, scale, values)
for query, key, given, kept in ((None, z, weight, keep), (z, z, None, None), (None, None, weight, None)):
    out, *needed = gpu.aggregate(z, query, key, beta, given, kept, adj.index, 50.0)
    arguments = (out, z, query, key, beta, given, kept, adj.index, 50.0, needed, given is not None)
    gpu.aggregate_backward(*arguments)
step, record = torch.ones((), dtype=torch.int32), torch.zeros(M, dtype=torch.float64)
state = torch.randn(M, 30)
gpu_training.adam_(*(state.clone() for _ in range(4)), torch.ones(30), beta, beta, step, (0.9, 0.999), 1e-8)
epochs = (torch.zeros(M, dtype=torch.int32) for _ in range(2))
gpu_training.judge(record, beta, record.clone(), beta.clone(), *epochs, step, 20, 5, 0.9, 1.1)
random_key = gpu_random.fold(step, 3)
gpu_random.keep_mask(random_key, 4, torch.tensor(0.5), P)
for numbers in (z[0], z[0].T, z.flatten(1)):
    for key_of_all in (random_key, None):
        gpu_random.dropout(numbers, key_of_all, 4, torch.tensor(0.5))
of_weights = torch.randn(M, D, D)
gpu_linear.tall_product(gpu_linear.row_product(z, of_weights), z)
of_models = gpu_random.Models(step.expand(M), beta / 2, 4)
gpu_linear.tall_product(gpu_linear.row_product(z[0], of_weights, of_models), z[0], of_models)
gpu_non_edges.random_non_edges(star.int(), random_key, P, torch.arange(N), 10**6, (10, torch.arange(1000), 9))
gpu_training.edge_losses(state)
if __name__ == "__main__":
    print("\n".join(sorted({key[0] for key in compiled})))
