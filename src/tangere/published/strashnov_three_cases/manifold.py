"""The article's algorithm for one cylinder: three cases for each element, deferred sets, groups of four.

As printed it misses contacts and invents deep ones; it is kept for the record and for comparison (`printed=True`, which
is `mode="published"` of `manifold`). With `printed=False` it has our corrections of its errors (ERR-1 to ERR-11, each
named where it is made) and a filter of depths: an independent check of the sound manifold. Plain NumPy, slow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tangere.published.strashnov_three_cases.elements import (
    Element,
    OneCylinder,
    case_of,
    clip_segment,
    elements,
    overlap,
    rim_frame,
    tolerance,
)
from tangere.query.contacts.record import Contacts, Kind
from tangere.runtime.arrays import to_numpy
from tangere.runtime.errors import UnsupportedError
from tangere.shape.analytic.bodies import Analytic, Cylinder
from tangere.shape.heightfield.heightfield import Heightfield

#: Sine of the angle at which an axis counts as parallel to a plane (9.3).
PARALLEL = 1e-3


@dataclass(frozen=True)
class ThreeCaseCandidate:
    """A contact point on the cylinder, its depth along the normal, and the element it comes from."""

    point: np.ndarray
    depth: float
    normal: np.ndarray
    element: int


@dataclass
class ThreeCaseStages:
    """What the first stage leaves to the second (seed L 204, 250-252, 281)."""

    found: list[ThreeCaseCandidate] = field(default_factory=list)
    contact_vertices: set[int] = field(default_factory=set)  #: G_F, of elements that have given contacts
    inner_vertices: set[int] = field(default_factory=set)  #: G_I, inside the patch under a base
    inner: list[tuple[float, Element]] = field(default_factory=list)  #: Omega_I: elements wholly inside, by margin
    deferred: list[tuple[float, Element, np.ndarray]] = field(default_factory=list)  #: Omega_E: distance and point Q


def published_manifold(bodies: Analytic, terrains: list[Heightfield], worlds: np.ndarray | None) -> Contacts:
    """`three_cases` as printed for every cylinder, as contacts."""
    if not isinstance(bodies, Cylinder):
        raise UnsupportedError(f"mode='published' is the article's algorithm for cylinders, not for {bodies!r}")
    poses, rows = to_numpy(bodies.poses, "poses"), []
    sizes = np.broadcast_to(bodies.records, len(bodies))
    for k, pose in enumerate(poses):
        one = OneCylinder(pose[:3, 3], pose[:3, 2], float(sizes["radius"][k]), 2.0 * float(sizes["half"][k, 2]))
        world = 0 if worlds is None else int(worlds[k])
        rows += [(k, world, c) for c in three_cases(one, terrains[world], printed=True)]
    count = len(rows)
    point = np.array([c.point for _, _, c in rows]).reshape(count, 3)
    normal = np.array([c.normal for _, _, c in rows]).reshape(count, 3)
    depth = np.array([c.depth for _, _, c in rows], float)
    query, number = np.array([k for k, _, _ in rows], np.int32), np.array([c.element for _, _, c in rows], np.int32)
    return Contacts.of(
        query=query,
        point_a=point,
        point_b=point + depth[:, None] * normal,
        normal=normal,
        gap=-depth,
        body_a=query,
        body_b=np.array([w for _, w, _ in rows], np.int32),
        feature_a=0,
        feature_b=number,
        kind=Kind.VERTEX_FACE,
        key=number.astype(np.int64),
    )


def three_cases(cylinder: OneCylinder, terrain: Heightfield, *, printed: bool = False) -> list[ThreeCaseCandidate]:
    """The manifold of one cylinder (9.4)."""
    lower, upper = cylinder.box(printed)
    near = list(elements(terrain, lower, upper, printed))
    if not near or max(e.corners[:, 2].max() for e in near) < lower[2]:
        return []
    slack = tolerance(terrain, cylinder)
    stages = first_stage(cylinder, near, slack, printed)
    inner_contacts(cylinder, stages, slack, printed)
    deferred_contacts(cylinder, stages, 1e-6 * max(terrain.spacing), slack, printed)
    found = stages.found
    if not printed:
        found = _sane(cylinder, near, found)
    return [c for group in groups_of(found, slack) for c in choose_four(group, printed)]


def first_stage(cylinder: OneCylinder, near: list[Element], slack: float, printed: bool = False) -> ThreeCaseStages:
    """Each element to its case (sections 5 to 7)."""
    stages = ThreeCaseStages()
    for element in near:
        axis = cylinder.axis if cylinder.axis[2] >= 0.0 else -cylinder.axis
        if not printed:
            axis = cylinder.facing(element.normal)
        case = case_of(cylinder, element, axis)
        if case is None or (not printed and not overlap(cylinder, element).hit):
            continue
        {"A": _base, "B": _side, "C": _rim_point}[case](cylinder, element, axis, stages, slack, printed)
    return stages


def _base(c: OneCylinder, e: Element, axis: np.ndarray, stages: ThreeCaseStages, slack: float, printed: bool) -> None:
    """Case A: crossings of the element's edges with the base, and rim points over the element (section 5)."""
    w, u = rim_frame(axis, e)
    centre = c.centre - 0.5 * c.height * axis
    if printed:  # the base projected on the element: an ellipse with semi-axes r |v.n| and r
        foot = centre + e.depth(centre) * e.normal
        xi = w - (w @ e.normal) * e.normal
        length = np.linalg.norm(xi)
        xi = xi / length if length > slack else w
        eta, size = np.cross(e.normal, xi), np.array([c.radius * max(length, 1e-300), c.radius])
        flat = np.column_stack([(e.corners - foot) @ xi, (e.corners - foot) @ eta]) / size
        nearest = e.nearest(foot) - foot
        if np.hypot(nearest @ xi / size[0], nearest @ eta / size[1]) > 1.0:  # ERR-3
            return
        u = np.cross(axis, w) * np.sign(np.cross(axis, w) @ eta)
    else:  # the element projected along the axis on the base (ERR-4)
        flat = np.column_stack([(e.corners - centre) @ w, (e.corners - centre) @ u]) / c.radius

    def add(x: float, y: float) -> None:
        point = centre + c.radius * (x * w + y * u)
        stages.found.append(ThreeCaseCandidate(point, e.depth(point), e.normal, e.number))

    inside = np.einsum("ij,ij->i", flat, flat) <= 1.0
    for k in range(len(flat)):
        p, q = flat[k], flat[(k + 1) % len(flat)]
        if printed and inside[k] == inside[(k + 1) % len(flat)]:  # ERR-5
            continue
        d = q - p
        a, b, r = d @ d, p @ d, p @ p - 1.0
        if b * b - a * r < 0.0:
            continue
        for t in ((-b - np.sqrt(b * b - a * r)) / a, (-b + np.sqrt(b * b - a * r)) / a):
            if 0.0 <= t <= 1.0:
                add(*(p + t * d))
    if not printed:
        for x, y in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
            if _holds(flat, np.array([x, y])):
                add(x, y)
    stages.contact_vertices |= set(e.vertices)
    stages.inner_vertices |= {v for v, within in zip(e.vertices, inside, strict=True) if within}
    if inside.all():
        stages.inner.append((float(1.0 - np.linalg.norm(flat, axis=1).max()), e))


