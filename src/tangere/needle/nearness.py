"""What a needle is near to: pieces of it against vessels, membranes and itself, where they are now.

Question: which of them are nearer than a distance, where, and how red is it to be drawn?
Method:   every segment and triangle against every piece of the needle whose box is within the distance, in one launch:
          a needle has some tens of pieces. Pieces of the needle itself are compared where half as much again as the
          distance lies between them along it, so that one that hardly bends is near to none of itself.
Sound:    nothing within the distance is left out (`distances`).
Known as: entities that get redder the closer they are to the tip (Pitiot 2015, section 9.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.needle.anatomy import AnatomyArrays
from tangere.needle.distances import SegmentNearest, segment_to_segment, segment_to_triangle
from tangere.query.contacts import Contacts
from tangere.runtime import SOUND, collect, reserve_slots

wp.set_module_options(SOUND)

#: Parts of a needle are near each other where so many times as much of it lies between them.
_BETWEEN = 1.5
#: Kinds of what is found.
VESSEL, MEMBRANE, SELF = (wp.constant(k) for k in range(3))


@wp.struct
class Found:
    """Something near a segment of the needle."""

    kind: int
    number: int  # of the segment of a vessel, the triangle of a membrane, or the segment of the needle
    segment: int  # of the needle
    gap: wp.float64  # between surfaces
    a: wp.vec3d  # on the axis of the needle
    b: wp.vec3d  # on the other's axis, or on the membrane


@wp.struct
class PieceArrays:
    """A needle and what may be near it, where they are now."""

    nodes: wp.array[wp.vec3d]
    points: wp.array[wp.vec3d]
    lines: wp.array[wp.vec2i]
    faces: wp.array[wp.vec3i]
    radius: wp.array[wp.float64]  # of lines and faces
    needle_radius: wp.float64
    distance: wp.float64
    skipped: int  # pieces next to one that are not compared with it


def near_pieces(
    nodes: np.ndarray, radius: float, anatomy: AnatomyArrays, points: np.ndarray, distance: float
) -> np.ndarray:
    """What is within a distance [m] of a needle along nodes (n, 3), with the points of the anatomy there: `Found`."""
    device = wp.get_device("cpu")
    arrays = PieceArrays()
    given = {"nodes": nodes, "points": points}
    for name, rows in given.items():
        setattr(arrays, name, wp.array(np.asarray(rows, float).reshape(-1, 3), dtype=wp.vec3d, device=device))
    arrays.lines = wp.array(anatomy.segments.astype(np.int32), dtype=wp.vec2i, device=device)
    arrays.faces = wp.array(anatomy.triangles.astype(np.int32), dtype=wp.vec3i, device=device)
    arrays.radius = wp.array(anatomy.radius, dtype=wp.float64, device=device)
    arrays.needle_radius, arrays.distance = radius, distance
    longest = float(np.linalg.norm(np.diff(nodes, axis=0), axis=1).max(initial=0.0))
    arrays.skipped = len(nodes) if longest == 0.0 else int(_BETWEEN * (distance + 2.0 * radius) / longest) + 1
    count = len(anatomy.owner) + max(len(nodes) - 1, 0)
    return collect(_near, count, [arrays], Found, device=device, grain=256).numpy()


def contacts_of(found: np.ndarray, anatomy: AnatomyArrays) -> Contacts:
    """What was found as contacts, the nearest first.

    Body 0 is the needle, 1 and on are vessels and then membranes; `feature_a` is the segment of the needle, `feature_b`
    the segment or triangle. Against body 0 it is the needle itself.
    """
    found = found[np.argsort(found["gap"], kind="stable")]
    kind, number = found["kind"], found["number"]
    a, b = found["a"].reshape(-1, 3), found["b"].reshape(-1, 3)
    apart = a - b
    away = np.linalg.norm(apart, axis=1, keepdims=True)
    normal = np.divide(apart, away, out=np.zeros_like(apart), where=away > 0)
    thing = np.where(kind == int(MEMBRANE), number + len(anatomy.segments), number)
    own = kind == int(SELF)
    owner, own_number = (np.append(x, 0) for x in (anatomy.owner, anatomy.own_number))
    thing = np.where(own, len(owner) - 1, thing)
    return Contacts.of(
        point_a=a,
        point_b=b,
        normal=normal,
        gap=found["gap"].copy(),
        body_a=0,
        body_b=np.where(own, 0, 1 + owner[thing]).astype(np.int32),
        feature_a=found["segment"].astype(np.int32),
        feature_b=np.where(own, number, own_number[thing]).astype(np.int32),
        key=found["segment"].astype(np.int64) << 32 | found["kind"].astype(np.int64) << 30 | number,
    )


def redness(contacts: Contacts, anatomy: AnatomyArrays, pieces: int, distance: float) -> dict[str, Any]:
    """How near everything is, from 0, at the distance or beyond, to 1, touching.

    Returns:
        "needle": (pieces,); "segments" and "triangles": of the anatomy.
    """
    near = np.clip(1.0 - contacts.gap / distance, 0.0, 1.0)
    needle, things = np.zeros(pieces), np.zeros(len(anatomy.owner))
    np.maximum.at(needle, contacts.feature_a, near)
    own = contacts.body_b == 0
    np.maximum.at(needle, contacts.feature_b[own], near[own])
    firsts = np.searchsorted(anatomy.owner, np.arange(len(anatomy.vessels) + len(anatomy.membranes)))
    np.maximum.at(things, firsts[contacts.body_b[~own] - 1] + contacts.feature_b[~own], near[~own])
    lines = len(anatomy.segments)
    return {"needle": needle, "segments": things[:lines], "triangles": things[lines:]}


@wp.func
def _boxes_apart(
    low: wp.vec3d, high: wp.vec3d, other_low: wp.vec3d, other_high: wp.vec3d, distance: wp.float64
) -> bool:
    apart = bool(False)
    for k in range(3):
        if other_low[k] - high[k] > distance or low[k] - other_high[k] > distance:
            apart = True
    return apart


@wp.kernel
def _near(first: int, shard: int, s: PieceArrays, counts: wp.array[wp.int64], capacity: int, out: wp.array[Found]):
    """One segment or triangle, or one piece of the needle, against all pieces."""
    i = first + wp.tid()
    lines = s.lines.shape[0]
    faces = s.faces.shape[0]
    kind = int(SELF)
    number = i - lines - faces
    radius = s.needle_radius
    a = wp.vec3d()
    b = wp.vec3d()
    c = wp.vec3d()
    if i < lines:
        kind = VESSEL
        number = i
        a = s.points[s.lines[i][0]]
        b = s.points[s.lines[i][1]]
        c = a
        radius = s.radius[i]
    elif i < lines + faces:
        kind = MEMBRANE
        number = i - lines
        a = s.points[s.faces[number][0]]
        b = s.points[s.faces[number][1]]
        c = s.points[s.faces[number][2]]
        radius = s.radius[i]
    else:
        a = s.nodes[number]
        b = s.nodes[number + 1]
        c = a
    low = wp.min(wp.min(a, b), c)
    high = wp.max(wp.max(a, b), c)
    radius += s.needle_radius
    reach = (s.distance + radius) * wp.float64(1.000001)
    start = int(0)
    if kind == SELF:
        start = number + s.skipped + 1
    for k in range(start, s.nodes.shape[0] - 1):
        p = s.nodes[k]
        q = s.nodes[k + 1]
        if not _boxes_apart(low, high, wp.min(p, q), wp.max(p, q), reach):
            near = SegmentNearest()
            if kind == MEMBRANE:
                near = segment_to_triangle(p, q, a, b, c)
            else:
                near = segment_to_segment(p, q, a, b)
            if near.distance - radius <= s.distance:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    entry = Found()
                    entry.kind = kind
                    entry.number = number
                    entry.segment = k
                    entry.gap = near.distance - radius
                    entry.a = near.a
                    entry.b = near.b
                    out[slot] = entry
