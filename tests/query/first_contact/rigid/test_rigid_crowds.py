"""First contact of rigid meshes on crowds of random scenes: never late, never missed, near enough at the answer.

Before the answer nothing may come nearer than tolerance / 2 (the promise of the engine, stronger than "no contact"), at
the answer the distance is at most the tolerance, and a free answer is looked at over the whole step, all by brute force
at dense times with refinement (`oracles.rigid_approaches`). The slow test looks at a hundred thousand scenes in some
ten minutes.
"""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.rigid_crowds import CROWDS, crowds
from oracles.rigid_approaches import least_distances
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid.api import rigid_first_contacts

TOLERANCE = 1e-5


def answers(crowd, separation: float = 0.0, tolerance: float = TOLERANCE):
    moving = crowd.a.moving(crowd.motion_a), crowd.b.moving(crowd.motion_b)
    return rigid_first_contacts(*moving, separation=separation, tolerance=tolerance, details=False, device="cpu")


def late(crowd, times: np.ndarray) -> np.ndarray:
    """(n,) whether the bodies come nearer than they may before each time."""
    least, _ = least_distances(crowd.a, crowd.b, crowd.motion_a, crowd.motion_b, times)
    return (times > 0.0) & (least < 0.5 * TOLERANCE * (1.0 - 1e-6))


def check(family: str, rng, count: int, separation: float = 0.0, tolerance: float = TOLERANCE) -> np.ndarray:
    """Every answer of a family against the walk; returns the statuses."""
    statuses = []
    for crowd in crowds(family, rng, count):
        found = answers(crowd, separation, tolerance)
        least, last = least_distances(crowd.a, crowd.b, crowd.motion_a, crowd.motion_b, found.time)
        told = f"{family}: {crowd.a.name} and {crowd.b.name}"
        assert not ((found.time > 0.0) & (least < separation + 0.5 * tolerance * (1.0 - 1e-6))).any(), told
        assert not (found.hit & (last > separation + tolerance * (1.0 + 1e-9))).any(), told
        assert (found.time[found.status == Status.START] == 0.0).all()
        assert (last[found.status == Status.START] == 0.0).all()
        statuses.append(found.status)
    return np.concatenate(statuses)


@pytest.mark.parametrize("family", CROWDS)
def test_answers_are_never_late_and_never_early_by_more_than_the_tolerance(rng, effort, family):
    status = check(family, rng, effort(120, least=5))
    assert (status != Status.UNRESOLVED).all()
    if len(status) >= 120:
        assert (status == Status.CONTACT).sum() >= 10


@pytest.mark.parametrize("family", ["solids", "grazing", "turns"])
def test_separation_counts_as_contact(rng, effort, family):
    check(family, rng, effort(60, least=5), 0.07, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("family", CROWDS)
def test_answers_about_a_hundred_thousand_scenes_are_never_late(rng, effort, family):
    assert (check(family, rng, effort(100_000 // len(CROWDS))) != Status.UNRESOLVED).all()


@pytest.mark.parametrize("family", ["solids", "thin", "turns"])
def test_the_walk_finds_answers_out_that_are_late(rng, effort, family):
    """Teeth: answers that come a thousandth of the step late are late in the eyes of the walk, nearly all of them."""
    found = seen = 0
    for crowd in crowds(family, rng, effort(60, least=20)):
        told = answers(crowd)
        hit = (told.status == Status.CONTACT) & (told.time < 0.99)
        delayed = np.where(hit, told.time + 1e-3, 0.0)
        found += int((late(crowd, delayed) & hit).sum())
        seen += int(hit.sum())
    assert seen >= 5
    assert found >= 0.9 * seen


@pytest.mark.parametrize("family", ["solids", "grazing"])
def test_contacts_that_are_missed_are_found_out_by_the_walk(rng, effort, family):
    for crowd in crowds(family, rng, effort(60, least=20)):
        certain = np.isfinite(answers(crowd).time_upper)
        assert late(crowd, np.ones(len(crowd)))[certain].all()
