"""First contact of rigid meshes over families of scenes, against brute-force distances at many times.

Before the answer nothing may come nearer than separation + tolerance / 2 (the promise of the engine, stronger than "no
contact"), and at the answer the distance is at most separation + tolerance. A free answer is looked at over the step.
"""

from __future__ import annotations

import numpy as np
import pytest

from rigid_families import FAMILIES, SHAPES, Scene, scene, shape
from rigid_oracle import closest_approach, mesh_distances
from tangere.motion import Rigid
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid import Bodies, rigid_first_contacts

TOLERANCE = 1e-5


def answers(scenes: list[Scene], **options):
    """First contacts of all scenes in one batch."""
    shape("ball")
    names = list(SHAPES)
    shapes = list(SHAPES.values())
    sides = [
        Bodies(
            shapes,
            Rigid.join([getattr(s, f"motion_{side}") for s in scenes]),
            np.array([names.index(getattr(s, side)) for s in scenes]),
        )
        for side in "ab"
    ]
    return rigid_first_contacts(*sides, device="cpu", **options)


def check(scenes: list[Scene], separation: float, tolerance: float, samples: int = 24, rounds: int = 4) -> np.ndarray:
    """Every answer against the oracle; returns the statuses."""
    found = answers(scenes, separation=separation, tolerance=tolerance)
    late, wide = [], []
    for s, time, status in zip(scenes, found.time, found.status, strict=True):
        a, b = shape(s.a), shape(s.b)
        if status != Status.FREE:
            at = np.array([time])
            distance = mesh_distances(a, b, s.motion_a.pose(at), s.motion_b.pose(at))[0]
            if distance > separation + tolerance * (1 + 1e-9):
                wide.append((s.family, s.a, s.b, time, distance))
            if status == Status.START:
                assert time == 0.0
                assert distance == 0.0
        if time > 0.0:
            nearest = closest_approach(a, b, s.motion_a, s.motion_b, min(time, 1.0), samples, rounds)
            if nearest < separation + 0.5 * tolerance * (1 - 1e-6):
                late.append((s.family, s.a, s.b, time, nearest))
    assert not late
    assert not wide
    return found.status


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_never_late_and_never_early_by_more_than_the_tolerance(rng, effort, family):
    scenes = [scene(family, rng) for _ in range(effort(40, least=4))]
    status = check(scenes, 0.0, TOLERANCE)
    assert (status == Status.UNRESOLVED).sum() == 0
    if len(scenes) >= 40:
        assert (status != Status.FREE).sum() >= 5


def test_separation_counts_as_contact(rng, effort):
    scenes = [scene(family, rng) for family in ("solids", "grazing", "turns") for _ in range(effort(12, least=3))]
    check(scenes, 0.07, 1e-3)
