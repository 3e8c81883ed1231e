"""Distances, first contacts and contacts of analytic bodies on a CUDA device: as on the CPU, and how many a second?

Every kind with every kind, bodies and throws of the page `every_pair`. Distances and first contacts are the kernels
over arrays that lie on the device, answers stay there, a run ends with a synchronisation; contacts are whole calls of
`tg.manifold`, with what goes to the host and back. Skipped on a machine without CUDA, but that a small run is rehearsed
on the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from bench.every_pair import KINDS, body, poses, thrown
from bench.harness import Report, SkippedError, count, measure, seconds
from bench.redon_table_3_2 import criteria
from tangere import ConvexMesh
from tangere.query.contacts import Status
from tangere.query.distance.convex.bodies import ConvexBodies, convex_kind
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, distance_kernel
from tangere.query.first_contact.convex.query_batch import laid_out, moving_side
from tangere.query.first_contact.convex.search import ConvexContact, contact_kernel
from tangere.query.manifold import manifold
from tangere.query.manifold.convex.approach import approach_kernel
from tangere.query.manifold.convex.penetration import penetration_kernel
from tangere.runtime import BLOCK, launch
from tangere.shape.analytic import Analytic

FEATURES: list[str] = []

#: Distances a second that every pair is asked for.
WANTED = 1e8
#: Bounds of the two devices differ by this part of the bodies' size at most, and so do depths.
AGREE = 1e-9
#: Two poses of 128 bytes, and an answer.
BYTES = 2 * 128 + np.dtype(ConvexAnswer.numpy_dtype()).itemsize
#: Tolerance of first contacts, whose bodies are about as large as 1 [m].
TOLERANCE = 1e-6


def run(report: Report, quick: bool = False) -> None:
    if not wp.is_cuda_available() and not quick:
        raise SkippedError("there is no CUDA device")
    device = wp.get_device("cuda" if wp.is_cuda_available() else "cpu")
    _compile(device)
    verdicts = [
        *_distances(report, device, 2000 if quick else 1_000_000, 500 if quick else 100_000),
        *_first_contacts(report, device, 200 if quick else 200_000, 100 if quick else 10_000),
        *_manifolds(report, device, 200 if quick else 200_000, 100 if quick else 10_000),
    ]
    _batches(report, device, [1000] if quick else [10_000, 100_000, 1_000_000, 10_000_000])
    criteria(report, verdicts)


def _pairs() -> Iterator[tuple[str, str]]:
    for i, first in enumerate(KINDS):
        for second in KINDS[i:]:
            yield first, second


def _compile(device: wp.Device) -> None:
    """All kernels, of the device and of the CPU beside it, at the same time: each takes the compiler a while."""
    begin, rng = time.perf_counter(), np.random.default_rng(0)
    kinds = [tuple(convex_kind(body(kind, rng)) for kind in pair) for pair in _pairs()]
    makers = distance_kernel, contact_kernel, approach_kernel, penetration_kernel
    kernels = [make(*pair) for make in makers for pair in kinds]
    wanted = [(kernel.module, each) for each in (device, wp.get_device("cpu")) for kernel in kernels]

    def load(module: Any, on: wp.Device) -> None:
        wp.load_module(module, device=on, block_dim=BLOCK if on.is_cuda else None)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(load, *zip(*wanted, strict=True)))
    print(f"{len(kernels)} kernels compiled in {time.perf_counter() - begin:.0f} s", flush=True)


class _Distances:
    """Distances of two bodies, n times, at poses on a device."""

    def __init__(self, a: Analytic, b: Analytic, places: tuple[np.ndarray, np.ndarray], device: wp.Device) -> None:
        one, other = (ConvexBodies.of(each, device) for each in (a, b))
        self._out = wp.zeros(len(places[0]), dtype=ConvexAnswer, device=device)
        first, second = (wp.array(place, dtype=wp.mat44d, device=device) for place in places)
        inputs = [*one.arguments, first, *other.arguments, second, 1e-9]
        kernel = distance_kernel(one.kind, other.kind)
        self._launch = partial(launch, kernel, len(places[0]), inputs, [self._out], device=device)
        self._device = device

    def __call__(self) -> None:
        self._launch()
        wp.synchronize_device(self._device)

    @property
    def found(self) -> np.ndarray:
        self()
        return self._out.numpy()


def _distances(report: Report, device: wp.Device, number: int, looked_at: int) -> list[tuple[str, str, bool]]:
    report.section(f"{count(number)} distances")
    rows, slowest, farthest, others = [], np.inf, 0.0, 0
    for first, second in _pairs():
        rng = np.random.default_rng(0)
        bodies = body(first, rng), body(second, rng)
        size = sum(_reach(each) for each in bodies)
        places = poses(number, rng, 1.6), poses(number, rng, 1.6)
        for how in ("far", "near"):
            ask = _Distances(*bodies, places, device)
            timing = measure({how: ask}, rounds=9)[how]
            found = ask.found
            expected = _Distances(*bodies, (places[0][:looked_at], places[1][:looked_at]), wp.get_device("cpu")).found
            some = found[:looked_at]
            off = max(float(np.abs(some[name] - expected[name]).max()) for name in ("lower", "upper")) / size
            other = int((some["overlap"] != expected["overlap"]).sum())
            undecided = int((found["upper"] - found["lower"] > 1.001e-9 * size).sum())
            rate = number / timing.median
            rows.append([f"{first}, {second}", how, timing, f"{count(rate)}/s", f"{off:.1e}", other, undecided])
            slowest, farthest, others = min(slowest, rate), max(farthest, off), others + other
            moved, apart = places[1].copy(), found["lower"] > 0.0
            gap = found["lower"] - 0.1 * rng.random(number)
            moved[apart, :3, 3] += found["normal"][apart] * gap[apart, None]
            places = places[0], moved
    columns = ["bodies", "gaps", "time", "rate", "bounds of the CPU off by, of the size", "other overlap", "undecided"]
    report.table(columns, rows)
    report.note(
        f"""Undecided: rows whose bounds differ by more than 1e-9 of the size. The CPU is asked about the first
        {count(looked_at)} of each. A pair is two poses and an answer, {BYTES} bytes: at the 4.8 TB/s of
        an H200 no more than {count(4.8e12 / BYTES)} a second can be moved."""
    )
    return [
        (f"distances of every pair, at least {count(WANTED)}/s", f"{count(slowest)}/s", slowest >= WANTED),
        (f"bounds as the CPU's to {AGREE:g} of the size", f"{farthest:.1e}", farthest <= 2.0 * AGREE),
        ("bodies that overlap on one device alone", str(others), others == 0),
    ]


def _reach(each: Analytic) -> float:
    reach = float(np.linalg.norm(each.records["half"][0])) + float(each.records["radius"][0])
    return float(np.linalg.norm(each.hull.corners, axis=1).max()) if isinstance(each, ConvexMesh) else reach


def _first_contacts(report: Report, device: wp.Device, number: int, looked_at: int) -> list[tuple[str, str, bool]]:
    report.section(f"{count(number)} first contacts")
    rows, crossings, farthest = [], 0, 0.0
    for first, second in _pairs():
        rng = np.random.default_rng(3)
        sides = [moving_side(thrown(kind, number, rng), kind) for kind in (first, second)]
        ask, out = _contact_launch(sides, device)
        timing = measure({"contact": ask}, rounds=5)["contact"]
        found = out.numpy()
        some, chosen = found[:looked_at], np.arange(looked_at)
        again, own = _contact_launch([side[chosen] for side in sides], wp.get_device("cpu"))
        again()
        expected = own.numpy()
        crossed = int(((some["time"] > expected["time_upper"]) | (expected["time"] > some["time_upper"])).sum())
        both = (some["status"] != Status.FREE) & (expected["status"] != Status.FREE)
        gap = [np.einsum("ij,ij->i", row["point_a"] - row["point_b"], row["normal"])[both] for row in (some, expected)]
        off = float(np.abs(gap[0] - gap[1]).max(initial=0.0))
        late = float(np.abs(some["time"][both] - expected["time"][both]).max(initial=0.0))
        other = int((some["status"] != expected["status"]).sum())
        hit = float((found["status"] != Status.FREE).mean())
        rate = f"{count(number / timing.median)}/s"
        rows.append([f"{first}, {second}", f"{hit:.0%}", timing, rate, other, f"{late:.1e}", f"{off:.1e}", crossed])
        crossings, farthest = crossings + crossed, max(farthest, off)
    report.table(
        ["bodies", "touch", "time", "rate", "other status", "times off by", "gaps off by [m]", "after certainty"], rows
    )
    report.note(
        f"""Both bodies on twists, tolerance {TOLERANCE:g} m. Beside the CPU, about the first {count(looked_at)}: how
        many statuses are others (who passes by within the tolerance may be told as touching or as free), the largest
        difference of time and of the gap at that time, and how many times are after the one by which the other device
        is certain of a contact."""
    )
    return [
        ("first contacts after the other device's certain ones", str(crossings), crossings == 0),
        (f"gaps at first contacts as the CPU's to {TOLERANCE:g} m", f"{farthest:.1e}", farthest <= TOLERANCE),
    ]


def _contact_launch(sides: list[Any], device: wp.Device) -> tuple[Callable[[], None], wp.array]:
    bodies = [ConvexBodies.of(side.shape, device) for side in sides]
    inputs: list[Any] = []
    for side, convex in zip(sides, bodies, strict=True):
        inputs += [laid_out(side, convex, False, device), *convex.arguments]
    limits = wp.array([0.0, TOLERANCE], dtype=wp.float64, device=device)
    out = wp.zeros(sides[0].count, dtype=ConvexContact, device=device)
    kernel = contact_kernel(bodies[0].kind, bodies[1].kind)

    def ask() -> None:
        launch(kernel, sides[0].count, [*inputs, limits], [out], device=device)
        wp.synchronize_device(device)

    return ask, out


def _manifolds(report: Report, device: wp.Device, number: int, looked_at: int) -> list[tuple[str, str, bool]]:
    report.section(f"Contacts of {count(number)} pairs, whole calls")
    rows, farthest, missed = [], 0.0, 0
    for first, second in _pairs():
        rng = np.random.default_rng(5)
        bodies = body(first, rng), body(second, rng)
        size = sum(_reach(each) for each in bodies)
        places = poses(number, rng, 0.15), poses(number, rng, 0.15)
        a, b = (each.at(place) for each, place in zip(bodies, places, strict=True))
        ask = partial(manifold, a, b, distance=0.0, device=device)
        timing = measure({"manifold": ask}, rounds=3)["manifold"]
        found = timing.result
        a, b = (each.at(place[:looked_at]) for each, place in zip(bodies, places, strict=True))
        expected = manifold(a, b, distance=0.0, device="cpu")
        depths = [_deepest(one, looked_at) for one in (found, expected)]
        off = float(np.abs(depths[0] - depths[1]).max()) / size
        corners = [_keys(one, looked_at) for one in (found, expected)]
        other = len(corners[0] ^ corners[1])
        rate = f"{count(number / timing.median)}/s"
        rows.append([f"{first}, {second}", count(len(found)), timing, rate, f"{off:.1e}", other, len(corners[1])])
        farthest = max(farthest, off)
        missed += other > 0.01 * len(corners[1])
    report.table(
        ["bodies", "contacts", "time", "pairs", "depths of the CPU off by, of the size", "other corners", "of"], rows
    )
    report.note(
        f"""Beside the CPU, about the first {count(looked_at)}: the largest difference of depth, and how many corners,
        by pair and key, are told by one device alone: bodies with two ways out of one length may have either."""
    )
    return [
        (f"depths as the CPU's to {AGREE:g} of the size", f"{farthest:.1e}", farthest <= 2.0 * AGREE),
        ("pairs of kinds with more than 1 % of other corners", str(missed), missed == 0),
    ]


def _deepest(found: Any, looked_at: int) -> np.ndarray:
    least, query = np.zeros(looked_at), np.asarray(found.query)
    mine = query < looked_at
    np.minimum.at(least, query[mine], np.asarray(found.gap)[mine])
    return least


def _keys(found: Any, looked_at: int) -> set[tuple[int, int]]:
    rows = np.stack([np.asarray(found.query), np.asarray(found.key)], axis=1)
    return {(int(query), int(key)) for query, key in rows[rows[:, 0] < looked_at]}


def _batches(report: Report, device: wp.Device, sizes: list[int]) -> None:
    report.section("Distances a second by the size of a batch")
    rows = []
    for first, second in (("sphere", "sphere"), ("box", "box"), ("cylinder", "cone"), ("hull", "hull")):
        rng = np.random.default_rng(0)
        bodies = body(first, rng), body(second, rng)
        some = [poses(min(sizes[-1], 1_000_000), rng, 1.6) for _ in "ab"]
        row = [f"{first}, {second}"]
        for number in sizes:
            ask = _Distances(*bodies, (np.resize(some[0], (number, 4, 4)), np.resize(some[1], (number, 4, 4))), device)
            timing = measure({"ours": ask}, rounds=9)["ours"]
            row.append(f"{count(number / timing.median)}/s ({seconds(timing.median)})")
        rows.append(row)
    report.table(["bodies", *(count(number) for number in sizes)], rows)
