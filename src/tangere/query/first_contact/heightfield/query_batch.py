"""A batch of moving bodies laid out for the search, and the launches that answer it, visit by visit to the terrain."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import HeightPyramid, terrain_visits, tiles_held
from tangere.motion import RigidMotion, Twist
from tangere.query.contacts.record import Status
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapes, moving_shape_bounds_of, outline_at
from tangere.query.first_contact.heightfield.traversal import Answer, search_kernel
from tangere.query.first_contact.options import Accuracy
from tangere.runtime import SOUND, InputError, LaunchCache, PreparedLaunch, launch, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import HULL, ROUND, AnalyticShape, hull_tables
from tangere.shape.heightfield import Heightfield

wp.set_module_options(SOUND)

#: Bodies worth a thread: some tens of microseconds each.
GRAIN = 32
#: Levels of the pyramid, each of which may add `Terrain.planar` to the error of planar ground, twice for the answer.
GROUND_ERRORS = 64.0
#: Part of the tolerance that bodies are moved up with to see whether they are below the ground, and how far beyond it.
SHARPER, _BEYOND = 0.25, 1e-3
#: Lengths and speeds beyond this are refused.
LARGEST = 1e70
#: Chains for which a launch is kept: longer ones are numbers of which Python has more than one.
MOST_LINKS = 256
#: Bodies on terrains for which launches are kept, by each thread.
_KEPT = 32
#: Fields of a motion's record that are lengths or angles.
LENGTHS = ("origin", "velocity", "arc", "angle", "axis", "rotation", "pivot")


def answers_of(bodies: Moving, terrain: Any, accuracy: Accuracy, trusted: bool, device: wp.Device) -> np.ndarray:
    """What each of n bodies finds of the surface, as `Answer` records, (n,)."""
    return searched(bodies, terrain, accuracy, trusted, device)[0]


def searched(
    bodies: Moving, terrain: Any, accuracy: Accuracy, trusted: bool, device: wp.Device
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each of n bodies finds of the surface, as `Answer` records, (n,), and a ball around its way: middle, radius.

    Args:
        bodies: analytic bodies in rigid motion, n with n or n with 1.
        trusted: whether not to look if a body is buried at t = 0.
    """
    lengths = np.array([accuracy.separation, -1.0 if accuracy.tolerance is None else accuracy.tolerance])
    shape, motion = bodies.shape, bodies.motion
    if device.is_cpu and isinstance(terrain, Heightfield) and is_one(bodies) and motion.links <= MOST_LINKS:
        pyramid = HeightPyramid.of(terrain, device)
        prepared = _prepared.of(pyramid, shape.records, shape.hull, shape.kind, motion.links, trusted)
        answers = prepared.found(bodies, lengths)
        if not trusted and answers["rise"][0] > 0.0:
            _take_buried(answers, bodies, terrain, accuracy, device)
        return answers, *prepared.ball
    batch = _Batch.of(bodies, lengths, device)
    answers = np.empty(len(batch), Answer.numpy_dtype())
    if not len(batch):
        return answers, np.zeros((0, 3)), np.zeros(0)
    centres, ways = (each.numpy() for each in batch.ways())
    with tiles_held([terrain], device):
        for rows, ground in terrain_visits(terrain, centres, ways, device):
            part = batch if isinstance(rows, slice) else batch.rows(rows)
            near = wp.array(centres[rows], dtype=wp.vec3d, device=device)
            far = wp.array(ways[rows], dtype=wp.float64, device=device)
            out = wp.empty(len(part), dtype=Answer, device=device)
            inputs = [ground, part.queries, part.lengths, near, far, GROUND_ERRORS * ground.planar, int(trusted)]
            launch(search_kernel(shape.kind), len(part), inputs, [out], device=device, grain=GRAIN)
            answers[rows] = out.numpy()
    if not trusted:
        _take_buried(answers, bodies, terrain, accuracy, device)
    return answers, centres, ways


