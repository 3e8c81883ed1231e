"""A batch of moving bodies laid out for the search, and the launches that answer it, visit by visit to the terrain."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import terrain_visits, tiles_held
from tangere.motion import RigidMotion
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapes, moving_shape_bounds_of, outline_at
from tangere.query.first_contact.heightfield.traversal import Answer, search_kernel
from tangere.query.first_contact.options import Accuracy
from tangere.runtime import SOUND, InputError, launch, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import HULL, ROUND, Analytic, AnalyticShape, hull_tables

wp.set_module_options(SOUND)

#: Bodies worth a thread: some tens of microseconds each.
GRAIN = 32
#: Levels of the pyramid, each of which may add `Terrain.planar` to the error of planar ground, twice for the answer.
GROUND_ERRORS = 64.0
#: Lengths and speeds beyond this are refused.
LARGEST = 1e70


def answers_of(bodies: Moving, terrain: Any, accuracy: Accuracy, trusted: bool, device: wp.Device) -> np.ndarray:
    """What each of n bodies finds, as `Answer` records, (n,).

    Args:
        bodies: analytic bodies in rigid motion, n with n or n with 1.
        trusted: whether not to look if a body is buried at t = 0.
    """
    limit = -1.0 if accuracy.tolerance is None else accuracy.tolerance
    batch = _Batch.of(bodies, accuracy.separation, limit, device)
    answers = np.empty(len(batch), Answer.numpy_dtype())
    if not len(batch):
        return answers
    centres, ways = (each.numpy() for each in batch.ways())
    with tiles_held([terrain], device):
        for rows, ground in terrain_visits(terrain, centres, ways, device):
            part = batch if isinstance(rows, slice) else batch.rows(rows)
            near = wp.array(centres[rows], dtype=wp.vec3d, device=device)
            far = wp.array(ways[rows], dtype=wp.float64, device=device)
            out = wp.empty(len(part), dtype=Answer, device=device)
            inputs = [ground, part.queries, near, far, GROUND_ERRORS * ground.planar, int(trusted)]
            launch(search_kernel(bodies.shape.kind), len(part), inputs, [out], device=device, grain=GRAIN)
            answers[rows] = out.numpy()
    return answers


class _Batch:
    """The records of n bodies on a device: motions, shapes and reaches of one for all, or of each; poses of each."""

    def __init__(
        self, host: tuple[np.ndarray, ...], hulls: Any, lengths: tuple[float, float], device: wp.Device
    ) -> None:
        self._host, self._hulls, self._lengths, self.device = host, hulls, lengths, device
        motions, shapes, poses, reach = host  # motions by link, (n, links)
        queries = self.queries = moving_shapes(motions, shapes, poses, reach, device)
        queries.hulls = hulls
        queries.separation, queries.tolerance = lengths

    @staticmethod
    def of(bodies: Moving, separation: float, tolerance: float, device: wp.Device) -> _Batch:
        motion, shape = bodies.motion, bodies.shape
        motions = motion.records().reshape(-1, motion.links)
        poses = to_numpy(shape.poses, "poses").reshape(-1, 4, 4)
        count = len(poses) if len(motions) == 1 else len(motions)
        if len(poses) not in (1, count):
            counts = f"{len(poses)} bodies and {len(motions)} motions"
            raise InputError(f"{counts} do not pair off: as many of both, or one of either")
        for name in ("origin", "velocity", "arc", "angle", "axis", "rotation", "pivot"):
            check_size(motions[name], f"motion {{}}: its {name}")
        check_size(poses, "body {}: its pose")
        host = motions, shape.records, np.broadcast_to(poses, (count, 4, 4)), core_reach(shape)
        return _Batch(host, hull_tables(shape.hull, device.alias), (separation, tolerance), device)

    def __len__(self) -> int:
        return len(self._host[2])

    def rows(self, rows: np.ndarray) -> _Batch:
        motions, shapes, poses, reach = self._host
        motions, shapes, reach = (part if len(part) == 1 else part[rows] for part in (motions, shapes, reach))
        return _Batch((motions, shapes, poses[rows], reach), self._hulls, self._lengths, self.device)

    def ways(self) -> tuple[wp.array, wp.array]:
        """The middle of each body's way, and how far from there any of its points can get."""
        centres = wp.empty(len(self), dtype=wp.vec3d, device=self.device)
        ways = wp.empty(len(self), dtype=wp.float64, device=self.device)
        launch(_ways, len(self), [self.queries], [centres, ways], device=self.device, grain=4096)
        return centres, ways


def moving_shapes(
    motions: np.ndarray, shapes: np.ndarray, poses: np.ndarray, reach: np.ndarray, device: wp.Device
) -> Any:
    """`MovingShapes` of bodies on a device, without hulls and lengths; motions by link, (n, links)."""
    queries: Any = MovingShapes()
    queries.motions, queries.links = wp.array(motions.reshape(-1), dtype=RigidMotion, device=device), motions.shape[1]
    queries.shapes = wp.array(shapes, dtype=AnalyticShape, device=device)
    queries.poses = wp.array(np.ascontiguousarray(poses), dtype=wp.mat44d, device=device)
    queries.reach = wp.array(reach, dtype=wp.float64, device=device)
    return queries


def check_size(values: np.ndarray, name: str) -> None:
    """Squares of lengths, and theirs, must be finite."""
    wrong = ~(np.abs(values.reshape(len(values), int(np.prod(values.shape[1:])))) <= LARGEST).all(axis=1)
    if wrong.any():
        raise InputError(f"{name.format(int(np.argmax(wrong)))} is not finite, or beyond {LARGEST:g}")


def core_reach(shape: Analytic) -> np.ndarray:
    """Largest distance of a core's points from its origin, (1,) or (n,) [m]: of a round body the radius is apart."""
    records = shape.records
    if shape.kind == HULL:
        return np.linalg.norm(records["half"][:, None] * shape.hull.corners, axis=2).max(axis=1)
    around = 0.0 if shape.kind == ROUND else records["radius"]
    return np.hypot(around, records["half"][:, 2])


@wp.kernel
def _ways(
    first: int,
    queries: MovingShapes,
    centres: wp.array[wp.vec3d],
    ways: wp.array[wp.float64],
):
    i = first + wp.tid()
    m = moving_shape_bounds_of(queries, i, wp.float64(0.0), wp.vec3d())
    o = outline_at(m, wp.float64(0.5))
    speed = wp.length(m.bounds.drift) + m.bounds.swing + m.bounds.spin * m.rho
    centres[i] = o.centre
    ways[i] = wp.float64(0.5) * speed + m.reach + m.radius + m.separation + m.tolerance + m.slack
