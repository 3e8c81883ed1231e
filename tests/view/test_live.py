"""The page of a running simulation: driven by its own methods, and by a real browser where there is one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from oracles.helpers.browser import pixels, until
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation, scenes
from tangere.view import LiveViewer

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def simulation() -> Simulation:
    """A soft block that lies on a floor."""
    block = Body(solid_block((2, 2, 2)), youngs_modulus=1e3, density=1.0, name="block")
    floor = generate.sheet(8, size=(3.0, 3.0))
    under = Body(floor.replace(vertices=floor.vertices - [0.0, 0.0, 0.53]), fixed=True, name="floor")
    return Simulation([block, under], device="cpu", distance=0.05)


@pytest.fixture
def viewer() -> Iterator[LiveViewer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with LiveViewer(simulation(), port=port) as opened:
        yield opened


def test_the_page_follows_the_simulation_and_tells_its_contacts(viewer):
    told = []
    assert viewer.run(5, after_step=lambda: told.append(viewer.summary())) == 5
    now, block = viewer.simulation.meshes()[0], viewer.body("0: block")
    drawn = np.asarray(block.vertices)[np.asarray(block.faces)]
    assert drawn == pytest.approx(now.vertices[np.asarray(now.faces)], abs=1e-6)
    assert len(viewer.simulation.contacts) > 0
    assert f"{len(viewer.simulation.contacts)} contacts" in told[-1]
    assert "vertex-face contacts" in viewer._drawn
    for name in ("boxes", "grid"):
        assert name not in viewer._drawn
        viewer._shown[name].value = True
        viewer.show()
        assert name in viewer._drawn


def test_a_vertex_that_is_held_is_pulled_along_until_it_is_let_go(viewer):
    corner = int(np.argmax(viewer.simulation.bodies[0].surface.vertices.sum(axis=1)))
    viewer.hold(0, corner)
    assert viewer.taken == (0, corner)
    before = viewer.simulation.meshes()[0].vertices[corner]
    viewer.drag(before + [0.0, 0.0, 1.0])
    viewer.run(25)
    assert viewer.simulation.meshes()[0].vertices[corner, 2] > before[2] + 0.3
    viewer.let_go()
    assert viewer.taken is None
    push, mass = viewer.simulation.momentum[2], viewer.simulation.bodies[0].vertex_mass.sum()
    viewer.run(3)
    assert viewer.simulation.momentum[2] == pytest.approx(push - mass * 3 * 0.02 * 9.81, abs=1e-9)  # it falls


def blue(image: np.ndarray) -> np.ndarray:
    """Rows and columns of the block's pixels."""
    return np.argwhere(image[..., 2] > image[..., 0] + 25)


@pytest.mark.feature("F-L-89")
def test_in_chromium_a_click_takes_hold_and_boxes_grid_and_contacts_are_seen(viewer, page):
    until(lambda: len(blue(pixels(page))) > 500, page)
    steps = threading.Thread(target=viewer.run, daemon=True)
    steps.start()
    until(lambda: viewer.simulation.steps > 3, page)
    page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer._running.is_set(), page)
    here = viewer.simulation.steps
    page.get_by_role("button", name="One step").click()
    until(lambda: viewer.simulation.steps > here, page)

    def green(image: np.ndarray) -> int:
        return int(((image[..., 1] > image[..., 0] + 60) & (image[..., 1] > image[..., 2] + 60)).sum())

    until(lambda: green(pixels(page)) > 20, page)
    plain = pixels(page)
    for name in ("boxes", "grid"):
        page.get_by_label(name).click()
    until(lambda: {"boxes", "grid"} <= set(viewer._drawn), page)
    until(lambda: (np.abs(pixels(page) - plain).max(axis=2) > 40).sum() > 300, page)

    rows, columns = blue(pixels(page)).T
    page.mouse.click(float(np.median(columns)), float(np.median(rows)))
    until(lambda: viewer.taken is not None, page)
    assert viewer.taken[0] == 0
    page.get_by_role("button", name="Let go").click()
    until(lambda: viewer.taken is None, page)
    viewer.close()
    steps.join(timeout=5.0)
    assert not steps.is_alive()


def test_a_body_that_is_cut_is_drawn_anew_with_its_walls():
    simulation = scenes.cut(depth=0.5, speed=0.3, device="cpu", threads=1)
    with LiveViewer(simulation) as viewer:
        for _ in range(12):
            simulation.step()
        viewer.show()
        faces = len(simulation.meshes()[0].faces)
        drawn = viewer._cut[0]
        assert [kind for _, _, kind in drawn] == ["skin", "walls"]
        assert sum(len(handle.faces) for handle, _, _ in drawn) == faces
        simulation.step()
        viewer.show()
        for handle, used, _ in viewer._cut[0]:
            assert handle.vertices == pytest.approx(simulation.meshes()[0].vertices[used], abs=1e-6)
