"""The contact problem at velocity level: bodies, contact rows and joint rows as arrays on one device.

Question: which impulses keep rigid bodies from approaching at their contacts, with friction, and their joints closed?
Method:   with the free velocity v of all bodies, every row has a relative velocity u = J v + bias. Contacts: the normal
          part obeys 0 <= u_n, 0 <= r_n, u_n r_n = 0; friction is Coulomb's, |r_t| <= mu r_n, and opposes u_t where it
          is at its limit. Joints: lower <= r <= upper, and u + compliance r = 0, >= 0 at the lower bound, <= 0 at the
          upper one. The solved velocity is v + M^-1 J^T r.
Known as: the discrete frictional contact problem of Moreau and Jean; rows of the Jacobian, constraint rows.

A body of number -1 is the fixed world. A body whose inverse mass and inverse inertia are zero is fixed or driven: it
keeps its velocity, which others feel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, Arrays, InputError, to_numpy

wp.set_module_options(SOUND)

#: A motion or a wrench of a body: linear part (of the centre of mass), then angular part.
vec6d = wp.types.vector(length=6, dtype=wp.float64)
#: Three rows of a Jacobian for one body.
mat36d = wp.types.matrix(shape=(3, 6), dtype=wp.float64)


@wp.struct
class RigidBodyArrays:
    """Bodies, one element each, in the world frame."""

    inverse_mass: wp.array[wp.float64]  # [1/kg]; 0: the centre of mass does not feel impulses
    inverse_inertia: wp.array[wp.mat33d]  # about the centre of mass [1/(kg m^2)]
    velocity: wp.array[vec6d]  # [m/s, rad/s]; in: free, out: solved


@wp.struct
class ContactRowArrays:
    """Contacts, one element each: body a is pushed along the normal, body b against it."""

    body_a: wp.array[wp.int32]  # -1: the fixed world
    body_b: wp.array[wp.int32]
    arm_a: wp.array[wp.vec3d]  # from the centre of mass to the contact [m]
    arm_b: wp.array[wp.vec3d]
    frame: wp.array[wp.mat33d]  # rows: normal and two tangents, orthonormal
    friction: wp.array[wp.float64]
    bias: wp.array[wp.vec3d]  # in the frame [m/s]
    impulse: wp.array[wp.vec3d]  # in the frame [N s]; in: warm start, out: solved


@wp.struct
class JointRowArrays:
    """Scalar rows, one element each: u = jacobian_a . v_a + jacobian_b . v_b + bias."""

    body_a: wp.array[wp.int32]  # -1: the fixed world
    body_b: wp.array[wp.int32]
    jacobian_a: wp.array[vec6d]
    jacobian_b: wp.array[vec6d]
    bias: wp.array[wp.float64]
    lower: wp.array[wp.float64]  # bounds of the impulse; -inf and inf: an equation
    upper: wp.array[wp.float64]
    impulse: wp.array[wp.float64]  # in: warm start, out: solved
    compliance: wp.array[wp.float64]  # u + compliance r = 0; 0 is hard
    lever: wp.array[wp.float64]  # [m] at which a residual counts that is in rad/s; 1 where it is in m/s


#: Defaults of what may be left out of rows made from arrays.
_DEFAULTS: dict[str, Any] = {
    "body_b": -1, "arm_b": 0.0, "friction": 0.0, "bias": 0.0, "impulse": 0.0, "compliance": 0.0, "lever": 1.0,
    "jacobian_b": 0.0, "lower": -np.inf, "upper": np.inf, "velocity": 0.0,
}  # fmt: skip


def rigid_bodies(device: wp.Device, **columns: Arrays) -> RigidBodyArrays:
    """Bodies from arrays: `inverse_mass` (n,), `inverse_inertia` (n, 3, 3), `velocity` (n, 6), zero if left out."""
    return _from_columns(RigidBodyArrays(), columns, device, "bodies")


def contact_rows(device: wp.Device, **columns: Arrays) -> ContactRowArrays:
    """Contact rows from arrays (n, …) named as in `ContactRowArrays`.

    `body_b` is the fixed world, and `arm_b`, `friction`, `bias` and `impulse` are zero, if left out.
    """
    return _from_columns(ContactRowArrays(), columns, device, "contacts")


def joint_rows(device: wp.Device, **columns: Arrays) -> JointRowArrays:
    """Joint rows from arrays (n, …) named as in `JointRowArrays`; hard equations against the world if not told."""
    return _from_columns(JointRowArrays(), columns, device, "joints")


def reserve(rows: Any, count: int, device: wp.Device) -> bool:
    """Make room for at least `count` elements in every array of a struct; whether its arrays are new ones.

    What was in the arrays stays. Twice what is needed is reserved, so that a count that grows step by step seldom asks.
    """
    grew = False
    for name, dtype in _fields(rows):
        array = getattr(rows, name)
        if array is not None and array.device == device and len(array) >= count and array.ptr:
            continue
        room = wp.zeros(max(2 * count, 16), dtype=dtype, device=device)
        if array is not None and array.ptr and len(array):
            wp.copy(room, array, count=len(array))
        setattr(rows, name, room)
        grew = True
    return grew


def frames(normals: Arrays) -> np.ndarray:
    """Orthonormal frames (n, 3, 3), rows normal and two tangents, of unit normals (n, 3)."""
    n = np.asarray(normals, np.float64)
    axis = np.where(np.abs(n[:, :1]) < 0.7, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    tangent = axis - n * np.sum(axis * n, axis=1, keepdims=True)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    return np.stack([n, tangent, np.cross(n, tangent)], axis=1)


@wp.func
def contact_frame(normal: wp.vec3d) -> wp.mat33d:
    """The frame of a unit normal, as `frames` makes it."""
    axis = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    if wp.abs(normal[0]) >= wp.float64(0.7):
        axis = wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0))
    tangent = wp.normalize(axis - normal * wp.dot(axis, normal))
    return wp.matrix_from_rows(normal, tangent, wp.cross(normal, tangent))


def _fields(rows: Any) -> list[tuple[str, Any]]:
    """The arrays of a struct and what they hold."""
    return [(name, variable.type.dtype) for name, variable in rows._cls.vars.items()]


def _from_columns(rows: Any, columns: dict[str, Arrays], device: wp.Device, what: str) -> Any:
    fields = dict(_fields(rows))
    unknown = sorted(set(columns) - set(fields))
    if unknown:
        raise InputError(f"{what} have no {unknown[0]!r}: they have {', '.join(fields)}")
    count = None
    for name, dtype in fields.items():
        if name not in columns and name not in _DEFAULTS:
            raise InputError(f"{what} need {name!r}")
        shape = tuple(getattr(dtype, "_shape_", ()))
        scalar = np.int32 if dtype is wp.int32 else np.float64
        if name in columns:
            column = np.ascontiguousarray(to_numpy(columns[name], f"{what}.{name}"), scalar)
            if column.shape[1:] != shape or column.ndim == 0:
                expected = ", ".join(["n", *map(str, shape)]) + ("," if not shape else "")
                raise InputError(f"{what}.{name} must have shape ({expected}), not {column.shape}")
            if count is None:
                count = len(column)
            if len(column) != count:
                raise InputError(f"{what}.{name} has {len(column)} elements, the arrays before it {count}")
        else:
            assert count is not None
            column = np.full((count, *shape), _DEFAULTS[name], scalar)
        setattr(rows, name, wp.array(column, dtype=dtype, device=device))
    return rows
