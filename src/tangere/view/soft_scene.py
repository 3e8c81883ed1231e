"""Soft bodies as scenes for pictures, the viewer and files: surfaces, contacts as balls, boxes and cells as wires."""

from __future__ import annotations

import numpy as np

from tangere.query.contacts import Kind
from tangere.scene import CONTACT_COLOURS, Scene, Thing, ball_size, balls
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.soft import CAMERA, Simulation, body_things, boxes_and_cells, contact_points, extent_of

_BOX, _CELL = (0.25, 0.27, 0.32), (0.55, 0.40, 0.75)
_LABELS = {Kind.VERTEX_FACE: "vertex-face contacts", Kind.EDGE_EDGE: "edge-edge contacts"}


def soft_scene(simulation: Simulation, *, boxes: bool = True, grid: bool = True, opacity: float = 0.55) -> Scene:
    """A simulation of soft bodies as it is now, with the contacts of its last step.

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
            things.append(Thing(_LABELS[kind], balls(points, ball_size(len(contacts), extent)), colour))
    drawn = boxes_and_cells(simulation, meshes, contacts)
    for name, wanted, colour, width in (("boxes", boxes, _BOX, 2e-3), ("grid", grid, _CELL, 1.2e-3)):
        if wanted and len(drawn[name]):
            things.append(Thing(name, _wires(drawn[name], width * extent), colour))
    return Scene(tuple(things), camera=CAMERA, title=f"soft bodies after {simulation.time:g} s")


def _wires(boxes: np.ndarray, width: float) -> Mesh:
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
