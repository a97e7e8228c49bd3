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
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

from hyperboloid.errors import InputError
from hyperboloid.training.settings import Settings, check_names

from .cells import CELL_EXPERIMENTS, Cell, all_cells

Line = dict[str, Any]
Key = tuple[str, str, str, int]

#: What a line should be, and what to do where it is not.
_A_CELL, CURE = "a measured cell", "correct or remove the line"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


#: What kind of value belongs to which names of a line, or of its protocol, if it has them.
_KINDS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("text", "experiment dataset graph task model parts commit device dtype", lambda value: isinstance(value, str)),
    ("a whole number above 0", "dim runs grid tried search layers", lambda value: _is_whole(value) and value > 0),
    ("a number", "test_mean val_mean", _is_number),
    ("a number of at least 0", "test_std seconds epochs seeds", lambda value: _is_number(value) and value >= 0),
    ("a number or null", "paper_mean paper_std", lambda value: value is None or _is_number(value)),
    ("true or false", "comparable", lambda value: isinstance(value, bool)),
    ("a whole number or text", "split", lambda value: _is_whole(value) or isinstance(value, str)),
    ("a list of numbers", "tests", _are_numbers),
    ("a JSON object", "settings protocol versions", lambda value: isinstance(value, dict)),
    (
        "a JSON object of lists of numbers",
        "test_by_split",
        lambda value: isinstance(value, dict) and all(own and _are_numbers(own) for own in value.values()),
    ),
)
_KIND_OF = {name: (kind, fits) for kind, names, fits in _KINDS for name in names.split()}
#: What a measurement has by any experiment that measures cells, and what those of Tables 4 to 6 have besides.
_NEEDED = ("dataset", "task", "model", "dim", "test_mean", "test_std", "runs", "split", "settings", "protocol")
_NEEDED_OF_CELLS = ("grid", "parts")
#: What lines of experiments that are drawn share with them, or is null there.
_SHARED = ("dataset", "task", "model", "dim", "test_mean", "test_std", "seconds", "settings", "protocol")


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
            key = key_of(line)
            if key not in known:
                raise InputError(f"{where} belongs to no cell of the paper: {' '.join(map(str, key))}; {CURE}.")
            _check(line, where, _NEEDED_OF_CELLS)
            lines.append(line)
    return lines


def read_lines(folder: Path, experiment: str) -> list[tuple[str, Line]]:
    """The lines of one experiment, each with the file and line it stands in; a file that is not there has none.

    Raises:
        InputError: a line is not one of a measured cell.
    """
    lines = []
    for line, where in _parsed(folder, experiment, _A_CELL):
        if not isinstance(line, dict):
            raise InputError(f"{where} is not {_A_CELL}: it is not a JSON object; {CURE}.")
        _check(line, where, _NEEDED)
        protocol = line["protocol"]
        _check(protocol, where)
        for settings in (line["settings"], {name: protocol[name] for name in ("layers", "mean") if name in protocol}):
            _check_settings(settings, where)
        lines.append((where, line))
    return lines


def read_figure_results(folder: Path, experiment: str, needs: Iterable[str]) -> list[Line]:
    """All lines of an experiment that is drawn.

    Args:
        folder: of the results.
        experiment: its name.
        needs: names that each line must have.

    Raises:
        InputError: a line is something else.
    """
    lines, one = [], f"a measurement of '{experiment}'"
    for line, where in _parsed(folder, experiment, one):
        reasons = [f"it has no {name}" for name in needs if not isinstance(line, dict) or name not in line]
        if not reasons:
            found = (_wrong_kind(line, name) for name in _SHARED if line.get(name) is not None)
            reasons = [reason for reason in found if reason is not None]
        if reasons:
            raise InputError(f"{where} is not {one}: {reasons[0]}; {CURE}.")
        lines.append(line)
    return lines


def _parsed(folder: Path, experiment: str, what: str) -> Iterator[tuple[Any, str]]:
    """What the lines of an experiment's file hold that are not blank, and where they stand.

    A file that is not there has none; ``what`` says what each of them should be.
    """
    path = results_path(folder, experiment)
    try:
        if not path.exists():
            return
        data = path.read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}; name another folder of results.") from error
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"Cannot read {path}, line {number}: it is not UTF-8 text; {CURE}.") from error
    for number, raw in enumerate(_whole(text).split("\n"), start=1):
        if raw.strip():
            where = f"{path}, line {number}"
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where} is not {what}: it is not JSON; {CURE}.") from error
            yield line, where


def _check(line: Mapping[str, Any], where: str, needed: Iterable[str] = ()) -> None:
    """Refuse a line, or the protocol in it, that lacks something or has something that is not of its kind."""
    for name in needed:
        if name not in line:
            raise InputError(f"{where} is not {_A_CELL}: it has no {name}; {CURE}.")
    for name in line:
        if (wrong := _wrong_kind(line, name)) is not None:
            raise InputError(f"{where} is not {_A_CELL}: {wrong}; {CURE}.")


def _wrong_kind(line: Mapping[str, Any], name: str) -> str | None:
    """What is wrong with a value of a line; None where nothing is known to be."""
    kind, fits = _KIND_OF.get(name, ("", None))
    if fits is None or fits(line[name]):
        return None
    return f"its {name} is {shorten(json.dumps(line[name]), 40, placeholder=' …')}, not {kind}"


def _check_settings(settings: Mapping[str, Any], where: str) -> None:
    """Refuse settings that no model can have."""
    try:
        check_names(settings)
        Settings(**settings)
    except InputError as error:
        reason = str(error).partition(";")[0].rstrip(".")
        raise InputError(f"{where} is not {_A_CELL}, for its settings cannot be: {reason}; {CURE}.") from error


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
    except (ValueError, RecursionError):
        return lines + "\n" if lines else ""
    return text
