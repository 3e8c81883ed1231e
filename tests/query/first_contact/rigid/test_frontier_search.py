"""The search for GPUs, run on the CPU: whatever its width and room, the same contacts as a search by one thread."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import random_motion
from tangere.query.first_contact.rigid.bodies import Forest, bodies_of
from tangere.query.first_contact.rigid.cuda import frontier_search as rounds
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.shape.generate import icosphere, torus


def batch_of(count: int, rng: np.random.Generator) -> RigidQueryBatch:
    cpu = wp.get_device("cpu")
    sides = (
        bodies_of(torus(576).moving(random_motion("twist", rng, count)), "a"),
        bodies_of(icosphere(2, radius=0.8), "b"),
    )
    batch = RigidQueryBatch(*(Forest.of(bodies.shapes, cpu) for bodies in sides), count, count + 1, cpu)
    batch.set_queries(*sides, 0.0, None)
    return batch


def same_contacts(batch: RigidQueryBatch, expected: np.ndarray) -> None:
    """The same who touch, and when, up to what the tolerance leaves open."""
    found = batch.host_hits
    hit = expected["time"] <= 1.0
    assert np.array_equal(found["time"] <= 1.0, hit)
    assert np.array_equal(found["pierced"] >= 0, expected["pierced"] >= 0)
    assert np.abs(found["time"] - expected["time"])[hit].max(initial=0.0) < 1e-4


@pytest.mark.parametrize(
    ("count", "pairs", "widest"), [(1, 64, 64), (1, 4096, 4096), (7, 64, 64), (40, 1, 4), (40, 4096, 128)]
)
def test_rounds_of_any_width_find_what_one_thread_finds(count, pairs, widest, rng, monkeypatch):
    monkeypatch.setattr(rounds, "PAIRS", pairs)
    monkeypatch.setattr(rounds, "WIDEST", widest)
    batch = batch_of(count, rng)
    batch.search_each()
    expected = batch.host_hits.copy()
    assert count == 1 or (expected["time"] <= 1.0).any()
    batch.reset_hits()
    rounds.search_frontier(batch)
    same_contacts(batch, expected)
    assert batch.host_counters[0, 0] >= count


def test_questions_in_several_chunks_are_all_answered(rng, monkeypatch):
    monkeypatch.setattr(rounds, "CHUNK", 8)
    monkeypatch.setattr(rounds, "PAIRS", 32)
    batch = batch_of(19, rng)
    batch.search_each()
    expected = batch.host_hits.copy()
    batch.reset_hits()
    rounds.search_frontier(batch)
    same_contacts(batch, expected)


def test_contacts_and_stacks_that_lack_room_get_more(rng, monkeypatch):
    batch = batch_of(3, rng)
    batch.search_each()
    expected = batch.host_hits.copy()
    small = rounds._FrontierSearch(batch, 3, 1, 1)
    small.frontier.height = 2  # a stack of two pairs
    small.frontier.hits = small.frontier.hits[:1]
    batch.searches["frontier"] = small
    batch.reset_hits()
    rounds.search_frontier(batch)
    assert batch.searches["frontier"].room > 1
    same_contacts(batch, expected)


def test_what_comes_after_a_given_time_is_not_told(rng):
    batch = batch_of(12, rng)
    batch.search_each()
    times = batch.host_hits["time"].copy()
    hit = (times > 0.0) & (times <= 1.0)
    assert hit.any()
    until = np.where(hit, 0.5 * times, 1.0)
    batch.reset_hits(until)
    rounds.search_frontier(batch)
    assert (batch.host_hits["time"][hit] > 1.0).all()
