"""Is one solid inside another, although their surfaces do not meet?

Question: which bodies, or connected pieces of them, lie inside another body.
Method:   where surfaces do not meet, a connected piece is on one side of the other surface: one vertex of each piece
          decides, by the winding number of the other surface about it (`traversal`). Inside is where that is not 0.
Exact:    for the positions as rounded to double precision in the world; what is out of the range of floating point is
          decided in rational arithmetic. Surfaces that meet are not asked about: `intersects` decides that.
          Of an analytic body one point of it decides (`specks`); what is inside such a body meets it anyway.
Limits:   closed, oriented meshes; others are refused with the reason. Cavities are inner surfaces that face inwards.
Known as: containment test, point in polyhedron by ray crossings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.containment.specks import SPECK, posed_solid
from tangere.query.containment.traversal import UNDECIDED, PointInBody, find_windings
from tangere.query.dispatch import is_analytic
from tangere.query.distance.result import Distance
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.intersection.posed import Posed
from tangere.query.signed_distance.api import signed_distance
from tangere.runtime import Arrays, InputError, choose_device, described, launch
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: More than rounding does to a point in the frame of another body, relative to the coordinates.
_SLACK = 1e-12


def check_solid(thing: Any, name: str, asked: str = "solid=True") -> None:
    """Raise unless a thing is a mesh, at rest or moving, that has an inside: closed, oriented, facing outwards.

    Args:
        name: of the thing.
        asked: what it needs an inside for, in the caller's words.
    """
    mesh = thing.shape if isinstance(thing, Moving) else thing
    if not isinstance(mesh, Mesh):
        raise InputError(f"{asked}: {name} must be a mesh, not {described(thing)}")
    if mesh.cache.get(check_solid):
        return
    told = ", ".join(f"{count} {reason}" for reason, count in _openings(mesh).items() if count)
    if told:
        raise InputError(f"{asked}: {name}, {mesh.name!r}, has no inside ({told})")
    if _faces_inwards(mesh):
        raise InputError(f"{asked}: {name}, {mesh.name!r}, is inside out: turn its triangles round")
    mesh.cache[check_solid] = True


def outward(mesh: Mesh) -> Mesh:
    """The mesh itself, or, where it is closed and oriented but inside out, the same with its triangles turned round."""
    if any(_openings(mesh).values()) or not _faces_inwards(mesh):
        return mesh
    if outward not in mesh.cache:
        mesh.cache[outward] = Mesh(mesh.vertices, mesh.faces[:, ::-1], name=mesh.name)
    return mesh.cache[outward]


def _openings(mesh: Mesh) -> dict[str, int]:
    """Why a mesh has no inside: so many edges of each kind."""
    topology = mesh.topology
    return {
        "edges with one triangle": topology.open_edge_count,
        "edges with more than two triangles": topology.crowded_edge_count,
        "edges whose triangles face opposite ways": topology.reversed_edge_count,
    }


def _faces_inwards(mesh: Mesh) -> bool:
    """Whether the volume that a closed mesh encloses is negative."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces] - mesh.vertices.mean(axis=0), 1, 0)
    return bool(np.einsum("fi,fi->", a, np.cross(b, c)) < 0.0)


def check_solids(a: Any, b: Any) -> None:
    """Raise unless two things have an inside: analytic bodies, or meshes that `check_solid` takes."""
    for thing, name in ((a, "a"), (b, "b")):
        if not is_analytic(thing):
            check_solid(thing, name)


def contained_vertices(
    shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, pairs: np.ndarray, device: str | wp.Device | None
) -> np.ndarray:
    """(k,) for pairs (i, j) of bodies whose surfaces do not meet: a vertex of body i inside body j, or -1.

    Args:
        shapes: closed meshes.
        shape: (n,) which of them each body is.
        poses: (n, 4, 4) where each body is.
        pairs: (k, 2) numbers of bodies; one vertex of each connected piece of the first is asked about.
    """
    device = choose_device(device)
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    inside = np.full(len(pairs), -1)
    pieces = [_one_of_each_piece(mesh) for mesh in shapes]
    counts = np.array([len(vertices) for vertices in pieces])
    begins = np.cumsum(counts) - counts
    own = shape[pairs[:, 0]]
    pair = np.repeat(np.arange(len(pairs)), counts[own])
    place = np.arange(len(pair)) - np.repeat(np.cumsum(counts[own]) - counts[own], counts[own]) + begins[own[pair]]
    vertex = np.concatenate(pieces)[place]
    point = np.concatenate([mesh.vertices[vertices] for mesh, vertices in zip(shapes, pieces, strict=True)])[place]
    near = _in_bounds(shapes, shape, poses, pairs[pair], point)
    pair, vertex, point = pair[near], vertex[near], point[near]
    if not len(pair):
        return inside
    forest = Forest.of(shapes, device)
    rows = np.zeros(len(pair), PointInBody.numpy_dtype())
    rows["point"], (rows["pose"], rows["other"]) = point, pairs[pair].T
    other = shape[pairs[pair, 1]]
    rows["node"], rows["triangle"] = forest.first_node[other], forest.first_triangle[other]
    windings = wp.empty(len(rows), dtype=wp.int32, device=device)
    inputs = [
        wp.array(rows, dtype=PointInBody, device=device),
        wp.array(poses, dtype=wp.mat44d, device=device),
        forest.nodes,
        forest.corners,
    ]
    launch(find_windings, len(rows), inputs, [windings], device=device, grain=64)
    found = windings.numpy().copy()
    for row in np.flatnonzero(found == int(UNDECIDED)):
        found[row] = _exact_winding(
            _world(point[row], poses[pairs[pair[row], 0]]),
            _world(shapes[other[row]].vertices[shapes[other[row]].faces], poses[pairs[pair[row], 1]]),
        )
    hits = np.flatnonzero(found != 0)[::-1]  # so that the first of a pair is the one that stays
    inside[pair[hits]] = vertex[hits]
    return inside


