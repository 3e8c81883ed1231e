"""Shards in files: Parquet, written under another name and renamed, so that a shard is there whole or not at all.

Each page has a checksum, and a seal says which jobs the answers are of and which columns there are. The bits follow
from the answers alone: nothing of the worker, the machine or the time is in them.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import Any

from tangere.fleet.columns import arrow
from tangere.runtime import writing

_SEAL = b"tangere jobs"


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / "shards" / f"shard-{number:05d}.parquet"


def claim_path(folder: Path, number: int) -> Path:
    """The file in which a worker says which job of a shard it is at."""
    return folder / "unfinished" / f"shard-{number:05d}.claim"


def write_shard(folder: Path, number: int, rows: list[dict[str, Any]], schema: Any, digest: str) -> None:
    """Write a shard's answers in one go."""
    pa = arrow()
    path = shard_path(folder, number)
    own = folder / "unfinished" / f"{path.name}.{socket.gethostname()}.{os.getpid()}"
    table = pa.Table.from_pylist(rows, schema=schema.with_metadata({_SEAL: _seal(digest, schema)}))
    with writing(path):
        try:
            pa.parquet.write_table(table, own, compression="zstd", write_page_checksum=True)
            os.replace(own, path)
        finally:
            own.unlink(missing_ok=True)


def read_shard(folder: Path, number: int) -> tuple[Any, str] | None:
    """A shard's answers, and the digest of the jobs they are of; None where there is no file, or a damaged one."""
    pa = arrow()
    path = shard_path(folder, number)
    try:
        table = pa.parquet.ParquetFile(path, page_checksum_verification=True).read()
        seal = table.schema.metadata[_SEAL]
        digest = seal.split()[0].decode()
        return (table, digest) if seal == _seal(digest, table.schema) else None
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError):  # what is damaged is read as anything
        return None


def _seal(digest: str, schema: Any) -> bytes:
    """Which jobs, and a digest of the columns: checksums are of pages only."""
    columns = repr([(column.name, _type_name(column.type)) for column in schema])
    return f"{digest} {hashlib.sha256(columns.encode('utf-8', 'replace')).hexdigest()}".encode()


def _type_name(column: Any) -> str:
    """Of a type, whatever the elements of a list are called: Parquet has a name of its own for them."""
    if arrow().types.is_list(column):
        return f"list<{_type_name(column.value_type)}>"
    return str(column)
