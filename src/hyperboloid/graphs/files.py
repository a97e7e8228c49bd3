"""Where the files of the named data sets lie: the user's folder, the cache, or their original source."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
from pathlib import Path

from hyperboloid.errors import InputError

TIMEOUT_S = 30.0


def cache_dir() -> Path:
    """The folder that downloads go to; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hyperboloid"


def find(relative_path: str, md5: str, url: str | None, data_dir: str | Path | None = None) -> Path:
    """The path of a data file whose checksum has been verified.

    Looks in ``data_dir``, or without it in ``$HYPERBOLOID_DATA``; then in the cache; then downloads into the
    cache. Nothing is ever written next to the user's data.

    Args:
        relative_path: where the file lies below a data folder, with ``/``.
        md5: the checksum it must have.
        url: the original source, or None when there is none with that checksum.
        data_dir: the folder the user named.

    Raises:
        InputError: the checksum differs, or the file is absent and cannot be downloaded.
    """
    given = data_dir or os.environ.get("HYPERBOLOID_DATA")
    folders = [*([Path(given).expanduser()] if given else []), cache_dir()]
    for folder in folders:
        path = folder / relative_path
        if path.is_file():
            _verify(path, md5)
            return path
    if url is None:
        raise InputError(_absent(relative_path, md5, folders, "and it has no download"))
    return _download(url, cache_dir() / relative_path, md5, _absent(relative_path, md5, folders, f"from {url}"))


def _absent(relative_path: str, md5: str, folders: list[Path], source: str) -> str:
    places = " or ".join(str(folder / relative_path) for folder in folders)
    return (
        f"the data file {relative_path} (md5 {md5}) is not here {source}: put it at {places}, "
        "or name the folder that holds it with --data-dir or HYPERBOLOID_DATA"
    )


def _md5(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; check its permissions") from error


def _verify(path: Path, md5: str) -> None:
    found = _md5(path)
    if found != md5:
        raise InputError(
            f"{path} is damaged or another version: its md5 is {found}, expected {md5}; "
            "replace it with the original file"
        )


def _download(url: str, target: Path, md5: str, absent: str) -> Path:
    """Fetch ``url`` to ``target``, which appears only once it is whole and its checksum is right."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".download-")
    except OSError as error:
        raise InputError(
            f"cannot write to the cache folder {target.parent}: {error.strerror or error}; {absent}"
        ) from error
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file, urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
            shutil.copyfileobj(reply, file)
        found = _md5(partial)
        if found != md5:
            raise InputError(f"the download {url} has md5 {found}, expected {md5}, and was thrown away; {absent}")
        partial.replace(target)
    except (OSError, http.client.HTTPException) as error:
        raise InputError(f"{absent} (the download failed: {error})") from error
    finally:
        partial.unlink(missing_ok=True)
    return target
