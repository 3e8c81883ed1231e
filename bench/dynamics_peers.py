"""Piles, a stack, an arch, a chain and a bolt beside five other engines: how fast, and who overlaps?

MuJoCo, PyBullet, rapier3d, and where they are installed Drake and Newton (its position-based solver, on the CPU), have
the same bodies, friction and steps of 10 ms (chain and bolt 5 ms), one after the other in one run, one thread each, the
peers without sleep; a time is processor time of a step, the mean over the last third of the run, when most are in
contact. Each peer runs as it comes; then with stiff settings and as many substeps as it takes to overlap by less than
0.1 mm, if 16 are enough (4 for the pile of 1,000, the chain and the bolt). A peer's run is stopped after a minute. The
deepest overlap is that of all states looked at, ten in a run, and every tenth of the pile that settles: of boxes by
their separating axes, of other bodies the deepest vertex of one inside another; ours are put to the exact test besides.
Drift is how far the body that moved most has gone, where all should stand still; the energy, where things fall, is the
largest rise above an earlier one, in parts of the range it had. Of 1,000 boxes the highest land after two and a half
seconds, and the pile comes to rest in four more: its table has the mean of all steps, and the text the dearest fifty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.harness import Report, SkippedError, ratio, seconds
from bench.peers.drake_worlds import Drake
from bench.peers.newton_worlds import Newton
from bench.peers.rigid_worlds import ENGINES, PeerBody, UnfitError
from tangere.dynamics import Body, World, scenes
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.query.signed_distance import signed_distance

FEATURES: list[str] = []

#: Overlap that peers are asked to stay below with substeps [m].
LITTLE = 1e-4
LOOKS = 10  #: states of a run that are looked at
STRETCH = 50  #: steps whose mean is told of runs that are taken as a whole
LONGEST = 60.0  #: after which a peer's run is stopped [s]


@dataclass(frozen=True)
class Case:
    """A scene, how many steps of it, and what is asked about it."""

    name: str
    make: Callable[[], World]
    steps: int
    stands: bool  #: whether everything should stay where it is
    substeps: tuple[int, ...] = (1, 4, 16)
    convex: Callable[[Body], list[np.ndarray]] | None = None  #: pieces of a body that is no box
    looks: int = LOOKS  #: states that are looked at
    whole: bool = False  #: whether its time is that of all steps, not of the last third


@dataclass
class Run:
    """What a run showed."""

    time: float  #: of a step [s]
    overlap: float  #: deepest [m]
    pairs: int  #: that overlap in the last state
    drift: float  #: [m]
    rise: float  #: of the energy, in parts of its range
    note: str = ""


def run(report: Report, quick: bool = False) -> None:
    try:
        import mujoco  # noqa: F401
        import pybullet  # noqa: F401
        import rapier3d  # noqa: F401
    except ImportError as error:
        raise SkippedError(str(error)) from error
    engines = [*ENGINES, *([Drake] if find_spec("pydrake") else []), *([Newton] if find_spec("newton") else [])]
    report.packages += [engine.package for engine in engines]
    for case in _cases(quick):
        compare(report, case, engines, quick)


def _cases(quick: bool) -> list[Case]:
    options = {"device": "cpu", "threads": 1}
    few = 12 if quick else 100
    cases = [
        Case(
            "pile of 100 boxes" if not quick else "pile of 12 boxes", partial(scenes.pile, few, **options), 300, False
        ),
        Case("pile of 1,000 boxes, still falling", partial(scenes.pile, 1000, **options), 100, False, (4,)),
        Case(
            "pile of 1,000 boxes, settling",
            partial(scenes.pile, 1000, **options),
            700,
            False,
            (4,),
            looks=70,
            whole=True,
        ),
        Case("stack of 10 cubes", partial(scenes.stack, 10, **options), 200, True),
        Case("arch of 25 stones", partial(scenes.arch, **options), 200, True, convex=lambda body: [body.mesh.vertices]),
        Case("chain of 10 links", partial(scenes.chain, 10, **options), 120, False, (4,), _ring_pieces),
        Case("bolt in a nut", partial(scenes.bolt, **options), 60, False, (4,)),
    ]
    return [case for number, case in enumerate(cases) if not quick or number in (0, 4, 5)]


def _ring_pieces(body: Body) -> list[np.ndarray]:
    """A torus of 24 by 10 vertices in 24 convex pieces."""
    rings = body.mesh.vertices.reshape(24, 10, 3)
    return [np.concatenate([rings[k], rings[(k + 1) % 24]]) for k in range(24)]


def compare(report: Report, case: Case, engines: Sequence[Any], quick: bool) -> None:
    """A table of a case: ours, and each peer as it comes and stiff."""
    report.section(case.name[0].upper() + case.name[1:])
    steps = 40 if quick else case.steps
    ours = _ours(case, steps)
    rows = [_row("tangere", ours, ours)]
    bodies = _peer_bodies(case)
    told = case.make()
    friction, dt = told.told_options()["friction"], told.dt
    for engine in engines:
        try:
            plain = _peer(engine, bodies, friction, dt, 1, False, steps, case)
            rows.append(_row(f"{engine.name}, as it comes{plain.note}", plain, ours))
            for number in case.substeps[: 2 if quick else None]:
                stiff = _peer(engine, bodies, friction, dt, number, True, steps, case)
                if stiff.overlap < LITTLE or stiff.note:
                    break
            rows.append(_row(f"{engine.name}, stiff, {number} substep{'s' * (number > 1)}{stiff.note}", stiff, ours))
        except UnfitError as reason:
            rows.append([f"{engine.name}", None, None, f"cannot: {reason}", None, None, None])
    header = [
        "engine",
        "time of a step",
        "against ours",
        "deepest overlap",
        "pairs that overlap",
        "drift",
        "energy rise",
    ]
    report.table(header, rows)
    if ours.note:
        report.note(ours.note)


def _row(name: str, found: Run, ours: Run) -> list[Any]:
    deep = "0" if found.overlap == 0.0 else f"{1e3 * found.overlap:.3g} mm"
    drift = "-" if np.isnan(found.drift) else f"{1e3 * found.drift:.3g} mm"
    rise = f"{found.rise:.1e}" if np.isnan(found.drift) else "-"
    return [name, seconds(found.time), ratio(found.time, ours.time), deep, found.pairs, drift, rise]


def _ours(case: Case, steps: int) -> Run:
    world = case.make()
    start, looks = world.positions, _looks(steps, case)
    boxes = [_half_box(body) for body in world.bodies]
    taken, deepest, pairs, lowest, highest, rise = [], 0.0, 0, world.energy.total, world.energy.total, 0.0
    for number in range(1, steps + 1):
        began = time.process_time()
        world.step()
        taken.append(time.process_time() - began)
        now = world.energy.total
        lowest, highest = min(lowest, now), max(highest, now)
        rise = max(rise, now - lowest)
        if number in looks:
            exact = _meeting(world)
            deep, pairs = _overlap(world.bodies, boxes, world.poses)
            if exact or deep > 0.0:  # no two may meet, by the exact test
                deepest, pairs = max(deepest, deep, 1e-12 if exact else 0.0), max(pairs, exact)
    drift = float(np.linalg.norm(world.positions - start, axis=1).max()) if case.stands else np.nan
    part = rise / max(highest - lowest, 1e-9 * sum(body.mass for body in world.bodies if body.moves))
    held = world.truncation
    note = f"Ours: {len(world.contacts)} contacts at the end, {int(world.asleep.sum())} bodies asleep, "
    note += f"{held.all_bodies} held back, {held.all_solved_again} times solved again; "
    note += f"at most {np.abs(world.velocities[:, :3]).max():.2g} m/s in the end."
    if case.whole:
        note += (
            f" The dearest {STRETCH} steps took {seconds(_dearest(taken))} each; {len(looks)} states by the exact test."
        )
    return Run(_mean(taken, case), deepest, pairs, drift, part, note)


def _peer(
    engine: Any,
    bodies: list[PeerBody],
    friction: float,
    dt: float,
    substeps: int,
    stiff: bool,
    steps: int,
    case: Case,
) -> Run:
    world = case.make()  # whose meshes are looked at
    boxes = [_half_box(body) for body in world.bodies]
    homes = np.array([body.pose for body in world.bodies])
    homes = np.linalg.inv(np.array([body.pose for body in bodies])) @ homes
    made = engine(bodies, friction, dt / substeps, stiff)
    looks = _looks(steps, case)
    start = made.poses()[:, :3, 3]
    masses = np.array([body.mass for body in bodies])
    taken, deepest, pairs, lowest, highest, rise = [], 0.0, 0, np.inf, -np.inf, 0.0
    before = made.poses()
    for number in range(1, steps + 1):
        began = time.process_time()
        for _ in range(substeps):
            made.step()
        taken.append(time.process_time() - began)
        stopped = sum(taken) > LONGEST
        poses = made.poses()
        now = _energy(masses, bodies, before, poses, dt)
        lowest, highest, before = min(lowest, now), max(highest, now), poses
        rise = max(rise, now - lowest)
        if number in looks or stopped:
            deep, pairs = _overlap(world.bodies, boxes, poses @ homes)  # the meshes' frames
            deepest = max(deepest, deep)
        if stopped:
            break
    moved = np.linalg.norm(made.poses()[:, :3, 3] - start, axis=1)
    made.close()
    span = max(highest - lowest, 1e-9 * masses.sum())
    note = f", {len(taken)} of {steps} steps" if len(taken) < steps else ""
    return Run(_mean(taken, case), deepest, pairs, float(moved.max()) if case.stands else np.nan, rise / span, note)


def _energy(masses: np.ndarray, bodies: list[PeerBody], before: np.ndarray, now: np.ndarray, dt: float) -> float:
    """Of positions, and of velocities by differences."""
    from scipy.spatial.transform import Rotation

    velocity = (now[:, :3, 3] - before[:, :3, 3]) / dt
    spin = Rotation.from_matrix(now[:, :3, :3] @ np.swapaxes(before[:, :3, :3], 1, 2)).as_rotvec() / dt
    local = np.einsum("nji,nj->ni", now[:, :3, :3], spin)
    inertia = np.array([body.inertia for body in bodies])
    turning = 0.5 * np.einsum("ni,nij,nj->n", local, inertia, local)
    moving = 0.5 * masses * (velocity**2).sum(axis=1) + 9.81 * masses * 0.5 * (now[:, 2, 3] + before[:, 2, 3])
    return float((moving + np.where(masses > 0.0, turning, 0.0)).sum())


def _looks(steps: int, case: Case) -> set[int]:
    return set(np.linspace(steps / case.looks, steps, case.looks).round().astype(int).tolist())


def _mean(taken: list[float], case: Case) -> float:
    return float(np.mean(taken if case.whole else taken[-max(1, len(taken) // 3) :]))


def _dearest(taken: list[float]) -> float:
    """The mean of the stretch of steps that took longest [s]."""
    return max(float(np.mean(taken[k : k + STRETCH])) for k in range(max(1, len(taken) - STRETCH + 1)))


def _peer_bodies(case: Case) -> list[PeerBody]:
    found = []
    for body in case.make().bodies:
        centre = _centre(body)
        pose = body.pose.copy()
        pose[:3, 3] += pose[:3, :3] @ centre
        moves, box = body.moves, _half_box(body)
        inertia = body.mass_properties.inertia if moves else np.eye(3)
        axes = _principal_axes(inertia)  # along which engines take moments of inertia
        pieces = [] if box is not None or case.convex is None else [(p - centre) @ axes for p in case.convex(body)]
        pose[:3, :3] = pose[:3, :3] @ axes
        inertia = np.diag(np.diag(axes.T @ inertia @ axes))
        mesh = body.mesh.replace(vertices=(body.mesh.vertices - centre) @ axes)
        found.append(PeerBody(pose, body.mass if moves else 0.0, inertia, box, pieces, mesh))
    return found


def _principal_axes(inertia: np.ndarray) -> np.ndarray:
    """(3, 3) columns; those of the mesh where they are principal ones."""
    if np.allclose(inertia, np.diag(np.diag(inertia)), atol=1e-9 * inertia.max()):
        return np.eye(3)
    axes = np.linalg.eigh(inertia)[1]
    return axes * np.sign(np.linalg.det(axes))


def _centre(body: Body) -> np.ndarray:
    return body.mass_properties.centre if body.moves else body.mesh.bounds.mean(axis=0)


def _half_box(body: Body) -> np.ndarray | None:
    mesh = body.mesh
    if len(mesh.vertices) != 8:
        return None
    half = 0.5 * np.ptp(mesh.bounds, axis=0)
    corners = np.abs(mesh.vertices - mesh.bounds.mean(axis=0))
    return half if np.allclose(corners, half, rtol=1e-12) else None


def _meeting(world: World) -> int:
    """Pairs that meet by the exact test."""
    boxes = np.array([mesh.bounds for mesh in world.meshes()])
    poses, found = world.poses, 0
    for i, j in _near(boxes, world.bodies):
        first, second = (world.bodies[k].mesh.moving(Rest(poses[k])) for k in (i, j))
        found += bool(intersects(first, second, device="cpu", threads=1))
    return found


def _near(boxes: np.ndarray, bodies: Any) -> list[tuple[int, int]]:
    """Pairs whose boxes (n, 2, 3) overlap, of which one can move."""
    moves = np.array([body.moves for body in bodies])
    order = np.argsort(boxes[:, 0, 0])
    found = []
    for at, i in enumerate(order):
        rest = order[at + 1 :]
        rest = rest[: np.searchsorted(boxes[rest, 0, 0], boxes[i, 1, 0], side="right")]
        meet = (boxes[rest, 0] <= boxes[i, 1]).all(axis=1) & (boxes[i, 0] <= boxes[rest, 1]).all(axis=1)
        found += [(int(i), int(j)) for j in rest[meet & (moves[rest] | moves[i])]]
    return found


def _overlap(bodies: Any, boxes: list[np.ndarray | None], poses: np.ndarray) -> tuple[float, int]:
    """The deepest overlap [m], and how many pairs overlap by more than a nanometre."""
    meshes = [body.mesh.at(pose) for body, pose in zip(bodies, poses, strict=True)]
    deep = []
    for i, j in _near(np.array([mesh.bounds for mesh in meshes]), bodies):
        if boxes[i] is not None and boxes[j] is not None:
            middles = [0.5 * (bodies[k].mesh.bounds[0] + bodies[k].mesh.bounds[1]) for k in (i, j)]
            deep.append(_box_depth(boxes[i], boxes[j], poses[i], poses[j], middles))
        else:
            deep.append(max(_vertex_depth(meshes[i], meshes[j]), _vertex_depth(meshes[j], meshes[i])))
    found = np.array(deep or [0.0])
    return float(max(found.max(), 0.0)), int((found > 1e-9).sum())


def _box_depth(a: Any, b: Any, pose_a: np.ndarray, pose_b: np.ndarray, middles: list[np.ndarray]) -> float:
    """How far two boxes would have to be moved apart along the best of their separating axes [m]."""
    first, second = pose_a[:3, :3], pose_b[:3, :3]
    way = pose_b[:3, 3] + second @ middles[1] - pose_a[:3, 3] - first @ middles[0]
    axes = np.concatenate([first.T, second.T, np.cross(first.T[:, None], second.T[None]).reshape(9, 3)])
    length = np.linalg.norm(axes, axis=1)
    axes = axes[length > 1e-3] / length[length > 1e-3, None]
    gap = np.abs(axes @ way) - np.abs(axes @ first) @ a - np.abs(axes @ second) @ b
    return float(-gap.max())


def _vertex_depth(inside: Any, mesh: Any) -> float:
    low, high = mesh.bounds
    points = inside.vertices[((inside.vertices >= low) & (inside.vertices <= high)).all(axis=1)]
    if not len(points):
        return 0.0
    return float(-signed_distance(points, mesh, device="cpu", threads=1).distance.min())
