"""Rigid parts on a CUDA device: batches of motions of parts of 5,000 triangles, and one question about 70,000.

The parts are a torus and a bumpy sphere that fly at each other and spin; nearly all of them touch. A batch goes in as
NumPy motions and comes back as NumPy times, transfers included. Answers about thousands of random scenes of small
shapes are looked at by brute force: nothing may come nearer than half the tolerance before the time, nor be farther
than the tolerance at it. Skipped on a machine without CUDA.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import warp as wp

from bench.harness import Report, SkippedError, Timing, count, measure, ratio, seconds
from bench.redon_table_3_2 import criteria
from bench.tori import TASKS
from oracles.families.rigid_crowds import CROWDS, crowds
from oracles.rigid_approaches import least_distances
from tangere.bvh.obb.overlap import _boxes_apart
from tangere.motion import Twist
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import Forest, bodies_of
from tangere.query.first_contact.rigid.cuda.block_search import REGISTERS, THREADS, block_kernel, search_blocks
from tangere.query.first_contact.rigid.cuda.frontier_search import search_frontier
from tangere.query.first_contact.rigid.details import certain_times
from tangere.query.first_contact.rigid.prepared import PreparedFirstContact
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.runtime import launch
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-R-36"]

#: Blocks that are compared: threads, and registers of each.
WIDTHS = [(THREADS, REGISTERS), (THREADS, 128), (THREADS, 168), (64, REGISTERS), (64, 128)]
#: Of the random scenes [m].
TOLERANCE = 1e-5


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available():
        raise SkippedError("there is no CUDA device")
    _compile()
    part, other = generate.torus(5000), generate.bumpy_sphere(5120)
    rng = np.random.default_rng(0)
    late = _soundness(report, rng, 500 if quick else 10_000)
    report.section("Agreement with the CPU")
    flights = part.moving(thrown(rng, 200 if quick else 5000))
    cpu, gpu = (rigid_first_contacts(flights, other, device=device) for device in ("cpu", "cuda"))
    both = np.isfinite(cpu.time) & np.isfinite(gpu.time)
    difference = float(np.abs(cpu.time[both] - gpu.time[both]).max())
    # A time of one device must not be after the time by which the other one is certain.
    crossed = int(((cpu.time > gpu.time_upper) | (gpu.time > cpu.time_upper))[both].sum())
    others = int((cpu.status != gpu.status).sum())
    rows = [[count(len(cpu)), int(both.sum()), others, f"{difference:.1e}", crossed]]
    report.table(
        ["motions", "touch", "other status", "largest difference of time", "after the other's certainty"], rows
    )
    sound = [
        ("scenes told late, missed, too near or too far", str(late), late == 0),
        ("other statuses than the CPU's", str(others), others == 0),
        ("times after the other device's certain ones", str(crossed), crossed == 0),
    ]

    report.section("Batches")
    rows, timings = [], {}
    for n in (1000,) if quick else (1000, 10_000, 100_000, 400_000):
        flights = part.moving(thrown(rng, n))
        ask = partial(rigid_first_contacts, flights, other, details=False, device="cuda")
        timing = timings[n] = measure({"cuda": ask}, rounds=5 if n < 10_000 else 3)["cuda"]
        rows.append([count(n), timing, count(n / timing.median)])
    report.table(["motions", "time", "queries/s"], rows)
    rate = max(n / timing.median for n, timing in timings.items())

    torus = generate.bumpy_torus() if not quick else generate.bumpy_torus(48, 24)
    slowest = _one_question(report, torus)
    criteria(
        report,
        [
            *sound,
            ("motions a second, at least 0.4 M", count(rate), rate >= 4e5),
            ("a batch of 1,000, at most 15 ms", seconds(timings[1000].median), timings[1000].median <= 15e-3),
            ("one pair of 70,000 triangles, at most 2 ms", seconds(slowest), slowest <= 2e-3),
        ],
    )
    _roads(report, part.moving(thrown(rng, 1000)), other, "1,000 motions", 1000)
    if not quick:
        _roads(report, part.moving(thrown(rng, 100_000)), other, "100,000 motions", 100_000)
    _roads(report, torus.moving(TASKS[3].motion), torus, "one pair of 70,000 triangles", 1)
    _stages(report, part.moving(thrown(rng, 1000)), other, 1000)
    _stages(report, torus.moving(TASKS[3].motion), torus, 1)
    _box_tests(report, rng, 100_000 if quick else 1_000_000)


def _compile() -> None:
    """All searches at the same time: each takes the compiler a while."""
    device = wp.get_device("cuda")
    begin = time.perf_counter()
    kernels = {(threads, registers): block_kernel(threads, False, registers) for threads, registers in WIDTHS}
    with ThreadPoolExecutor(len(kernels)) as pool:
        list(pool.map(lambda key: wp.load_module(kernels[key].module, device=device, block_dim=key[0]), kernels))
    print(f"searches compiled in {time.perf_counter() - begin:.0f} s", flush=True)


def _soundness(report: Report, rng: np.random.Generator, scenes: int) -> int:
    """How many answers of random scenes are wrong, by brute force."""
    report.section("Random scenes by brute force")
    rows, wrong = [], 0
    for family in CROWDS:
        asked = late = far = undecided = 0
        for crowd in crowds(family, rng, scenes // len(CROWDS)):
            moving = crowd.a.moving(crowd.motion_a), crowd.b.moving(crowd.motion_b)
            found = rigid_first_contacts(*moving, tolerance=TOLERANCE, details=False, device="cuda")
            least, last = least_distances(crowd.a, crowd.b, crowd.motion_a, crowd.motion_b, found.time)
            asked += len(found)
            late += int(((found.time > 0.0) & (least < 0.5 * TOLERANCE * (1.0 - 1e-6))).sum())
            far += int((found.hit & (last > TOLERANCE * (1.0 + 1e-9))).sum())
            far += int((last[found.status == Status.START] > 0.0).sum())
            undecided += int((found.status == Status.UNRESOLVED).sum())
        rows.append([family, asked, late, far, undecided])
        wrong += late + far + undecided
    report.table(["family", "scenes", "late or missed", "too far at the time", "undecided"], rows)
    return wrong


def _one_question(report: Report, torus: Mesh) -> float:
    """The six motions, by the public call and by a prepared one; the slowest of the public ones [s]."""
    report.section("One question, two tori of 69,696 triangles")
    prepared = PreparedFirstContact([torus, torus], device="cuda")
    prepared.set(1, np.eye(4))
    rows, slowest = [], 0.0
    for task in TASKS:
        moving, pose = torus.moving(task.motion), task.motion.pose(0.0)

        def ask(task=task, pose=pose):
            prepared.set(0, pose, task.velocity, task.rotation)
            return prepared.first_contact(0, 1)

        ways = {
            "cuda": partial(rigid_first_contact, moving, torus, device="cuda"),
            "prepared": ask,
            "core": partial(rigid_first_contact, moving, torus, device="cpu", threads=1),
        }
        timings: dict[str, Timing] = measure(ways, rounds=15)
        times = [timings[way].result.time for way in ways]
        assert np.isinf(times).all() or np.ptp(times) <= 1e-5, f"{task.name}: {times}"
        cuda, ready, core = (timings[way] for way in ways)
        rows.append([task.name, f"{times[0]:.9g}", cuda, ready, core, ratio(core.median, ready.median)])
        slowest = max(slowest, cuda.median)
    report.table(["motion", "first contact", "CUDA", "CUDA, prepared", "one CPU core", "core / prepared"], rows)
    report.note("""One question is one block of a GPU, which has hundreds: a GPU is for batches.""")
    return slowest


def _batch(moving, other, size: int) -> RigidQueryBatch:
    device = wp.get_device("cuda")
    sides = bodies_of(moving, "a"), bodies_of(other, "b")
    batch = RigidQueryBatch(*(Forest.of(side.shapes, device) for side in sides), size, size + 1, device)
    batch.set_queries(*sides, 0.0, None)
    return batch


def _roads(report: Report, moving, other: Mesh, name: str, size: int) -> None:
    """Blocks of several widths beside rounds over all queries: the kernels alone, on the same batch."""
    report.section(f"A block for each question, and rounds over all: {name}")
    batch = _batch(moving, other, size)
    roads = {
        f"{threads} threads, {registers} registers": partial(search_blocks, batch, threads, None, registers)
        for threads, registers in WIDTHS
    }
    roads["rounds"] = partial(search_frontier, batch)
    rows, found = [], {}
    for road, search in roads.items():

        def asked(search=search) -> None:
            batch.reset_hits()
            search()
            wp.synchronize_device(batch.device)

        timing = measure({road: asked}, rounds=5)[road]
        found[road] = batch.hits.numpy()["time"]
        batch.counting = True
        asked()
        tests, leaves = batch.host_counters.sum(axis=0)[[0, 2]] / size
        batch.counting = False
        rows.append([road, timing, f"{count(size / timing.median)}/s", f"{tests:.0f}", f"{leaves:.0f}"])
    report.table(["road", "time", "motions", "box tests each", "triangle pairs each"], rows)
    expected = found["rounds"]
    hit = expected <= 1.0
    for road, times in found.items():
        assert np.array_equal(hit, times <= 1.0), f"{road} disagrees about who touches"
        assert np.abs(times - expected)[hit].max(initial=0.0) <= 1e-4, f"{road} disagrees about when"


def _stages(report: Report, moving, other: Mesh, size: int) -> None:
    """Where the time of a call goes."""
    report.section(f"Stages of a call about {size}")
    batch, sides = _batch(moving, other, size), (bodies_of(moving, "a"), bodies_of(other, "b"))
    stages = {
        "write motions and questions": partial(batch.set_queries, *sides, 0.0, None),
        "reset": batch.reset_hits,
        "search": batch.search,
        "fetch what was found": batch.fetched_hits,
        "describe and fetch contacts": batch.contact_details,
        "statuses": batch.status,
        "certain times of all": lambda: certain_times(batch.arrays, batch.host_hits["time"]),
    }
    taken: dict[str, list[float]] = {stage: [] for stage in stages}
    for _ in range(20):
        for stage, step in stages.items():
            begin = time.perf_counter()
            step()
            wp.synchronize_device(batch.device)
            taken[stage].append(time.perf_counter() - begin)
    report.table(["stage", "time"], [[stage, seconds(float(np.median(rounds)))] for stage, rounds in taken.items()])


def _box_tests(report: Report, rng: np.random.Generator, pairs: int) -> None:
    """The discrete 15-axis test of many pairs of boxes: one after the other, and thousands at a time."""
    report.section("Discrete box tests")
    frames = [np.linalg.qr(rng.normal(size=(pairs, 3, 3)))[0] for _ in range(2)]
    columns = [
        (rng.normal(size=(pairs, 3)), wp.vec3d),
        (rng.uniform(0.05, 1.0, (pairs, 3)), wp.vec3d),
        (frames[0], wp.mat33d),
        (rng.normal(size=(pairs, 3)), wp.vec3d),
        (rng.uniform(0.05, 1.0, (pairs, 3)), wp.vec3d),
        (frames[1], wp.mat33d),
    ]
    answers, ways = {}, {}
    for name in ("cpu", "cuda"):
        device = wp.get_device(name)
        boxes = [wp.array(data, dtype=dtype, device=device) for data, dtype in columns]
        answers[name] = wp.empty(pairs, dtype=wp.bool, device=device)

        def test(boxes=boxes, apart=answers[name], device=device) -> None:
            launch(_boxes_apart, pairs, [*boxes, 1, 2.0**-46], [apart], device=device, threads=1)
            wp.synchronize_device(device)

        ways[name] = test
    timings = measure(ways, rounds=9)
    rows = [[name, timing, f"{count(pairs / timing.median)}/s"] for name, timing in timings.items()]
    report.table(["one core, or all of a GPU", f"{count(pairs)} pairs", "pairs"], rows)
    same = bool((answers["cpu"].numpy() == answers["cuda"].numpy()).all())
    slow, fast = timings["cpu"].median, timings["cuda"].median
    criteria(
        report,
        [
            ("parallel box tests at least twice as fast as one by one", ratio(slow, fast), slow >= 2.0 * fast),
            ("the same answers", "yes" if same else "no", same),
        ],
    )


def thrown(rng: np.random.Generator, n: int) -> Twist:
    """Motions from 4 m away towards the origin and a little past it, turning by some radians."""
    poses = np.tile(np.eye(4), (n, 1, 1))
    away = rng.normal(size=(n, 3))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    poses[:, :3, 3] = 4.0 * away
    return Twist(poses, 0.5 * rng.normal(size=(n, 3)) - 4.0 * away, 3.0 * rng.normal(size=(n, 3)))