def _take_buried(answers: np.ndarray, bodies: Moving, terrain: Any, accuracy: Accuracy, device: wp.Device) -> None:
    """Tell START of bodies that do not touch the surface, but reach below it from a hole or from beyond the border.

    Where the surface is somewhere above a point, the point is below the ground: so these are moved straight up, and
    meet the surface on the way.
    """
    rows = np.flatnonzero((answers["rise"] > 0.0) & (answers["status"] != Status.START) & (answers["time"] > 0.0))
    if not len(rows):
        return
    poses = np.broadcast_to(np.reshape(bodies.motion.pose(0.0), (-1, 4, 4)), (len(answers), 4, 4))
    given = accuracy.tolerance is not None
    sharper = SHARPER * (answers["tolerance"][rows] if not given else np.full(len(rows), accuracy.tolerance))
    sharper = sharper if given else cut_down(sharper)
    for tolerance in np.unique(sharper).tolist():
        some = rows[sharper == tolerance]
        way = np.zeros((len(some), 3))
        way[:, 2] = answers["rise"][some] * (1.0 + _BEYOND)
        shape = bodies.shape if len(bodies.shape) == 1 else bodies.shape[some]
        up = shape.moving(Twist(poses[some], way, np.zeros((len(some), 3))))
        found = answers_of(up, terrain, Accuracy(tolerance=tolerance), True, device)
        met = found["status"] != Status.FREE
        some, found = some[met], found[met]
        for name, value in (("time", 0.0), ("time_upper", 0.0), ("status", Status.START), ("normal", (0.0, 0.0, 1.0))):
            answers[name][some] = value
        answers["point_b"][some] = answers["point_a"][some] = found["point_b"] - found["time"][:, None] * way[met]


def cut_down(lengths: np.ndarray) -> np.ndarray:
    """(n,) powers of two that are not larger: of like bodies the same, so that they can be asked about together."""
    return np.exp2(np.floor(np.log2(lengths)))


class _Batch:
    """The records of n bodies on a device: motions, shapes and reaches of one for all, or of each; poses of each."""

    def __init__(self, host: tuple[np.ndarray, ...], hulls: Any, lengths: wp.array, device: wp.Device) -> None:
        self._host, self._hulls, self.lengths, self.device = host, hulls, lengths, device
        motions, shapes, poses, reach = host  # motions by link, (n, links)
        self.queries = moving_shapes(motions, shapes, poses, reach, device)
        self.queries.hulls = hulls

    @staticmethod
    def of(bodies: Moving, lengths: np.ndarray, device: wp.Device) -> _Batch:
        motion, shape = bodies.motion, bodies.shape
        motions = motion.records().reshape(-1, motion.links)
        poses = to_numpy(shape.poses, "poses").reshape(-1, 4, 4)
        count = len(poses) if len(motions) == 1 else len(motions)
        if len(poses) not in (1, count):
            counts = f"{len(poses)} bodies and {len(motions)} motions"
            raise InputError(f"{counts} do not pair off: as many of both, or one of either")
        check_sizes(motions, poses)
        host = motions, shape.records, np.broadcast_to(poses, (count, 4, 4)), core_reach(shape.records, shape.hull)
        limits = wp.array(lengths, dtype=wp.float64, device=device)
        return _Batch(host, hull_tables(shape.hull, device.alias), limits, device)

    def __len__(self) -> int:
        return len(self._host[2])

    def rows(self, rows: np.ndarray) -> _Batch:
        motions, shapes, poses, reach = self._host
        motions, shapes, reach = (part if len(part) == 1 else part[rows] for part in (motions, shapes, reach))
        return _Batch((motions, shapes, poses[rows], reach), self._hulls, self.lengths, self.device)

    def ways(self) -> tuple[wp.array, wp.array]:
        """The middle of each body's way, and how far from there any of its points can get."""
        centres = wp.empty(len(self), dtype=wp.vec3d, device=self.device)
        ways = wp.empty(len(self), dtype=wp.float64, device=self.device)
        inputs = [self.queries, self.lengths]
        launch(ways_of_bodies, len(self), inputs, [centres, ways], device=self.device, grain=4096)
        return centres, ways


