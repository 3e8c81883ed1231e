"""Moving analytic bodies laid out for the search: motions, poses and shapes of n bodies, or of one for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Path, Rest, Rigid, RigidMotion
from tangere.query.distance.convex.api import KEPT_MESHES, KEPT_PAIRS
from tangere.query.distance.convex.bodies import ConvexBodies, MeshBody, arrays_of, paired_count
from tangere.query.distance.convex.supports import ConvexKind
from tangere.query.first_contact.convex.mesh_search import mesh_contact_kernel
from tangere.query.first_contact.convex.search import ConvexContact, contact_kernel
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapes
from tangere.query.first_contact.heightfield.query_batch import LARGEST, LENGTHS, MOST_LINKS, check_size
from tangere.runtime import InputError, LaunchCache, PreparedLaunch, UnsupportedError, launch, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh

#: Pairs worth a thread: some microseconds each.
GRAIN = 64
#: With a mesh they take a tenth of a millisecond.
MESH_GRAIN = 2
_AT_REST = Rest()
_HERE = np.eye(4)[None]


@dataclass(frozen=True, eq=False)
class MovingSide:
    """n analytic bodies, or a mesh, in rigid motion: shapes, poses in the moving frames, motions; one may serve all."""

    shape: Analytic | Mesh
    poses: np.ndarray  #: (n, 4, 4) or (1, 4, 4)
    motion: Rigid
    count: int
    single: bool  #: one body with one motion, not a batch of one

    def __getitem__(self, rows: np.ndarray) -> MovingSide:
        shape = self.shape if len(self.poses) == 1 else self.shape[rows]
        motion = self.motion[rows] if self.motion.shape else self.motion
        poses = self.poses if len(self.poses) == 1 else self.poses[rows]
        return MovingSide(shape, poses, motion, len(rows), False)


def moving_side(thing: Analytic | Mesh | Moving, name: str) -> MovingSide:
    """A body, n of them or a mesh, at rest or in rigid motion; a `Path` by its first segment, see `path`."""
    shape, motion = (thing.shape, thing.motion) if isinstance(thing, Moving) else (thing, _AT_REST)
    largest = motion.segments.largest if isinstance(motion, Path) else getattr(motion, "largest", 0.0)
    if isinstance(motion, Path):
        motion = motion.segments[0]
    if not isinstance(motion, Rigid):
        raise UnsupportedError(f"{name}: analytic bodies move by Twist, Screw, Path and the like, not by {motion!r}")
    poses = _HERE if isinstance(shape, Mesh) else to_numpy(shape.poses, f"{name}: poses").reshape(-1, 4, 4)
    motions = motion.shape[0] if motion.shape else 1
    count = len(poses) if motions == 1 and not (motion.shape and len(poses) == 1) else motions
    if len(poses) not in (1, count):
        raise InputError(f"{name}: {len(poses)} bodies and {motions} motions do not pair off: as many, or one")
    if not largest <= LARGEST:
        for field in LENGTHS:
            check_size(motion.records()[field], f"{name}: motion {{}}: its {field}")
    if not isinstance(shape, Mesh) and not isinstance(shape.poses, np.ndarray):  # which was checked where it was given
        check_size(poses, f"{name}: body {{}}: its pose")
    return MovingSide(shape, poses, motion, count, motion.shape == () and len(poses) == 1)


def contacts_of_pairs(
    a: MovingSide, b: MovingSide, separation: float, tolerance: float | None, device: wp.Device
) -> np.ndarray:
    """`ConvexContact` records of the pairs, (n,)."""
    bodies = arrays_of(a.shape, device), arrays_of(b.shape, device)
    swapped = bodies[0].kind > bodies[1].kind
    if swapped:
        (a, b), bodies = (b, a), bodies[::-1]
    lengths = np.array([separation, -1.0 if tolerance is None else tolerance])
    smooth, links = a.motion.smooth or b.motion.smooth, (a.motion.links, b.motion.links)
    if a.single and b.single and device.is_cpu and not smooth and max(links) <= MOST_LINKS:
        kept = _prepared_on_mesh if bodies[1].kind == ConvexKind.TRIANGLE else _prepared
        found = kept.of(*bodies, *links).found(a, b, lengths)
    else:
        count = paired_count(a.count, b.count)
        inputs: list[Any] = []
        for side, convex in zip((a, b), bodies, strict=True):
            inputs += [laid_out(side, convex, smooth, device), *convex.arguments]
        out = wp.empty(count, dtype=ConvexContact, device=device)
        limits = wp.array(lengths, dtype=wp.float64, device=device)
        grain = MESH_GRAIN if bodies[1].kind == ConvexKind.TRIANGLE else GRAIN
        launch(_kernel_of(*bodies), count, [*inputs, limits], [out], device=device, grain=grain)
        found = out.numpy()
    if swapped:
        found = found.copy()
        found["normal"] *= -1.0
        point = found["point_a"].copy()
        found["point_a"], found["point_b"] = found["point_b"], point
    return found


def _kernel_of(a: ConvexBodies | MeshBody, b: ConvexBodies | MeshBody) -> wp.Kernel:
    return mesh_contact_kernel(a.kind) if b.kind == ConvexKind.TRIANGLE else contact_kernel(a.kind, b.kind)


def laid_out(side: MovingSide, bodies: ConvexBodies | MeshBody, smooth: bool, device: wp.Device) -> Any:
    """`MovingShapes` of a side on a device, without lengths."""
    moving: Any = MovingShapes()
    moving.motions = wp.array(side.motion.records(), dtype=RigidMotion, device=device)
    moving.links, moving.smooth = side.motion.links, smooth
    moving.poses = wp.array(np.ascontiguousarray(side.poses), dtype=wp.mat44d, device=device)
    moving.shapes, moving.reach = bodies.records, bodies.reaches
    return moving


class PreparedConvexContact:
    """First contact of one body of each kind, whose motions and poses are written from call to call (CPU)."""

    def __init__(self, a: ConvexBodies | MeshBody, b: ConvexBodies | MeshBody, links_a: int, links_b: int) -> None:
        cpu = wp.get_device("cpu")
        arguments: list[Any] = []
        self._rows = []
        for bodies, count in ((a, links_a), (b, links_b)):
            moving: Any = MovingShapes()
            moving.motions, moving.links = wp.zeros(count, dtype=RigidMotion, device=cpu), count
            moving.poses = wp.zeros(1, dtype=wp.mat44d, device=cpu)
            moving.shapes, moving.reach = bodies.records, bodies.reaches
            self._rows.append((moving.motions.numpy(), moving.poses.numpy()))
            arguments += [moving, *bodies.arguments]
        limits = wp.zeros(2, dtype=wp.float64, device=cpu)
        contact = wp.zeros(1, dtype=ConvexContact, device=cpu)
        self._limits, self._contact = limits.numpy(), contact.numpy()
        self._launch = PreparedLaunch(_kernel_of(a, b), [*arguments, limits, contact], cpu)

    def found(self, a: MovingSide, b: MovingSide, lengths: np.ndarray) -> np.ndarray:
        """(1,) `ConvexContact`, valid until the next call."""
        for (motions, pose), side in zip(self._rows, (a, b), strict=True):
            motions[:], pose[:] = side.motion.records(), side.poses
        self._limits[:] = lengths
        self._launch.launch(1, 0)
        return self._contact


_prepared = LaunchCache(PreparedConvexContact, most=KEPT_PAIRS)
_prepared_on_mesh = LaunchCache(PreparedConvexContact, most=KEPT_MESHES)
