"""Tubes along a curve, in a frame that does not turn about the curve (double reflection, Wang et al. 2008)."""

from __future__ import annotations

import numpy as np

from tangere.shape.generate.build.lattice import band, ring_grid

def sweep(path: np.ndarray, radius: np.ndarray | float, sides: int, *, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a tube: 2 k sides triangles if closed, else 2 (k - 1) sides and two open ends.

    Args:
        path: points of the curve, shape (k, 3) [m]; a closed one does not repeat its first point.
        radius: of the tube at each point, shape (k,) or one number [m].
        sides: vertices around the tube.
        closed: whether the last point joins the first.
    """
    tangent = np.roll(path, -1, axis=0) - np.roll(path, 1, axis=0) if closed else np.gradient(path, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    normal, turned = _untwisted_normals(path, tangent, closed)
    angle = 2.0 * np.pi * np.arange(sides) / sides + turned[:, None]
    # Clockwise seen along the path, so that along x around points out of the tube.
    across = np.cos(angle)[..., None] * normal[:, None] - np.sin(angle)[..., None] * np.cross(tangent, normal)[:, None]
    vertices = path[:, None] + np.broadcast_to(radius, len(path))[:, None, None] * across
    faces = ring_grid(len(path), sides) if closed else band(len(path), sides, wrap=True)
    return vertices.reshape(-1, 3), faces


def _untwisted_normals(path: np.ndarray, tangent: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unit normals carried along the path without turning about it, and how far to turn each so that the ends meet."""
    start = np.eye(3)[np.argmin(np.abs(tangent[0]))]
    start = start - (start @ tangent[0]) * tangent[0]
    normals = [start / np.linalg.norm(start)]
    count = len(path)
    for i in range(count if closed else count - 1):
        normals.append(_carried(normals[-1], path[i], path[(i + 1) % count], tangent[i], tangent[(i + 1) % count]))
    if not closed:
        return np.array(normals), np.zeros(count)
    first, last = normals[0], normals.pop()
    gain = np.arctan2(np.cross(first, last) @ tangent[0], first @ last)
    return np.array(normals), gain * np.arange(count) / count


def _carried(normal: np.ndarray, here: np.ndarray, there: np.ndarray, along: np.ndarray, along_there: np.ndarray):
    """The normal after two reflections that take the point and the tangent to the next ones."""
    step = there - here
    reflected = normal - 2.0 * (step @ normal) / (step @ step) * step
    along = along - 2.0 * (step @ along) / (step @ step) * step
    second = along_there - along
    size = second @ second
    return reflected if size == 0.0 else reflected - 2.0 * (second @ reflected) / size * second
