"""The middles of the arcs along which the rim of a disc lies on a flat place of a mesh.

Question: where does a disc bear that hangs over the border of a flat place, between the crossings of its rim with it?
Method:   crossings of the rim with the border, in their order around the disc; the middle of the arc from each to the
          next belongs to the contact if a triangle of the place is under it. Sides within the place are none of its
          border, so that its triangulation does not matter, and a crossing names the arc that begins there.
Known as: clipping of a disc against a polygon.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.manifold.convex.batch import GRAIN
from tangere.query.manifold.convex.clipping import ARC, CROSSING, RIM, is_over, lifted
from tangere.query.manifold.convex.features import DISC, Features
from tangere.query.manifold.mesh.contact_keys import rim_key
from tangere.query.manifold.mesh.overlap import BodiesOnMesh
from tangere.query.manifold.mesh.triangle_features import PLANE
from tangere.query.proximity.posed.features import IS_FEATURE, MeshFeatures
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

vec = wp.vec3d

#: Middles that are nearer to a point of the rim that is listed anyway are left out, as part of the bodies' size.
_SAME = 1e-9
#: Normals of one place and body that differ by less are one.
_ALIKE = 1e-6


def arcs_of(
    scene: BodiesOnMesh,
    found: np.ndarray,
    pairs: np.ndarray,
    triangles: np.ndarray,
    parts: np.ndarray,
    features: list[Any],
    limits: np.ndarray,
) -> tuple[Contacts, np.ndarray]:
    """The contacts in the middles of arcs, and the rows that they are of.

    Args:
        scene: the bodies and the mesh.
        found: `ManifoldPoint` records of the rows, whose `feature_b` is the row.
        pairs: (m,) `NearPair` records.
        triangles, parts: (m,) of the mesh, and what of them was clipped.
        features: of the bodies and of the triangles, each m on the device, relative to the origins of the bodies.
        limits: (m,) larger gaps are no contacts [m].
    """
    own, other = features
    mesh, device = scene.mesh, scene.device
    listed = MeshFeatures.of(mesh)
    row = found["feature_b"]
    number = found["key"] & 0xFFFFF
    side = (number >> 2) % 3
    crossing = ((found["key"] >> 60) & 3 == CROSSING) & (number & int(ARC) == 0)
    crossing &= (own.count.numpy()[row] == DISC) & (parts[row] == PLANE)
    crossing &= (listed.owns[triangles[row]] >> (IS_FEATURE + side)) & 1 == 1
    found, row, number, side = (each[crossing] for each in (found, row, number, side))
    if not len(found):
        return Contacts.of(point_a=np.zeros((0, 3)), normal=np.zeros((0, 3))), row
    # One place that one disc lies on along one normal.
    flat = np.flatnonzero((own.count.numpy() == DISC) & (parts == PLANE))
    along = np.rint(pairs["normal"][flat] / _ALIKE)
    named = np.column_stack([pairs["row"][flat], own.number.numpy()[flat], listed.patch[triangles[flat]], along])
    place = np.full(len(pairs), -1)
    place[flat] = np.unique(named, axis=0, return_inverse=True)[1].ravel()
    middle, ways = own.starts.numpy()[row, 0], own.ends.numpy()[row, :2]
    poses = scene.poses_a.numpy()
    origins = poses[np.minimum(pairs["row"][row], len(poses) - 1), :3, 3]
    out = found["point_a"] - origins - middle
    angle = np.arctan2(np.einsum("ij,ij->i", out, ways[:, 1]), np.einsum("ij,ij->i", out, ways[:, 0]))
    order = np.lexsort((angle, place[row]))
    row, number, side, angle, middle, ways, origins = (
        each[order] for each in (row, number, side, angle, middle, ways, origins)
    )
    starts = np.flatnonzero(np.diff(place[row], prepend=-1))
    following = np.arange(1, len(row) + 1)
    following[np.append(starts[1:], len(row)) - 1] = starts
    arc = np.mod(angle[following] - angle, 2.0 * np.pi)
    half = angle + 0.5 * arc
    x = middle + np.cos(half)[:, None] * ways[:, 0] + np.sin(half)[:, None] * ways[:, 1]
    eighth = 2.0 * np.pi / RIM
    beside = np.abs(half / eighth - np.rint(half / eighth)) * eighth * np.linalg.norm(ways[:, 0], axis=1)
    size = pairs["size"][row]
    tried = np.flatnonzero((arc > 0.0) & (beside > _SAME * size))
    # Which triangle of its place is under each.
    flat = flat[np.argsort(place[flat], kind="stable")]
    ends = np.cumsum(np.bincount(place[flat]))
    begins = np.append(0, ends[:-1])
    sent = [
        (flat, wp.int32),
        (begins[place[row[tried]]], wp.int32),
        (ends[place[row[tried]]], wp.int32),
        (x[tried], wp.vec3d),
        (pairs["normal"][row[tried]], wp.vec3d),
        (_SAME * size[tried], wp.float64),
    ]
    arrays = [
        wp.array(np.ascontiguousarray(data, np.int32 if dtype is wp.int32 else np.float64), dtype=dtype, device=device)
        for data, dtype in sent
    ]
    under = wp.empty(len(tried), dtype=wp.int32, device=device)
    point = wp.empty(len(tried), dtype=wp.vec3d, device=device)
    launch(place_under, len(tried), [*arrays, other], [under, point], device=device, grain=GRAIN)
    below = under.numpy()
    n, point_b = pairs["normal"][row[tried]], point.numpy()
    gap = np.einsum("ij,ij->i", x[tried] - point_b, n)
    kept = np.flatnonzero((below >= 0) & (gap <= limits[row[tried]]))
    tried, below, point_b, gap = tried[kept], below[kept], point_b[kept], gap[kept]
    start = row[tried]
    number_a = own.number.numpy()[start]
    edge = mesh.topology.face_edges[triangles[start], side[tried]]
    contacts = Contacts.of(
        query=pairs["row"][start],
        point_a=origins[tried] + x[tried],
        point_b=origins[tried] + point_b,
        normal=pairs["normal"][start],
        gap=gap,
        feature_a=number_a,
        feature_b=triangles[below],
        key=rim_key(number_a, number[tried] & 3, edge),
    )
    return contacts, start


@wp.kernel
def place_under(
    first: int,
    rows: wp.array[int],
    begins: wp.array[int],
    ends: wp.array[int],
    points: wp.array[wp.vec3d],
    normals: wp.array[wp.vec3d],
    same: wp.array[wp.float64],
    triangles: Features,
    under: wp.array[int],
    below: wp.array[wp.vec3d],
):
    """The first of the rows from begin to end whose triangle is over a point, along a normal, or -1; where it is."""
    i = first + wp.tid()
    x = points[i]
    n = normals[i]
    under[i] = -1
    k = begins[i]
    while k < ends[i]:
        row = rows[k]
        if is_over(triangles, row, x, n, same[i]):
            under[i] = row
            below[i] = lifted(triangles, row, x, n)
            k = ends[i]
        k += 1
