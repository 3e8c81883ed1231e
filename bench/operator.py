"""A virtual operator: recorded trajectories of parts that are moved far away, slid along each other and swung past.

The thesis recorded a person at work. Here a first-order operator stands in: it wants to go to a waypoint, its hand
trembles (band-limited noise), what it wants is projected on the half-spaces of the current contacts, and it moves with
first_contact on, so that it stops before anything touches. Every motion it tried is an action of the trajectory, from
where the part was to where it was meant to go; replays ask for their first contact. Nothing here is physical: it makes
steps like those of a hand that presses a part along its surroundings
(Redon 2002; its security distances, scaled to the size of the fixed part).
"""

from __future__ import annotations

import inspect
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.harness import Report, count, seconds
from bench.replay import Trajectory
from tangere.motion import Rest, Rigid, Twist
from tangere.motion.poses import rotation_between
from tangere.query.contacts import Contacts, Status
from tangere.query.distance import distance
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.query.intersection import intersects
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh

__all__ = ["SCENES", "Leg", "Operator", "Recording", "record", "recorded"]

FEATURES: list[str] = []

#: The three distances of Redon 2002 (alert, security, rupture) in units of the fixed part's extent; there of 50 units.
ALERT, SECURITY, RUPTURE = 0.0044 / 50.0, 0.01 / 50.0, 0.023 / 50.0
#: Share of what lacks to the security distance that is made up for in one action.
RECOVERY = 0.3
#: Actions for which a contact is remembered: its normal goes stale as the part slides on, and is found again by a stop.
REMEMBERED = 12


@dataclass(frozen=True)
class Leg:
    """So many actions towards a pose.

    Args:
        regime: "far", "sliding" or "fast": how the thesis's actions differ.
        towards: pose the operator wants, (4, 4); it may lie behind a wall.
        actions: how many of 1,000 actions of the trajectory.
        speed: of the part's middle at most, in one action [m].
        turning: angle of one action at most [rad].
        tremor: of the hand, as a part of speed and turning.
    """

    regime: str
    towards: np.ndarray
    actions: int
    speed: float
    turning: float
    tremor: float = 0.3


@dataclass(frozen=True, eq=False)
class Recording:
    """A trajectory, the regime of each action, where each action ended, and how near the bodies then were."""

    trajectory: Trajectory
    regime: np.ndarray  #: (n,) names
    ends: np.ndarray = field(repr=False)  #: (n, 4, 4) poses the part really reached
    seconds: float = 0.0  #: it took to record; 0 if it was read from a file


