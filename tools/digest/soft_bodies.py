"""Questions to simulations of soft bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.questions import place


def _soft_state(book: Book, case: str, simulation: Any, bodies: int) -> None:
    """What a simulation has come to."""
    for body in range(bodies):
        for what in ("positions", "velocities"):
            book.keep(f"{case}.{what}{body}", words.soft_vectors(simulation, what, body))
    book.keep(f"{case}.contacts", simulation.contacts)
    state = {"energy": words.soft_energy(simulation), "momentum": words.soft_momentum(simulation)}
    book.keep(f"{case}.state", {**state, "held": words.soft_truncation(simulation), "time": simulation.time})


def ring_and_beam(**options: Any) -> Any:
    """A soft ring is thrown at a fixed beam."""
    make = words.generate
    solid, skin = words.solid_torus((16, 2), radius=0.5, tube=0.15), make.torus(grid=(32, 12), radius=0.5, tube=0.15)
    ring = words.soft_body(solid, surface=skin, stiffness=60.0, velocity=(0.1, 0.0, -1.5), name="ring")
    beam = make.plate(300, size=(1.6, 0.25, 0.1)).at(place(0.0, 0.0, -0.26))
    beam = words.soft_body(beam, fixed=True, name="beam")
    return tg.soft.Simulation([ring, beam], distance=0.02, friction=0.6, device="cpu", **options)


@section
def soft(book: Book) -> None:
    """Steps of solids and sheets that fall, touch, are driven and pulled."""
    ring = ring_and_beam()
    words.soft_run(ring, book.size(12, 5))
    _soft_state(book, "ring", ring, 2)
    sheet = words.generate.sheet(book.size(800, 200), size=(1.0, 1.0)).at(place(0.0, 0.0, 0.315))
    cloth = words.soft_body(sheet, stiffness=1e5, poisson=0.3, density=300.0, thickness=1e-3, velocity=(0, 0, -0.5))
    ball = words.soft_body(words.generate.icosphere(2, radius=0.3), fixed=True)
    falling = tg.soft.Simulation([cloth, ball], distance=0.02, device="cpu")
    words.soft_run(falling, book.size(15, 4))
    _soft_state(book, "cloth", falling, 1)
    if book.quick:
        return
    book.keep("cloth.meshes", [mesh.vertices for mesh in words.soft_meshes(falling)])
    tool = ring_and_beam()
    words.soft_drive(tool, 1, (0.0, 0.0, 0.8))
    words.soft_pull(tool, 0, 40, (0.6, 0.3, 0.4), stiffness=5.0)
    words.soft_run(tool, 8)
    tool.let_go()
    words.soft_run(tool, 4)
    _soft_state(book, "tool", tool, 2)
    for response in ("penalty", "none"):
        other = ring_and_beam(response=response)
        words.soft_run(other, 10)
        _soft_state(book, response, other, 1)
    tori = words.soft_scene("tori", 3200, stiffness=1e4)
    words.soft_set_state(tori, 1, positions=words.soft_vectors(tori, "positions", 1) - (0.0, 0.0, 2.2))
    down = np.broadcast_to((0.0, 0.0, -8.0), words.soft_vectors(tori, "positions", 1).shape)
    words.soft_set_state(tori, 1, velocities=down)
    words.soft_run(tori, 20)
    _soft_state(book, "tori", tori, 2)
    knot = words.soft_scene("knot")
    words.soft_run(knot, 60)
    _soft_state(book, "knot", knot, 1)
    drape = words.soft_scene("cloth", 1250)
    words.soft_run(drape, 15)
    _soft_state(book, "drape", drape, 1)
    drop = words.soft_scene("drop")
    words.soft_run(drop, 20)
    _soft_state(book, "drop", drop, 4)
    pinned = words.soft_body(sheet, stiffness=3e4, damping=0.5, density=200.0, fixed=[0, 20], thickness=2e-3)
    flag = tg.soft.Simulation([pinned], gravity=(0.0, 2.0, -9.81), dt=0.01, sweeps=12, device="cpu")
    words.soft_run(flag, 20)
    _soft_state(book, "flag", flag, 1)
