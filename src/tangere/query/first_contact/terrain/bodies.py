"""First contact of moving analytic bodies with the ground: cylinders, spheres, capsules, boxes, cones, convex meshes.

Question: when does each of n moving, spinning bodies first touch the surface of a terrain?
Method:   certified advancement, a time of its own for every node of the terrain's pyramid (`search`).
Sound:    never later than the true time; at `time` the distance is at most separation + tolerance. A body that overlaps
          the surface or lies below it at t = 0 has status START. specs/strashnov-cylinder-terrain 11.1, F-S-27.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.bound.terrain_visits import terrain_visits
from tangere.motion.rigid import RigidMotion
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.result import FirstContacts
from tangere.query.first_contact.terrain.search import Answer, search_kernel
from tangere.query.first_contact.terrain.travel import outline_at, traveller_of
from tangere.runtime import SOUND, InputError, UnsupportedError, choose_device, launch, to_numpy, using_threads
from tangere.shape.analytic import HULL, ROUND, Analytic, AnalyticShape
from tangere.shape.analytic_body import hull_tables
from tangere.shape.moving import Moving

wp.set_module_options(SOUND)

__all__ = ["bodies_terrain", "core_reach"]

#: Bodies worth a thread: some tens of microseconds each.
GRAIN = 32
#: Levels of the pyramid, each of which may add `Terrain.planar` to the error of planar ground, twice for the answer.
GROUND_ERRORS = 64.0
#: Lengths and speeds beyond this are refused.
LARGEST = 1e70


def bodies_terrain(
    bodies: Moving,
    terrain: Any,
    *,
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """When each moving body first touches the ground.

    Args:
        bodies: `wheels.moving(Twist(poses, velocity, rotation))`: n bodies with n motions, or n with 1.
        terrain: a `Heightfield` or `TiledHeightfield`.
        start: "trusted" does not look whether a body is buried at t = 0.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            body's size and way.
        device: where to compute; None means where the data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        One answer per body: a is the body, b the ground; `weights` and `kind` are None.
    """
    options = Options(separation=separation, tolerance=tolerance)
    shapes, motions, poses = _checked(bodies, start)
    device = choose_device(device, bodies.shape.poses)
    kind = int(shapes["kind"][0])
    limit = -1.0 if options.tolerance is None else options.tolerance
    answers = np.empty(len(poses), Answer.numpy_dtype())
    with using_threads(threads):
        reach = wp.array(core_reach(bodies.shape), dtype=wp.float64, device=device)
        everything = _Batch(shapes, motions, poses, device)
        centres, ways = everything.ways(reach, options.separation, limit)
        for rows, ground in terrain_visits(terrain, centres.numpy(), ways.numpy(), device):
            batch, near, far = everything, centres, ways
            if not isinstance(rows, slice):
                batch = everything.rows(rows)
                near = wp.array(centres.numpy()[rows], dtype=wp.vec3d, device=device)
                far = wp.array(ways.numpy()[rows], dtype=wp.float64, device=device)
            out = wp.empty(len(near), dtype=Answer, device=device)
            hulls = hull_tables(bodies.shape.hull, device.alias)
            some_reach = reach if len(reach) == 1 or batch is everything else batch.picked(reach.numpy(), rows)
            launch(
                search_kernel(kind),
                len(near),
                [ground, batch.motions, batch.shapes, batch.poses, some_reach, near, far, hulls]
                + [options.separation, limit, GROUND_ERRORS * ground.planar, int(start == "trusted")],
                [out],
                device=device,
                grain=GRAIN,
            )
            answers[rows] = out.numpy()
    return FirstContacts(
        time=answers["time"].copy(),
        time_upper=answers["time_upper"].copy(),
        status=answers["status"].astype(np.uint8),
        point_a=answers["point_a"].copy(),
        point_b=answers["point_b"].copy(),
        normal=answers["normal"].copy(),
    )


class _Batch:
    """The records of a batch on a device."""

    def __init__(self, shapes: np.ndarray, motions: np.ndarray, poses: np.ndarray, device: wp.Device) -> None:
        self._host = (shapes, motions, poses)
        self.device = device
        self.shapes = wp.array(shapes, dtype=AnalyticShape, device=device)
        self.motions = wp.array(motions, dtype=RigidMotion, device=device)
        self.poses = wp.array(np.ascontiguousarray(poses), dtype=wp.mat44d, device=device)

    def rows(self, rows: np.ndarray) -> _Batch:
        shapes, motions, poses = (part if len(part) == 1 else part[rows] for part in self._host)
        return _Batch(shapes, motions, poses.reshape(-1, 4, 4), self.device)

    def picked(self, values: np.ndarray, rows: np.ndarray) -> wp.array:
        return wp.array(values[rows], dtype=wp.float64, device=self.device)

    def ways(self, reach: wp.array, separation: float, tolerance: float) -> tuple[wp.array, wp.array]:
        """The middle of each body's way, and how far from there any of its points can get."""
        centres = wp.empty(len(self.poses), dtype=wp.vec3d, device=self.device)
        ways = wp.empty(len(self.poses), dtype=wp.float64, device=self.device)
        inputs = [self.motions, self.shapes, self.poses, reach, separation, tolerance]
        launch(_ways, len(self.poses), inputs, [centres, ways], device=self.device, grain=4096)
        return centres, ways