def contained(one: Posed, other: Posed, device: str | wp.Device | None) -> tuple[np.ndarray, np.ndarray]:
    """Of two meshes in n poses each, or one: (n,) a vertex of the first in the second, and of the second in the first.

    -1 where there is none; for poses in which the surfaces do not meet.
    """
    count = max(len(one.poses), len(other.poses))
    poses = np.concatenate([np.broadcast_to(each.poses, (count, 4, 4)) for each in (one, other)])
    pairs = np.stack([np.arange(count), count + np.arange(count)], axis=1)
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    shapes, shape = (one.mesh, other.mesh), np.repeat([0, 1], count)
    found = contained_vertices(shapes, shape, poses, pairs, device)
    return found[:count], found[count:]


def starting_inside(
    found: FirstContact | FirstContacts,
    a: Any,
    b: Any,
    *,
    device: str | wp.Device | None,
) -> FirstContact | FirstContacts:
    """What was found of two bodies, or of n, but START and INSIDE where one begins inside another; lists: `listed`."""
    one, other = posed_solid(a, 0.0), posed_solid(b, 0.0)
    if isinstance(found, FirstContact):
        if found.status == Status.START:
            return found
        contacts = inside_contacts(one, other, device)
        return replace(found, time=0.0, time_upper=0.0, status=Status.START, contacts=contacts) if contacts else found
    contacts = inside_contacts(one, other, device, np.asarray(found.status) != Status.START)
    rows = contacts.query
    columns: dict[str, Any] = {"time": 0.0, "time_upper": 0.0, "status": Status.START}
    for name in ("kind", "weights", "point_a", "point_b", "normal"):
        columns[name] = getattr(contacts, name)
    changed = {}
    for name, value in columns.items():
        before = getattr(found, name)
        if before is not None:
            changed[name] = np.array(before)
            changed[name][rows] = value
    return replace(found, **changed)


def inside_contacts(
    one: Posed, other: Posed, device: str | wp.Device | None, asked: np.ndarray | None = None
) -> Contacts:
    """The contact of each of n poses in which one mesh is inside the other: the vertex and the nearest way out.

    Args:
        asked: (n,) which poses are asked about; None means all. In these the surfaces do not meet.
    """
    count = max(len(one.poses), len(other.poses))
    rows = np.arange(count) if asked is None else np.flatnonzero(asked)
    sides = [Posed(side.mesh, np.broadcast_to(side.poses, (count, 4, 4))[rows], False) for side in (one, other)]
    in_other, in_one = contained(*sides, device)
    parts = []
    for vertex_on, vertex in enumerate((in_other, np.where(in_other < 0, in_one, -1))):
        hits = np.flatnonzero(vertex >= 0)
        if not len(hits):
            continue
        inner, outer = sides[vertex_on], sides[1 - vertex_on]
        point = _world(inner.mesh.vertices[vertex[hits]], inner.poses[hits])
        nearest = signed_distance(_local(point, outer.poses[hits]), outer.mesh, device=device)
        surface = _world(nearest.point, outer.poses[hits])
        way = surface - point
        length = np.linalg.norm(way, axis=1, keepdims=True)
        out = np.divide(way, length, out=np.zeros_like(way), where=length > 0.0) * (1.0 if vertex_on == 0 else -1.0)
        corner = np.full(len(hits), -1) if inner.mesh is SPECK else vertex[hits]
        features = (corner, nearest.face) if vertex_on == 0 else (nearest.face, corner)
        points = (point, surface) if vertex_on == 0 else (surface, point)
        parts.append(
            Contacts.of(
                point_a=points[0],
                point_b=points[1],
                normal=out,
                kind=Kind.INSIDE,
                feature_a=features[0],
                feature_b=features[1],
                vertex_on=vertex_on,
                weights=np.concatenate([np.ones((len(hits), 1)), nearest.weights], axis=1),
                query=rows[hits],
            )
        )
    if not parts:
        return Contacts()
    joined = Contacts.joined(parts)
    return joined[np.argsort(joined.query, kind="stable")]


