"""How many instructions the kernels have, compiled for an H200, which is not needed: most of them wait for these.

    python benchmarks/instructions.py 32 row_products pair_sums

A line for each variant of a kernel, for vectors of this width: all its instructions and registers; then one for each of
its loops, with what is in it most. Kernels that have no name on the command line are left out; without any, all are in.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import triton

COMPILER = Path(__file__).parents[1] / "tests" / "kernels" / "compile_for_gpu.py"
DISASSEMBLER = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
SHOWN, SHORTEST = 8, 16  # kinds of instructions, and the fewest that make a loop


def main() -> None:
    if len(sys.argv) < 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    asked = set(sys.argv[2:])
    compiled = runpy.run_path(str(COMPILER))["compiled"]  # takes the width from the command line, too
    for (name, *_), cubin in sorted(compiled.items(), key=lambda pair: pair[0]):
        if asked and name not in asked:
            continue
        code, registers = disassembled(cubin)
        print(f"{name}: {len(code)} instructions, {registers} registers")
        for start, end in loops(code):
            inside = [kind(text) for place, text in code if start <= place <= end]
            most = ", ".join(f"{kind} {count}" for kind, count in Counter(inside).most_common(SHOWN))
            print(f"  loop of {len(inside)}: {most}")


def disassembled(cubin: bytes) -> tuple[list[tuple[int, str]], str]:
    """Instructions with their places, and the number of registers."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said, listing = (
            subprocess.run([DISASSEMBLER, what, file.name], capture_output=True, text=True, check=True).stdout
            for what in ("--dump-resource-usage", "--dump-sass")
        )
    code = [(int(place, 16), text) for place, text in re.findall(r"/\*([0-9a-f]{4,5})\*/\s+(.*?) ;", listing)]
    return code, re.findall(r"REG:(\d+)", said)[-1]


def loops(code: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Where branches lead back to, and where they are."""
    branches = ((place, re.search(r"BRA.*?0x([0-9a-f]+)", text)) for place, text in code)
    back = [(int(found[1], 16), place) for place, found in branches if found is not None]
    return [(start, end) for start, end in back if end - start >= 16 * SHORTEST]


def kind(text: str) -> str:
    """The instruction without its predicate and its types."""
    return re.sub(r"^@!?U?P\w+ ", "", text).split()[0].split(".")[0]


if __name__ == "__main__":
    main()
