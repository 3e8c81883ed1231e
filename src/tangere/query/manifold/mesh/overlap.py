"""Triangles that pass through a body: along which normal does each part of the surface push it out?

Question: a body and some triangles have points in common; which way is out, and how far?
Method:   triangles that hang together over edges that are not concave, seen from the side where the body is, are one
          piece: floor and wall are two, the sides of a ridge one. Triangles beside those that are met belong to it.
          Which side that is the surface tells as a whole: the one with the shorter way, triangle by triangle. Of the
          normals of its triangles and the least way out of its hull (EPA), a piece takes the one along which the body
          has the shortest way until all of it is behind the body.
Sound:    moved so far along the normal the body is clear of the piece: ways are from supports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.query.distance.convex.bodies import SHAPE, ConvexBodies
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.manifold.convex.batch import GRAIN, penetrations
from tangere.query.manifold.mesh.near_triangles import way_out_kernel
from tangere.query.proximity.posed.features import IS_FEATURE, MeshFeatures
from tangere.runtime import launch
from tangere.shape.mesh import Mesh

#: sin of how far a triangle may rise beside an edge that is not concave.
RISE = 1e-3
#: Ways that differ by this part of the body's size are as long: the normal of a triangle is preferred.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class BodiesOnMesh:
    """Bodies of a kind and a mesh at their poses, on a device."""

    bodies: ConvexBodies
    mesh: Mesh
    poses_a: wp.array  #: (1,) or (n,) `mat44d`
    poses_b: wp.array
    shapes: Any  #: `ShapeTables` of the mesh
    device: wp.Device

    def turns(self, rows: np.ndarray) -> np.ndarray:
        """Rotations of the mesh in some questions, (k, 3, 3)."""
        poses = self.poses_b.numpy()
        return poses[np.minimum(rows, len(poses) - 1), :3, :3]

    def sent(self, data: np.ndarray, dtype: Any) -> wp.array:
        """What nobody changes any more, on the device; on CPU the same memory: a copy takes longer than the rest."""
        return wp.array(data, dtype=dtype, device=self.device, copy=not self.device.is_cpu)


@dataclass(frozen=True, eq=False)
class WaysOut:
    """Of n triangles that meet bodies."""

    piece: np.ndarray  #: (n,) number of the piece of surface
    normal: np.ndarray  #: (n, 3) unit, the way out of the piece
    way: np.ndarray  #: (n,) how far it is along it until the triangle is behind the body [m]
    deepest: np.ndarray  #: (n, 3) the body's deepest point, in the world


def ways_out(scene: BodiesOnMesh, near: np.ndarray) -> WaysOut:
    """The ways out of the pieces of surface that `NearTriangle` records which meet are of."""
    met = len(near)
    near = _with_neighbours(scene.mesh, near)
    normals = _turned_normals(scene, near)
    count = len(near)
    both = _ways(scene, near, np.tile(np.arange(count), 2), np.concatenate([normals, -normals]))[0]
    sides = _sides(scene.mesh, near, both[:count], both[count:])
    normals = sides[:, None] * normals
    piece = _pieces(scene, near, sides, normals)
    order = np.argsort(piece, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(piece[order])) + 1)
    tried = [_distinct(normals[group]) for group in groups]
    # Triangles within a flat place have no way out but its normal.
    outer = (MeshFeatures.of(scene.mesh).owns[near["triangle"]] >> IS_FEATURE) & 7 > 0
    bent = [k for k, group in enumerate(groups) if outer[group].any()]
    if bent:
        least = _least_ways(scene, [near[groups[k]] for k in bent])
        for k, normal in zip(bent, least, strict=True):
            tried[k] = np.concatenate([tried[k], normal[None]])
    tried = [each[np.isfinite(each).all(axis=1)] for each in tried]
    found = _shortest(scene, near, piece, groups, tried)
    return WaysOut(*(column[:met] for column in vars(found).values()))


def _with_neighbours(mesh: Mesh, near: np.ndarray) -> np.ndarray:
    """The records, and then such of triangles beside theirs: a body must not be pushed into those."""
    edges, beside = mesh.topology.face_edges[near["triangle"]].ravel(), mesh.topology.edge_faces
    count = np.diff(beside.offsets)[edges]
    which = np.repeat(np.repeat(np.arange(len(near)), 3), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    others = beside.indices[np.repeat(beside.offsets[:-1][edges], count) + place]
    key = near["row"][which].astype(np.int64) * len(mesh.faces) + others
    known = near["row"].astype(np.int64) * len(mesh.faces) + near["triangle"]
    first = np.unique(key, return_index=True)[1]
    first = first[~np.isin(key[first], known)]
    ring = near[which[first]].copy()
    ring["triangle"] = others[first]
    return np.concatenate([near, ring])


def _turned_normals(scene: BodiesOnMesh, near: np.ndarray) -> np.ndarray:
    """Of the planes, in the world; NaN of triangles without one."""
    own = scene.mesh.face_normals[near["triangle"]]
    own = np.where(np.linalg.norm(own, axis=1)[:, None] > 0.5, own, np.nan)
    return np.einsum("nij,nj->ni", scene.turns(near["row"]), own)


def _ways(
    scene: BodiesOnMesh, near: np.ndarray, which: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far bodies of some records have to go along normals until the triangles are behind them; deepest points."""
    arrays = [scene.sent(near[name][which].astype(np.int32), wp.int32) for name in ("row", "triangle")]
    depths = wp.zeros(len(which), dtype=wp.float64, device=scene.device)
    deepest = wp.zeros(len(which), dtype=wp.vec3d, device=scene.device)
    inputs = [
        *arrays,
        scene.sent(np.nan_to_num(normals), wp.vec3d),
        *scene.bodies.arguments,
        scene.poses_a,
        scene.shapes.corners,
        scene.poses_b,
    ]
    launch(way_out_kernel(scene.bodies.kind), len(which), inputs, [depths, deepest], device=scene.device, grain=GRAIN)
    return np.where(np.isnan(normals[:, 0]), np.inf, depths.numpy()), deepest.numpy()