def _checked(bodies: Any, start: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not isinstance(bodies, Moving) or not isinstance(bodies.shape, Analytic):
        raise UnsupportedError(f"bodies_terrain() takes moving cylinders, spheres, boxes and the like, not {bodies!r}")
    if start not in ("checked", "trusted"):
        raise InputError(f"start must be 'checked' or 'trusted', not {start!r}")
    if not hasattr(bodies.motion, "records"):
        raise UnsupportedError(f"bodies on terrain move by Twist, Screw and the like, not by {bodies.motion!r}")
    motions, shapes = bodies.motion.records(), bodies.shape.records
    poses = to_numpy(bodies.shape.poses, "poses").reshape(-1, 4, 4)
    count = max(len(motions), len(poses))
    if len(motions) not in (1, count) or len(poses) not in (1, count):
        raise InputError(f"{len(poses)} bodies and {len(motions)} motions do not pair off")
    for name in ("origin", "velocity", "arc", "angle", "axis", "rotation", "pivot"):
        _check_size(motions[name], f"motion {{}}: its {name}")
    _check_size(poses, "body {}: its pose")
    return shapes, motions, np.broadcast_to(poses, (count, 4, 4))


def _check_size(values: np.ndarray, name: str) -> None:
    """Squares of lengths, and theirs, must be finite."""
    wrong = ~(np.abs(values.reshape(len(values), -1)) <= LARGEST).all(axis=1)
    if wrong.any():
        raise InputError(f"{name.format(int(np.argmax(wrong)))} is not finite, or beyond {LARGEST:g}")


def core_reach(shape: Analytic) -> np.ndarray:
    """Largest distance of a core's points from its origin, (1,) or (n,) [m]: of a round body the radius is apart."""
    records = shape.records
    if records["kind"][0] == HULL:
        return np.linalg.norm(records["half"][:, None] * shape.hull.corners, axis=2).max(axis=1)
    around = 0.0 if records["kind"][0] == ROUND else records["radius"]
    return np.hypot(around, records["half"][:, 2])


@wp.kernel
def _ways(
    first: int,
    motions: wp.array[RigidMotion],
    shapes: wp.array[AnalyticShape],
    poses: wp.array[wp.mat44d],
    reach: wp.array[wp.float64],
    separation: wp.float64,
    tolerance: wp.float64,
    centres: wp.array[wp.vec3d],
    ways: wp.array[wp.float64],
):
    i = first + wp.tid()
    at = wp.min(i, motions.shape[0] - 1)
    shape = shapes[wp.min(i, shapes.shape[0] - 1)]
    far = reach[wp.min(i, reach.shape[0] - 1)]
    origin = wp.vec3d()
    m = traveller_of(motions, at, shape, poses[i], far, separation, tolerance, wp.float64(0.0), origin)
    o = outline_at(m, motions, at, wp.float64(0.5), origin)
    speed = wp.length(m.course.drift) + m.course.swing + m.course.spin * m.rho
    centres[i] = o.centre
    ways[i] = wp.float64(0.5) * speed + far + m.radius + separation + m.tolerance + m.slack
