"""Many copies of one small world on a CUDA device: steps of worlds in a second.

4,096 worlds of ten bodies fall, tumble and settle in one batch; MuJoCo-Warp, where it is installed, steps the same
scene beside it, with the same velocities at the start. Then one world: 1,000 boxes fall into a bin, for 700 steps, in
which they come to rest, or as many as three quarters of a minute have. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, seconds
from tangere.dynamics import Body, World, scenes
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.shape import generate

FEATURES: list[str] = []

BODIES, DT = 10, 0.01
SIZE = (0.5, 0.4, 0.3)
#: Steps of the pile, how long it may take [s], and the stretches that are told.
PILE_STEPS, PILE_TIME, STRETCH = 700, 45.0, 50


def scene(device: str) -> World:
    """Ten boxes above a floor, in two towers that lean."""
    pose = np.eye(4)
    pose[2, 3] = -0.5
    bodies = [Body(generate.box((8.0, 8.0, 1.0)), pose, fixed=True, name="floor")]
    box = generate.box(SIZE)
    for k in range(BODIES):
        pose = np.eye(4)
        pose[:3, 3] = 0.8 * (k % 2) + 0.02 * k, 0.03 * k, 0.2 + 0.4 * (k // 2)
        bodies.append(Body(box, pose, name=f"box {k}"))
    return World(bodies, dt=DT, device=device)


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    steps = 20 if quick else 60
    rows = []
    for worlds in (1, 64, 512, 4096)[: 2 if quick else None]:
        world = scene("cuda:0")
        copies = world.copies(worlds)
        speeds = copies.velocities
        speeds[:, 1:, :3] += first_speeds(worlds)
        copies.set_state(velocities=speeds)
        copies.step()
        spent, phases, parts, lost = [], {}, 0, 0.0
        for _ in range(steps):
            began = time.perf_counter()
            copies.step()
            wp.synchronize()
            spent.append(time.perf_counter() - began)
            parts = max(parts, copies.truncation.parts)
            lost += copies.truncation.lost_time
            for name, value in copies.timings.items():
                phases[name] = phases.get(name, 0.0) + value
        crossed = sum(_crossings(copies.poses[k], world) for k in range(0, worlds, max(1, worlds // 16)))
        mean = float(np.mean(spent))
        shares = ", ".join(f"{name} {100.0 * value / sum(spent):.0f} %" for name, value in phases.items())
        rows.append([count(worlds), seconds(mean), count(worlds / mean), parts, f"{lost:.3g} s", crossed, shares])
    columns = ["worlds", "a step", "steps of worlds a second", "parts at most", "time lost", "intersections", "phases"]
    report.table(columns, rows)
    told = _mujoco_warp(4096 if not quick else 64, steps)
    report.note(told or "MuJoCo-Warp is not installed here.")
    _settle(report, 1000 if not quick else 50, PILE_STEPS if not quick else 20)


def first_speeds(worlds: int) -> np.ndarray:
    """(worlds, bodies, 3) of the boxes [m/s]."""
    return np.random.default_rng(0).normal(0.0, 0.5, (worlds, BODIES, 3))


def _settle(report: Report, boxes: int, steps: int) -> None:
    """A pile that comes to rest, on the device."""
    world = scenes.pile(boxes, device="cuda:0")
    world.step()
    spent: list[float] = []
    phases: dict[str, float] = {}
    while len(spent) < steps and sum(spent) < PILE_TIME:
        began = time.perf_counter()
        world.step()
        wp.synchronize()
        spent.append(time.perf_counter() - began)
        for name, value in world.timings.items():
            phases[name] = phases.get(name, 0.0) + value
    dearest = max(float(np.mean(spent[k : k + STRETCH])) for k in range(max(1, len(spent) - STRETCH + 1)))
    shares = ", ".join(f"{name} {100.0 * value / sum(spent):.0f} %" for name, value in phases.items())
    told, fastest = world.truncation, float(np.abs(world.velocities[:, :3]).max())
    report.section(f"{boxes:,} boxes in a bin")
    report.table(
        ["steps", "a step", f"the dearest {STRETCH}", "time lost", "intersections", "at most in the end", "phases"],
        [
            [len(spent), seconds(float(np.mean(spent))), seconds(dearest), f"{told.all_lost_time:.3g} s"]
            + [_crossings(world.poses, world), f"{fastest:.2g} m/s", shares]
        ],
    )


def _crossings(poses: np.ndarray, world: World) -> int:
    """Pairs that meet by the exact test."""
    moving = [body.mesh.moving(Rest(pose)) for body, pose in zip(world.bodies, poses, strict=True)]
    boxes = np.array([body.mesh.at(pose).bounds for body, pose in zip(world.bodies, poses, strict=True)])
    found = 0
    for i in range(len(moving)):
        near = ((boxes[:i, 0] <= boxes[i, 1]) & (boxes[i, 0] <= boxes[:i, 1])).all(axis=1)
        pairs = [j for j in np.flatnonzero(near) if world.bodies[i].moves or world.bodies[j].moves]
        found += sum(bool(intersects(moving[i], moving[j], device="cpu")) for j in pairs)
    return found


def _mujoco_warp(worlds: int, steps: int) -> str | None:
    """The same boxes in MuJoCo-Warp, on Warp's device, on CUDA as a graph; None where it is not installed."""
    try:
        import mujoco
        import mujoco_warp
    except ImportError:
        return None
    ours = scene("cpu")
    half = " ".join(f"{0.5 * side}" for side in SIZE)
    rubs = f'friction="{ours.told_options()["friction"]} 0 0"'
    boxes = "".join(
        f'<body pos="{0.8 * (k % 2) + 0.02 * k} {0.03 * k} {0.2 + 0.4 * (k // 2)}"><freejoint/>'
        f'<geom type="box" size="{half}" {rubs}/></body>'
        for k in range(BODIES)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><geom type="plane" size="4 4 1" {rubs}/>{boxes}</worldbody>'
        "</mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    there = mujoco_warp.put_model(model)
    state = mujoco_warp.put_data(model, data, nworld=worlds, nconmax=100, njmax=400)
    speeds = np.zeros((worlds, BODIES, 6), np.float32)
    speeds[..., :3] = first_speeds(worlds)
    state.qvel.assign(speeds.reshape(worlds, 6 * BODIES))
    mujoco_warp.step(there, state)
    graph = None
    if state.qpos.device.is_cuda:
        with wp.ScopedCapture() as capture:
            mujoco_warp.step(there, state)
        graph = capture.graph
    wp.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        if graph is None:
            mujoco_warp.step(there, state)
        else:
            wp.capture_launch(graph)
    wp.synchronize()
    spent = (time.perf_counter() - began) / steps
    places = state.qpos.numpy().reshape(worlds, BODIES, 7).astype(float)
    seen = range(0, worlds, max(1, worlds // 16))
    crossed = sum(_crossings(_mujoco_poses(places[k]), ours) for k in seen)
    return (
        f"MuJoCo-Warp, {worlds:,} worlds: {seconds(spent)} a step, {count(worlds / spent)} steps of worlds a second; "
        f"{crossed} intersections in the last state of {len(seen)} worlds."
    )


def _mujoco_poses(places: np.ndarray) -> np.ndarray:
    """(1 + bodies, 4, 4) of our floor and of boxes with positions and quaternions, (bodies, 7)."""
    from scipy.spatial.transform import Rotation

    poses = np.tile(np.eye(4), (1 + len(places), 1, 1))
    poses[0, 2, 3] = -0.5
    poses[1:, :3, 3] = places[:, :3]
    poses[1:, :3, :3] = Rotation.from_quat(places[:, [4, 5, 6, 3]]).as_matrix()
    return poses
