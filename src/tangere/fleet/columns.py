"""Columns of job tables: which there are, what stands in them, and what is wrong with a table, told before any work.

A null means that a value is not given. NaN is a value, and an error of the job it stands in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, described, needs_extra


class ColumnKind(StrEnum):
    """What stands in a column."""

    FILE = "the name of a file"
    FILES = "a list of names of files"
    TEXT = "text"
    TEXTS = "a list of texts"
    NUMBER = "a number"
    WHOLE = "a whole number"
    FLAG = "true or false"
    ANY = "anything"
    NUMBERS = "a list of numbers"


LISTS = (ColumnKind.FILES, ColumnKind.TEXTS, ColumnKind.NUMBERS)
FILES = (ColumnKind.FILE, ColumnKind.FILES)


@dataclass(frozen=True)
class Column:
    """A column that a kind of job knows."""

    kind: ColumnKind
    told: str  #: what it is for
    mesh: bool = False  #: of files: whether they are meshes, which are prepared
    folder: bool = False  #: of files: whether it may be a folder


def arrow() -> Any:
    """pyarrow; without it the error names the extra."""
    with needs_extra("pyarrow", "fleet"):
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    return pyarrow


def table_of(rows: Any) -> tuple[Any, Path | None]:
    """An Arrow table of what callers have: a file, a table, columns by name, a list of rows; and the file's folder."""
    pa = arrow()
    if isinstance(rows, str | PathLike):
        return _read(Path(fspath(rows))), Path(fspath(rows)).resolve().parent
    if isinstance(rows, pa.Table):
        return rows, None
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows), None
    if isinstance(rows, Mapping):
        columns = {str(name): [_plain(value) for value in values] for name, values in rows.items()}
    elif isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        columns = {name: [_plain(row.get(name)) for row in rows] for name in names}
    else:
        raise InputError(f"jobs must be a file, a table, columns by name or a list of rows, not {described(rows)}")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise InputError(f"jobs: columns must be of one length, not {told}")
    return pa.table({name: _array(values, name) for name, values in columns.items()}), None


def checked(table: Any, columns: Mapping[str, Column], labels: Sequence[str], kind: str) -> Any:
    """The table in the types that its columns should have; raises where that cannot be."""
    pa = arrow()
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise InputError(f"jobs: two columns are called {twice[0]!r}")
    given = {}
    for name in table.column_names:
        if name in labels:
            given[name] = table[name]
        elif name in columns:
            given[name] = _cast(table[name], columns[name].kind, name)
        else:
            raise InputError(
                f"jobs: {kind} jobs know no column {name!r}; known are {', '.join(columns)};"
                " a column of your own is kept where labels (--label) names it"
            )
    absent = [name for name in labels if name not in given]
    if absent:
        raise InputError(f"jobs: there is no column {absent[0]!r} to label jobs by")
    return pa.table(given)


def value_as(value: Any, kind: ColumnKind, name: str) -> Any:
    """One value that holds for all jobs, as a row would have it."""
    column = arrow().chunked_array([_array([_plain(value)], name)])
    return _cast(column, kind, name).to_pylist()[0]


def _cast(column: Any, kind: ColumnKind, name: str) -> Any:
    pa = arrow()
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    wanted = {
        ColumnKind.NUMBER: pa.float64(),
        ColumnKind.WHOLE: pa.int64(),
        ColumnKind.FLAG: pa.bool_(),
        ColumnKind.NUMBERS: pa.list_(pa.float64()),
        ColumnKind.FILES: pa.list_(pa.string()),
        ColumnKind.TEXTS: pa.list_(pa.string()),
    }.get(kind, pa.string())
    if kind is ColumnKind.ANY:
        return column
    if types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), wanted)])
    text = types.is_string(column.type) or types.is_large_string(column.type)
    if kind in LISTS and text:
        made = float if kind is ColumnKind.NUMBERS else str
        try:
            rows = [_one_or_more(value, made) for value in column.to_pylist()]
        except ValueError as error:
            raise InputError(f"jobs: column {name!r} must hold {kind}: {error}") from error
        return pa.chunked_array([pa.array(rows, wanted)])
    if kind is ColumnKind.NUMBERS and _is_list(types, column.type):
        while _is_list(types, column.type.value_type):  # 4 x 4 as a list of lists
            column = pa.chunked_array([pa.array([_flat(value) for value in column.to_pylist()])])
    lists = _is_list(types, column.type)
    inner = column.type.value_type if lists else column.type
    fits = {
        ColumnKind.NUMBER: types.is_integer(inner) or types.is_floating(inner) or types.is_decimal(inner),
        ColumnKind.WHOLE: types.is_integer(inner) or types.is_floating(inner),
        ColumnKind.FLAG: types.is_boolean(inner),
        ColumnKind.NUMBERS: types.is_integer(inner) or types.is_floating(inner) or types.is_null(inner),
    }.get(kind, types.is_string(inner) or types.is_large_string(inner) or (lists and types.is_null(inner)))
    if not fits or lists != (kind in LISTS):
        raise InputError(f"jobs: column {name!r} must hold {kind}, not {column.type}")
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InputError(f"jobs: column {name!r} must hold {kind}: {str(error).splitlines()[0]}") from error


def _is_list(types: Any, kind: Any) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _one_or_more(text: str | None, made: type) -> list[Any] | None:
    """Lists as text, as .csv files have them: with semicolons."""
    return None if text is None else [made(word.strip()) for word in text.split(";")]


def _flat(value: Any) -> Any:
    return None if value is None else [x for row in value for x in row]


def _plain(value: Any) -> Any:
    """Arrays as lists, paths as text."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, np.generic) or (hasattr(value, "__array__") and not isinstance(value, str)):
        array = np.asarray(value)
        return array.reshape(-1).tolist() if array.ndim else array.item()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _array(values: list[Any], name: str) -> Any:
    try:
        return arrow().array(values)
    except (arrow().ArrowInvalid, arrow().ArrowTypeError, arrow().ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"jobs: column {name!r} holds different kinds of values: {reason}") from error


def _read(path: Path) -> Any:
    pa = arrow()
    readers = {".parquet": pa.parquet.read_table, ".csv": pa.csv.read_csv}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: jobs are read from .parquet and .csv files")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        return readers[path.suffix.lower()](path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
