"""The user's tables (CSV, TSV, whitespace separated, Parquet) as columns, with errors that name file and line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperboloid.errors import InputError

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")

# A row must fit into one block; larger blocks than this gain no speed.
_BLOCK_BYTES = 1 << 26


@dataclass(frozen=True)
class Table:
    """Columns of equal length, as pyarrow chunked arrays: strings from text, whatever was stored from Parquet.

    Attributes:
        path: the file.
        columns: the columns without the header.
        names: the header, or None when there is none (yet: see :meth:`with_header`).
        is_text: whether errors count lines or rows.
    """

    path: Path
    columns: list[Any]
    names: tuple[str, ...] | None
    is_text: bool

    def __len__(self) -> int:
        return len(self.columns[0])

    def first_row(self) -> list[str]:
        """The first row as text, each field on one line without surrounding blanks."""
        return [" ".join(str(column[0].as_py()).split()) for column in self.columns]

    def with_header(self) -> Table:
        """The same table with its first row taken as the names of the columns."""
        return replace(self, columns=[c.slice(1) for c in self.columns], names=tuple(self.first_row()))

    def numbers_below_words(self) -> bool:
        """Whether the first row has no number while a column below it is all numbers: the mark of a header."""
        if len(self) < 2 or any(_is_number(field) for field in self.first_row()):
            return False
        return any(_as_numbers(column.slice(1)) is not None for column in self.columns)

    def column_name(self, index: int) -> str:
        """How to speak of a column: its name in the header, or its place counted from 1."""
        return f"'{self.names[index]}'" if self.names else str(index + 1)

    def where(self, row: int) -> str:
        """The file and the line (for Parquet: the row, counted from 1) of a row."""
        if not self.is_text:
            return f"{self.path} row {row + 1}"
        wanted = row + (self.names is not None)
        line = next(number for i, (number, _) in enumerate(_lines(self.path)) if i == wanted)
        return f"{self.path} line {line}"

    def line_numbers(self) -> list[int]:
        """The line of every row, for Parquet the row counted from 1."""
        if not self.is_text:
            return list(range(1, len(self) + 1))
        return [number for number, _ in _lines(self.path)][self.names is not None :]

    def strings(self, index: int, what: str, *, optional: bool = False) -> Any:
        """A column of ids or labels, as a pyarrow chunked array of strings without surrounding blanks.

        Whole numbers that Parquet stored as floats lose their ``.0``. Empty cells are null when ``optional``, else
        an :class:`InputError`; ``what`` says what is missing.
        """
        import pyarrow as pa
        from pyarrow import compute as pc

        column = self.columns[index]
        try:
            if pa.types.is_floating(column.type):
                column = pc.cast(column, pa.int64())
            column = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"{self.path}: column {self.column_name(index)} cannot hold a {what}, it is {column.type}; "
                "use text or whole numbers"
            ) from error
        empty = pc.fill_null(pc.equal(column, pa.scalar("")), True)
        if not pc.any(empty).as_py():
            return column
        if not optional:
            row = pc.index(empty, True).as_py()
            raise InputError(
                f"{self.where(row)}: the {what} in column {self.column_name(index)} is empty; give one in every row"
            )
        return pc.if_else(empty, None, column)

    def numbers(self, index: int, what: str) -> NDArray[np.float64]:
        """``(rows,)`` a numeric column, NaN where Parquet has none.

        Raises:
            InputError: a value is not a number; ``what`` says what it was to be.
        """
        column = self.columns[index]
        values = _as_numbers(column)
        if values is None:
            row = _first_word(column)
            found = f"'{column[row].as_py()}', not a number" if str(column[row].as_py()).strip() else "empty"
            raise InputError(
                f"{self.where(row)}: the {what} in column {self.column_name(index)} is {found}; "
                "give a number in every row"
            )
        return values


def read_table(path: Path) -> Table:
    """The table in a text or Parquet file; a text file's header, if any, is still its first row.

    In text, blank lines and lines that start with ``#`` are skipped, and the first line decides whether tabs,
    commas or blanks separate the columns.

    Raises:
        InputError: the file is empty, not text, or a row has more or fewer columns than the first.
    """
    return _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_text(path)


def in_memory(data: bytes) -> Any:
    """A file for pyarrow to read, in memory of its own.

    Its threads may let go of it as late as at the exit; if it were Python's, they would abort the process there.
    """
    import pyarrow as pa

    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


def check_file(path: Path) -> None:
    """Raise an :class:`InputError` unless ``path`` is a file that is there and not empty."""
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name the file in it")
        if not path.is_file():
            raise InputError(f"there is no file {path}; check the path")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; give a file with at least one row")
    except OSError as error:  # such as a name that is too long
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error


def _read_parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    check_file(path)
    try:
        table = parquet.read_table(path)
        columns, names = list(table.columns), tuple(table.column_names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is not a readable Parquet file; write it again, or as CSV") from error
    if table.num_rows == 0 or not columns:
        raise InputError(f"{path} has no rows; give a file with at least one row")
    return Table(path, columns, names, is_text=False)


def _read_text(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    data = _clean(path)
    delimiter = _delimiter(data)
    if delimiter == " " and re.search(rb"(?m)[ \t]{2}|\t|^ | $", data):
        data = re.sub(rb"(?m)^ +| +$", b"", re.sub(rb"[ \t]+", b" ", data))
    fields = _split(data[: data.find(b"\n")].decode(), delimiter)
    try:
        table = arrow_csv.read_csv(
            in_memory(data),
            arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=delimiter),
            arrow_csv.ConvertOptions(column_types={f"f{i}": pa.string() for i in range(len(fields))}),
        )
    except pa.ArrowInvalid as error:
        raise InputError(_what_is_wrong(path, delimiter, len(fields))) from error
    last = table.column(table.num_columns - 1)[-1].as_py()
    if last.endswith("\n"):  # what a quotation mark has opened goes on to the end
        rows = [number for number, _ in _lines(path)]
        raise InputError(_unclosed(path, rows[-last.count("\n")]))
    return Table(path, list(table.columns), None, is_text=True)


def _what_is_wrong(path: Path, delimiter: str, columns: int) -> str:
    """What a table of so many columns cannot be read for, by its first line that is not as the others."""
    for number, line in _lines(path):
        if re.search(rf'(^|{delimiter})"[^"]*$', line):
            return _unclosed(path, number)
        found = len(_split(line, delimiter))
        if found != columns:
            return f"{path} line {number}: expected {columns} columns, found {found}; give every row the same columns"
    return f"{path} is not a readable table; write it again, or as Parquet"


def _unclosed(path: Path, number: int) -> str:
    return f"{path} line {number}: a quotation mark is not closed; close it, or leave it out"


def _clean(path: Path) -> bytes:
    """The file's rows as UTF-8 with newlines, less blank lines and comments."""
    check_file(path)
    try:
        data = path.read_bytes()
        if b"\0" in data:
            raise InputError(f"{path} is not a text file; give a table in UTF-8 text or in Parquet")
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = _newlines(data[: error.start]).count(b"\n") + 1
        raise InputError(f"{path} is not UTF-8 text (line {number}); save it as UTF-8, or as Parquet") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    data = _newlines(data)
    if b"#" in data or re.search(rb"(?m)^[ \t]+$", data):
        data = re.sub(rb"(?m)^[ \t]*(#[^\n]*)?(\n|\Z)", b"", data)
    data = data.strip(b"\n")
    if not data:
        raise InputError(f"{path} has no rows; give a file with at least one row")
    return data + b"\n"  # pyarrow takes a lone row without its newline for an empty file


def _newlines(data: bytes) -> bytes:
    """The same lines, each of which ends with a newline alone."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The rows that :func:`_clean` keeps, with their line numbers counted from 1."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            stripped = line.strip(" \t\n")
            if stripped and not stripped.startswith("#"):
                yield number, line.rstrip("\n")


def _delimiter(data: bytes) -> str:
    first = data[: data.find(b"\n")]
    if b"\t" in first.strip():
        return "\t"
    return "," if b"," in first else " "


def _split(line: str, delimiter: str) -> list[str]:
    text = " ".join(line.split()) if delimiter == " " else line
    return next(csv.reader([text], delimiter=delimiter))


def _as_numbers(column: Any) -> NDArray[np.float64] | None:
    """A column as float64, or None when some value is not a number."""
    import pyarrow as pa
    from pyarrow import compute as pc

    try:
        if pa.types.is_string(column.type):
            column = pc.utf8_trim_whitespace(column)
        return pc.cast(column, pa.float64(), safe=False).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _first_word(column: Any) -> int:
    """The first row of a column that is not a number, by halving: converting a part tells whether it is in there."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _as_numbers(column.slice(low, middle - low)) is None:
            high = middle
        else:
            low = middle
    return low


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
