"""What generators make, where motions lead, how robots move."""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.questions import motions, place, poses
from tools.digest.rigid_parts import jointed_arm


@section
def generators(book: Book) -> None:
    """The vertices and triangles of every generator."""
    make = words.generate
    names = ["torus", "icosphere", "bumpy_sphere", "bumpy_torus", "trefoil_knot", "sheet", "plate", "box", "prism"]
    names += ["comb", "gear", "peg", "plate_with_hole", "pot", "bent_pipe", "nozzle", "steering_wheel", "thin_plate"]
    names += ["door_panel", "door_cavity", "lifter_motor", "body_frame", "pylon_frame", "bent_bracket"]
    for name in book.some(names, 12):
        _keep_mesh(book, name, getattr(make, name)())
    for name in book.some(
        ["peg_hole", "comb_plates", "two_hoops", "pipe_nozzle", "window_lifter", "door_on_body", "pylon_bay"], 1
    ):
        task = getattr(make, name)()
        _keep_mesh(book, f"{name}.part", task.part)
        _keep_mesh(book, f"{name}.fixed", task.fixed)
        book.keep(f"{name}.paths", {"free": task.free_path, "touching": task.touching_path})
    grounds = ["flat", "slope", "fractal", "dunes", "kerbs", "stairs", "city_blocks"]
    for name in book.some(grounds, 4):
        ground = getattr(make.terrain, name)()
        _keep_hashed(book, f"terrain.{name}", heights=ground.heights)
    if book.quick:
        return
    for name, options in {"barrels": {}, "robot_with_trailer": {}, "lowered_wheels": {"count": 500}}.items():
        scene = getattr(make, name)(**options)
        book.keep(f"{name}", {"poses": np.asarray(scene.bodies.poses), "heights": scene.terrain.heights[::4, ::4]})
    slope = make.barrel_on_slope(0.3, rolling=True)
    book.keep("barrel_on_slope", {"poses": np.asarray(slope.bodies.poses)})
    _keep_mesh(book, "pot.thick", make.pot(thickness=0.1))
    for name in ("solid_torus", "solid_knot", "solid_block"):
        solid = getattr(words, name)()
        book.keep(name, {"vertices": solid.vertices, "tets": solid.tets, "volumes": solid.volumes})
    book.ask("coulomb_sphere", words.scenarios.coulomb_sphere, 40)


def _keep_mesh(book: Book, case: str, mesh: Any) -> None:
    _keep_hashed(book, case, vertices=mesh.vertices, faces=mesh.faces, edges=mesh.edges)
    book.keep(
        f"{case}.facts", {"bounds": mesh.bounds, "area": mesh.face_areas.sum(), "closed": mesh.topology.is_closed}
    )
    if len(mesh.faces) < 10_000:
        book.keep(f"{case}.report", mesh.report)
    if mesh.topology.is_closed and mesh.topology.is_oriented:
        mass = mesh.mass_properties(2.0)
        book.keep(f"{case}.mass", {"mass": mass.mass, "volume": mass.volume, "inertia": mass.inertia})
        if not book.quick:  # what is at the origin but for rounding has no scale to compare with
            book.keep(f"{case}.mass", {"centre": mass.centre})


def _keep_hashed(book: Book, case: str, **arrays: np.ndarray) -> None:
    """Size, hash and some rows of arrays that are too long to keep."""
    for name, array in arrays.items():
        raw = np.frombuffer(hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest(), np.uint8)
        rows = np.linspace(0, len(array) - 1, min(len(array), 40)).astype(int)
        book.keep(case, {f"{name}.count": len(array), f"{name}.sha": raw, f"{name}.rows": array[rows]})


