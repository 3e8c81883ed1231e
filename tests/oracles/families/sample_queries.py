"""Reader of the public Sample-Queries set (benchmark of Wang et al., ACM TOG 40(5), 2021), by exact rationals.

Layout: `ccd-queries/<family>/{edge-edge,vertex-face}/*.csv`, at any depth. A file has eight rows per query: four
vertices at t = 0, then at t = 1, each coordinate as numerator and denominator; the last column is the ground truth.
`folder` is what the fixture `data_folder` gives, from TANGERE_DATA.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tangere.query.contacts import Kind

__all__ = ["SampleQueries", "read_families", "read_file", "read_sample_queries"]

_FOLDERS = {"vertex-face": Kind.VERTEX_FACE, "edge-edge": Kind.EDGE_EDGE}


@dataclass(frozen=True)
class SampleQueries:
    """All queries of one family and kind: points (n, 8, 3) and whether they truly collide (n,)."""

    family: str
    kind: Kind
    points: np.ndarray
    truth: np.ndarray


def read_families(folder: Path) -> list[SampleQueries]:
    """The queries of every family and kind found, in a fixed order; skips the test if there are none."""
    groups: dict[tuple[str, Kind], list[tuple[np.ndarray, np.ndarray]]] = {}
    for path in sorted((folder / "ccd-queries").rglob("*.csv")):
        if path.parent.name in _FOLDERS:
            groups.setdefault((path.parents[1].name, _FOLDERS[path.parent.name]), []).append(read_file(path))
    if not groups:
        pytest.skip(f"no query sets under {folder / 'ccd-queries'}")
    return [
        SampleQueries(family, kind, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        for (family, kind), parts in groups.items()
    ]


def read_sample_queries(folder: Path, kind: Kind) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions at t = 0 and t = 1, each (n, 4, 3), and whether the queries truly collide, (n,), of all families."""
    chosen = [queries for queries in read_families(folder) if queries.kind == kind]
    points = np.concatenate([queries.points for queries in chosen])
    return points[:, :4].copy(), points[:, 4:].copy(), np.concatenate([queries.truth for queries in chosen])


def read_file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 8, 3) and truth (n,) of one file; every coordinate must be a double exactly."""
    rows = [[int(cell) for cell in line.split(",")] for line in path.read_text().split()]
    assert len(rows) % 8 == 0, f"{path}: {len(rows)} rows are not whole queries"
    points = [[_exact_double(row[k], row[k + 1], path) for k in (0, 2, 4)] for row in rows]
    truth = np.array([row[6] for row in rows], dtype=np.int64).reshape(-1, 8)
    assert np.isin(truth, (0, 1)).all(), f"{path}: the ground truth must be 0 or 1"
    assert (truth == truth[:, :1]).all(), f"{path}: the rows of a query disagree about the ground truth"
    return np.array(points, dtype=np.float64).reshape(-1, 8, 3), truth[:, 0].astype(bool)


def _exact_double(numerator: int, denominator: int, path: Path) -> float:
    value = numerator / denominator
    n, d = value.as_integer_ratio()
    assert n * denominator == d * numerator, f"{path}: {numerator}/{denominator} is not a double"
    return value
