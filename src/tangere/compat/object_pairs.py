"""Which of many pairs of posed objects collide?

Method: one thread a pair: the descent of both OBB trees for any pair of triangles that meets, then, if there is none,
        whether one object is a convex solid that has a piece of the other inside. What rounding hides of triangles is
        decided by `intersects`.
Known as: narrow phase of discrete collision detection, a batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbNode, ObbTree
from tangere.compat.collision_object import SAMPLES, CollisionObject, place
from tangere.compat.convex_solids import one_inside
from tangere.geometry.triangles import APART, MEET, UNSURE
from tangere.motion import RigidPose
from tangere.query.intersection import any_meeting, intersects, pose_of
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

_EMPTY = np.zeros((0, 4))


class ObjectGroup:
    """The objects of one side of a question, in a row.

    Args:
        before: the group of an earlier question, whose records of meshes may still do.
    """

    def __init__(self, objects: Mapping[Hashable, CollisionObject], before: ObjectGroup | None = None) -> None:
        self.names, self.objects = list(objects), list(objects.values())
        place(self.objects)
        self.boxes = np.array([thing.box for thing in self.objects]).reshape(-1, 2, 3)  #: in the world
        self.poses = np.array([thing.pose for thing in self.objects]).reshape(-1, 4, 4)
        self._shapes = before._shapes if before is not None else None

    def shapes(self, device: wp.Device) -> Shapes:
        """The records of the meshes on a device."""
        kept, meshes = self._shapes, [thing.mesh for thing in self.objects]
        if kept is None or kept.device != device or kept.meshes != meshes:
            kept = self._shapes = Shapes(self.objects, device)
        return kept


@wp.struct
class ObjectShape:
    """What a thread knows of an object's mesh, in its own frame."""

    nodes: wp.array[ObbNode]
    corners: wp.array[wp.vec3d]
    planes: wp.array[wp.vec4d]  # of a solid; none of a surface
    samples: wp.array[wp.vec3d]  # `SAMPLES` of each piece


class Shapes:
    """The records of several objects' meshes on a device, in a row."""

    def __init__(self, objects: Sequence[CollisionObject], device: wp.Device) -> None:
        self.device = device
        self.meshes = [thing.mesh for thing in objects]
        self._kept = [_shape(thing, device) for thing in objects]  # their arrays must live as long as the row
        self.row = wp.array(self._kept, dtype=ObjectShape, device=device)


def colliding(a: ObjectGroup, b: ObjectGroup, pairs: np.ndarray, device: wp.Device) -> np.ndarray:
    """(n,) bool, of pairs (n, 2) of an object of a and one of b."""
    if not len(pairs):
        return np.zeros(0, bool)
    rows = np.ascontiguousarray(pairs, np.int32)
    found = np.empty(len(pairs), np.int32)
    on_cpu = device.is_cpu
    codes = wp.array(found, dtype=wp.int32, device=device, copy=not on_cpu)
    inputs = [
        wp.array(rows, dtype=wp.vec2i, device=device, copy=not on_cpu),
        a.shapes(device).row,
        b.shapes(device).row,
        wp.array(a.poses, dtype=wp.mat44d, device=device, copy=not on_cpu),
        wp.array(b.poses, dtype=wp.mat44d, device=device, copy=not on_cpu),
    ]
    launch(_decide, len(pairs), inputs, [codes], device=device, grain=8)
    found = found if on_cpu else codes.numpy()
    for k in np.flatnonzero(found == UNSURE):
        one, other = a.objects[rows[k, 0]], b.objects[rows[k, 1]]
        meet = intersects(one.placed, other.placed, device=device) or one_inside(one, other) is not None
        found[k] = MEET if meet else APART
    return found != APART


def _shape(thing: CollisionObject, device: wp.Device) -> ObjectShape:
    """The record of an object's mesh on a device, made once; the arrays live as long as the mesh."""

    def made(mesh) -> ObjectShape:
        tree = ObbTree.of(mesh, device)
        shape = ObjectShape()
        shape.nodes, shape.corners = tree.nodes, tree.corners
        shape.planes = wp.array(thing.planes if thing.solid else _EMPTY, dtype=wp.vec4d, device=device)
        shape.samples = wp.array(np.concatenate(thing.samples), dtype=wp.vec3d, device=device)
        return shape

    return thing.kept(f"compat.shape on {device.alias}", made)


@wp.func
def holds_a_piece(solid: ObjectShape, other: ObjectShape, pose_solid: RigidPose, pose_other: RigidPose) -> bool:
    """Whether all samples of a piece of `other` are below all planes of `solid`; of a surface there are none."""
    count = int(solid.planes.shape[0])
    held = bool(False)
    pieces = int(other.samples.shape[0] / SAMPLES)
    if count == 0:
        pieces = 0
    for piece in range(pieces):
        below = bool(True)
        for k in range(SAMPLES):
            place = pose_other.rotation * other.samples[SAMPLES * piece + k] + pose_other.translation
            at = wp.transpose(pose_solid.rotation) * (place - pose_solid.translation)
            i = int(0)
            while below and i < count:
                plane = solid.planes[i]
                below = plane[0] * at[0] + plane[1] * at[1] + plane[2] * at[2] + plane[3] < wp.float64(0.0)
                i += 1
        held = held or below
    return held


@wp.kernel
def _decide(
    first: int,
    pairs: wp.array[wp.vec2i],
    shapes_a: wp.array[ObjectShape],
    shapes_b: wp.array[ObjectShape],
    poses_a: wp.array[wp.mat44d],
    poses_b: wp.array[wp.mat44d],
    codes: wp.array[int],
):
    k = first + wp.tid()
    a = shapes_a[pairs[k][0]]
    b = shapes_b[pairs[k][1]]
    pose_a = pose_of(poses_a[pairs[k][0]])
    pose_b = pose_of(poses_b[pairs[k][1]])
    code = any_meeting(a.nodes, b.nodes, a.corners, b.corners, pose_a, pose_b)[2]
    if code == APART:
        if holds_a_piece(a, b, pose_a, pose_b) or holds_a_piece(b, a, pose_b, pose_a):
            code = MEET
    codes[k] = code
