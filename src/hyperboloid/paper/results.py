"""``results/<experiment>.jsonl``: one line for each measured cell, written once and never half.

- what was measured: ``experiment dataset graph task model dim``, ``split`` as asked for, ``parts`` in words. ``graph``
  is our data set: the paper's ``disease`` is ``disease_lp`` for links and the generated ``disease`` for nodes;
- what came out, fractions of 1: ``test_mean test_std tests runs val_mean``, and of each test the epoch that was best on
  validation, ``best_epochs`` (not in old lines): one of the first tells of a run that stopped before it had learned;
- what the paper prints: ``paper_mean paper_std``, ``target`` (the one less the other), ``comparable`` (the same graph);
- how: the chosen ``settings``, how many the ``grid`` had, how many were ``tried`` and how many ``failed`` (not in old
  lines), ``epochs`` of all models, ``protocol``, ``complete``;
- by what: ``commit device versions seconds``, and how many ``workers`` shared the machine meanwhile (not in old lines).

Lines of the experiments that are drawn have the same names, null where one means nothing there, and their own besides
(`figures.py`).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.training.settings import Settings

from .cells import CELL_EXPERIMENTS, Cell, all_cells

Line = dict[str, Any]
Key = tuple[str, str, str, int]


def key_of(line: Mapping[str, Any]) -> Key:
    """What says which cell a line belongs to: data set, task, model and dimension."""
    return line["dataset"], line["task"], line["model"], line["dim"]


def cell_key(cell: Cell) -> Key:
    """The same of a cell."""
    return cell.dataset, cell.task, cell.model, cell.dim


def lgcn_key(cell: Cell) -> Key:
    """The same of LGCN's cell on its graph and in its dimension."""
    return cell.dataset, cell.task, "lgcn", cell.dim


def same_settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether the settings of two lines agree; those that a version did not have yet had their defaults."""
    return asdict(Settings()) | dict(a) == asdict(Settings()) | dict(b)


def usable(*folders: Path) -> None:
    """Refuse folders that nothing can be written to, before anything is measured; they need not be there yet.

    Raises:
        InputError: what is in the way.
    """
    for folder in folders:
        there = folder.absolute()
        while not os.path.lexists(there):
            there = there.parent
        if not there.is_dir() or not os.access(there, os.W_OK):
            why = f"{there.name or there} {'may not be written to' if there.is_dir() else 'is no folder'}"
            raise InputError(f"Nothing can be kept in {folder}, for {why}: choose another folder.")


def results_path(folder: Path, experiment: str) -> Path:
    """The file of an experiment."""
    return folder / f"{experiment}.jsonl"


def read_results(folder: Path, experiments: Iterable[str] = CELL_EXPERIMENTS) -> list[Line]:
    """All lines of some experiments in a folder; a file that is not there has none.

    Raises:
        InputError: a line is not one of a measured cell.
    """
    known = {cell_key(cell) for cell in all_cells()}
    lines: list[Line] = []
    for experiment in experiments:
        for where, line in read_lines(folder, experiment):
            if not all(isinstance(part, (str, int)) for part in key_of(line)) or key_of(line) not in known:
                raise InputError(f"{where} belongs to no cell of the paper: {' '.join(map(str, key_of(line)))}.")
            if not isinstance(line.get("grid"), int):
                raise InputError(f"{where} does not say how large its grid was.")
            if not isinstance(line.get("parts"), str):
                raise InputError(f"{where} does not say what its parts are.")
            lines.append(line)
    return lines


def read_lines(folder: Path, experiment: str) -> list[tuple[str, Line]]:
    """The lines of one experiment, each with the file and line it stands in; a file that is not there has none.

    Raises:
        InputError: a line is not one of a measured cell.
    """
    return [(where, _checked(raw, where)) for raw, where in _raw_lines(folder, experiment)]


def read_figure_results(folder: Path, experiment: str, needs: Iterable[str]) -> list[Line]:
    """All lines of an experiment that is drawn.

    Args:
        folder: of the results.
        experiment: its name.
        needs: names that each line must have.

    Raises:
        InputError: a line is something else.
    """
    lines = []
    for raw, where in _raw_lines(folder, experiment):
        try:
            line = json.loads(raw)
        except ValueError as error:
            raise InputError(f"{where} is not a measurement of '{experiment}': {error}.") from error
        missing = [name for name in needs if not isinstance(line, dict) or name not in line]
        if missing:
            raise InputError(f"{where} is not a measurement of '{experiment}': it has no {missing[0]}.")
        lines.append(line)
    return lines


def _raw_lines(folder: Path, experiment: str) -> Iterator[tuple[str, str]]:
    """Lines of an experiment's file that are not blank, and where they stand; a file that is not there has none."""
    path = results_path(folder, experiment)
    if not path.exists():
        return
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error
    for number, raw in enumerate(_whole(text).split("\n"), start=1):
        if raw.strip():
            yield raw, f"{path}, line {number}"


def append_line(folder: Path, line: Line) -> None:
    """Add a line to the file of its experiment, on the disk when this returns."""
    path = results_path(folder, line["experiment"])
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(line, allow_nan=False) + "\n"
    if path.exists():
        there = path.read_text(encoding="utf-8")
        if (whole := _whole(there)) != there:
            os.truncate(path, len(whole.encode()))
        if whole and not whole.endswith("\n"):
            content = "\n" + content
    with open(path, "ab", buffering=0) as file:
        file.write(content.encode())  # at once: a kill finds the whole line or nothing of it
        os.fsync(file.fileno())


def _whole(text: str) -> str:
    """The text without a last line that something, such as a full disk, has cut off."""
    lines, _, last = text.rpartition("\n")
    try:
        json.loads(last or "null")
    except ValueError:
        return lines + "\n" if lines else ""
    return text


def _checked(raw: str, where: str) -> Line:
    """A line that is what it should be, or one sentence."""
    try:
        line: Line = json.loads(raw)
        key_of(line)
        numbers = [line["test_mean"], line["test_std"], line["runs"]]
        whole = (
            isinstance(line["protocol"], dict)
            and isinstance(line["settings"], dict)
            and isinstance(line["split"], (int, str))
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{where} is not a measured cell: {error!r}.") from error
    if not whole or not all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers) or line["runs"] < 1:
        raise InputError(f"{where} is not a measured cell: its numbers are missing or not finite.")
    return line
