"""Is a part of a mesh below the surface of the ground? Whoever is meets the surface on the way up.

Method: where the surfaces do not meet, a point is below the ground if and only if the surface is somewhere above it: so
        the mesh is moved straight up until all of it is above the ground, and asked whether it touches on the way. What
        is far below all of the ground above it starts from nearer: rounding grows with the length of a motion. Holes
        and the border need no care, and nor do triangles that reach beyond them.
Sound:  a mesh that is below is never missed. The question is asked with a quarter of the tolerance, of meshes that are
        farther than half of it from the surface: one that is just above does not touch on its way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundBlock, GroundBlocks, WallBlock
from tangere.motion import Linear, Twist
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.first_contact.deforming.api import deforming_first_contact
from tangere.query.first_contact.mesh_heightfield.details import first_on_squares, in_ground
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.result import FirstContact
from tangere.shape.mesh import Mesh

#: Part of the tolerance that is asked with.
SHARPER = 0.25
#: Meshes that are so many sizes away from the origin of their frame are moved there.
_FAR = 1e3


def rigid_below_ground(
    mesh: Mesh, pose: np.ndarray, blocks: GroundBlocks, accuracy: Accuracy, device: wp.Device
) -> FirstContact | None:
    """The answer START, with the point where a rigid mesh at a pose is below the ground; None where it is not."""
    corners = mesh.bounds[np.indices((2, 2, 2)).reshape(3, -1).T, np.arange(3)]
    placed = corners @ pose[:3, :3].T + pose[:3, 3]
    if blocks.is_below(float(placed[:, 2].min())):
        return None
    rise = _rise(placed, blocks)
    if rise is None:
        return None
    near, lift, way = rise
    squares = blocks.blocks(near)
    lifted = pose.copy()
    lifted[2, 3] += lift
    if lift > 0.0 and np.abs(mesh.bounds).max() > _FAR * mesh.extent:  # far in its own frame: not where it is lifted to
        middle = mesh.bounds.mean(axis=0)
        mesh = mesh.replace(vertices=mesh.vertices - middle)
        lifted[:3, 3] += lifted[:3, :3] @ middle
    up = mesh.moving(Twist(lifted, (0.0, 0.0, way), (0.0, 0.0, 0.0)))
    found, block = first_on_squares(up, squares, 0.0, SHARPER * (accuracy.tolerance or 0.0), "trusted", device)
    return None if found.status == Status.FREE else _buried(found, block, lift, way)


def deforming_below_ground(
    mesh: Mesh, blocks: GroundBlocks, accuracy: Accuracy, device: Any = None
) -> FirstContact | None:
    """The same of a mesh as its vertices are."""
    rise = _rise(mesh.vertices, blocks)
    if rise is None:
        return None
    near, lift, way = rise
    block = blocks.around(near)
    lifted = mesh.replace(vertices=mesh.vertices + (0.0, 0.0, lift)) if lift else mesh
    up = lifted.moving(Linear(lifted.vertices + (0.0, 0.0, way)))
    sharper = SHARPER * (accuracy.tolerance or 0.0)
    found = deforming_first_contact(up, block.mesh, start="trusted", tolerance=sharper, device=device)
    return None if found.status == Status.FREE else _buried(found, block, lift, way)


def _rise(points: np.ndarray, blocks: GroundBlocks) -> tuple[np.ndarray, float, float] | None:
    """The squares of ground above the lowest of the points, how far up none of it is, and from there how far it is
    beyond them; None without any.
    """
    lower, upper = points.min(axis=0), points.max(axis=0)
    near = blocks.near(lower, np.array([upper[0], upper[1], np.inf]))
    if not len(near):
        return None
    lowest, highest = float(blocks.bounds[near, 0, 2].min()), float(blocks.bounds[near, 1, 2].max())
    size = float(np.ptp(points, axis=0).max())
    lift = max(lowest - float(upper[2]) - size - 1e-3 * abs(lowest), 0.0)
    return near, lift, highest - (float(lower[2]) + lift) + 1e-3 * (size + abs(highest))


def _buried(found: FirstContact, block: GroundBlock | WallBlock, lift: float, way: float) -> FirstContact:
    """What is met on the way up, as a contact at the start: how far down it is, and out is up."""
    contacts = in_ground(found.contacts, block)[:1]
    depth = lift + way * float(contacts.time[0])
    buried = Contacts.of(
        point_a=contacts.point_a - (0.0, 0.0, depth),
        point_b=contacts.point_b,
        normal=np.array([[0.0, 0.0, 1.0]]),
        gap=np.array([-depth]),
        kind=Kind.INSIDE,
        feature_a=contacts.feature_a,
        feature_b=contacts.feature_b,
        vertex_on=contacts.vertex_on,
        weights=contacts.weights,
    )
    return FirstContact(0.0, 0.0, Status.START, buried)
