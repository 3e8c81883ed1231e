"""Cylinders on a height grid: how fast is a full manifold, and what do others return?

Upright, lying and tilted cylinders (r 0.5 m, h 1.2 m), five millimetres in flat, rough and kerbed ground of 20 m by
20 m, on grids of 100 x 100 and 1000 x 1000 cells. Ours is the whole manifold in one batch on one thread. coal is asked
for all contacts, one call each; MuJoCo for the contacts its `mj_collision` makes, at most 50 for a pair. Both split
cells and place bodies their own way, so depths are not compared. Then: one cylinder in one call, and how many fit in
the 10 ms of the article.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench import machine
from bench.harness import Report, measure, ratio, seconds
from tangere.query.contacts import Contacts
from tangere.query.intersection import touches
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield

FEATURES = ["F-S-22"]

SIZE, RADIUS, HEIGHT, DEPTH = 20.0, 0.5, 1.2, 0.005
TILTS = {"upright": 0.0, "lying": 0.5 * np.pi, "tilted": 0.6}
#: The article's frame [s].
FRAME = 0.010
#: Frames of which 99 % must be in time, with all threads; with one thread a tenth, and as many to find the number.
FRAMES = 10_000
#: MuJoCo's largest number of contacts of a pair.
CAP = 50


@dataclass(frozen=True)
class Ground:
    name: str
    field: Heightfield


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["coal", "mujoco"]
    grids = (50,) if quick else (100, 1000)
    grounds = [ground_of(name, cells) for cells in grids for name in ("flat", "rough", "kerbs")]
    _speeds(report, grounds, quick)
    _one_call(report, grounds[:3], quick)
    _budget(report, grounds[:3], quick)


def _speeds(report: Report, grounds: list[Ground], quick: bool) -> None:
    report.section("A full manifold, per cylinder, one thread")
    rows = []
    for ground in grounds:
        coal, mujoco = CoalScene(ground.field), MujocoScene(ground.field)
        for tilt, angle in TILTS.items():
            poses = lowered_poses(ground.field, angle, 50 if quick else 2000)
            few = poses[: 3 if quick else 20]
            ask = partial(
                manifold, Cylinder(RADIUS, HEIGHT).at(poses), ground.field, distance=0.0, device="cpu", threads=1
            )
            timings = measure(
                {"ours": ask, "coal": partial(coal.all, few), "mujoco": partial(mujoco.all, few)},
                rounds=3 if quick else 7,
                at_most=20.0,
            )
            ours = timings["ours"].median / len(poses)
            theirs = {name: timings[name].median / len(few) for name in ("coal", "mujoco")}
            found: Contacts = timings["ours"].result
            counts = np.bincount(found.query, minlength=len(poses))
            rows.append(
                [
                    ground.name,
                    tilt,
                    seconds(ours),
                    f"{counts.mean():.1f}, {counts.max()}",
                    seconds(theirs["coal"]),
                    ratio(theirs["coal"], ours),
                    _told(timings["coal"].result),
                    seconds(theirs["mujoco"]),
                    ratio(theirs["mujoco"], ours),
                    _told(timings["mujoco"].result),
                ]
            )
    columns = ["ground", "pose", "ours", "points (mean, most)", "coal", "coal / ours", "its contacts (mean, most)"]
    report.table([*columns, "MuJoCo", "MuJoCo / ours", "its contacts (mean, most)"], rows)
    report.note(
        f"""MuJoCo stops at {CAP} contacts of a pair: where "most" is {CAP}, the rest of the footprint has none. Our
        points are at most four for each group of like normals, whatever the size of the cells."""
    )


def _one_call(report: Report, grounds: list[Ground], quick: bool) -> None:
    report.section("One cylinder, one call from Python")
    rows = []
    for ground in grounds:
        for tilt, angle in TILTS.items():
            one = Cylinder(RADIUS, HEIGHT).at(lowered_poses(ground.field, angle, 1))
            taken = _frames(partial(manifold, one, ground.field, device="cpu"), 100 if quick else 5000)
            rows.append([ground.name, tilt, seconds(float(np.median(taken))), seconds(float(np.quantile(taken, 0.99)))])
    report.table(["ground", "pose", "median", "99 % of calls within"], rows)


def _budget(report: Report, grounds: list[Ground], quick: bool) -> None:
    report.section("Cylinders in 10 ms")
    rows = []
    for k, ground in enumerate(grounds):
        for threads in sorted({1, machine.cores()}):
            frames = 20 if quick else FRAMES if k == 0 and threads == machine.cores() else FRAMES // 10
            poses = lowered_poses(ground.field, TILTS["tilted"], 200 if quick else 2000)

            def frame_of(count: int, poses=poses, ground=ground, threads=threads) -> Callable[[], Any]:
                bodies = Cylinder(RADIUS, HEIGHT).at(np.resize(poses, (count, 4, 4)))
                return partial(manifold, bodies, ground.field, device="cpu", threads=threads)

            fits, taken = fitting(frame_of, len(poses), frames)
            rows.append([ground.name, threads, fits, *told_frames(taken)])
    columns = ["ground", "threads", "cylinders", "frames", "median frame", "99 % of frames within", "frames over 10 ms"]
    report.table(columns, rows)
    report.note(
        """Tilted cylinders with the default margin, contacts made anew in each frame; as many as are done within 10 ms
        in 99 % of the frames."""
    )


def fitting(frame_of: Callable[[int], Callable[[], Any]], guess: int, frames: int) -> tuple[int, np.ndarray]:
    """How many bodies are done within a frame in 99 % of `frames` frames, and the seconds these took.

    Args:
        frame_of: a call that does a number of bodies.
        guess: a number whose median time tells about how many fit.
    """
    once = float(np.median(_frames(frame_of(guess), 9)))
    count = max(1, int(0.9 * FRAME / once * guess))
    for tries in (max(frames // 10, 10), frames):  # few frames find about the number, all of them decide
        while True:
            taken = _frames(frame_of(count), tries)
            late = float(np.quantile(taken, 0.99))
            if late <= FRAME or count == 1:
                break
            count = max(1, int(count * min(0.98, FRAME / late)))
        if tries < frames:
            count = max(1, int(0.9 * count))  # many frames hold a later one than few
    return count, taken


def told_frames(taken: np.ndarray) -> list[str]:
    """Cells of a table: frames, median, 99 % quantile and how many are late."""
    quantiles = (seconds(float(np.quantile(taken, q))) for q in (0.5, 0.99))
    return [f"{len(taken):,}", *quantiles, f"{100.0 * np.mean(taken > FRAME):.2g} %"]


def _frames(call, count: int) -> np.ndarray:
    """Seconds that each of `count` calls takes."""
    call()
    taken = np.empty(count)
    for k in range(count):
        begin = time.perf_counter()
        call()
        taken[k] = time.perf_counter() - begin
    return taken


def _told(counts: list[int]) -> str:
    return f"{np.mean(counts):.0f}, {max(counts)}"


def ground_of(name: str, cells: int) -> Ground:
    x = np.linspace(0.0, SIZE, cells + 1)
    if name == "flat":
        heights = np.zeros((cells + 1, cells + 1))
    elif name == "kerbs":
        heights = np.where(np.add.outer(np.floor(x / 4.0), np.floor(x / 3.0)) % 2 == 0, 0.15, 0.0)
    else:  # the same rough ground at every resolution, sampled
        heights = np.zeros((cells + 1, cells + 1))
        for wave, phase, turn in rough_waves():
            heights += 0.15 / wave * np.sin(wave * np.add.outer(np.sin(turn) * x, np.cos(turn) * x) + phase)
    return Ground(f"{name}, {cells} x {cells}", Heightfield(heights, SIZE / cells))


def rough_waves() -> list[tuple[float, float, float]]:
    """The waves of the rough ground: number [1/m], phase and direction."""
    rng, waves = np.random.default_rng(3), []
    for wave in 2.0 ** np.arange(0, 6):
        phases, turns = rng.uniform(0.0, 2.0 * np.pi, (2, 6))
        waves += [(float(wave), float(phase), float(turn)) for phase, turn in zip(phases, turns, strict=True)]
    return waves


def lowered_poses(field: Heightfield, tilt: float, count: int) -> np.ndarray:
    """Poses of cylinders that must be lifted by DEPTH to be free."""
    rng = np.random.default_rng(4)
    heading = rng.uniform(0.0, 2.0 * np.pi, count)
    c, s, ch, sh = np.cos(tilt), np.sin(tilt), np.cos(heading), np.sin(heading)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 0] = np.stack([ch * c, sh * c, np.full(count, -s)], axis=1)
    poses[:, :3, 1] = np.stack([-sh, ch, 0.0 * ch], axis=1)
    poses[:, :3, 2] = np.stack([ch * s, sh * s, np.full(count, c)], axis=1)
    poses[:, :2, 3] = rng.uniform(2.0, SIZE - 2.0, (count, 2))
    low, high = np.full(count, field.bounds[0, 2] - 1.0), np.full(count, field.bounds[1, 2] + 3.0)
    for _ in range(40):
        poses[:, 2, 3] = 0.5 * (low + high)
        hit = touches(Cylinder(RADIUS, HEIGHT).at(poses), field, device="cpu").hit
        low, high = np.where(hit, poses[:, 2, 3], low), np.where(hit, high, poses[:, 2, 3])
    poses[:, 2, 3] = high - DEPTH
    return poses


class CoalScene:
    """coal (PyPI: coal): a height field, centred on the origin, its first row the one with the largest y."""

    def __init__(self, field: Heightfield) -> None:
        import coal

        self._coal = coal
        floor = float(field.heights.min()) - 1.0
        self._field = coal.HeightFieldOBBRSS(SIZE, SIZE, np.asfortranarray(field.heights[::-1].astype(float)), floor)
        self._cylinder = coal.Cylinder(RADIUS, HEIGHT)
        self._place = coal.Transform3s()
        self._place.setTranslation(np.array([0.5 * SIZE, 0.5 * SIZE, 0.0]))
        self._request = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1_000_000)

    def all(self, poses: np.ndarray) -> list[int]:
        counts = []
        for pose in poses:
            place = self._coal.Transform3s()
            place.setRotation(np.ascontiguousarray(pose[:3, :3]))
            place.setTranslation(pose[:3, 3].copy())
            result = self._coal.CollisionResult()
            self._coal.collide(self._cylinder, place, self._field, self._place, self._request, result)
            counts.append(result.numContacts())
        return counts


class MujocoScene:
    """MuJoCo (PyPI: mujoco): a free cylinder over an hfield; poses are set, then `mj_collision` is called."""

    def __init__(self, field: Heightfield) -> None:
        import mujoco

        self._mujoco = mujoco
        rows, columns = field.heights.shape
        low = float(field.heights.min())
        rise = max(float(field.heights.max()) - low, 1e-6)
        self._model = mujoco.MjModel.from_xml_string(f"""
            <mujoco><asset>
              <hfield name="ground" nrow="{rows}" ncol="{columns}" size="{SIZE / 2} {SIZE / 2} {rise} 1"/>
            </asset><worldbody>
              <geom type="hfield" hfield="ground" pos="{SIZE / 2} {SIZE / 2} {low}"/>
              <body><freejoint/><geom type="cylinder" size="{RADIUS} {HEIGHT / 2}"/></body>
            </worldbody></mujoco>""")
        self._model.hfield_data[:] = ((field.heights - low) / rise).ravel().astype(np.float32)
        self._data = mujoco.MjData(self._model)

    def all(self, poses: np.ndarray) -> list[int]:
        counts = []
        for pose in poses:
            self._data.qpos[:3] = pose[:3, 3]
            self._mujoco.mju_mat2Quat(self._data.qpos[3:7], pose[:3, :3].ravel())
            self._mujoco.mj_kinematics(self._model, self._data)
            self._mujoco.mj_collision(self._model, self._data)
            counts.append(self._data.ncon)
        return counts
