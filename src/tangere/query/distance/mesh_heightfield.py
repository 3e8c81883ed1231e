"""How far is a mesh from the ground?

Method: squares of the ground (`broad_phase.ground`) by how near their boxes are to the mesh's: the nearest square
        bounds the distance, and those that may be nearer are searched (`distances`), the last few again to the last
        digit (`distance`).
Sound:  as `distance`; ground is solid, so the distance of a mesh of which any part is below the surface is 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlock, GroundBlocks
from tangere.motion import Rest
from tangere.query.contacts.record import Kind
from tangere.query.distance.api import Distance, distance
from tangere.query.distance.many_pairs import distances
from tangere.query.first_contact.mesh_heightfield.api import LEAST_PART
from tangere.query.first_contact.mesh_heightfield.below_ground import rigid_below_ground
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.query.intersection.posed import as_posed
from tangere.runtime import Arrays, InputError, choose_device
from tangere.shape import Moving
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh


def mesh_heightfield_distance(
    a: Mesh | Moving,
    terrain: Heightfield | TiledHeightfield,
    *,
    time: Arrays = 0.0,
    device: str | wp.Device | None = None,
) -> Distance:
    """The distance of a mesh, at one instant or many, and the surface of the ground; 0 below it, of kind INSIDE.

    `triangle_b` is the number of the ground's face, as `manifold` has it.
    """
    posed, blocks, on = as_posed(a, time), GroundBlocks.of(terrain), choose_device(device)
    if not np.isfinite(blocks.bounds).all(axis=(1, 2)).any():
        raise InputError(f"{terrain!r} has holes only: there is nothing to be far from")
    found = [_of_one(posed.mesh, pose, blocks, on) for pose in posed.poses]
    if posed.single:
        return found[0]
    return Distance(**{name: np.array([getattr(one, name) for one in found]) for name in vars(found[0])})


def _of_one(mesh: Mesh, pose: np.ndarray, blocks: GroundBlocks, device: wp.Device) -> Distance:
    """At one pose."""
    placed = mesh.moving(Rest(pose))
    least = _box_distances(mesh, pose, blocks.bounds)
    bounding = blocks.blocks(np.array([int(np.argmin(least))]))[0]
    best = distance(placed, bounding.mesh, device=device)
    near = blocks.blocks(np.flatnonzero(least <= best.upper))
    if len(near) > 1:
        which = np.arange(1, len(near) + 1)
        meshes = [mesh, *(block.mesh for block in near)]
        rough = distances(meshes, np.zeros(len(near), int), which, pose, device=device)
        near = [near[k] for k in np.flatnonzero(rough.lower <= rough.upper.min())]
    each = [(distance(placed, block.mesh, device=device), block) for block in near]
    found, block = min(each, key=lambda pair: pair[0].upper)
    lower = min(one.lower for one, _ in each)
    return _below(replace(found, lower=lower), mesh, pose, block, blocks, device)


def _below(
    found: Distance, mesh: Mesh, pose: np.ndarray, block: GroundBlock, blocks: GroundBlocks, device: wp.Device
) -> Distance:
    """The distance from the surface in the ground's numbers, or 0 where the mesh is below it."""
    found = replace(found, triangle_b=int(block.face_numbers(np.array([found.triangle_b]))[0]))
    rounding = LEAST_PART * float(np.abs(blocks.bounds[np.isfinite(blocks.bounds)]).max() + np.abs(pose).max())
    tolerance = min(TOLERANCE * mesh.extent, found.upper)
    if tolerance <= rounding:  # it touches, or nearly: which side it is on is not known, and makes no difference
        return found
    below = rigid_below_ground(mesh, pose, blocks, Accuracy(tolerance=tolerance), device)
    if below is None:
        return found
    no_weights = np.full(3, np.nan)
    return replace(
        found,
        lower=0.0,
        upper=0.0,
        point_a=below.contacts.point_a[0],
        point_b=below.contacts.point_a[0],
        normal=np.zeros(3),
        weights_a=no_weights,
        weights_b=no_weights,
        kind=Kind.INSIDE,
    )


def _box_distances(mesh: Mesh, pose: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """(n,) at most the distances of the mesh and what is in boxes (n, 2, 3) [m]; inf of those without ground."""
    middle, half = 0.5 * mesh.bounds.sum(axis=0), 0.5 * np.ptp(mesh.bounds, axis=0)
    centre, reach = pose[:3, :3] @ middle + pose[:3, 3], np.abs(pose[:3, :3]) @ half
    apart = np.maximum(np.maximum(boxes[:, 0] - (centre + reach), (centre - reach) - boxes[:, 1]), 0.0)
    return (1.0 - 1e-9) * np.linalg.norm(apart, axis=1)
