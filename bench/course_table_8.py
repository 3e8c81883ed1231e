"""The course's method on the public sample queries: its readings beside the robust and sound schemes.

The document prints a method, not figures; the figures it is compared with are those of the specification's table of
measurements (moving triangles, section 8), made once with an independent prototype in NumPy. Counts are missed
collisions / false alarms.
"""

from __future__ import annotations

import numpy as np

from bench.data import sample_queries
from bench.harness import Report, SkippedError
from tangere.published.course import Reading
from tangere.published.course.robust import robust_filter
from tangere.query.contacts import Kind
from tangere.query.first_contact import edge_edge, vertex_face

FEATURES: list[str] = []

ASK = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}

#: The specification's counts on the erleben-* families it had (4,120 edge-edge with 151 collisions, 2,835 vertex-face
#: with 124) and on the unit tests (74 with 36, 250 with 124), as (missed, false alarms).
READINGS = {
    "published, none, z=0, e=0": (Reading(vanishing="none"), (5, 0), (5, 25), (0, 0), (3, 19)),
    "published, all, z=0, e=0": (Reading(), (0, 0), (3, 26), (0, 0), (1, 19)),
    "published, all, z=0, e=1e-9": (Reading(widen=1e-9), (0, 0), (1, 156), (0, 0), (1, 113)),
    "published, none, z=1e-12, e=0": (Reading(vanishing="none", zero=1e-12), (5, 0), (14, 24), (0, 0), (7, 23)),
    "published, all, z=1e-12, e=0": (Reading(zero=1e-12), (0, 0), (12, 28), (0, 0), (5, 24)),
    "published, all, z=1e-12, e=1e-9": (Reading(zero=1e-12, widen=1e-9), (0, 0), (9, 155), (0, 0), (5, 115)),
}
#: The other rows: robust with its contact distance, and the conservative prototype beside our sound mode.
ROBUST = {
    "robust, delta 1e-6": (1e-6, (0, 6), (0, 218), (0, 0), (0, 146)),
    "robust, delta 1e-8 of the size": (None, (0, 0), (0, 218), (0, 0), (0, 146)),
    "robust, delta 1e-10": (1e-10, (0, 0), (0, 157), (0, 0), (0, 107)),
}
CONSERVATIVE = ((0, 0), (0, 143), (0, 0), (0, 103))

SETS = [
    ("edge-edge unit", Kind.EDGE_EDGE, "unit"),
    ("edge-edge erleben", Kind.EDGE_EDGE, "erleben"),
    ("vertex-face unit", Kind.VERTEX_FACE, "unit"),
    ("vertex-face erleben", Kind.VERTEX_FACE, "erleben"),
]


def run(report: Report, quick: bool = False) -> None:
    sets, columns = {}, []
    for place, (name, kind, family) in enumerate(SETS):
        try:
            queries = sample_queries(kind, family)
        except SkippedError:
            continue
        sets[name] = (place, kind, queries)
        columns += [f"{name} ({len(queries.collides)}, {queries.collides.sum()} collide)", "specification"]
    if not sets:
        raise SkippedError("the data folder holds none of the families of the table")

    def row(label: str, answer, expected) -> list[str]:
        cells = [label]
        for place, kind, queries in sets.values():
            hit = np.isfinite(answer(kind, queries).time)
            missed, alarms = (queries.collides & ~hit).sum(), (hit & ~queries.collides).sum()
            cells += [f"{missed} / {alarms}", "{} / {}".format(*expected[place]) if expected else "-"]
        return cells

    def ask(kind, queries, **options):
        return ASK[kind](queries.x0, queries.x1, details=False, device="cpu", **options)

    rows = [
        row(label, lambda kind, q, reading=reading: ask(kind, q, mode=reading), expected)
        for label, (reading, *expected) in READINGS.items()
    ]
    rows += [
        row(label, lambda kind, q, delta=delta: robust_filter(kind, q.x0, q.x1, delta=delta, device="cpu"), expected)
        for label, (delta, *expected) in ROBUST.items()
    ]
    rows.append(row("sound (specification: conservative prototype)", ask, CONSERVATIVE))
    rows.append(row("exact", lambda kind, q: ask(kind, q, mode="exact"), None))
    report.table(["method (missed / false alarms)", *columns], rows)
    report.note(
        """The specification's counts belong to 4,120 edge-edge and 2,835 vertex-face queries of the erleben families.
        Where the data folder holds only a part of them, our counts can be smaller for that reason alone; a larger one
        is a difference between the two programs."""
    )
