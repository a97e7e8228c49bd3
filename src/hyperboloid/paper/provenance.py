"""Where a measured number comes from: the code, the libraries and the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hyperboloid.version import __version__

PACKAGE = Path(__file__).parents[1]


def code_version() -> str:
    """The git commit that changed the package last, or where that does not say it all a checksum of its files.

    A machine that only has a copy of the files, or a working tree with changes, is named by what the files hold.
    """
    # of the package alone: results lie in the same repository, and to write or commit them must not rename the code
    commit = _git("log", "-1", "--format=%h", "--", ".") if _git("ls-files", "--error-unmatch", "__init__.py") else None
    if not commit:
        return f"source {_checksum()}"
    return f"{commit}-dirty source {_checksum()}" if _git("status", "--porcelain", "--", ".") else commit


def library_versions(*others: str) -> dict[str, str]:
    """Versions of what computes the numbers, and of ``others`` that have a part in them."""
    found = {"hyperboloid": __version__, "python": platform.python_version()}
    for name in ("torch", "torch_geometric", "numpy", "numba", "triton", *others):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def device_name(device: str) -> str:
    """The GPU's name, or how many cores torch uses."""
    import torch

    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    cores = min(torch.get_num_threads(), os.cpu_count() or 1)
    return f"{cores} CPU core{'' if cores == 1 else 's'}"


def _git(*words: str) -> str | None:
    """What git says in the package's folder; None where there is no git, or it refuses."""
    try:
        done = subprocess.run(["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _checksum() -> str:
    """Of all source and data files of the package, by their names and contents."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in {".py", ".json"}:
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
