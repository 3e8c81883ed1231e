"""Contact manifolds of two rigid meshes, and of a mesh and the ground.

Question: at which points do two surfaces that do not pass through each other nearly touch?
Method:   the constraints of both surfaces nearer than a distance (`proximity.posed`: flat places count as one face, and
          directions must be in the normal cones of both features); what others imply is left out (`envelope`). Ground
          is the block of it around the mesh.
Sound:    as `PosedProximity`. Surfaces that pass through each other, and meshes below the ground, are refused: one
          normal does not tell how to part them; `tg.depth` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlocks
from tangere.query.contacts.record import Contacts, Kind, contact_key
from tangere.query.distance.convex.bodies import paired_count
from tangere.query.first_contact.mesh_heightfield.api import LEAST_PART
from tangere.query.first_contact.mesh_heightfield.below_ground import rigid_below_ground
from tangere.query.first_contact.mesh_heightfield.details import in_ground, refuse_unnumbered
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.query.intersection.posed import as_posed
from tangere.query.manifold.convex.batch import MARGIN
from tangere.query.manifold.mesh.contact_keys import unique_keys
from tangere.query.manifold.mesh.envelope import reduced
from tangere.query.proximity.posed.api import PosedProximity
from tangere.query.proximity.posed.features import MeshFeatures
from tangere.query.proximity.posed.result import PosedContacts
from tangere.runtime import Arrays, UnsupportedError, choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

#: Surfaces with which a mesh was asked last that are kept with it.
KEPT_SURFACES = 8
_OVERLAP = "pass through each other: a manifold has no way out of that, tg.depth tells one"


def mesh_manifold(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    time: Arrays = 0.0,
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of two rigid meshes at one pose of each or n; arguments as for `manifold`.

    Returns:
        By rising pair of poses (`query`), of the kinds and with the features of `tg.proximity`.
    """
    one, other = as_posed(a, time), as_posed(b, time)
    on = choose_device(device)
    count = paired_count(len(one.poses), len(other.poses))
    limit = MARGIN * 0.5 * min(one.mesh.extent, other.mesh.extent) if distance is None else distance
    with using_threads(threads):
        near = _posed_proximity([one.mesh] * len(one.poses) + [other.mesh] * len(other.poses), on)
        rows = np.arange(count)
        second = len(one.poses) + np.minimum(rows, len(other.poses) - 1)
        pairs = np.stack([np.minimum(rows, len(one.poses) - 1), second], axis=1)
        found = near.at(np.concatenate([one.poses, other.poses]), pairs, limit)
        if found.overlapping.any():
            raise UnsupportedError(f"the meshes of pair {int(np.argmax(found.overlapping))} {_OVERLAP}")
        return _told(found.contacts, one.mesh.extent + other.mesh.extent, on)


def ground_manifold(
    a: Mesh | Moving,
    terrain: Heightfield | TiledHeightfield,
    *,
    time: Arrays = 0.0,
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of a rigid mesh, at one pose or n, with the ground, which is solid; arguments as for `manifold`.

    Returns:
        By rising pose (`query`); `feature_b` is a vertex, edge or face as the ground numbers them.
    """
    refuse_unnumbered(terrain)
    posed, on = as_posed(a, time), choose_device(device)
    limit = MARGIN * 0.5 * posed.mesh.extent if distance is None else distance
    parts = []
    with using_threads(threads):
        for row, pose in enumerate(posed.poses):
            found = _of_pose(posed.mesh, pose, terrain, limit, row, on)
            parts.append(replace(found, query=np.full(len(found), row, np.int32)))
        return _told(Contacts.joined(parts), 2.0 * posed.mesh.extent, on) if parts else Contacts()


def _of_pose(
    mesh: Mesh, pose: np.ndarray, terrain: Heightfield | TiledHeightfield, limit: float, row: int, device: wp.Device
) -> Contacts:
    """All contacts at one pose, in the numbers of the ground."""
    blocks = GroundBlocks.of(terrain)
    corners = mesh.bounds[np.indices((2, 2, 2)).reshape(3, -1).T, np.arange(3)] @ pose[:3, :3].T + pose[:3, 3]
    # A cell more on each side: whatever is near has its neighbours.
    beside = np.array([*terrain.spacing, 0.0]) + limit
    squares = blocks.near(corners.min(axis=0) - beside, corners.max(axis=0) + beside)
    least, contacts = limit, Contacts()
    if len(squares):
        block = blocks.around(squares)
        near = _posed_proximity([mesh, block.mesh], device)
        found = near.at(np.stack([pose, np.eye(4)]), np.array([[0, 1]]), limit)
        if found.overlapping.any():
            raise UnsupportedError(f"mesh {row} and the ground {_OVERLAP} of two meshes (terrain.to_mesh())")
        least, contacts = _least(found, limit), _in_ground(found.contacts, block)
    rounding = LEAST_PART * float(
        np.abs(blocks.bounds[np.isfinite(blocks.bounds)]).max(initial=0.0) + np.abs(pose).max()
    )
    tolerance = min(max(TOLERANCE * mesh.extent, 2.0 * rounding), least)
    if tolerance <= rounding:  # it touches: which side it is on makes no difference
        return contacts
    if rigid_below_ground(mesh, pose, blocks, Accuracy(tolerance=tolerance), device) is not None:
        raise UnsupportedError(f"mesh {row} is below the ground: a manifold has no way out of that")
    return contacts


def _least(found: PosedContacts, limit: float) -> float:
    """The distance, or the one asked about where that is less."""
    return min(float(found.least[0]), limit) if limit > 0.0 else float(found.least[0])


def _in_ground(contacts: Contacts, block: Any) -> Contacts:
    """In the ground's numbers; vertices of the mesh over flat ground are named by the flat place."""
    told = in_ground(contacts, block)
    over = (contacts.kind == Kind.VERTEX_FACE) & (contacts.vertex_on == 0)
    patch = block.face_numbers(MeshFeatures.of(block.mesh).patch[np.where(over, contacts.feature_b, 0)])
    flat = contact_key(contacts.kind, contacts.vertex_on, contacts.feature_a, patch)
    return replace(told, key=np.where(over, flat, told.key))


def _posed_proximity(meshes: Sequence[Mesh], device: wp.Device) -> PosedProximity:
    """Kept with the first mesh, for the last ones it was asked with."""
    key = _posed_proximity, device.alias
    known: dict[tuple[Mesh, ...], PosedProximity] = meshes[0].cache.setdefault(key, {})
    near = known.pop(tuple(meshes), None) or PosedProximity(meshes, device=device)
    known[tuple(meshes)] = near
    while len(known) > KEPT_SURFACES:
        known.pop(next(iter(known)), None)  # another thread may have been quicker
    return near


def _told(contacts: Contacts, size: float, device: wp.Device) -> Contacts:
    return unique_keys(reduced(contacts, np.full(len(contacts), size), device))
