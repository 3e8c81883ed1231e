"""What soft bodies look like: surfaces, contacts of vertices in green and of edges in red, boxes, cells of a grid.

Everything is a thing of a `tangere.scene`, so pictures and pages draw it alike. A simulation searches by a tree; boxes
and cells show how the detection pipeline of the thesis would: the boxes of its stage 1, and the cells of its grid in
which something touches (Léonard 2021, sections 3.2, 3.4 and 4.1).
"""

from __future__ import annotations

import numpy as np

from tangere.query.contacts import Contacts, Kind
from tangere.scene import PALETTE, Camera, Thing
from tangere.shape.mesh import Mesh
from tangere.soft.simulation import Simulation

_STILL = (0.80, 0.81, 0.83)
#: Of walls that a blade has opened.
WALL_COLOUR = (0.80, 0.28, 0.26)
CAMERA = Camera((0.55, -1.0, 0.35))


def body_things(simulation: Simulation, meshes: list[Mesh], opacity: float = 1.0) -> list[Thing]:
    """The surfaces of all bodies; obstacles are grey."""
    things = []
    for number, (body, mesh) in enumerate(zip(simulation.bodies, meshes, strict=True)):
        colour = _STILL if body.is_obstacle else PALETTE[number % len(PALETTE)]
        things.append(Thing(f"{number}: {body.name}", mesh, colour, opacity))
    return things


def extent_of(simulation: Simulation, meshes: list[Mesh]) -> float:
    """Diagonal of the box round what can move [m]."""
    moving = [mesh.vertices for mesh, body in zip(meshes, simulation.bodies, strict=True) if not body.is_obstacle]
    return float(np.linalg.norm(np.ptp(np.concatenate(moving), axis=0)))


def contact_points(contacts: Contacts, kind: Kind) -> np.ndarray:
    """(n, 3) the middle of each contact of one kind [m]."""
    chosen = contacts[contacts.kind == kind]
    return 0.5 * (chosen.point_a + chosen.point_b)


def boxes_and_cells(simulation: Simulation, meshes: list[Mesh], contacts: Contacts) -> dict[str, np.ndarray]:
    """Lower and upper corners, (n, 2, 3) [m]: "boxes" of bodies that can move, "grid" cells in which something touches.

    A cell is as large as the largest box of a triangle, grown by half the contact distance.
    """
    half = 0.5 * simulation.distance
    moving = [mesh for mesh, body in zip(meshes, simulation.bodies, strict=True) if not body.is_obstacle]
    corners = np.stack([mesh.bounds + [[-half], [half]] for mesh in moving])
    cell = max(float(np.ptp(mesh.vertices[mesh.faces], axis=1).max()) for mesh in moving) + simulation.distance
    origin = corners[:, 0].min(axis=0)
    points = 0.5 * (contacts.point_a + contacts.point_b)
    lower = origin + cell * np.unique(np.floor((points - origin) / cell), axis=0) if len(points) else np.empty((0, 3))
    return {"boxes": corners, "grid": np.stack([lower, lower + cell], axis=1)}