def _holds(polygon: np.ndarray, point: np.ndarray) -> bool:
    """Whether a convex polygon of the plane, in either order, holds a point."""
    sides, away = np.roll(polygon, -1, axis=0) - polygon, point - polygon
    turns = sides[:, 0] * away[:, 1] - sides[:, 1] * away[:, 0]
    return bool((turns >= 0.0).all() or (turns <= 0.0).all())


def _side(c: OneCylinder, e: Element, axis: np.ndarray, stages: ThreeCaseStages, slack: float, printed: bool) -> None:
    """Case B: the part of the lowest line of the side over the element (section 6)."""
    w, _ = rim_frame(axis, e)
    start, way = c.centre - 0.5 * c.height * axis + c.radius * w, c.height * axis
    foot = start + e.depth(start) * e.normal
    flat_way = way - (way @ e.normal) * e.normal
    part = clip_segment(foot, flat_way, e, slack) if flat_way @ flat_way > slack * slack else None
    if part is None:
        _defer(c, e, foot, flat_way, stages, printed)
        return
    for t in part if part[1] - part[0] > 1e-9 else part[:1]:
        point = start + t * way
        stages.found.append(ThreeCaseCandidate(point, e.depth(point), e.normal, e.number))
    stages.contact_vertices |= set(e.vertices)


