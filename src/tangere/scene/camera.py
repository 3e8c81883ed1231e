"""From where to look: a camera says from which side and how wide; the distance follows from what there is to see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.runtime import InputError

Vector = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """A camera that has found its place: an eye and an orthonormal frame, all in the world frame."""

    eye: np.ndarray  #: (3,) [m]
    target: np.ndarray  #: (3,) the point in the middle of the picture [m]
    right: np.ndarray  #: (3,) unit
    up: np.ndarray  #: (3,) unit
    forward: np.ndarray  #: (3,) unit, from the eye to the target
    field_of_view: float  #: vertical, in degrees


@dataclass(frozen=True)
class Camera:
    """A hint how to look at a scene.

    Args:
        direction: from the middle of the scene towards the eye, any length.
        up: what is up in the picture, not parallel to `direction`.
        field_of_view: vertical opening, in degrees.
        zoom: above 1 goes nearer than "everything is just in the picture", below 1 farther.
        target: the point in the middle of the picture [m]; None means the middle of what is seen.
    """

    direction: Vector = (0.45, -1.0, 0.5)
    up: Vector = (0.0, 0.0, 1.0)
    field_of_view: float = 30.0
    zoom: float = 1.0
    target: Vector | None = None

    def __post_init__(self) -> None:
        if not np.linalg.norm(np.cross(self.direction, self.up)) > 0.0:
            raise InputError(f"Camera: direction {self.direction} and up {self.up} must not be parallel or zero")
        if not 0.0 < self.field_of_view < 180.0 or not self.zoom > 0.0:
            raise InputError("Camera: field_of_view must be between 0 and 180 degrees and zoom positive")

    def placed(self, points: np.ndarray, aspect: float) -> Viewpoint:
        """The viewpoint from which all `points`, shape (n, 3) [m], are just inside a picture of width/height `aspect`.

        A point at offsets (x, y) across and z along the view is inside when the eye is |x|/tan(half width) - z or
        farther from the target, and the same for y: the distance is the largest of these.
        """
        back = _unit(self.direction)
        right = _unit(np.cross(self.up, back))
        up = np.cross(back, right)
        frame = np.stack([right, up, -back])
        seen = points @ frame.T
        middle = (seen.min(0) + seen.max(0)) / 2.0 if self.target is None else frame @ np.asarray(self.target, float)
        half = np.tan(np.radians(self.field_of_view) / 2.0)
        # Perspective shifts the middle of what is seen away from the middle of the box: a few rounds settle it.
        for _ in range(4):
            x, y, z = (seen - middle).T
            needed = np.maximum(np.abs(x) / (half * aspect), np.abs(y) / half) - z
            # A margin of 8 %, and never on top of a scene that is a single point.
            distance = max(1.08 * float(needed.max()), 1e-9 + 1e-6 * float(np.abs(points).max()))
            if self.target is None:
                across = np.stack([x, y]) / (distance + z)
                middle[:2] += distance * (across.min(1) + across.max(1)) / 2.0
        distance /= self.zoom
        target = middle @ frame
        return Viewpoint(target + distance * back, target, right, up, -back, self.field_of_view)


def _unit(vector) -> np.ndarray:
    vector = np.asarray(vector, float)
    return vector / np.linalg.norm(vector)