class Operator:
    """A hand that moves `part` beside `fixed`, from `start` on, and never lets them touch."""

    def __init__(self, part: Mesh, fixed: Mesh, start: np.ndarray, seed: int = 0) -> None:
        self.part, self.fixed, self.pose = part, fixed, np.array(start, float)
        self.centre = part.bounds.mean(axis=0)
        self.radius = 0.5 * part.extent
        self.alert, self.security, self.rupture = (x * fixed.extent for x in (ALERT, SECURITY, RUPTURE))
        rng = np.random.default_rng(seed)
        # Waves of 8 to 80 actions each: band-limited, and the same for every run.
        self._waves = 2.0 * np.pi / rng.uniform(8.0, 80.0, (6, 5)), rng.uniform(0.0, 2.0 * np.pi, (6, 5))
        self._action = 0
        # Contacts known: points in the part's frame, what they touch, normals away from it, and their age in actions.
        self._points, self._places, self._normals = (np.zeros((0, 3)) for _ in range(3))
        self._ages = np.zeros(0, int)

    def act(self, leg: Leg) -> Twist:
        """One action of a leg: the motion tried. `self.pose` is then where it led."""
        gaps = self._forget()
        velocity, rotation = np.split(self._allowed(self._wanted(leg), gaps), 2)
        action = Twist(self.pose, velocity, rotation / self.radius, self.centre)
        # What is nearer than the alert distance may still move, but not to less than half of what is left.
        nearest = float(distance(self.part.moving(Rest(self.pose)), self.fixed, device="cpu").lower)
        kept = min(self.alert, 0.5 * nearest)
        hit = rigid_first_contact(
            self.part.moving(action), self.fixed, separation=kept, tolerance=0.1 * kept, device="cpu", threads=1
        )
        if hit.status == Status.START:
            raise InputError("the operator's part goes through its surroundings")
        self.pose = action.pose(min(hit.time, 1.0))
        if hit.status != Status.FREE:
            self._remember(hit.contacts)
        self._action += 1
        self._ages += 1
        return action

    def _remember(self, contacts: Contacts) -> None:
        back = np.linalg.inv(self.pose)
        self._points = np.concatenate([self._points, contacts.point_a @ back[:3, :3].T + back[:3, 3]])
        self._places = np.concatenate([self._places, contacts.point_b])
        self._normals = np.concatenate([self._normals, contacts.normal])
        self._ages = np.append(self._ages, np.zeros(len(contacts), int))

    def _forget(self) -> np.ndarray:
        """Drop contacts that are old or beyond the rupture distance; the gaps of the others [m]."""
        gaps = np.einsum("ni,ni->n", self._in_world(self._points) - self._places, self._normals)
        keep = (self._ages < REMEMBERED) & (gaps < self.rupture)
        self._points, self._places, self._normals = self._points[keep], self._places[keep], self._normals[keep]
        self._ages = self._ages[keep]
        return gaps[keep]

    def _in_world(self, points: np.ndarray) -> np.ndarray:
        return points @ self.pose[:3, :3].T + self.pose[:3, 3]

    def _wanted(self, leg: Leg) -> np.ndarray:
        """(6,) velocity of the middle and rotation vector times the radius, for one action."""
        middle = self._in_world(self.centre)
        way = leg.towards[:3, :3] @ self.centre + leg.towards[:3, 3] - middle
        axis, angle = rotation_between(self.pose[None, :3, :3], leg.towards[None, :3, :3])
        trembling = np.sin(self._waves[0] * self._action + self._waves[1]).mean(axis=1) * leg.tremor
        velocity = way * min(1.0, leg.speed / max(np.linalg.norm(way), 1e-12)) + leg.speed * trembling[:3]
        rotation = axis[0] * min(float(angle[0]), leg.turning) + leg.turning * trembling[3:]
        return np.concatenate([velocity, rotation * self.radius])

    def _allowed(self, wanted: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """The motion nearest to the wanted one that keeps or regains the security distance at every contact (NNLS)."""
        if not len(gaps):
            return wanted
        from scipy.optimize import nnls

        arms = (self._in_world(self._points) - self._in_world(self.centre)) / self.radius
        rows = np.concatenate([self._normals, np.cross(arms, self._normals)], axis=1)
        lacking = self.security - gaps
        needed = np.where(lacking > 0.0, RECOVERY * lacking, lacking) - rows @ wanted
        scale = max(float(np.abs(needed).max()), 1e-30)
        system = np.concatenate([rows.T, needed[None] / scale])  # least distance programming (Lawson and Hanson)
        target = np.append(np.zeros(6), 1.0)
        multipliers, _ = nnls(system, target)
        rest = system @ multipliers - target
        if abs(rest[6]) < 1e-9:  # no motion satisfies all of them: hold still
            return np.zeros(6)
        return wanted - scale * rest[:6] / rest[6]


def record(part: Mesh, fixed: Mesh, start: np.ndarray, legs: Sequence[Leg], actions: int, seed: int = 0) -> Recording:
    """Let the operator go through the legs, `actions` in all."""
    began = time.perf_counter()
    operator = Operator(part, fixed, start, seed)
    share = np.cumsum([0] + [leg.actions for leg in legs]) / sum(leg.actions for leg in legs)
    turns = np.diff(np.round(share * actions).astype(int))
    motions, ends, regimes = [], [], []
    for leg, number in zip(legs, turns, strict=True):
        for _ in range(number):
            motions.append(operator.act(leg))
            ends.append(operator.pose)
        regimes += [leg.regime] * number
    trajectory = Trajectory(part, fixed, Rigid.join(motions))
    return Recording(trajectory, np.array(regimes), np.stack(ends), time.perf_counter() - began)


# -- the scenes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A task for the operator: makes part, fixed part, start and legs; how many actions the thesis recorded."""

    make: Callable[[], tuple[Mesh, Mesh, np.ndarray, list[Leg]]]
    actions: int
    text: str


def _lifter() -> tuple[Mesh, Mesh, np.ndarray, list[Leg]]:
    """From outside into the door, about in its hollow against the skins, and out again."""
    task = generate.window_lifter()
    way = task.free_path
    outside = pose((0.71, 0.55, 0.30), angle=0.5 * np.pi)
    aside, below = pose((0.40, 0.60, 0.45), angle=0.9), pose((1.0, 0.50, 0.20), angle=2.2)
    before, upright, mounted = way[24], way[18], way[0]
    outer, inner = (pose((0.45, y, 0.30), angle=0.6) for y in (-0.06, 0.12))
    rear, front = (pose((x, 0.022, 0.32), angle=0.3) for x in (1.2, -0.1))
    legs = [
        Leg("far", aside, 110, 0.01, 0.03),
        Leg("far", below, 110, 0.01, 0.03),
        Leg("far", outside, 80, 0.01, 0.03),
        Leg("sliding", before, 90, 0.012, 0.02, 0.1),
        Leg("sliding", upright, 60, 0.01, 0.02, 0.2),
        Leg("sliding", mounted, 60, 0.006, 0.05, 0.2),
        Leg("sliding", outer, 70, 0.004, 0.02),
        Leg("sliding", front, 70, 0.006, 0.02),
        Leg("sliding", inner, 70, 0.004, 0.02),
        Leg("fast", rear, 40, 0.08, 0.3, 0.6),
        Leg("fast", front, 40, 0.08, 0.3, 0.6),
        Leg("fast", outer, 40, 0.05, 0.3, 0.6),
        Leg("sliding", upright, 40, 0.01, 0.05, 0.2),
        Leg("sliding", before, 40, 0.02, 0.05, 0.1),
        Leg("sliding", outside, 40, 0.02, 0.02, 0.1),
        Leg("fast", aside, 20, 0.12, 0.3, 0.6),
        Leg("fast", below, 20, 0.12, 0.3, 0.6),
    ]
    return task.part, task.fixed, outside, legs


def _doors(crown: float = 0.0) -> tuple[Mesh, Mesh, np.ndarray, list[Leg]]:
    """A door on the inside of an identical one: pressed against it, slid along it, lifted a little, pressed again."""
    door = generate.door_panel(crown=crown)
    spots = [(0.0, 0.0), (0.15, 0.0), (0.1, 0.05), (-0.1, 0.03), (-0.05, -0.05), (0.1, -0.05), (0.0, 0.05), (0.0, 0.0)]
    off = pose((0.3, 0.4, 0.1), axis=2, angle=0.4)
    legs = [Leg("far", off, 60, 0.02, 0.02), Leg("sliding", pose((0.0, 0.06, 0.0)), 60, 0.02, 0.03, 0.2)]
    for (x, z), (next_x, next_z) in pairwise(spots):
        legs.append(Leg("sliding", pose((x, 0.06, z), axis=2, angle=0.01), 40, 0.004, 0.01))
        legs.append(Leg("sliding", pose((0.5 * (x + next_x), 0.12, 0.5 * (z + next_z))), 20, 0.001, 0.002))
        legs.append(Leg("sliding", pose((next_x, 0.06, next_z), axis=0, angle=0.01), 40, 0.004, 0.01))
    legs += [Leg("fast", off, 20, 0.1, 0.1), Leg("fast", pose((0.1, 0.06, 0.1)), 60, 0.1, 0.1)]
    return door, door, pose((0.0, 0.3, 0.0)), legs


def _door_on_body() -> tuple[Mesh, Mesh, np.ndarray, list[Leg]]:
    """A door brought into its opening, pressed against the frame and slid along it on all sides."""
    task = generate.door_on_body()
    aside, closed = task.free_path[4], task.start
    pressed = [pose(at, axis=2, angle=turn) for at, turn in (((0.1, 0.0, 0.0), 0.0), ((0.0, 0.02, -0.1), 0.03))]
    pressed += [pose((-0.1, 0.0, 0.02), axis=1, angle=0.03), pose((0.05, 0.05, 0.1), axis=0, angle=0.03)]
    legs = [Leg("far", aside, 100, 0.01, 0.02), Leg("sliding", closed, 150, 0.008, 0.02, 0.1)]
    legs += [Leg("sliding", spot, 150, 0.002, 0.004, 0.4) for spot in pressed]
    legs += [Leg("fast", aside, 50, 0.05, 0.1), Leg("fast", pressed[3], 100, 0.05, 0.1)]
    return task.part, task.fixed, task.free_path[-1], legs


def _conforming() -> tuple[Mesh, Mesh, np.ndarray, list[Leg]]:
    """The door inside a shell of its own shape: the curved skins lie on each other all over."""
    door, other = generate.door_panel(16_000), generate.door_panel(29_000)
    spots = [(0.0, 0.0), (0.05, 0.0), (-0.05, 0.0), (0.03, 0.0)]
    legs = [Leg("sliding", pose((x, 0.065, z)), 100, 0.004, 0.0, 0.05) for x, z in spots]
    return door, other, pose((0.0, 0.0705, 0.0)), legs


def _pylon() -> tuple[Mesh, Mesh, np.ndarray, list[Leg]]:
    """The bent part lifted against the shelf, drawn against the wall, pivoted out, and swung over the bay."""
    task = generate.pylon_bay()
    way = task.free_path
    lifted, drawn = task.touching_path[3], pose((0.10, 0.25, 0.49))
    tilted = pose((0.285, 0.25, 0.53), angle=0.8)
    legs = [
        Leg("sliding", lifted, 100, 0.004, 0.01),
        Leg("sliding", drawn, 100, 0.004, 0.01),
        Leg("sliding", tilted, 100, 0.004, 0.03),
        Leg("sliding", way[0], 60, 0.006, 0.03, 0.1),
        *(Leg("sliding", at, 25, 0.006, 0.06, 0.1) for at in way[4:37:4]),
        Leg("far", way[-1], 150, 0.02, 0.02),
        Leg("fast", way[40], 60, 0.1, 0.2, 0.6),
        Leg("fast", way[-1], 60, 0.1, 0.2, 0.6),
    ]
    return task.part, task.fixed, task.start, legs


SCENES = {
    "lifter": Scene(_lifter, 2604, "window lifter in a door, 20,000 triangles"),
    "doors": Scene(_doors, 2390, "two identical doors, 3,530 triangles each"),
    "crowned doors": Scene(partial(_doors, 0.05), 600, "two identical doors curved in two directions, 3,530 triangles"),
    "door on body": Scene(_door_on_body, 1000, "door on body, 16,000 and 29,000 triangles"),
    "conforming doors": Scene(
        _conforming, 200, "door on door, curved skins on each other, 16,000 and 29,000 triangles"
    ),
    "pylon": Scene(_pylon, 1000, "part of a pylon, 80,000 triangles"),
}


@cache
def recorded(name: str, actions: int | None = None) -> Recording:
    """The recording of a scene, made once and kept in the user's cache folder.

    Args:
        name: of `SCENES`.
        actions: in all; None means as many as the thesis had. Fewer are a rehearsal, not the first of more.
    """
    scene = SCENES[name]
    wanted = scene.actions if actions is None else actions
    part, fixed, start, legs = scene.make()
    file = _cache_folder() / f"{name.replace(' ', '-')}-{wanted}-{_digest(part, fixed, start, legs)}.npz"
    if file.exists():
        try:
            known = Trajectory.load(file)
            with np.load(file.with_suffix(".ends.npz"), allow_pickle=False) as rest:
                return Recording(Trajectory(part, fixed, known.motion), rest["regime"], rest["ends"])
        except (InputError, OSError, ValueError, KeyError):
            file.unlink()  # damaged: recorded again
    recording = record(part, fixed, start, legs, wanted)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file.with_suffix(".ends.npz"), regime=recording.regime, ends=recording.ends)
    recording.trajectory.save(file)
    return recording


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tangere-bench"