class PreparedGroundContact:
    """First contact of one body with one heightfield: motion, pose and lengths are written from call to call (CPU)."""

    def __init__(
        self, pyramid: HeightPyramid, shapes: np.ndarray, hull: Any, kind: int, links: int, trusted: bool
    ) -> None:
        cpu = wp.get_device("cpu")
        reach = core_reach(shapes, hull)
        queries = moving_shapes(np.zeros((1, links), RigidMotion.numpy_dtype()), shapes, np.eye(4)[None], reach, cpu)
        queries.hulls = hull_tables(hull, cpu.alias)
        lengths = wp.zeros(2, dtype=wp.float64, device=cpu)
        centre, way = wp.zeros(1, dtype=wp.vec3d, device=cpu), wp.zeros(1, dtype=wp.float64, device=cpu)
        out = wp.zeros(1, dtype=Answer, device=cpu)
        planar = GROUND_ERRORS * pyramid.terrain.planar
        self._motions, self._poses, self._lengths = (
            array.numpy() for array in (queries.motions, queries.poses, lengths)
        )
        self._answer = out.numpy()
        self.ball = centre.numpy(), way.numpy()  #: around the way of the last body: middle (1, 3), radius (1,)
        self._way = PreparedLaunch(ways_of_bodies, [queries, lengths, centre, way], cpu)
        arguments = [pyramid.terrain, queries, lengths, centre, way, planar, int(trusted), out]
        self._search = PreparedLaunch(search_kernel(kind), arguments, cpu)

    def found(self, bodies: Moving, lengths: np.ndarray) -> np.ndarray:
        """(1,) `Answer`, valid until the next call."""
        motions, poses = bodies.motion.records(), to_numpy(bodies.shape.poses, "poses").reshape(1, 4, 4)
        if not (getattr(bodies.motion, "largest", np.inf) <= LARGEST and np.abs(poses).max() <= LARGEST):
            check_sizes(motions.reshape(1, -1), poses)
        self._motions[:], self._poses[:], self._lengths[:] = motions.reshape(-1), poses, lengths
        self._way.launch(1, 0)
        self._search.launch(1, 0)
        return self._answer


_prepared = LaunchCache(PreparedGroundContact, most=_KEPT)


def is_one(bodies: Moving) -> bool:
    """Whether it is one body with one motion, not a batch of one."""
    return len(bodies.shape) == 1 and bodies.motion.shape == ()


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


def check_sizes(motions: np.ndarray, poses: np.ndarray) -> None:
    """The same of motions, (n, links) records, and poses."""
    for name in LENGTHS:
        check_size(motions[name], f"motion {{}}: its {name}")
    check_size(poses, "body {}: its pose")


def core_reach(records: np.ndarray, hull: Any) -> np.ndarray:
    """Largest distance of a core's points from its origin, (1,) or (n,) [m]: of a round body the radius is apart."""
    if records["kind"][0] == HULL:
        return np.linalg.norm(records["half"][:, None] * hull.corners, axis=2).max(axis=1)
    around = 0.0 if records["kind"][0] == ROUND else records["radius"]
    return np.hypot(around, records["half"][:, 2])


@wp.kernel
def ways_of_bodies(
    first: int,
    queries: MovingShapes,
    lengths: wp.array[wp.float64],
    centres: wp.array[wp.vec3d],
    ways: wp.array[wp.float64],
):
    i = first + wp.tid()
    queries.separation = lengths[0]
    queries.tolerance = lengths[1]
    m = moving_shape_bounds_of(queries, i, wp.float64(0.0), wp.vec3d())
    o = outline_at(m, wp.float64(0.5))
    speed = wp.length(m.bounds.drift) + m.bounds.swing + m.bounds.spin * m.rho
    centres[i] = o.centre
    ways[i] = wp.float64(0.5) * speed + m.reach + m.radius + m.separation + m.tolerance + m.slack
