"""Bodies given by formulas instead of triangles: cylinders, spheres, capsules, boxes, cones and convex hulls.

One object is a batch: sizes and poses broadcast against each other, n with n or n with 1. The axis of a cylinder,
capsule or cone is the z axis of its own frame, whose origin is half-way up; a cone's tip is at the upper end.
Kernels see one record per body, `AnalyticShape`; what it means is told by `placed_body` and `vertical_line`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import warp as wp

from tangere.motion import as_poses
from tangere.runtime import Arrays, InputError, check_kind, read_only, to_numpy
from tangere.shape.analytic.hull import Hull, convex_hull, unit_cube
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.moving import Moving

#: A segment along z with everything nearer than `radius`: spheres (of length zero) and capsules.
ROUND = wp.constant(0)
CYLINDER = wp.constant(1)
CONE = wp.constant(2)
#: A convex hull scaled by `half`: boxes and convex meshes.
HULL = wp.constant(3)

#: What DLPack calls an NVIDIA GPU.
_DLPACK_CUDA = 2


@wp.struct
class AnalyticShape:
    """One body in its own frame, as kernels take it; lengths in metres."""

    kind: wp.int32  #: ROUND, CYLINDER, CONE or HULL
    radius: wp.float64
    half: wp.vec3d  #: half.z: half the length along z; for a HULL what its table is scaled by


class Analytic:
    """n bodies of one kind; immutable. See `Cylinder`, `Sphere`, `Capsule`, `Box`, `Cone`, `ConvexMesh`.

    `poses` is (n, 4, 4) NumPy; or what `at` was given, if that is a Warp array of `wp.mat44d` or lies on a GPU.
    """

    kind: int  #: ROUND, CYLINDER, CONE or HULL
    records: np.ndarray  #: (1,) or (n,) of `AnalyticShape.numpy_dtype()`
    poses: Any
    hull: Hull  #: the table of a HULL; the unit cube for every other kind, which has no use for it
    _placed: bool

    def _set(self, kind: int, radius: np.ndarray, half: np.ndarray, hull: Hull | None = None) -> None:
        radius, half = np.broadcast_arrays(radius[:, None], half)
        records = np.zeros(len(half), AnalyticShape.numpy_dtype())
        records["kind"], records["radius"], records["half"] = kind, radius[:, 0], half
        poses = read_only(np.tile(np.eye(4), (len(half), 1, 1)))
        self.__dict__.update(
            kind=int(kind), records=read_only(records), poses=poses, hull=hull or unit_cube(), _placed=False
        )

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {key!r} cannot be set")

    def __len__(self) -> int:
        return len(self.poses)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} {'body' if len(self) == 1 else 'bodies'})"

    def __getitem__(self, rows: Any) -> Self:
        """The bodies chosen by an index, a slice, an index array or a mask."""
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        records = self.records if len(self.records) == 1 else read_only(self.records[chosen])
        return self._with(records=records, poses=read_only(to_numpy(self.poses, "poses")[chosen]))

    @staticmethod
    def joined(parts: Sequence[Analytic]) -> Analytic:
        """Bodies of one kind, each as it is in its own frame, as one batch; hulls must be copies of one."""
        first = parts[0]
        if any(part.kind != first.kind or part.hull is not first.hull for part in parts):
            raise InputError("bodies of different kinds, or of different hulls, are not one batch")
        if len(parts) == len(first) == len(first.records) == 1:  # the same records: what is kept with them is found
            return first._with(poses=read_only(np.eye(4)[None]), _placed=False)
        ends = np.cumsum([0, *map(len, parts)])
        records = np.zeros(ends[-1], AnalyticShape.numpy_dtype())  # whose layout is not what NumPy would join to
        for part, begin, end in zip(parts, ends, ends[1:], strict=False):
            records[begin:end] = part.records
        poses = read_only(np.tile(np.eye(4), (len(records), 1, 1)))
        return first._with(records=read_only(records), poses=poses, _placed=False)

    def at(self, poses: Arrays) -> Self:
        """The bodies moved by rigid poses, shape (4, 4) or (n, 4, 4).

        A Warp array of `wp.mat44d` is taken as it is, one pose for each body: it stays on its device. So do Torch and
        JAX arrays of float64 on a GPU, if there is one pose for each body; queries refuse what is not finite.
        """
        name = f"{type(self).__name__}: poses"
        if isinstance(poses, wp.array):
            if poses.dtype != wp.mat44d or poses.ndim != 1 or self._placed:
                raise InputError(f"{name}: a Warp array must have shape (n,) of mat44d, for bodies not placed before")
            if len(self.records) not in (1, len(poses)):
                raise InputError(f"{name}: a Warp array needs one pose for each of {len(self.records)} bodies")
            return self._with(poses=poses, _placed=True)
        if not self._placed and _is_on_gpu(poses) and len(self.records) in (1, len(poses)):
            return self._with(poses=poses, _placed=True)
        placed = as_poses(poses, name).reshape(-1, 4, 4)
        if self._placed:
            placed = placed @ to_numpy(self.poses, name)
        count = len(placed) if len(self.records) == 1 else len(self.records)
        if len(placed) not in (1, count):
            raise InputError(f"{name}: {len(placed)} poses do not pair off with {len(self.records)} bodies")
        placed = read_only(np.array(np.broadcast_to(placed, (count, 4, 4))))
        return self._with(poses=placed, _placed=True)

    def moving(self, motion: Any) -> Moving:
        """These bodies with a rigid motion over t in [0, 1], as the continuous queries take it."""
        return Moving(self, motion)

    def _with(self, **changed: Any) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update({**self.__dict__, **changed})
        return other


class Cylinder(Analytic):
    """Cylinders about z.

    Args:
        radius, height: [m]; one number, or n.
    """

    def __init__(self, radius: Arrays, height: Arrays) -> None:
        radius, height = _sizes("Cylinder", radius=radius, height=height)
        self._set(CYLINDER, radius, _along_z(height))


class Sphere(Analytic):
    """Spheres.

    Args:
        radius: [m]; one number, or n.
    """

    def __init__(self, radius: Arrays) -> None:
        (radius,) = _sizes("Sphere", radius=radius)
        self._set(ROUND, radius, _along_z(0.0 * radius))


class Capsule(Analytic):
    """Cylinders about z with a half sphere on each end.

    Args:
        radius: [m]; one number, or n.
        height: of the cylinder, without the half spheres [m].
    """

    def __init__(self, radius: Arrays, height: Arrays) -> None:
        radius, height = _sizes("Capsule", radius=radius, height=height)
        self._set(ROUND, radius, _along_z(height))


class Cone(Analytic):
    """Cones about z, tip up.

    Args:
        radius: of the base [m]; one number, or n.
        height: from base to tip [m]; the origin is half-way.
    """

    def __init__(self, radius: Arrays, height: Arrays) -> None:
        radius, height = _sizes("Cone", radius=radius, height=height)
        self._set(CONE, radius, _along_z(height))


class Box(Analytic):
    """Boxes along the axes of their frame.

    Args:
        half: half of each side, shape (3,) or (n, 3) [m].
    """

    def __init__(self, half: Arrays) -> None:
        sizes = np.atleast_2d(to_numpy(half, "Box: half"))
        if sizes.ndim != 2 or sizes.shape[1] != 3 or not len(sizes):
            raise InputError(f"Box: half must have shape (3,) or (n, 3), not {sizes.shape}")
        _refuse_unless_positive("Box", "half", sizes)
        self._set(HULL, np.zeros(len(sizes)), sizes, unit_cube())


class ConvexMesh(Analytic):
    """Copies of the convex hull of a mesh.

    Args:
        mesh: its vertices must span a volume; what lies inside the hull is filled.
    """

    def __init__(self, mesh: Mesh) -> None:
        check_kind(mesh, Mesh, "ConvexMesh: mesh")
        if "hull" not in mesh.cache:
            mesh.cache["hull"] = convex_hull(mesh.vertices, f"Mesh {mesh.name!r}")
        self._set(HULL, np.zeros(1), np.ones((1, 3)), mesh.cache["hull"])


def _is_on_gpu(poses: Arrays) -> bool:
    """Whether poses of another library, float64 of shape (n, 4, 4), lie on a GPU."""
    if not hasattr(poses, "__dlpack_device__") or poses.__dlpack_device__()[0] != _DLPACK_CUDA:
        return False
    return str(poses.dtype).endswith("float64") and poses.ndim == 3 and tuple(poses.shape[1:]) == (4, 4)


def _sizes(what: str, **given: Arrays) -> list[np.ndarray]:
    """The sizes as positive float64 arrays of one common length."""
    arrays = {name: np.atleast_1d(to_numpy(value, f"{what}: {name}")) for name, value in given.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or not len(array):
            raise InputError(f"{what}: {name} must be one number or have shape (n,), not {array.shape}")
        _refuse_unless_positive(what, name, array)
    lengths = {len(array) for array in arrays.values()}
    if len(lengths - {1}) > 1:
        raise InputError(f"{what}: {' and '.join(arrays)} have different lengths: {sorted(lengths)}")
    return [np.array(array) for array in np.broadcast_arrays(*arrays.values())]


def _refuse_unless_positive(what: str, name: str, array: np.ndarray) -> None:
    bad = ~((array > 0.0) & np.isfinite(array))
    if bad.any():
        worst = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
        raise InputError(f"{what}: {name}[{worst}] must be positive and finite, not {array[worst].tolist()}")


def _along_z(height: np.ndarray) -> np.ndarray:
    half = np.zeros((len(height), 3))
    half[:, 2] = 0.5 * height
    return half