@section
def motion(book: Book) -> None:
    """Poses, velocities and bounds of every kind of motion."""
    points = book.rng("points").uniform(-1, 1, (12, 3))
    times = np.linspace(0, 1, 9)
    for kind in ("twist", "screw") if book.quick else ("rest", "twist", "screw", "tan", "cosine"):
        many = motions(kind, book.rng(kind), 9)
        book.ask(f"{kind}.pose", many.pose, times)
        angular, linear = many.twist(np.maximum(times, 0.05))
        book.keep(f"{kind}.twist", {"angular": angular, "linear": linear})
        book.ask(f"{kind}.positions", many.positions, points, 0.37)
        part = many.part(0.2, 0.7)
        book.ask(f"{kind}.part", part.pose, times)
        if kind != "rest":
            path = words.split_motion(many[3], 0.01)
            book.keep(f"{kind}.split", {"poses": path.poses, "times": path.times})
        if not book.quick:
            _bounds(book, kind, many, points)
    path = tg.Path(poses(book.rng("path"), 6, 2.0))
    book.ask("path.pose", path.pose, np.linspace(0, 1, 23))
    book.keep("path.twist", dict(zip(("angular", "linear"), path.twist(np.linspace(0, 1, 23)), strict=True)))
    arm = jointed_arm()
    for number in range(3):
        book.ask(f"chain.{number}", arm.link(number).pose, times)
    book.ask("deviation", words.deviation, poses(book.rng("from"), 8), poses(book.rng("to"), 8))
    linear = tg.Linear(points + 1.0)
    book.ask("linear", linear.positions, points, 0.3)


def _bounds(book: Book, kind: str, many: Any, points: np.ndarray) -> None:
    """Boxes around moving bodies during parts of the step, as broad phases use them."""
    meshes = [words.generate.box((1.0, 0.7, 0.4))] * len(many)
    each = [many[k] for k in range(len(many))]
    book.ask(f"{kind}.swept", words.swept_boxes, meshes, each, 0.01, device=wp.get_device("cpu"))
    chain = [tg.Chain([one, tg.Twist(np.eye(4), (0.1, 0.2, 0.0), (0.0, 1.0, 0.0))]).link(1) for one in each]
    if kind != "cosine":
        book.ask(f"{kind}.swept_links", words.swept_boxes, meshes, chain, device=wp.get_device("cpu"))
    lower, upper = _point_bounds(many, np.resize(points, (len(many), 3)))
    book.keep(f"{kind}.bounds", {"lower": lower, "upper": upper})


def _point_bounds(many: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around a point of each body during a part of its motion, by the functions that kernels use."""
    begin = np.linspace(0.0, 0.6, len(many))
    kernel, record, box = words.bounding_kernel()
    out = wp.empty(len(many), dtype=box, device="cpu")
    inputs = [
        wp.array(np.ascontiguousarray(many.records()), dtype=record, device="cpu"),
        wp.array(np.stack([begin, begin + 0.3], axis=1), dtype=wp.vec2d, device="cpu"),
        wp.array(points, dtype=wp.vec3d, device="cpu"),
    ]
    wp.launch(kernel, len(many), inputs, [out], device="cpu")
    return out.numpy()["lower"], out.numpy()["upper"]


_ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="mast">
    <collision><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1.0"/></geometry></collision>
  </link>
  <link name="slide"><collision><geometry><box size="1.6 0.1 0.1"/></geometry></collision></link>
  <link name="hand">
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
    <collision><origin xyz="0.3 0 0" rpy="0 1.0 0"/><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="mast"/><origin xyz="0 0 0.05"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="reach" type="prismatic">
    <parent link="mast"/><child link="slide"/><origin xyz="0 0 1.0" rpy="0.1 0.2 0.3"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="wrist" type="revolute">
    <parent link="slide"/><child link="hand"/><origin xyz="0.9 0.1 0" rpy="0.3 0 0"/><axis xyz="0 1 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/>
  </joint>
</robot>
"""


@section
def robots(book: Book) -> None:
    """A small arm that is written, read and moved."""
    if importlib.util.find_spec("yourdfpy") is None:
        book.skipped = "reading URDF needs yourdfpy"
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.urdf"
        file.write_text(_ARM)
        arm = words.load_robot(file)
    for shape, name in zip(arm.shapes, arm.links, strict=True):
        book.keep(f"shape.{name}", {"vertices": shape.vertices, "faces": shape.faces})
    wall = words.generate.box((0.2, 6.0, 4.0)).at(place(1.5))
    linked = arm.linked_pairs()
    for number, (start, end) in enumerate(book.some([([-2, 0, 0], [2, 0.6, 1]), ([0.1, 0.2, -1], [3, 0, 2])], 1)):
        chain = arm.chain(start, end)
        book.keep(f"chain{number}", [chain.link(k).pose(np.linspace(0, 1, 5)) for k in range(len(chain))])
        scene = [*arm.moving(start, end), wall]
        book.ask(f"contact{number}", words.first_contact_of_scene, scene, allowed=linked, device="cpu")
