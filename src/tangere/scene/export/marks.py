"""Marks of contacts as meshes that appear at a time: one for each time and kind of contact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tangere.query.contacts import Kind
from tangere.scene.markers import KIND_COLOURS, contact_markers, marker_radius
from tangere.scene.scene import Colour, Scene

_MOST_TIMES = 100  #: at which marks appear; more are put together, each with the next later one


@dataclass(frozen=True, eq=False)
class Marks:
    """Balls and arrows that appear together."""

    name: str
    time: float  #: of the scene
    colour: Colour
    origin: np.ndarray  #: (3,) their middle [m]
    vertices: np.ndarray  #: (n, 3) [m]
    normals: np.ndarray  #: (n, 3) unit
    faces: np.ndarray  #: (m, 3)


def marks_of(scene: Scene) -> Iterator[Marks]:
    """All marks of contacts in the time range, from early to late."""
    contacts = scene.contacts_by(scene.time_range[1])
    if not len(contacts):
        return
    radius = scene.mark_size * marker_radius(len(contacts), scene.extent) / scene.camera.zoom
    times = np.maximum(contacts.time, scene.time_range[0])
    shown = np.unique(times)
    if len(shown) > _MOST_TIMES:  # later by a hundredth of the range at most, never earlier
        shown = np.linspace(*scene.time_range, _MOST_TIMES + 1)
    when = np.searchsorted(shown, times)
    for number, kind in sorted(set(zip(when.tolist(), contacts.kind.tolist(), strict=True))):
        chosen = contacts[(when == number) & (contacts.kind == kind)]
        drawn = contact_markers(chosen, radius)
        name = f"{Kind(kind).name.lower().replace('_', '-')} contacts"
        origin = drawn.vertices.mean(axis=0)
        faces, normals = drawn.faces, drawn.normals
        yield Marks(name, float(shown[number]), KIND_COLOURS[Kind(kind)], origin, drawn.vertices, normals, faces)
