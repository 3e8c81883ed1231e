"""Bolts and nuts with threads that fit: surfaces of revolution whose radius winds up along them.

Facets of two threads must not lock: a corner that passes a facet climbs r pi^2 / (n d) of what the thread gives way
meanwhile, n being the segments and d the depth; here about a half.
"""

from __future__ import annotations

import numpy as np

from tangere.shape.mesh import Mesh


def threaded_bolt(
    radius: float = 0.04, pitch: float = 0.04, turns: float = 4.0, *, depth: float = 0.02, segments: int = 48
) -> Mesh:
    """A bolt along z with a head; its tip is at 0.

    Args:
        radius: at the bottom of the thread [m].
        pitch: way of one turn [m].
        depth: of the thread [m].
        segments: round it; half as many rows along one turn.
    """
    length = pitch * turns
    angle = 2.0 * np.pi * np.arange(segments) / segments
    heights = np.linspace(0.0, length, round(0.5 * turns * segments) + 1)
    rows = [(wound_radius(angle, height, radius, pitch, depth), height) for height in heights]
    head = np.full(segments, 1.9 * (radius + depth))
    rows += [(head, length), (head, length + 0.9 * radius)]
    return _turned(rows, angle, "bolt")


def threaded_nut(
    radius: float = 0.04,
    pitch: float = 0.04,
    turns: float = 1.5,
    *,
    depth: float = 0.02,
    play: float = 0.002,
    segments: int = 48,
) -> Mesh:
    """A nut along z from 0 that a `threaded_bolt` of the same thread goes through with some play [m]."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    heights = np.linspace(0.0, pitch * turns, round(0.5 * turns * segments) + 1)
    inner = [(wound_radius(angle, height, radius, pitch, depth) + play, height) for height in heights]
    outer = np.full(segments, 1.9 * (radius + depth))
    rings = [*inner, (outer, heights[-1]), (outer, heights[0])]
    points = np.concatenate([_ring(row, height, angle) for row, height in rings])
    ends = [(k, (k + 1) % len(rings)) for k in range(len(rings))]
    faces = np.concatenate([_band(a * segments, b * segments, segments) for a, b in ends])
    return Mesh(points, faces[:, ::-1], name="nut")


def wound_radius(angle: np.ndarray, height: float, radius: float, pitch: float, depth: float) -> np.ndarray:
    """(n,) of a thread at a height: it goes up and down evenly, once a pitch, and winds with the angle [m]."""
    phase = (height / pitch - angle / (2.0 * np.pi)) % 1.0
    return radius + depth * (1.0 - np.abs(2.0 * phase - 1.0))


def _ring(radius: np.ndarray, height: float, angle: np.ndarray) -> np.ndarray:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(angle), height)], axis=1)


def _band(low: int, high: int, segments: int) -> np.ndarray:
    k, after = np.arange(segments), (np.arange(segments) + 1) % segments
    lower, upper = np.stack([low + k, low + after, high + after], 1), np.stack([low + k, high + after, high + k], 1)
    return np.concatenate([lower, upper])


def _turned(rows: list[tuple[np.ndarray, float]], angle: np.ndarray, name: str) -> Mesh:
    """A closed surface through rings from the lowest to the highest, with a lid at both ends."""
    segments = len(angle)
    points = np.concatenate([*(_ring(radius, height, angle) for radius, height in rows), [[0, 0, rows[0][1]]]])
    points = np.concatenate([points, [[0.0, 0.0, rows[-1][1]]]])
    bands = [_band(k * segments, (k + 1) * segments, segments) for k in range(len(rows) - 1)]
    k, after, top = np.arange(segments), (np.arange(segments) + 1) % segments, (len(rows) - 1) * segments
    bottom = np.stack([np.full(segments, len(points) - 2), after, k], axis=1)
    lid = np.stack([np.full(segments, len(points) - 1), top + k, top + after], axis=1)
    return Mesh(points, np.concatenate([*bands, bottom, lid]), name=name)
