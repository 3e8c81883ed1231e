"""Makes `degenerate.npz`: 2,000 seeded degenerate queries with exact truth, half contacts and half near misses.

Run from the repository as `PYTHONPATH=tests python -m data.make_degenerate`. For each of `vertex_face` and `edge_edge`
the file holds `_points` (1000, 8, 3), `_family` (1000,), `_hit` (1000,) and the doubles that enclose the exact first
time, `_time_below` and `_time_above` (1000,), inf where free. Truth comes from the algebraic oracle, not the library.
"""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np

from oracles import flint_ccd
from oracles.families.feature_queries import FAMILIES
from tangere.query.contacts import Kind

__all__ = ["BLOCKS", "FILE", "block", "load", "truth"]

FILE = Path(__file__).with_name("degenerate.npz")
KINDS = (Kind.VERTEX_FACE, Kind.EDGE_EDGE)

_DEGENERATE = (
    "tiny_integer_grid",
    "boundary_weights",
    "coplanar",
    "coplanar_boundary",
    "parallel_always",
    "parallel_at_impact",
    "grazing",
    "sliding",
    "collapsed",
    "needles",
)

#: Families in the order of the file, with the number of queries taken from each.
BLOCKS: dict[str, int] = (
    dict.fromkeys(_DEGENERATE, 20)
    | {f"{name}_jittered": 50 for name in _DEGENERATE}
    | {f"{name}_offset": 20 for name in _DEGENERATE}
    | {"random_in_one_plane": 60, "just_outside_step": 40}
)


def block(kind: Kind, family: str) -> np.ndarray:
    """The points of one block of the file, made again from its seed."""
    seed = [2718, int(kind), list(BLOCKS).index(family)]
    return FAMILIES[family](kind, BLOCKS[family], np.random.default_rng(seed)).points


def truth(kind: Kind, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hit, time below and time above (n,) of n queries, by the oracle."""
    answers = [flint_ccd.decide(kind, query) for query in points]
    times = [answer.time.enclosing_floats() if answer.time else (inf, inf) for answer in answers]
    below, above = np.array(times).T
    return np.array([answer.hit for answer in answers]), below, above


def load(kind: Kind) -> dict[str, np.ndarray]:
    """The file's arrays for one kind: points, family, hit, time_below, time_above."""
    prefix = kind.name.lower() + "_"
    with np.load(FILE, allow_pickle=False) as arrays:
        return {name.removeprefix(prefix): arrays[name] for name in arrays.files if name.startswith(prefix)}


def main() -> None:
    """Write the file."""
    arrays = {}
    for kind in KINDS:
        points = np.concatenate([block(kind, family) for family in BLOCKS])
        hit, below, above = truth(kind, points)
        prefix = kind.name.lower()
        arrays[f"{prefix}_points"] = points
        arrays[f"{prefix}_family"] = np.repeat(list(BLOCKS), list(BLOCKS.values()))
        arrays[f"{prefix}_hit"] = hit
        arrays[f"{prefix}_time_below"] = below
        arrays[f"{prefix}_time_above"] = above
        print(f"{prefix}: {len(points)} queries, {hit.sum()} contacts")
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    main()