def _rim_point(
    c: OneCylinder, e: Element, axis: np.ndarray, stages: ThreeCaseStages, slack: float, printed: bool
) -> None:
    """Case C: the deepest point of the rim, if its foot is in the element (section 7)."""
    w, _ = rim_frame(axis, e)
    point = c.centre - 0.5 * c.height * axis + c.radius * w
    foot = point + (-1.0 if printed else 1.0) * e.depth(point) * e.normal  # ERR-8
    nearest = e.nearest(foot)
    if np.linalg.norm(nearest - foot) <= slack:
        stages.found.append(ThreeCaseCandidate(point, e.depth(point), e.normal, e.number))
        stages.contact_vertices |= set(e.vertices)
        return
    _defer(c, e, foot, np.zeros(3), stages, printed)


def _defer(
    c: OneCylinder, e: Element, foot: np.ndarray, way: np.ndarray, stages: ThreeCaseStages, printed: bool
) -> None:
    """Omega_E: the points of the element nearest to a segment; two where an edge is parallel to it (L 281)."""
    best, points = np.inf, []
    for k in range(len(e.corners)):
        a, b = e.corners[k], e.corners[(k + 1) % len(e.corners)]
        for q, distance in _nearest_on_edge(a, b, foot, way):
            if distance < best - 1e-12:
                best, points = distance, []
            if distance <= best + 1e-12 and not any(np.allclose(q, p, atol=1e-12) for p in points):
                points.append(q)
    for q in points:
        away = q - c.centre
        z = float(away @ c.axis)
        if abs(z) > 0.5 * c.height or np.linalg.norm(away - z * c.axis) > c.radius:
            if printed:  # ERR-9: the article gives up here
                continue
            q = overlap(c, e).nearest
        stages.deferred.append((best, e, q))


def _nearest_on_edge(a: np.ndarray, b: np.ndarray, foot: np.ndarray, way: np.ndarray):
    """Points of an edge nearest to a segment of the same plane, with their distance."""
    d = b - a
    ends = [foot, foot + way]
    for p in ends:
        t = np.clip((p - a) @ d / (d @ d), 0.0, 1.0)
        yield a + t * d, float(np.linalg.norm(a + t * d - p))
    length = way @ way
    for q in (a, b):
        s = np.clip((q - foot) @ way / length, 0.0, 1.0) if length > 0.0 else 0.0
        yield q, float(np.linalg.norm(foot + s * way - q))


def inner_contacts(cylinder: OneCylinder, stages: ThreeCaseStages, slack: float, printed: bool = False) -> None:
    """Omega_I: vertices of the ground on the border of the patch under a base (8.1)."""
    inner = sorted(stages.inner, key=lambda item: (item[0], item[1].number))
    if printed:  # ERR-10: the toggle depends on the order
        kept = set(stages.inner_vertices)
        for _, element in inner:
            for vertex in element.vertices:
                if vertex in stages.contact_vertices:
                    kept.discard(vertex)
                else:
                    kept.add(vertex)
                    stages.contact_vertices.add(vertex)
    else:
        kept = stages.inner_vertices
    done = set()
    for _, element in inner:
        axis = cylinder.facing(element.normal)
        for vertex, corner in zip(element.vertices, element.corners, strict=True):
            if vertex in kept and vertex not in done:
                done.add(vertex)
                down = (corner - cylinder.centre) @ axis + 0.5 * cylinder.height
                point = corner - down * axis
                depth = element.depth(point)
                if depth >= -slack:
                    stages.found.append(ThreeCaseCandidate(point, depth, element.normal, element.number))


def deferred_contacts(
    cylinder: OneCylinder, stages: ThreeCaseStages, near_edge: float, slack: float, printed: bool = False
) -> None:
    """Omega_E: the nearer of base and side as the way out (8.2, formulas 13 and 14)."""
    v = cylinder.axis
    for _, element, q in sorted(stages.deferred, key=lambda item: (item[0], item[1].number)):
        if _is_represented(element, q, stages.contact_vertices, near_edge):
            continue
        z = float((q - cylinder.centre) @ v)
        radial = cylinder.centre + z * v - q
        distance = float(np.linalg.norm(radial))
        to_base, to_side = 0.5 * cylinder.height - abs(z), cylinder.radius - distance
        if to_base < to_side and abs(v @ element.normal) >= PARALLEL:
            sign = float(np.sign(z))
            if not printed and sign == 0.0:
                sign = -1.0 if v @ element.normal > 0.0 else 1.0
            point, depth, normal = q + sign * to_base * v, to_base, -sign * v
        else:
            if not printed and distance <= slack:
                radial = element.normal - (element.normal @ v) * v
                distance = float(np.linalg.norm(radial))
            normal = radial / distance if distance > 0.0 else np.zeros(3)
            point, depth = cylinder.centre + z * v - cylinder.radius * normal, to_side
        stages.contact_vertices |= set(element.vertices)
        if printed or (depth >= -slack and normal @ element.normal >= 0.0):
            stages.found.append(ThreeCaseCandidate(point, depth, normal, element.number))


