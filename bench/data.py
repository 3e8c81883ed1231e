"""Public query sets and meshes, read from the folder TANGERE_DATA names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.harness import SkippedError
from oracles.families.sample_queries import read_families
from tangere.query.contacts import Kind
from tangere.shape.mesh import Mesh

__all__ = ["SampleQueries", "cloth_ball", "sample_queries"]


@dataclass(frozen=True)
class SampleQueries:
    """Queries of one kind with their exact answers."""

    x0: np.ndarray  #: (n, 4, 3)
    x1: np.ndarray  #: (n, 4, 3)
    collides: np.ndarray  #: (n,) ground truth


def sample_queries(kind: Kind, only: str = "") -> SampleQueries:
    """The queries of one kind whose family's name starts with `only`."""
    chosen = [q for q in read_families(_folder()) if q.kind == kind and q.family.startswith(only)]
    if not chosen:
        raise SkippedError(f"the data folder holds no {kind.name} queries of family {only or 'any'}")
    points = np.concatenate([queries.points for queries in chosen])
    return SampleQueries(points[:, :4].copy(), points[:, 4:].copy(), np.concatenate([q.truth for q in chosen]))


def cloth_ball() -> tuple[Mesh, np.ndarray]:
    """A cloth draped over a ball at frame 92, and its vertices at frame 93."""
    folder = _folder() / "meshes"
    start, end = (Mesh.load(folder / f"cloth_ball{frame}.ply", weld=False) for frame in (92, 93))
    return start, end.vertices


def _folder() -> Path:
    folder = os.environ.get("TANGERE_DATA")
    if not folder:
        raise SkippedError("TANGERE_DATA does not name a folder of query sets and meshes")
    return Path(folder)
