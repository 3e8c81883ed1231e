"""Detection as a plug-in of a simulator: its own steps, its own solver, contacts from the library at every step."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.proximity import Detector, proximity
from tangere.shape import generate
from tangere.soft import scenes

SCENES = {
    "tori": (lambda: scenes.tori(3_200, device="cpu"), 0.55, 90),
    "knot": (lambda: scenes.knot(device="cpu"), 0.55, 40),
    "cloth": (lambda: scenes.cloth(800, device="cpu"), 0.02, 30),
}


@pytest.mark.slow
@pytest.mark.feature("F-L-2")
@pytest.mark.parametrize("name", SCENES)
def test_the_grid_pipeline_and_the_detector_serve_every_scene_of_a_simulator(name):
    make, distance, steps = SCENES[name]
    simulation = make()
    detector = Detector(simulation.meshes(), distance=distance, device="cpu")
    most = 0
    for _ in range(3):
        simulation.run(steps=steps // 3)
        meshes = simulation.meshes()
        found = detector.contacts([mesh.vertices for mesh in meshes])
        by_stages = detect(meshes, distance=distance, settings=Settings(), device="cpu").contacts
        expected = proximity(meshes, distance=distance, broad_phase="sweep", device="cpu")
        for contacts in (found, by_stages):
            assert np.array_equal(contacts.key, expected.key)
            assert np.array_equal(contacts.gap, expected.gap)
        most = max(most, len(expected))
    assert most > 0


def test_contacts_hold_a_body_in_a_loop_that_knows_nothing_else_of_the_library():
    ball, floor = generate.icosphere(subdivisions=2), generate.sheet(50, size=(6.0, 6.0))
    heights = {}
    for held in (True, False):
        detector = Detector([ball, floor], distance=0.1, within=False, device="cpu")
        height, speed = 2.05, 0.0
        for _ in range(120):
            contacts = detector.contacts([ball.vertices + [0.0, 0.0, height], floor.vertices])
            push = 400.0 * (0.1 - contacts.gap) * contacts.normal[:, 2]
            speed += 0.02 * (held * float(push.max(initial=0.0)) - 9.81)
            height += 0.02 * speed
        heights[held] = height
    assert heights[True] > 0.9
    assert heights[False] < -10.0