def distance_of_solids(found: Distance, a: Any, b: Any, time: Arrays, device: str | wp.Device | None) -> Distance:
    """The distance of surfaces, but 0 where one body is inside the other: points and triangles of the way out."""
    apart = np.atleast_1d(found.upper) > 0.0
    one, other = posed_solid(a, time), posed_solid(b, time)
    inner = inside_contacts(one, other, device, apart)
    if not len(inner):
        return found
    single = np.ndim(found.upper) == 0
    columns = {name: np.array(value)[None] if single else value for name, value in vars(found).items()}
    rows = inner.query
    columns["lower"][rows] = columns["upper"][rows] = 0.0
    columns["normal"][rows] = 0.0
    columns["weights_a"][rows] = columns["weights_b"][rows] = np.nan
    columns["point_a"][rows] = columns["point_b"][rows] = np.where(
        inner.vertex_on[:, None] == 0, inner.point_a, inner.point_b
    )
    columns["kind"][rows] = Kind.INSIDE
    for side, mesh in (("a", one.mesh), ("b", other.mesh)):
        if mesh is SPECK:
            continue
        feature = getattr(inner, f"feature_{side}")
        is_vertex = inner.vertex_on == (0 if side == "a" else 1)
        around = mesh.topology.vertex_faces
        columns[f"triangle_{side}"][rows] = np.where(
            is_vertex, around.indices[around.offsets[np.where(is_vertex, feature, mesh.faces[0, 0])]], feature
        )
    if not single:
        return Distance(**columns)
    row = {name: value[0] for name, value in columns.items()}
    return Distance(**row | {"kind": Kind.INSIDE, "lower": 0.0, "upper": 0.0})


def _one_of_each_piece(mesh: Mesh) -> np.ndarray:
    """(pieces,) the first vertex of each connected piece that has triangles."""
    key = (_one_of_each_piece,)
    if key not in mesh.topology.cache:
        used = np.unique(mesh.faces)
        first = np.unique(mesh.topology.component[used], return_index=True)[1]
        mesh.topology.cache[key] = used[first]
    return mesh.topology.cache[key]


def _in_bounds(
    shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, pairs: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """(k,) whether points of the first bodies of pairs may be within the boxes of the second ones."""
    world = _world(points, poses[pairs[:, 0]])
    there = _local(world, poses[pairs[:, 1]])
    bounds = np.stack([mesh.bounds for mesh in shapes])[shape[pairs[:, 1]]]
    size = np.abs(world).max(axis=1) + np.abs(poses[pairs[:, 1], :3, 3]).max(axis=1) + np.abs(bounds).max(axis=(1, 2))
    slack = _SLACK * size[:, None]
    return ((there >= bounds[:, 0] - slack) & (there <= bounds[:, 1] + slack)).all(axis=1)


def _world(points: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Points (…, 3) at poses (4, 4) or as many of them, rounded as kernels do."""
    turn, shift = poses[..., :3, :3], poses[..., :3, 3]
    x, y, z = (points[..., k, None] for k in range(3))
    return turn[..., 0] * x + turn[..., 1] * y + turn[..., 2] * z + shift


def _local(points: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Points (k, 3) of the world in the frames of as many poses."""
    return np.einsum("kji,kj->ki", poses[:, :3, :3], points - poses[:, :3, 3])


def _exact_winding(point: np.ndarray, triangles: np.ndarray) -> int:
    """The winding number of triangles (m, 3, 3) about a point that is on none of them, in rational arithmetic."""
    p = [Fraction(x) for x in point.tolist()]
    winding = 0
    for rows in triangles.tolist():
        corners = [[Fraction(x) - p[k] for k, x in enumerate(row)] for row in rows]
        turns = {_exact_turn(corners[k], corners[(k + 1) % 3]) for k in range(3)}
        if len(turns) == 1 and turns != {0}:
            a, b, c = corners
            across = (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
            volume = sum(x * y for x, y in zip(a, across, strict=True))
            turn = turns.pop()
            winding += turn if (volume > 0) - (volume < 0) == turn else 0
    return winding


def _exact_turn(u: list[Fraction], v: list[Fraction]) -> int:
    """Which way u, v and the origin turn in y and z; the origin is moved aside as in the kernel."""
    value = u[1] * v[2] - u[2] * v[1] or u[2] - v[2] or v[1] - u[1]
    return (value > 0) - (value < 0)