def _digest(part: Mesh, fixed: Mesh, start: np.ndarray, legs: Sequence[Leg]) -> str:
    """Changes with the operator, the shapes and the plan: recordings of older ones are not read."""
    settings = (ALERT, SECURITY, RUPTURE, RECOVERY, REMEMBERED)
    plan = [(leg.regime, leg.towards.tolist(), leg.actions, leg.speed, leg.turning, leg.tremor) for leg in legs]
    text = inspect.getsource(Operator) + repr((settings, np.asarray(start).tolist(), plan))
    crc = zlib.crc32(text.encode())
    for mesh in (part, fixed):
        crc = zlib.crc32(mesh.faces.tobytes(), zlib.crc32(mesh.vertices.tobytes(), crc))
    return f"{crc:08x}"


def run(report: Report, quick: bool = False) -> None:
    rows = []
    for name, scene in SCENES.items():
        recording = recorded(name, 60 if quick else None)
        trajectory, ends = recording.trajectory, recording.ends
        checked = np.unique(np.linspace(0, len(ends) - 1, 20 if quick else 200).astype(int))
        moved = trajectory.part.moving
        through = sum(intersects(moved(Rest(ends[i])), trajectory.fixed, device="cpu") for i in checked)
        nearest = distance(moved(Rest(ends[checked])), trajectory.fixed, device="cpu").lower
        touching = nearest < 2.0 * RUPTURE * trajectory.fixed.extent
        regimes = ", ".join(f"{(recording.regime == one).sum()} {one}" for one in ("far", "sliding", "fast"))
        rows.append(
            [
                scene.text,
                len(trajectory),
                regimes,
                seconds(recording.seconds) if recording.seconds else "read from a file",
                f"{100.0 * touching.mean():.0f} %",
                f"{1e3 * nearest.min():.3f} mm",
                f"{through} of {len(checked)}",
            ]
        )
    columns = ["scene", "actions", "of which", "recorded in", "in contact", "nearest", "exact intersections"]
    report.table(columns, rows)
    report.note(
        f"""In contact: nearer than {count(2 * RUPTURE * 1e6)} millionths of the fixed part's extent, at poses checked
        evenly along the way; there the triangles are tested exactly, and none may intersect."""
    )
