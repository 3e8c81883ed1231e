"""Steering: arcs that end at their target, plans that stay clear of vessels, and a tip that gets there."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.segment_distances import segment_to_segments
from tangere.cells.generate import hex_grid
from tangere.needle import (
    Bevel,
    KinematicSimulation,
    Needle,
    TipFrame,
    Vessel,
    arc_to,
    follow_plan,
    plan_steering,
)
from tangere.runtime import InputError


@pytest.mark.feature("F-P-72")
def test_an_arc_ends_at_its_target(rng):
    for _ in range(200):
        frame = TipFrame.looking(rng.normal(size=3), rng.normal(size=3), roll=rng.uniform(0, 6))
        local = rng.normal(size=3) * [0.05, 0.05, 0.0] + [0.0, 0.0, rng.uniform(0.01, 0.2)]
        target = frame.position + frame.rotation @ local
        arc = arc_to(frame, target)
        there = frame.advanced(0.0, spin=arc.roll).advanced(arc.length, curvature=arc.curvature)
        np.testing.assert_allclose(there.position, target, atol=1e-12)
    straight = arc_to(TipFrame(np.zeros(3), np.eye(3)), [0.0, 0.0, 0.1])
    assert (straight.curvature, straight.length) == (0.0, pytest.approx(0.1))
    with pytest.raises(InputError, match="is behind the tip"):
        arc_to(TipFrame(np.zeros(3), np.eye(3)), [0.0, 0.01, -0.1])


def test_plans_stay_clear_of_vessels_and_bend_no_more_than_the_needle_can(rng):
    frame, planned = TipFrame.looking([0, 0, 0], [0, 0, 1]), 0
    for _ in range(20):
        vessels = [
            Vessel(np.array([0, 0, 0.06]) + 0.03 * rng.normal(size=(3, 3)) * [1, 1, 0.4], radius=1e-3) for _ in range(3)
        ]
        target = np.array([*rng.normal(0, 0.01, 2), 0.12])
        try:
            plan = plan_steering(frame, target, curvature=15.0, obstacles=vessels, clearance=2e-3)
        except InputError:
            continue
        planned += 1
        points = plan.points(frame, 2e-4)
        np.testing.assert_allclose(points[-1], target, atol=1e-9)
        assert max(arc.curvature for arc in plan.arcs) <= 15.0 * (1 + 1e-6)
        for vessel in vessels:
            gaps = [segment_to_segments(p, p, vessel.points[:-1], vessel.points[1:]).min() for p in points[::5]]
            # Points of the plan are a quarter of the clearance apart.
            assert min(gaps) - 1e-3 >= 2e-3 - 0.5e-3
    assert planned > 5


def test_a_target_that_cannot_be_reached_is_told():
    frame = TipFrame.looking([0, 0, 0], [0, 0, 1])
    with pytest.raises(InputError, match=r"cannot be reached with a curvature of 1 /m, 0\.002 m off the vessels"):
        plan_steering(frame, [0.05, 0.0, 0.05], curvature=1.0)


@pytest.mark.parametrize("real", [18.0, 22.0])
def test_a_needle_that_bends_otherwise_than_planned_gets_there_by_planning_anew(real):
    vessel = Vessel([[0.02, 0.05, 0.05], [0.08, 0.05, 0.05]], radius=3e-3)
    needle = Needle(length=0.2, radius=0.4e-3, tip=Bevel(curvature=real))
    start = {"entry": [0.05, 0.05, 0.002], "direction": [0, 0, 1], "level": 0}
    target, ends = np.array([0.05, 0.052, 0.095]), {}
    for every in (0.01, 1.0):
        simulation = KinematicSimulation(
            hex_grid(4, 4, 4, size=0.025, device="cpu"), needle, vessels=[vessel], distance=0.01, **start
        )
        for _ in range(30):
            left = np.linalg.norm(target - simulation.tip.position)
            if left < 5e-4:
                break
            try:
                plan = plan_steering(simulation.frame, target, curvature=20.0, obstacles=[vessel])
            except InputError:
                break  # it is past the target
            follow_plan(simulation, plan, every)
            gaps = segment_to_segments(*simulation.nodes[-2:], vessel.points[:1], vessel.points[1:]) - 3e-3
            assert gaps.min() > 5e-4
        ends[every] = np.linalg.norm(target - simulation.tip.position)
    assert ends[0.01] < 5e-4
    if real < 20.0:
        assert ends[0.01] < ends[1.0]  # who plans once does not get there
