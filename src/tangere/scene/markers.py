"""Contacts made visible: a coloured ball at each contact point and an arrow along its normal, as triangles.

A contact's colour says which features meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.query.contacts import Contacts, Kind

#: sRGB, 0 to 1.
KIND_COLOURS: dict[Kind, tuple[float, float, float]] = {
    Kind.NONE: (0.35, 0.35, 0.35),
    Kind.VERTEX_FACE: (0.86, 0.10, 0.16),
    Kind.EDGE_EDGE: (0.66, 0.10, 0.78),
    Kind.VERTEX_EDGE: (0.98, 0.52, 0.00),
    Kind.VERTEX_VERTEX: (0.95, 0.80, 0.05),
    Kind.OVERLAP: (0.08, 0.08, 0.10),
    Kind.INSIDE: (0.05, 0.35, 0.75),
}
_SIDES = 10


@dataclass(frozen=True, eq=False)
class Markers:
    """Triangles of all balls and arrows."""

    vertices: np.ndarray  #: (n, 3) [m]
    normals: np.ndarray  #: (n, 3) unit, per vertex
    faces: np.ndarray  #: (m, 3)
    colours: np.ndarray  #: (m, 3) sRGB, per face


def contact_colours(contacts: Contacts) -> np.ndarray:
    """Colour of each contact's kind, shape (n, 3), sRGB 0 to 1."""
    table = np.array([KIND_COLOURS[kind] for kind in sorted(Kind)])
    return table[contacts.kind]


def marker_radius(count: int, extent: float) -> float:
    """Ball radius [m] for `count` contacts in a scene of size `extent`: smaller where many would hide each other."""
    return 0.014 * extent * min(1.0, (40.0 / max(count, 1)) ** 0.4)


def contact_markers(contacts: Contacts, radius: float) -> Markers:
    """Balls of `radius` [m] halfway between the two points of each contact, with arrows along the normals."""
    ball_points, ball_faces = ball(radius)
    arrow_points, arrow_normals, arrow_faces = _arrow(radius)
    points = np.concatenate([ball_points, arrow_points])
    normals = np.concatenate([ball_points / radius, arrow_normals])
    faces = np.concatenate([ball_faces, arrow_faces + len(ball_points)])
    frames = _frames(contacts.normal)
    centres = (contacts.point_a + contacts.point_b) / 2.0
    count = len(contacts)
    return Markers(
        vertices=(points @ frames + centres[:, None]).reshape(-1, 3),
        normals=(normals @ frames).reshape(-1, 3),
        faces=(faces[None] + len(points) * np.arange(count)[:, None, None]).reshape(-1, 3).astype(np.int32),
        colours=np.repeat(contact_colours(contacts), len(faces), axis=0),
    )


def ball(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and triangles (m, 3) of a ball about the origin."""
    heights = np.cos(np.linspace(0.0, np.pi, _SIDES // 2 + 1))
    points, faces = _turned(np.stack([np.sqrt(np.maximum(1.0 - heights**2, 0.0)), heights], axis=1))
    return radius * points, faces


def _frames(normals: np.ndarray) -> np.ndarray:
    """A rotation for each normal whose last row is the normal, shape (n, 3, 3)."""
    axis = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    across = np.cross(axis, normals)
    # A contact without a normal keeps its ball; its arrow collapses to nothing.
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    frames = np.stack([across, np.cross(normals, across), normals], axis=1)
    return np.where(np.any(normals, axis=1)[:, None, None], frames, np.eye(3))


def _arrow(radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shaft, head, neck, tip = 0.3 * radius, 0.8 * radius, 6.0 * radius, 8.5 * radius
    points, faces = _turned(np.array([[0.0, tip], [head, neck], [shaft, neck], [shaft, 0.0]]))
    # Lit as if it were round about its axis everywhere; at this size nobody sees the difference.
    normals = points * (1.0, 1.0, 0.0)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return points, np.where(length > 0.0, normals / np.maximum(length, 1e-300), (0.0, 0.0, 1.0)), faces


def _turned(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The surface a profile of (radius, height) rows, shape (k, 2), sweeps when it is turned about the third axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)], axis=1)
    points = (circle[None] * profile[:, None, [0, 0, 1]]).reshape(-1, 3)
    ring, side = np.meshgrid(np.arange(len(profile) - 1), np.arange(_SIDES), indexing="ij")
    here, following = ring * _SIDES + side, ring * _SIDES + (side + 1) % _SIDES
    lower = np.stack([here, here + _SIDES, following + _SIDES], axis=-1)
    upper = np.stack([here, following + _SIDES, following], axis=-1)
    return points, np.concatenate([lower, upper]).reshape(-1, 3)
