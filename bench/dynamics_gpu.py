"""Many copies of one small world on a CUDA device: steps of worlds in a second.

4,096 worlds of ten bodies fall, tumble and settle in one batch; MuJoCo-Warp, where it is installed, steps the same
scene beside it. Skipped on a machine without a GPU.
"""

from __future__ import annotations

import time

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, count, seconds
from tangere.dynamics import Body, World
from tangere.motion import Rest
from tangere.query.intersection import intersects
from tangere.shape import generate

FEATURES: list[str] = []

BODIES, DT = 10, 0.01
SIZE = (0.5, 0.4, 0.3)


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
    steps = 20 if quick else 100
    rows = []
    for worlds in (1, 64, 512, 4096)[: 2 if quick else None]:
        world = scene("cuda:0")
        copies = world.copies(worlds)
        speeds = copies.velocities
        speeds[:, 1:, :3] += np.random.default_rng(0).normal(0.0, 0.5, (worlds, BODIES, 3))
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


def _crossings(poses: np.ndarray, world: World) -> int:
    moving = [body.mesh.moving(Rest(pose)) for body, pose in zip(world.bodies, poses, strict=True)]
    return sum(bool(intersects(moving[i], moving[j], device="cpu")) for i in range(len(moving)) for j in range(i))


def _mujoco_warp(worlds: int, steps: int) -> str | None:
    """The same boxes in MuJoCo-Warp; None where it is not installed."""
    try:
        import mujoco
        import mujoco_warp
    except ImportError:
        return None
    half = " ".join(f"{0.5 * side}" for side in SIZE)
    boxes = "".join(
        f'<body pos="{0.8 * (k % 2) + 0.02 * k} {0.03 * k} {0.2 + 0.4 * (k // 2)}"><freejoint/>'
        f'<geom type="box" size="{half}"/></body>'
        for k in range(BODIES)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><geom type="plane" size="4 4 1"/>{boxes}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    there = mujoco_warp.put_model(model)
    state = mujoco_warp.put_data(model, data, nworld=worlds, nconmax=400 * worlds, njmax=400)
    mujoco_warp.step(there, state)
    wp.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        mujoco_warp.step(there, state)
    wp.synchronize()
    spent = (time.perf_counter() - began) / steps
    return f"MuJoCo-Warp, {worlds:,} worlds: {seconds(spent)} a step, {count(worlds / spent)} steps of worlds a second."
