"""Contacts of posed rigid parts: constraints within 2.3 security distances, of parts of 2,000 to 78,000 triangles.

Four assemblies, each part brought to its security distance from what it touches, one core; times are those of the
thread that does the work. Beside `PosedProximity`: `tg.proximity` of a posed copy, which lists every near pair of
features, `tg.distance`, and Coal's collision query with a security margin, which lists pairs of triangles. Then many
small pairs in one call, what a call costs at least, and what eight boxes and triangles at a time are worth against one
by one.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from bench.harness import Report, count, ratio, seconds
from bench.harness import measure as measure_by
from bench.peers.fcl import CoalPair
from tangere.motion import Rest, Twist
from tangere.query.distance import distance
from tangere.query.first_contact import first_contact
from tangere.query.proximity import proximity
from tangere.query.proximity.posed import PosedProximity, reduce
from tangere.query.proximity.posed.cuda.engine import CudaSearch
from tangere.query.proximity.posed.shapes import shape_tables
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh

FEATURES: list[str] = []

#: Everything runs on one thread; its own time, whoever else uses the machine.
measure = partial(measure_by, clock=time.thread_time)

#: Security distance and rupture distance of Redon 2002, in sizes of the fixed part.
SECURITY, RUPTURE = 0.01 / 50.0, 0.023 / 50.0
#: What is asked for, by scene.
ASKED = {"door on body": "1 ms, better 0.3", "conforming doors": "25 ms, better 5"}


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["coal"]
    scenes = _scenes(quick)
    _assemblies(report, scenes, quick)
    _small_pairs(report, quick)
    _eights(report, scenes, quick)


def _scenes(quick: bool) -> dict[str, tuple[Mesh, Mesh, np.ndarray]]:
    """Part, fixed part and pose of the part, where it is about a security distance away."""
    tasks = {"lifter": generate.window_lifter(), "door on body": generate.door_on_body(), "pylon": generate.pylon_bay()}
    scenes = {name: (task.part, task.fixed, np.array(task.start)) for name, task in tasks.items()}
    sizes = (3_530, 3_530) if quick else (16_000, 29_000)
    scenes["conforming doors"] = *(generate.door_panel(size) for size in sizes), pose((0.0, 0.0705, 0.0))
    return {name: (part, fixed, _pressed(part, fixed, at)) for name, (part, fixed, at) in scenes.items()}


def _pressed(part: Mesh, fixed: Mesh, at: np.ndarray) -> np.ndarray:
    """The part moved towards the fixed one along the shortest way, until they are a security distance apart."""
    security = SECURITY * fixed.extent
    for _ in range(6):
        apart = distance(part.moving(Rest(at)), fixed, device="cpu")
        if apart.upper < 1.2 * security:
            break
        motion = Twist(at, -apart.normal * (apart.upper + security), np.zeros(3))
        accuracy = {"separation": security, "tolerance": 0.1 * security}
        found = first_contact(part.moving(motion), fixed, **accuracy, device="cpu", threads=1)
        at = motion.pose(min(found.time, 1.0))
    return at


def _assemblies(report: Report, scenes: dict[str, tuple[Mesh, Mesh, np.ndarray]], quick: bool) -> None:
    report.section("Parts of assemblies")
    rows = []
    for name, (part, fixed, at) in scenes.items():
        limit = RUPTURE * fixed.extent
        near = PosedProximity([part, fixed], device="cpu", threads=1)
        rotation, origin = np.stack([at[:3, :3], np.eye(3)]), np.stack([at[:3, 3], np.zeros(3)])
        pairs, coal = np.array([[0, 1]], np.int32), CoalPair(part, fixed)
        contenders = {
            "PosedProximity": partial(near.find, pairs, rotation, origin, limit),
            "its reduction to 12": partial(reduce, near.find(pairs, rotation, origin, limit), part.extent),
            "tg.proximity of a posed copy": partial(_copied, part, fixed, at, limit),
            "tg.distance": partial(_distance, part, fixed, at),
            "coal, collide() with a margin": partial(coal.near, at, limit),
        }
        timings = measure(contenders, rounds=5 if quick else 25, at_most=20.0)
        ours = timings["PosedProximity"].median
        sizes = f"{count(len(part.faces))} on {count(len(fixed.faces))}"
        for who, timing in timings.items():
            listed = None if who == "tg.distance" else timing.result if who.startswith("coal") else len(timing.result)
            asked = ASKED.get(name) if who == "PosedProximity" else None
            rows.append([name, sizes, who, listed, timing, ratio(timing.median, ours), asked])
    report.table(["scene", "triangles", "by", "listed", "time", "against ours", "asked for"], rows)
    report.note(
        """Within 2.3 security distances of the fixed part's size / 5,000. Listed are constraints: features whose
        direction lies in both normal cones; all near pairs of features; pairs of triangles. The skins of the conforming
        doors lie on each other all over, so nearly everything near is a constraint."""
    )


def _small_pairs(report: Report, quick: bool) -> None:
    report.section("Many small pairs")
    pairs = 100 if quick else 1000
    box = generate.box((1.0, 0.8, 0.6))
    origin = np.zeros((2 * pairs, 3))
    origin[:, 0] = np.repeat(5.0 * np.arange(pairs), 2)
    origin[1::2] += [0.2, 0.1, 0.601]
    rotation = np.tile(np.eye(3), (2 * pairs, 1, 1))
    numbers = np.arange(2 * pairs, dtype=np.int32).reshape(-1, 2)
    apart = origin.copy()
    apart[1::2, 2] = 5.0
    near = PosedProximity([box] * (2 * pairs), device="cpu", threads=1)
    one = PosedProximity([box, box], device="cpu", threads=1)
    contenders = {
        f"{pairs} boxes on boxes": partial(near.find, numbers, rotation, origin, 0.01),
        f"{pairs} boxes apart": partial(near.find, numbers, rotation, apart, 0.01),
        "one box on a box": partial(one.find, numbers[:1], rotation[:2], origin[:2], 0.01),
        "one box apart": partial(one.find, numbers[:1], rotation[:2], apart[:2], 0.01),
    }
    timings = measure(contenders, rounds=15 if quick else 101)
    asked = ["2 us a pair", None, "30 us a call", "30 us a call"]
    rows = []
    for (name, timing), wanted in zip(timings.items(), asked, strict=True):
        each = seconds(timing.median / len(timing.result.pairs))
        rows.append([name, len(timing.result), timing, each, wanted])
    report.table(["question", "contacts", "time", "a pair", "asked for"], rows)


def _eights(report: Report, scenes: dict[str, tuple[Mesh, Mesh, np.ndarray]], quick: bool) -> None:
    report.section("Eight at a time")
    rows = []
    for name, (part, fixed, at) in scenes.items():
        near, plain = (PosedProximity([part, fixed], device="cpu", threads=1) for _ in range(2))
        plain._engine = CudaSearch(shape_tables([part, fixed], plain.device), plain.device, budget=2**31 - 1)
        limit = RUPTURE * fixed.extent
        asked = [at, np.eye(4)], [[0, 1]], limit
        contenders = {"eight at a time": partial(near.at, *asked), "one by one": partial(plain.at, *asked)}
        timings = measure(contenders, rounds=3 if quick else 15, at_most=20.0)
        eights, ones = timings.values()
        rows.append([name, eights, ones, ratio(ones.median, eights.median), len(eights.result) == len(ones.result)])
    report.table(["scene", "eight at a time", "one by one", "ratio", "same contacts"], rows)
    report.note("One by one is the road of CUDA, run by one CPU thread.")


def _copied(part: Mesh, fixed: Mesh, at: np.ndarray, limit: float):
    return proximity(part.at(at), fixed, distance=limit, device="cpu", threads=1)


def _distance(part: Mesh, fixed: Mesh, at: np.ndarray) -> float:
    return distance(part.moving(Rest(at)), fixed, device="cpu", threads=1).upper