def _sides(mesh: Mesh, near: np.ndarray, out: np.ndarray, back: np.ndarray) -> np.ndarray:
    """1 or -1: whether the body leaves each triangle by the side its normal shows, or by the other."""
    own = np.where(out <= back, 1.0, -1.0)
    if not mesh.topology.is_oriented:
        return own
    links = _links(mesh, near, np.ones(len(near), bool))[:2]
    label = _connected(links, len(near))
    votes = np.bincount(label, own * mesh.face_areas[near["triangle"]])
    return np.where(votes[label] >= 0.0, 1.0, -1.0)


def _pieces(scene: BodiesOnMesh, near: np.ndarray, sides: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """(k,) the number of the piece of each triangle."""
    one, other, edge = _links(scene.mesh, near, np.isfinite(normals[:, 0]))
    vertices, faces = scene.mesh.vertices, scene.mesh.faces
    rises = np.zeros(len(one), bool)
    ends = scene.mesh.topology.edges[edge]
    for here, there in ((one, other), (other, one)):
        # The corner of the other triangle that is not on the edge, over the plane of this one.
        corners = faces[near["triangle"][there]]
        opposite = corners.sum(axis=1) - ends.sum(axis=1)
        away = vertices[opposite] - vertices[ends[:, 0]]
        height = np.einsum("ni,ni->n", away, sides[here][:, None] * scene.mesh.face_normals[near["triangle"][here]])
        rises |= height > RISE * np.linalg.norm(away, axis=1)
    return _connected((one[~rises], other[~rises]), len(near))


def _links(mesh: Mesh, near: np.ndarray, proper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of records of one question whose triangles share an edge, and that edge."""
    edges = mesh.topology.face_edges[near["triangle"]]
    which = np.repeat(np.arange(len(near)), 3)[np.repeat(proper, 3)]
    edge = edges[proper].ravel()
    row = near["row"][which]
    order = np.lexsort((which, edge, row))
    same = (np.diff(row[order]) == 0) & (np.diff(edge[order]) == 0)
    first = np.flatnonzero(same)
    return which[order[first]], which[order[first + 1]], edge[order[first]]


def _connected(links: tuple[np.ndarray, np.ndarray], count: int) -> np.ndarray:
    """(count,) numbers of the groups that hang together: the least label of either end goes to both until none does."""
    one, other = links
    label = np.arange(count)
    while (label[one] != label[other]).any():
        least = np.minimum(label[one], label[other])
        for end in links:
            np.minimum.at(label, label[end], least)
        label = label[label]
    return np.unique(label, return_inverse=True)[1]


def _distinct(normals: np.ndarray) -> np.ndarray:
    """Each direction once, to rounding."""
    return normals[np.unique(np.round(normals, 9), axis=0, return_index=True)[1]]


def _least_ways(scene: BodiesOnMesh, pieces: list[np.ndarray]) -> np.ndarray:
    """The normals of the least ways out of the convex hulls of pieces, (k, 3)."""
    rows = np.array([piece["row"][0] for piece in pieces])

    def gathered(array: wp.array, dtype: Any) -> wp.array:
        values = array.numpy()
        return scene.sent(values[np.minimum(rows, len(values) - 1)], dtype)

    corners = [scene.mesh.vertices[np.unique(scene.mesh.faces[piece["triangle"]])] for piece in pieces]
    hulls: Any = np.zeros(len(pieces), SHAPE)
    hulls["count"] = [len(each) for each in corners]
    hulls["first"] = np.cumsum(hulls["count"]) - hulls["count"]
    hulls["reach"] = [np.linalg.norm(each, axis=1).max() for each in corners]
    inputs = [
        gathered(scene.bodies.shapes, ConvexShape),
        scene.bodies.points,
        gathered(scene.poses_a, wp.mat44d),
        scene.sent(hulls, ConvexShape),
        scene.sent(np.concatenate(corners), wp.vec3d),
        gathered(scene.poses_b, wp.mat44d),
    ]
    return penetrations((scene.bodies.kind, ConvexKind.HULL), inputs, np.arange(len(pieces)), scene.device)["normal"]


def _shortest(
    scene: BodiesOnMesh, near: np.ndarray, piece: np.ndarray, groups: list[np.ndarray], tried: list[np.ndarray]
) -> WaysOut:
    """For each piece the candidate whose longest way is shortest."""
    which = np.concatenate([np.tile(group, len(each)) for group, each in zip(groups, tried, strict=True)])
    normals = np.concatenate([np.repeat(each, len(group), axis=0) for group, each in zip(groups, tried, strict=True)])
    ways, deepest = _ways(scene, near, which, normals)
    chosen = np.zeros(len(near), np.int64)
    at = 0
    for group, each in zip(groups, tried, strict=True):
        most = ways[at : at + len(group) * len(each)].reshape(len(each), len(group)).max(axis=1)
        best = int(np.argmax(most <= most.min() + SAME * near["size"][group[0]]))
        chosen[group] = at + best * len(group) + np.arange(len(group))
        at += len(group) * len(each)
    return WaysOut(piece, normals[chosen], ways[chosen], deepest[chosen])
