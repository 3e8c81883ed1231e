"""Paths of points under a tangent screw, as polynomials of s = tan(w t / 2) / tan(w / 2), which runs from 0 to 1.

With k = tan(w / 2), u the axis, b the slide, and x0 the point at t = 0, the screw of the thesis (tau = k s) becomes

    x(s) = x0 + b s u + (s v + k s^2 (u x v)) / (1 + k^2 s^2),       v = 2 k u x (x0 - O),

where O is a point of the axis. v stays finite as the axis runs to infinity, and k = 0 is the plain translation: no
coordinates in the screw's own frame, no division by w, no case for small turns
(Redon 2002, sections 2.3 and 2.4; the same cubics as (2.27) and (2.29), in s instead of tau).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Less is rounding of the two poses, as the thesis has it: pure turns and translations have cheaper tests [rad].
NO_TURN = 1e-15
#: The same for the slide, as a part of the distance from the world's origin.
NO_SLIDE = 1e-15
#: Below this t is s to the last bit [rad].
SMALL_TURN = 1e-9

_ONE = wp.constant(wp.float64(1.0))


@wp.struct
class ScrewPath:
    """A tangent screw as the polynomials need it; metres and radians, world frame."""

    rotation: wp.mat33d  #: of the body at t = 0
    translation: wp.vec3d  #: of the body at t = 0
    axis: wp.vec3d  #: u, unit
    tangent: wp.float64  #: k
    slide: wp.float64  #: b
    origin: wp.vec3d  #: a point that goes with the body, at t = 0 …
    velocity: wp.vec3d  #: … and its v


@wp.struct
class PathPoint:
    """A point of the moving body: all that its path depends on."""

    place: wp.vec3d  #: x0
    velocity: wp.vec3d  #: v


def screw_paths(motions: np.ndarray) -> np.ndarray:
    """The paths of `TanScrew.records()`, shape (n,), as an array of `ScrewPath`."""
    paths = np.zeros(len(motions), ScrewPath.numpy_dtype())
    angle, axis = motions["angle"], motions["axis"]
    angle = np.where(angle > NO_TURN, angle, 0.0)
    tangent = np.tan(0.5 * angle)
    rotation, origin = motions["rotation"], motions["origin"]
    paths["rotation"], paths["axis"], paths["tangent"], paths["origin"] = rotation, axis, tangent, origin
    paths["translation"] = origin - np.einsum("nij,nj->ni", rotation, motions["pivot"])
    slide = np.einsum("ni,ni->n", motions["velocity"], axis)
    paths["slide"] = np.where(np.abs(slide) > NO_SLIDE * np.linalg.norm(origin, axis=1), slide, 0.0)
    # `arc` is the velocity at half the angle; v is that at the start, for ds = dt (2 k / w) there.
    arc = motions["arc"]
    half = -0.5 * angle[:, None]
    back = arc + np.sin(half) * np.cross(axis, arc) + (1.0 - np.cos(half)) * np.cross(axis, np.cross(axis, arc))
    paths["velocity"] = np.divide(2.0 * tangent, angle, out=np.ones_like(angle), where=angle > 0.0)[:, None] * back
    return paths


def times(s: np.ndarray | float, angle: np.ndarray | float) -> np.ndarray:
    """The times t in [0, 1] at which a screw by `angle` [rad] has got to s; inf where s is."""
    angle = np.asarray(angle, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        turned = 2.0 * np.arctan(np.tan(0.5 * angle) * s) / angle
    return np.where((angle > SMALL_TURN) & np.isfinite(s), np.minimum(turned, 1.0), s)


@wp.func
def path_point(path: ScrewPath, p: wp.vec3d) -> PathPoint:
    """The path of the body's point p, given in its frame."""
    point = PathPoint()
    point.place = path.translation + path.rotation * p
    point.velocity = path.velocity + wp.float64(2.0) * path.tangent * wp.cross(path.axis, point.place - path.origin)
    return point


@wp.func
def point_at(path: ScrewPath, point: PathPoint, s: wp.float64) -> wp.vec3d:
    """Where the point is at s."""
    turned = point.velocity * s + wp.cross(path.axis, point.velocity) * (path.tangent * s * s)
    return point.place + path.axis * (path.slide * s) + turned / (_ONE + path.tangent * path.tangent * s * s)
