"""What a simulation looks like: bodies, contacts of vertices in green and of edges in red, boxes, cells of the grid.

Everything is a thing of a `tangere.scene`, so pictures and pages draw it alike. A simulation searches by a tree; boxes
and cells show how the detection pipeline of the thesis would: the boxes of its stage 1, and the cells of its grid in
which something touches (Léonard 2021, sections 3.2, 3.4 and 4.1).
"""

from __future__ import annotations

import numpy as np

from tangere.query.contacts import Contacts, Kind
from tangere.scene import PALETTE, Camera, Scene, Thing
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.soft.simulation import Simulation

#: Contacts of a vertex and a face are green, of two edges red, as in the document.
CONTACT_COLOURS = {Kind.VERTEX_FACE: (0.05, 0.62, 0.18), Kind.EDGE_EDGE: (0.85, 0.08, 0.12)}
_BOX, _CELL, _STILL = (0.25, 0.27, 0.32), (0.55, 0.40, 0.75), (0.80, 0.81, 0.83)
CAMERA = Camera((0.55, -1.0, 0.35))


def scene_of(simulation: Simulation, *, boxes: bool = True, grid: bool = True, opacity: float = 0.55) -> Scene:
    """The simulation as it is now, with the contacts of its last step.

    Args:
        boxes: also the box of each body, grown by half the contact distance.
        grid: also the cells that a detection grid would have where something touches.
        opacity: of the bodies; contacts are mostly behind something.
    """
    meshes, contacts = simulation.meshes(), simulation.contacts
    things = body_things(simulation, meshes, opacity)
    extent = extent_of(simulation, meshes)
    for kind, colour in CONTACT_COLOURS.items():
        points = contact_points(contacts, kind)
        if len(points):
            things.append(Thing(_label(kind), balls(points, ball_size(len(contacts), extent)), colour))
    drawn = boxes_and_cells(simulation, meshes, contacts)
    for name, wanted, colour, width in (("boxes", boxes, _BOX, 2e-3), ("grid", grid, _CELL, 1.2e-3)):
        if wanted and len(drawn[name]):
            things.append(Thing(name, wires(drawn[name], width * extent), colour))
    return Scene(tuple(things), camera=CAMERA, title=f"soft bodies after {simulation.time:g} s")


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


def ball_size(count: int, extent: float) -> float:
    """Radius of the ball at a contact [m]: smaller where many would hide each other."""
    return 0.012 * extent * min(1.0, (60.0 / max(count, 1)) ** 0.35)


def balls(points: np.ndarray, radius: float) -> Mesh:
    """A small ball at each point (n, 3), as one mesh."""
    ball = generate.icosphere(subdivisions=1, radius=radius)
    faces = ball.faces + len(ball.vertices) * np.arange(len(points))[:, None, None]
    return Mesh((points[:, None] + ball.vertices).reshape(-1, 3), faces.reshape(-1, 3), name="contacts")


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


def wires(boxes: np.ndarray, width: float) -> Mesh:
    """The edges of boxes, (n, 2, 3) [m], as thin bars."""
    bar = generate.plate(12, size=(1.0, 1.0, 1.0))
    lengths = boxes[:, 1] - boxes[:, 0]
    vertices = []
    for axis in range(3):
        one, other = (k for k in range(3) if k != axis)
        for a, b in np.ndindex(2, 2):
            centre = 0.5 * (boxes[:, 0] + boxes[:, 1])
            centre[:, one], centre[:, other] = boxes[:, a, one], boxes[:, b, other]
            size = np.full((len(boxes), 3), width)
            size[:, axis] = lengths[:, axis] + width
            vertices.append(centre[:, None] + size[:, None] * bar.vertices)
    vertices = np.concatenate(vertices)
    faces = bar.faces + len(bar.vertices) * np.arange(len(vertices))[:, None, None]
    return Mesh(vertices.reshape(-1, 3), faces.reshape(-1, 3), name="wires")


def _label(kind: Kind) -> str:
    return {Kind.VERTEX_FACE: "vertex-face contacts", Kind.EDGE_EDGE: "edge-edge contacts"}[kind]
