"""Joints that go at constant rates: the motions of links in their parents' frames, written by kernels from values.

Question: how does a link move in its parent's frame while the value of its joint goes from one number to another?
Method:   a turning joint turns about its axis, a sliding one goes along it, each at a constant rate; a joint that
          follows another has factor times its value plus an offset. What `Twist` does on the host, one joint an index.
Known as: joint-space interpolation; forward kinematics of one joint (Redon 2002, section 3.2, on articulated chains).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.motion.kinematics import RigidMotion, rotation_about
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


@wp.struct
class JointArrays:
    """n joints, one row each."""

    rotation: wp.array[wp.mat33d]  #: of the joint's frame in the parent's, where its value is 0
    origin: wp.array[wp.vec3d]  #: where that frame is [m]
    axis: wp.array[wp.vec3d]  #: unit, in the parent's frame
    sliding: wp.array[wp.bool]  #: else it turns
    value: wp.array[wp.int32]  #: which of the values of a configuration it follows
    factor: wp.array[wp.float64]
    offset: wp.array[wp.float64]  #: [rad or m]


def joint_arrays(
    origins: np.ndarray,
    axes: np.ndarray,
    sliding: Sequence[bool],
    value: Sequence[int],
    factor: Sequence[float],
    offset: Sequence[float],
    device: wp.Device,
) -> Any:
    """`JointArrays` on a device.

    Args:
        origins: where the joints are in their parents' frames, (n, 4, 4).
        axes: unit, in the joints' frames, (n, 3).
        sliding, value, factor, offset: (n,) each, as in `JointArrays`.
    """
    joints: Any = JointArrays()
    columns = {
        "rotation": origins[:, :3, :3],
        "origin": origins[:, :3, 3],
        "axis": np.einsum("nij,nj->ni", origins[:, :3, :3], axes),
        "sliding": sliding,
        "value": value,
        "factor": factor,
        "offset": offset,
    }
    for name, column in columns.items():
        kind = JointArrays.vars[name].type.dtype
        setattr(joints, name, wp.array(np.ascontiguousarray(column), dtype=kind, device=device))
    return joints


@wp.func
def joint_motion(joints: JointArrays, joint: int, start: wp.float64, end: wp.float64) -> RigidMotion:
    """The motion of the link below a joint while the value it follows goes from `start` to `end`."""
    begin = joints.factor[joint] * start + joints.offset[joint]
    way = joints.factor[joint] * end + joints.offset[joint] - begin
    along = joints.axis[joint]
    motion = RigidMotion()
    motion.span = _ONE
    motion.axis = wp.vec3d(_ZERO, _ZERO, _ONE)
    motion.rotation = joints.rotation[joint]
    motion.origin = joints.origin[joint]
    if joints.sliding[joint]:
        motion.origin = joints.origin[joint] + begin * along
        motion.velocity = way * along
    else:
        motion.rotation = rotation_about(along, begin) * joints.rotation[joint]
        motion.angle = wp.abs(way)
        motion.axis = wp.where(way < _ZERO, -along, along)
    return motion