def _is_represented(element: Element, q: np.ndarray, vertices: set[int], near_edge: float) -> bool:
    """Whether a point lies on an edge both of whose ends have given contacts (L 308)."""
    for k in range(len(element.corners)):
        a, b = element.corners[k], element.corners[(k + 1) % len(element.corners)]
        if element.vertices[k] in vertices and element.vertices[(k + 1) % len(element.corners)] in vertices:
            t = np.clip((q - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
            if np.linalg.norm(a + t * (b - a) - q) <= near_edge:
                return True
    return False


def _sane(cylinder: OneCylinder, near: list[Element], found: list[ThreeCaseCandidate]) -> list[ThreeCaseCandidate]:
    """The filter of 8.4: nothing deeper than the lift that frees the cylinder, nothing downward, never nothing."""
    if not any(overlap(cylinder, e).hit for e in near):
        return found
    low, high = 0.0, max(e.corners[:, 2].max() for e in near) - cylinder.box()[0][2] + 1e-9
    for _ in range(45):
        up = 0.5 * (low + high)
        lifted = OneCylinder(cylinder.centre + [0.0, 0.0, up], cylinder.axis, cylinder.radius, cylinder.height)
        low, high = (up, high) if any(overlap(lifted, e).hit for e in near) else (low, up)
    kept = [c for c in found if c.depth <= 1.01 * high and c.normal[2] >= 0.0]
    if kept:
        return kept
    deepest = cylinder.centre - 0.5 * cylinder.height * cylinder.facing(np.array([0.0, 0.0, 1.0]))
    return [ThreeCaseCandidate(deepest, high, np.array([0.0, 0.0, 1.0]), near[0].number)]


def groups_of(found: list[ThreeCaseCandidate], slack: float) -> list[list[ThreeCaseCandidate]]:
    """Candidates with normals within a degree, greedily in order; equal points once, the deepest (8.3)."""
    groups: list[list[ThreeCaseCandidate]] = []
    for c in found:
        group = next((g for g in groups if g[0].normal @ c.normal >= np.cos(np.radians(1.0))), None)
        if group is None:
            groups.append([c])
            continue
        twin = next((k for k, o in enumerate(group) if np.linalg.norm(o.point - c.point) <= slack), None)
        if twin is None:
            group.append(c)
        elif c.depth > group[twin].depth:
            group[twin] = c
    return groups


def choose_four(group: list[ThreeCaseCandidate], printed: bool = False) -> list[ThreeCaseCandidate]:
    """The deepest and three that span most; the ends of a line (8.3)."""
    if len(group) <= 4:
        return group
    points = np.array([c.point for c in group])
    depths = np.array([c.depth for c in group])
    first = int(depths.argmax())
    if not printed:  # of equally deep points the outermost
        far = np.linalg.norm(points - points.mean(axis=0), axis=1)
        first = int(np.where(depths >= depths[first] - 1e-9, far, -1.0).argmax())
    second = int(np.linalg.norm(points - points[first], axis=1).argmax())
    line = points[second] - points[first]
    off = np.linalg.norm(np.cross(points - points[first], line), axis=1)
    third = int(off.argmax())
    if off[third] <= 1e-6 * (line @ line):
        along = points @ line
        ends = {int(along.argmin()), int(along.argmax())}
        return [group[k] for k in sorted(ends if printed else ends | {first})]
    n = group[0].normal

    def turn(a: int, b: int, q: np.ndarray) -> np.ndarray:
        return np.cross(points[b] - points[a], q - points[a]) @ n

    if printed:  # ERR-11: the area in the written order
        gain = np.abs(turn(first, second, points[third]) + turn(first, third, points))
    else:
        sign = np.sign(turn(first, second, points[third]))
        outside = [turn(a, b, points) * sign for a, b in ((first, second), (second, third), (third, first))]
        gain = sum(np.maximum(-t, 0.0) for t in outside)
    gain[[first, second, third]] = -1.0
    return [group[k] for k in (first, second, third, int(gain.argmax()))]
