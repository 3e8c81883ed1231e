"""What was published about needles, of texts that were read: features of their curves, each cited."""

from __future__ import annotations

import numpy as np

from needle.test_simulation import SPEED, TISSUE, flexible, inserted, push
from tangere.needle import Bevel, Needle, Tissue


def work(log: np.ndarray) -> float:
    """Of the hand, from travel and force [J]."""
    return float(np.trapezoid(log[:, 1], log[:, 0]))


def test_the_asymmetry_of_the_tip_makes_the_needle_bend():
    """Webster et al. 2006, abstract: "the asymmetry of the tip causes the needle to bend"."""
    aside = {}
    for roll in (0.0, np.pi):
        needle = Needle(length=0.12, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))
        simulation = inserted(needle, dt=0.01, sweeps=20)
        simulation.move(simulation._base, roll=roll)
        push(simulation, 0.03)
        aside[roll] = simulation.tip_rest - simulation.particles.rest[0]
    # What is the same for both is the tissue: its block is not symmetric about the entry.
    common = 0.5 * (aside[0.0] + aside[np.pi])[:2]
    bent = np.linalg.norm(aside[0.0][:2] - common)
    assert bent > 1e-3
    assert np.linalg.norm(common) < 2e-4
    assert flexible(None)[1] < 2e-4


def test_the_path_of_a_bevel_tip_is_near_an_arc():
    """Webster et al. 2006, abstract: the model generalises unicycle and bicycle, whose steering is constant."""
    simulation, _ = flexible(0.5, depth=0.055)
    rest = np.concatenate([simulation.particles.rest, simulation.tip_rest[None]])
    offset = rest - rest[0]
    side = offset[-1] * [1.0, 1.0, 0.0]
    x, y = -offset[:, 2], offset @ side / np.linalg.norm(side)
    system = np.stack([x, y, np.ones_like(x)], axis=1)  # the circle nearest to the path
    a, b, c = np.linalg.lstsq(system, -(x**2 + y**2), rcond=None)[0]
    radius = np.sqrt(0.25 * (a * a + b * b) - c)
    missed = np.hypot(x + 0.5 * a, y + 0.5 * b) - radius
    assert y[-1] > 3e-3
    assert np.abs(missed).max() < 0.1 * y[-1]


def test_two_insertions_at_the_same_place_differ_by_the_work_of_cutting():
    """Azar and Hayward 2008, abstract: toughness from "the difference in penetration force between two consecutive
    insertions at the same location"."""
    simulation = inserted(tissue=Tissue(puncture=0.4, cutting=0.4, friction=10.0))
    first = push(simulation, 0.04)
    depth = simulation.depth
    push(simulation, 0.05, speed=-SPEED)
    assert not simulation.inside
    push(simulation, 0.01)  # back to the surface
    second = push(simulation, 0.04)
    np.testing.assert_allclose(simulation.depth, depth, rtol=0.06)  # nothing holds it back this time
    # The same work against friction, and in the first one that of cutting on.
    friction = [5.0 * log[-1, 2] ** 2 for log in (first, second)]
    cut = (work(first) - friction[0]) - (work(second) - friction[1])
    np.testing.assert_allclose(cut, 0.4 * depth, rtol=0.05)


def test_a_needle_deforms_goes_in_and_is_drawn_out():
    """Jiang et al. 2014, abstract: "three basic phases (deformation, insertion, and extraction phase)"."""
    simulation = inserted()
    log = push(simulation, 0.04)
    entered = int(np.argmax(log[:, 2] > 0))
    assert (np.diff(log[: entered - 1, 1]) > 0.0).all()
    assert (log[entered:, 1] > 0.0).all()
    assert (np.diff(log[entered + 20 :, 1]) > 0.0).all()
    out = push(simulation, 0.03, speed=-SPEED)
    assert (out[len(out) // 4 :, 1] < 0.0).all()


def test_in_tissue_that_is_cut_already_there_is_friction_only():
    """Barnett et al. 2015, abstract: "the frictional force was measured by inserting the needle through precut
    tissue"."""
    simulation = inserted()
    push(simulation, 0.04)
    push(simulation, 0.03, speed=-SPEED)
    again = push(simulation, 0.028)
    late = again[len(again) // 2 :]
    np.testing.assert_allclose(late[:, 1], float(TISSUE.friction) * late[:, 2], rtol=0.02)
