"""What files give back, and the pixels of pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.cell_maps import map_columns
from tools.digest.ground import ground_kinds
from tools.digest.questions import motions, place, poses, shapes
from tools.digest.soft_bodies import ring_and_beam


@section
def files(book: Book) -> None:
    """What is written is read back the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _shape_files(book, folder)
        _motion_files(book, folder)
        if not book.quick:
            _simulation_files(book, folder)


def _shape_files(book: Book, folder: Path) -> None:
    gear = shapes()["gear"]
    for suffix in book.some(("ply", "stl", "obj", "off", "glb"), 2):
        gear.save(folder / f"gear.{suffix}")
        mesh = tg.Mesh.load(folder / f"gear.{suffix}")
        book.keep(f"mesh.{suffix}", {"vertices": mesh.vertices, "faces": mesh.faces})
    grounds = ground_kinds(book)
    for suffix, ground in (("npy", grounds["kerbs"]), ("npz", grounds["rough"])):
        ground.save(folder / f"ground.{suffix}")
        read = tg.Heightfield.load(folder / f"ground.{suffix}")
        book.keep(f"ground.{suffix}", {"heights": read.heights, "holes": read.holes, "spacing": read.spacing})
    surface = ground.to_mesh()
    book.keep("ground.mesh", {"vertices": surface.vertices, "faces": surface.faces})
    book.keep("ground.planes", dict(zip(("normals", "offsets"), ground.planes(), strict=True)))
    part = words.save_part(folder / "gear.part", gear, density=2.0)
    again = words.load_part(folder / "gear.part")
    book.keep("part", {"first": again.cones.first, "vectors": again.cones.vectors, "mass": part.mass.mass})
    book.keep("part.tree", {field: again.tree.nodes.numpy()[field] for field in again.tree.nodes.numpy().dtype.names})


def _motion_files(book: Book, folder: Path) -> None:
    path = tg.Path(poses(book.rng("path"), 6, 2.0), [0.0, 0.1, 0.3, 0.4, 0.9, 1.0])
    words.save_path(path, folder / "path.csv", (2.0, 7.0))
    read, clock = words.load_path(folder / "path.csv")
    book.keep("path", {"poses": read.poses, "times": read.times, "clock": np.array(clock)})
    torus, ball = shapes()["torus"], shapes()["ball"]
    words.Trajectory(torus, ball, motions("twist", book.rng("actions"), book.size(30, 4))).save(folder / "actions.npz")
    actions = words.Trajectory.load(folder / "actions.npz")
    for recession in (False, True):
        done = words.replay(actions, recession=recession, device="cpu", threads=1)
        kept = {"time": done.time, "status": done.status, "features": done.features}
        book.keep(f"replay.recession{int(recession)}", {**kept, **done.counts})
    if not book.quick:
        done = words.replay(actions, words.IntervalOptions(), device="cpu", threads=1)
        book.keep("replay.intervals", {"time": done.time, "status": done.status, **done.counts})


def _simulation_files(book: Book, folder: Path) -> None:
    ring = ring_and_beam()
    recorder = words.SoftRecorder(ring)
    for _ in range(4):
        recorder()
        words.soft_run(ring, 2)
    recorder.recording().save(folder / "ring.npz")
    read = words.SoftRecording.load(folder / "ring.npz")
    book.keep("soft", {"times": read.times, "points": read.points, "kinds": read.kinds, "first": read.first})
    book.keep("soft.frames", {str(k): frames for k, (_, _, frames) in enumerate(read.bodies)})
    crowd_ = words.scenarios.corridor(40, 2, length=48.0, width=24.0, device="cpu")
    words.crowd_run(crowd_, 1.0, 0.25).save(folder / "crowd.npz")
    run = tg.crowd.Trajectories.load(folder / "crowd.npz")
    book.keep("crowd", {"positions": run.positions, "particles": run.particles, **run.measures})
    (folder / "town.osm").write_text(_TOWN)
    town = words.load_streets(folder / "town.osm", cell=2.0, device="cpu")
    book.keep("streets", {"cars": town.cars, "walkers": town.walkers, "buildings": town.buildings})
    book.keep("streets.map", map_columns(town.map))


_TOWN = """<?xml version="1.0"?><osm version="0.6">
  <node id="1" lat="48.5800" lon="7.7500"/><node id="2" lat="48.5800" lon="7.7503"/>
  <node id="3" lat="48.5801" lon="7.7503"/><node id="4" lat="48.5801" lon="7.7500"/>
  <node id="5" lat="48.5798" lon="7.7497"/><node id="6" lat="48.5798" lon="7.7506"/>
  <node id="7" lat="48.5803" lon="7.7506"/>
  <way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="building" v="yes"/></way>
  <way id="2"><nd ref="5"/><nd ref="6"/><nd ref="7"/><tag k="highway" v="residential"/></way>
</osm>
"""


@section
def pictures(book: Book) -> None:
    """Pixels of the ray caster."""
    torus, ball = shapes()["torus"], shapes()["ball"]
    motion_ = tg.Twist(place(3.0), (-2.5, 0.3, 0.2), (1.0, 2.0, 0.5))
    moving = torus.moving(motion_)
    hit = tg.first_contact(moving, ball, device="cpu")
    scene = tg.Scene.of(moving, ball, contacts=hit.contacts)
    book.ask("meshes", tg.picture, scene, hit.time, size=(120, 80), device="cpu")
    if book.quick:
        return
    book.ask("glass", tg.picture, scene.with_glass(ball.name), 1.0, size=(120, 80), samples=1, device="cpu")
    barrels = words.generate.barrels()
    found = tg.manifold(barrels.bodies, barrels.terrain, device="cpu")
    ground = tg.Scene.of(barrels.bodies, barrels.terrain, contacts=found)
    book.ask("ground", tg.picture, ground, size=(120, 80), device="cpu")
