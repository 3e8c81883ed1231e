"""The animated pictures of the documentation, one for each system and one for the gallery, written to docs/_static.

    python -m tools.pictures [NAME ...]

NAME is a page of docs/systems, or gallery; none means all. Each takes some seconds. A picture is at most 1 MB.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

import tangere as tg
from tangere import crowd
from tangere.cells.generate import hex_grid, quad_grid
from tangere.needle import scenarios
from tangere.scene import Camera, Keyframes, Scene, Thing
from tangere.shape.tets import solid_torus

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "_static"
SIZE = (480, 320)  #: pixels
COLOURS = 96  #: of a palette that all frames of a picture share
HOLD = 1.2  #: seconds that the last frame stays
LARGEST = 1_000_000  #: bytes of a file


def moving_triangles() -> list[np.ndarray]:
    """Two bumpy tori that bend while they fly into each other, until they first touch."""
    left = tg.generate.torus(8192, bumps=0.2)
    right = left.at([[1, 0, 0, 4.0], [0, 0, -1, 0.3], [0, 1, 0, 0], [0, 0, 0, 1]])
    x, y, z = left.vertices.T
    a = left.moving(tg.Linear(np.stack([x + 1.3, y, z + 0.25 * x * x - 0.3], axis=1)))
    b = right.moving(tg.Linear(right.vertices * (1.0, 1.0, 1.15) - (1.2, 0.0, 0.1)))
    hit = tg.first_contact(a, b)
    scene = Scene.of(a, b, contacts=hit.contacts, camera=Camera((0.35, -1.0, 0.45)))
    return [tg.picture(scene, t, size=SIZE) for t in np.linspace(0.0, hit.time, 32)]


def rigid_parts() -> list[np.ndarray]:
    """A motor on its free path through the opening of a door."""
    task = tg.generate.window_lifter()
    path = tg.Path(task.free_path)
    motor = Thing("motor", task.part.moving(path), (0.95, 0.55, 0.15))
    door = Thing("door", task.fixed, (0.72, 0.75, 0.80), opacity=0.18)
    scene = Scene((motor, door), camera=Camera((0.35, 1.0, 0.45), zoom=1.9, target=(0.54, 0.2, 0.34)))
    first, last = scene.time_range
    return [tg.picture(scene, t, size=SIZE) for t in np.linspace(first, last, 44)]


def assemblies() -> list[np.ndarray]:
    """A pin that is driven too deep into a plate, with the way out of the deepest point, seen from all sides."""
    plate, pin, place = tg.generate.box([0.1, 0.1, 0.02]), tg.generate.prism(24, radius=0.012, height=0.05), np.eye(4)
    place[:3, 3] = 0.0, 0.0, 0.029
    assembly = tg.Assembly({"plate": plate, "pin": pin.moving(tg.Rest(place))})
    scene = assembly.scene(assembly.clashes()[0])
    angles = np.linspace(0.0, 2.0 * np.pi, 18, endpoint=False)
    cameras = [replace(scene.camera, direction=(np.sin(t), -np.cos(t), 0.5), zoom=1.0, target=None) for t in angles]
    return [tg.picture(replace(scene, camera=camera), size=SIZE) for camera in cameras]


def dynamics() -> list[np.ndarray]:
    """A ball flies into an arch of loose stones."""
    arch = tg.dynamics.scenes.arch(19)
    start = np.eye(4)
    start[:3, 3] = 0.35, -1.6, 0.75
    ball = tg.generate.icosphere(3, radius=0.16)
    thrown = tg.dynamics.Body(ball, start, density=7800.0, velocity=[0.0, 5.0, 1.6], name="ball")
    world = tg.dynamics.World([*arch.bodies, thrown], friction=0.6)
    run = world.record(1.3, every=3)
    camera = Camera((0.75, -1.0, 0.35), zoom=1.9, target=(0.0, 0.15, 0.45))
    scene = Scene(run.scene(forces=False).things, camera=camera)
    return [tg.picture(scene, t, size=SIZE) for t in run.parts]


def robots() -> list[np.ndarray]:
    """An arm swings towards a pillar until it first touches it."""
    robot, table, pillar = tg.robot.generate.arm(gripper=True), np.eye(4), np.eye(4)
    table[2, 3], pillar[:3, 3] = -0.03, (0.55, 0.1, 0.4)
    world = {
        "table": tg.generate.box((1.2, 1.4, 0.05)).at(table),
        "pillar": tg.generate.prism(16, radius=0.04, height=0.8).at(pillar),
    }
    bend = [0.8, 0.5, 0.2, 0.0, 0.0, 0.02]
    plan = np.linspace([-1.4, *bend], [1.0, *bend], 13)
    found = robot.check(plan, world=world, device="cpu")
    shown = robot.scene(plan, world, found)
    scene = Scene(shown.things, shown.contacts, camera=Camera((1.0, -0.8, 0.6), zoom=1.15))
    return [tg.picture(scene, t, size=SIZE) for t in np.linspace(0.0, found.time, 15)]


def hand() -> list[np.ndarray]:
    """A motor is pulled out of its door by a hand, and slides along what it meets."""
    world = tg.hand.scenes.lifter()
    task = tg.generate.window_lifter()
    way = tg.Path(task.free_path[[0, 18, 30]])
    device = tg.hand.SimulatedDevice(lambda time: way.pose(min(time / 3.0, 1.0)), hand_stiffness=1500.0)
    one = tg.hand.Hand(world, "part", device, most_reach=0.02)
    glass = Thing("door", task.fixed, (0.72, 0.75, 0.80), opacity=0.18)
    camera = Camera((0.35, 1.0, 0.45), zoom=1.9, target=(0.54, 0.2, 0.34))
    frames = []

    def look(time: float) -> None:
        if round(1000 * time) % 80 == 0:
            motor = Thing("motor", task.part.at(one.pose), (0.95, 0.55, 0.15))
            marks = one.contacts[one.contacts.gap < 3.0 * world.separation]
            frames.append(tg.picture(Scene((motor, glass), marks, camera=camera), size=SIZE))

    one.run(3.2, after_tick=look)
    return frames


def deforming_bodies() -> list[np.ndarray]:
    """A soft ring dropped on a beam."""
    solid, surface = solid_torus((24, 3), radius=0.5, tube=0.15), tg.generate.torus(3200, radius=0.5, tube=0.15)
    lift = np.eye(4)
    lift[2, 3] = 0.25
    ring = tg.soft.Body(solid.at(lift), surface=surface.at(lift), youngs_modulus=6e4)
    plate = tg.generate.plate(300, size=(1.6, 0.25, 0.1))
    plate = plate.replace(vertices=plate.vertices - [0.0, 0.0, 0.3])
    simulation = tg.soft.Simulation([ring, tg.soft.Body(plate, fixed=True)], distance=0.02, friction=0.6)
    states = [simulation.meshes()[0].vertices]
    while simulation.time < 1.0:
        simulation.run(0.02)
        states.append(simulation.meshes()[0].vertices)
    scene = Scene.of(surface.moving(Keyframes(np.stack(states))), plate, camera=Camera(zoom=1.05))
    return [tg.picture(scene, t, size=SIZE) for t in np.linspace(0.0, 1.0, len(states))]


def cells_and_crowds() -> list[np.ndarray]:
    """Two groups change sides while cars cross; cells split where it is crowded."""
    simulation = crowd.Simulation(quad_grid(9, 6, size=4.0), behaviour=crowd.Bubbles(range=1.0))
    random = np.random.default_rng(1)
    left = np.stack([random.uniform(1, 11, 130), random.uniform(1, 23, 130)], axis=1)
    starts = np.concatenate([left, left * [-1, 1] + [36, 0]])
    simulation.add_points(starts, goals=starts * [-1, 1] + [36, 0], speed=random.uniform(1.1, 1.9, len(starts)))
    ways = [[[14, 20], [14, 4]], [[22, 4], [22, 20]]]
    simulation.add_bodies(
        crowd.box(3.4, 1.7), [[14.0, 5.0], [22.0, 19.0]], headings=[[0, 1], [0, -1]], goals=ways, repeat=True
    )
    frames = []
    for _ in range(20):
        frames.append(tg.view.top_view(simulation, width=2 * SIZE[0]))
        simulation.run(0.6)
    return frames


def needles() -> list[np.ndarray]:
    """A needle into a liver, redder where it is near vessels; a bevel tip round a vessel, cells fine around it."""
    insertion = scenarios.liver(device="cpu")
    into, driven = tg.needle.Recorder(insertion.simulation), insertion.trace
    into(0.0)
    driven.run(insertion.simulation, dt=insertion.dt, after_step=into)
    vessel = tg.needle.Vessel([[0.02, 0.05, 0.05], [0.08, 0.05, 0.05]], radius=3e-3)
    start = {"entry": [0.05, 0.05, 0.002], "direction": [0, 0, 1], "vessels": [vessel], "distance": 0.01, "level": 3}
    bevel = tg.needle.Needle(length=0.2, radius=0.4e-3, tip=tg.needle.Bevel(curvature=20.0))
    steered = tg.needle.KinematicSimulation(hex_grid(4, 4, 4, size=0.025, device="cpu"), bevel, **start)
    target, round_it = [0.05, 0.052, 0.095], tg.needle.Recorder(steered)
    plan = tg.needle.plan_steering(steered.frame, target, curvature=20.0, obstacles=[vessel])
    for _ in range(24):
        tg.needle.follow_plan(steered, plan, 4e-3)
        plan = tg.needle.plan_steering(steered.frame, target, curvature=20.0, obstacles=[vessel])
        round_it()
        if plan.length < 2e-3:
            break
    half, scenes = (SIZE[0] // 2, SIZE[0] // 2), (into.recording().scene(), round_it.recording().scene())
    deepest = float(into.recording().parts[int(into.recording().numbers("depth").argmax())])
    frames = []
    for part in np.linspace(0.0, 1.0, 11):
        pair = [tg.picture(scene, t, size=half) for scene, t in zip(scenes, (deepest * part, part), strict=True)]
        frames.append(np.concatenate(pair, axis=1))
    return frames


def cylinders_on_terrain() -> list[np.ndarray]:
    """Spinning wheels thrown at dunes; each stops where it first touches the sand."""
    dunes = tg.generate.terrain.dunes(size=(14.0, 9.0), height=1.2, length=8.0)
    x, y = (grid.ravel() for grid in np.meshgrid(np.arange(1.0, 12.0, 2.0), np.arange(1.2, 8.0, 2.0)))
    turn = np.random.default_rng(0).uniform(-0.6, 0.6, len(x))
    c, s, none = np.cos(turn), np.sin(turn), 0.0 * turn
    poses = np.tile(np.eye(4), (len(x), 1, 1))
    poses[:, :3] = np.moveaxis([[c, none, -s, x], [s, none, c, y], [none, none - 1.0, none, none + 2.6]], 2, 0)
    wheel, hub = tg.Cylinder(0.45, 0.28), tg.Cylinder(0.26, 0.3)
    throw = tg.Twist(poses, displacement=[2.0, 0.0, -3.0], rotation=[0.4, 12.0, 0.8])
    hits = tg.first_contact(wheel.moving(throw), dunes)
    found = tg.manifold(wheel.at(throw.pose(hits.time)), dunes)
    camera = Camera((0.35, -1.0, 0.62), zoom=1.25, target=(7.0, 4.2, 0.9))
    frames = []
    for time in np.linspace(0.0, hits.time.max(), 36):
        now = throw.pose(np.minimum(time, hits.time))
        things = (
            Thing("sand", dunes, (0.88, 0.77, 0.58)),
            Thing("tyres", wheel.at(now), (0.17, 0.18, 0.2)),
            Thing("hubs", hub.at(now), (0.86, 0.87, 0.88)),
            Thing("room", tg.Sphere(1e-6).at(poses), (0.9, 0.9, 0.9)),  # the camera sees where they start
        )
        landed = found[hits.time[found.query] <= time]
        frames.append(tg.picture(Scene(things, landed, camera=camera, mark_size=0.9), size=SIZE))
    return frames


def gallery() -> list[np.ndarray]:
    """A crumpled sheet falls on a ball; contacts appear when they happen."""
    ball, flat = tg.generate.icosphere(3, radius=0.6), tg.generate.sheet(7200, size=(2.0, 2.0))
    x, y, _ = flat.vertices.T
    sheet = flat.replace(vertices=np.stack([x, y, 1.0 + 0.05 * np.sin(5.0 * x + 1.0) * np.cos(4.0 * y)], axis=1))
    fall = np.stack([0 * x, 0 * y, 0.5 + 0.45 * (x**2 + y**2)], axis=1)
    falling = sheet.moving(tg.Linear(sheet.vertices - fall))
    scene = Scene.of(falling, ball, contacts=tg.all_contacts(falling, ball))
    return [tg.picture(scene, t, size=SIZE) for t in np.linspace(0.0, 1.0, 24)]


PICTURES: dict[str, tuple[Callable[[], Sequence[np.ndarray]], float]] = {  #: and seconds of a frame
    "moving-triangles": (moving_triangles, 0.06),
    "rigid-parts": (rigid_parts, 0.08),
    "assemblies": (assemblies, 0.14),
    "dynamics": (dynamics, 0.05),
    "robots": (robots, 0.12),
    "hand": (hand, 0.08),
    "deforming-bodies": (deforming_bodies, 0.05),
    "cells-and-crowds": (cells_and_crowds, 0.1),
    "needles": (needles, 0.2),
    "cylinders-on-terrain": (cylinders_on_terrain, 0.06),
    "gallery": (gallery, 0.08),
}


def save(path: Path, frames: Sequence[np.ndarray], seconds: float) -> None:
    """A GIF that is repeated for ever."""
    images = [Image.fromarray(np.asarray(frame)).convert("RGB") for frame in frames]
    images = [
        image.resize((SIZE[0], SIZE[0] * image.height // image.width), Image.Resampling.LANCZOS) for image in images
    ]
    palette = _palette([images[0], images[len(images) // 2], images[-1]])
    first, *others = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [round(1000 * seconds)] * len(others) + [round(1000 * HOLD)]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, more than {LARGEST}")
    print(f"{path}: {path.stat().st_size // 1000} kB, {len(frames)} frames")


def _palette(images: Sequence[Image.Image]) -> Image.Image:
    """Colours that all frames share; what is small, such as a contact, counts for more than its pixels."""
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images])
    colours, counts = np.unique(pixels & 0xFC, axis=0, return_counts=True)
    sample = np.repeat(colours, np.ceil(counts**0.4).astype(int), axis=0)
    return Image.fromarray(sample[None]).quantize(COLOURS, method=Image.Quantize.MEDIANCUT)


def main(names: Sequence[str]) -> None:
    for name in names or PICTURES:
        draw, seconds = PICTURES[name]
        save(FOLDER / f"{name}.gif", draw(), seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
