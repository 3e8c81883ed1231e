"""The search for CUDA, run on the CPU: one thread a query or 32, however small its stack, the same contacts."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import FAMILIES, random_motion, scene, shape
from oracles.rigid_distances import mesh_distances
from tangere.query.first_contact.rigid.bodies import Forest, bodies_of
from tangere.query.first_contact.rigid.cuda.block_search import RESERVE, THREADS, search_blocks
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.shape import generate

#: A stack that leaves no room for 32 threads once a few levels are open.
SMALL = RESERVE + THREADS + 8


@pytest.fixture(params=[1, THREADS], ids=["one thread", "32 threads"])
def threads(request, monkeypatch) -> int:
    """How many threads a query has; on a CPU they take turns."""
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", request.param > 1)
    return request.param


def batch_of(a, b, count: int = 1, tolerance: float | None = 1e-6) -> RigidQueryBatch:
    cpu, sides = wp.get_device("cpu"), (bodies_of(a, "a"), bodies_of(b, "b"))
    motions = sum(len(bodies.motion.records()) for bodies in sides)
    batch = RigidQueryBatch(*(Forest.of(bodies.shapes, cpu) for bodies in sides), count, motions, cpu)
    batch.set_queries(*sides, 0.0, tolerance)
    batch.counting = True
    return batch


def same_contacts(batch: RigidQueryBatch, expected: np.ndarray, within: float = 1e-4) -> None:
    """The same who touch, and when, up to what the tolerance leaves open."""
    found, hit = batch.host_hits, expected["time"] <= 1.0
    assert np.array_equal(found["time"] <= 1.0, hit)
    assert np.array_equal(found["pierced"] >= 0, expected["pierced"] >= 0)
    assert np.abs(found["time"] - expected["time"])[hit].max(initial=0.0) < within


@pytest.mark.parametrize("room", [SMALL, None])
def test_a_batch_finds_what_the_search_for_cpus_finds(rng, effort, threads, room):
    count = effort(40, least=10)
    batch = batch_of(
        generate.torus(576).moving(random_motion("twist", rng, count)), generate.icosphere(2, radius=0.8), count
    )
    batch.search_each()
    expected = batch.host_hits.copy()
    assert (expected["time"] <= 1.0).any()
    batch.reset_hits()
    search_blocks(batch, THREADS, room)
    same_contacts(batch, expected)
    assert batch.host_counters[0, 0] > count
    again = batch.host_hits.copy()
    batch.reset_hits()
    search_blocks(batch, THREADS, room)
    assert np.array_equal(batch.host_hits["time"], again["time"])


def test_how_many_threads_a_query_has_does_not_change_a_bit(rng, monkeypatch):
    """What a leaf answers depends on its ancestors only, and ties go to the smallest triangles."""
    batch = batch_of(generate.torus(576).moving(random_motion("twist", rng, 20)), generate.icosphere(2, radius=0.8), 20)
    found = []
    for blocks in (False, True):
        monkeypatch.setattr(wp.config, "enable_cpu_blocks", blocks)
        batch.reset_hits()
        search_blocks(batch, THREADS)
        found.append(batch.host_hits.copy())
    start = found[0]["pierced"] >= 0  # where any two triangles that meet will do
    for name in ("time", "a", "b", "decided"):
        assert np.array_equal(found[0][name][~start], found[1][name][~start]), name
    assert np.array_equal(start, found[1]["pierced"] >= 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_contacts_of_all_families_are_found_and_really_so_near(rng, effort, family, threads):
    for _ in range(effort(4, least=1)):
        s = scene(family, rng)
        batch = batch_of(shape(s.a).moving(s.motion_a), shape(s.b).moving(s.motion_b))
        batch.search_each()
        expected = batch.host_hits.copy()
        batch.reset_hits()
        search_blocks(batch, THREADS)
        same_contacts(batch, expected, within=1e-3)
        if expected["time"] <= 1.0 and expected["pierced"] < 0:
            times = batch.contact_details()["time"]
            near = mesh_distances(shape(s.a), shape(s.b), s.motion_a.pose(times), s.motion_b.pose(times))
            assert near <= 1e-6 * (1.0 + 1e-6)


def test_what_comes_after_a_given_time_is_not_told(rng, threads):
    batch = batch_of(generate.torus(576).moving(random_motion("twist", rng, 12)), generate.icosphere(2, radius=0.8), 12)
    search_blocks(batch, THREADS)
    batch.reset_hits()
    search_blocks(batch, THREADS)
    times = batch.host_hits["time"].copy()
    hit = (times > 0.0) & (times <= 1.0)
    assert hit.any()
    batch.reset_hits(np.where(hit, 0.5 * times, 1.0))
    search_blocks(batch, THREADS)
    assert (batch.host_hits["time"][hit] > 1.0).all()
    assert np.array_equal(batch.host_hits["time"][~hit], times[~hit])


@pytest.mark.cuda
def test_a_warp_for_each_query_finds_what_a_cpu_finds(rng):
    from tangere.query.first_contact.rigid.api import Counters, rigid_first_contacts

    moving, ball = generate.torus(2000).moving(random_motion("twist", rng, 2000)), generate.icosphere(3, radius=0.8)
    counters = Counters()
    cpu, gpu = (rigid_first_contacts(moving, ball, counters=counters, device=device) for device in ("cpu", "cuda"))
    assert np.array_equal(cpu.status, gpu.status)
    assert np.abs(cpu.time - gpu.time)[cpu.hit].max() < 1e-4
    assert counters.box_tests > 0
