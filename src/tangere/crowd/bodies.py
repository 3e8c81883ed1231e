"""Agents with a shape: rigid boxes, chains of sections, deformable and concave outlines, and meshes carried by them.

Question: what shape does an agent have at rest, and how much may it deform?
Method:   a body is a set of particles and closed sections of them, each kept in shape by shape matching. Its outline at
          rest looks along +x with the head's centroid at the origin. Sections of a chain share one particle, their
          hinge.
Known as: rigid, clustered and deformable agents (Pitiot 2015, section 8.1); cages by mean value coordinates (Floater
          2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tangere.runtime import Arrays, InputError, not_negative, number, positive, to_numpy, whole


@dataclass(frozen=True, eq=False)
class Body:
    """A shape of agents.

    Args:
        particles: (k, 2) at rest [m].
        sections: particle numbers of each section, counter-clockwise around an outline that does not cross itself, head
            first; a particle is in one, or in two as their hinge.
        alpha: part of the way to the matched shape that is made up for in a step, 0 to 1.
        beta_linear: how much of the match may be a linear map instead of a rotation, 0 to 1.
        plastic_yield, plastic_creep, plastic_max: deformation that stays: from which size, how fast [1/s], how much.
    """

    particles: np.ndarray
    sections: tuple[tuple[int, ...], ...]
    alpha: float = 1.0
    beta_linear: float = 0.0
    plastic_yield: float = np.inf
    plastic_creep: float = 0.0
    plastic_max: float = 0.0
    width: float = field(init=False, default=0.0)  #: across the direction of motion [m]

    def __post_init__(self) -> None:
        points = to_numpy(self.particles, "particles")
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not np.isfinite(points).all():
            raise InputError(f"particles must be finite with shape (k, 2), k >= 3, not {points.shape}")
        if not 0 < number(self.alpha, "alpha") <= 1:
            raise InputError(f"alpha must be a part above 0, at most 1, not {self.alpha}")
        if not 0 <= number(self.beta_linear, "beta_linear") <= 1:
            raise InputError(f"beta_linear must be a part, 0 to 1, not {self.beta_linear}")
        not_negative(self.plastic_creep, "plastic_creep")
        for name in ("plastic_yield", "plastic_max"):
            if not number(getattr(self, name), name) >= 0:
                raise InputError(f"{name} must be 0 or more, not {getattr(self, name)}")
        _check_sections(self.sections, len(points))
        for k, section in enumerate(self.sections):
            if len(section) < 3 or not _area(points[list(section)]) > 0:
                raise InputError(f"sections: section {k} must run counter-clockwise around an area")
            crossing = _crossing_sides(points[list(section)])
            if crossing is not None:
                raise InputError(f"sections: section {k} crosses itself: its sides {crossing[0]} and {crossing[1]} do")
        points = points - points[list(self.sections[0])].mean(axis=0)
        object.__setattr__(self, "particles", points)
        object.__setattr__(self, "width", float(np.ptp(points[list(self.sections[0]), 1])))

    @property
    def edges(self) -> np.ndarray:
        """(e, 2) particles of each edge of all sections."""
        pairs = [(s[k], s[(k + 1) % len(s)]) for s in self.sections for k in range(len(s))]
        return np.array(pairs)


def rigid(outline: Arrays) -> Body:
    """One section that keeps its shape; the outline (k, 2) may be concave [m]."""
    return Body(*_one_section(outline))


def box(length: float, width: float) -> Body:
    """A rigid rectangle: a car [m]."""
    x, y = positive(length, "length") / 2, positive(width, "width") / 2
    return rigid([(-x, -y), (x, -y), (x, y), (-x, y)])


def deformable(outline: Arrays, *, alpha: float = 0.4, beta_linear: float = 0.5, **plastic: float) -> Body:
    """One section that gives way and comes back, or partly stays as it is pressed (see `Body`)."""
    return Body(*_one_section(outline), alpha, beta_linear, **plastic)


def chain(count: int, length: float, width: float) -> Body:
    """`count` rigid sections of that size one behind the other, tip to tip on a shared hinge: a snake [m]."""
    length, width = positive(length, "length"), positive(width, "width")
    if not width < length:
        raise InputError(f"width must be less than the length of a section, {length}, not {width}")
    x, y = length / 2, width / 2
    points, sections = [(x, 0.0)], []
    for k in range(whole(count, "count", 1)):
        middle, front = -k * length, 5 * k
        points += [(middle + y, y), (middle - y, y), (middle - x, 0.0), (middle - y, -y), (middle + y, -y)]
        sections.append((front if k == 0 else front - 2, front + 1, front + 2, front + 3, front + 4, front + 5))
    return Body(np.array(points), tuple(sections))


class Cage:
    """A mesh carried by the footprint of a body: mean value coordinates of its vertices in the outline.

    Args:
        outline: (k, 2) a simple polygon at rest, counter-clockwise [m].
        vertices: (n, 3) of the mesh at rest; z is kept [m].
    """

    def __init__(self, outline: Arrays, vertices: Arrays) -> None:
        polygon, points = to_numpy(outline, "outline"), to_numpy(vertices, "vertices")
        if polygon.ndim != 2 or polygon.shape[1] != 2 or len(polygon) < 3 or not np.isfinite(polygon).all():
            raise InputError(f"outline must be finite with shape (k, 2), k >= 3, not {polygon.shape}")
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise InputError(f"vertices must be finite with shape (n, 3), not {points.shape}")
        self.weights = _mean_values(polygon, points[:, :2])  #: (n, k), rows sum to one
        self.heights = points[:, 2].copy()

    def follow(self, outline: Arrays) -> np.ndarray:
        """(n, 3) where the vertices are when the outline is here, (k, 2) or (k, 3)."""
        now, corners = to_numpy(outline, "outline"), self.weights.shape[1]
        if now.shape not in ((corners, 2), (corners, 3)):
            raise InputError(f"outline must have shape ({corners}, 2) or ({corners}, 3), not {now.shape}")
        return np.concatenate([self.weights @ now[:, :2], self.heights[:, None]], axis=1)


def _one_section(outline: Arrays) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    points = np.atleast_1d(to_numpy(outline, "outline"))
    return points, (tuple(range(len(points))),)


def _check_sections(sections: tuple[tuple[int, ...], ...], count: int) -> None:
    """Raise unless sections name particles, each at most once, and each particle is in one section or two."""
    if not hasattr(sections, "__len__") or len(sections) == 0:
        raise InputError(f"sections: a body has at least one, not {sections}")
    for k, section in enumerate(sections):
        named = to_numpy(section, f"sections: section {k}", None)
        integers = named.ndim == 1 and (len(named) == 0 or np.issubdtype(named.dtype, np.integer))
        if not integers or ((named < 0) | (named >= count)).any() or len(np.unique(named)) < len(named):
            reason = f"must name some of {count} particles, from 0 on, and none twice"
            raise InputError(f"sections: section {k} {reason}, not {named.tolist()}")
    times = np.bincount([particle for section in sections for particle in section], minlength=count)
    wrong = (times < 1) | (times > 2)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(f"sections: particle {first} is in {times[first]} of them, not in one or two")


def _area(polygon: np.ndarray) -> float:
    after = np.roll(polygon, -1, axis=0)
    return 0.5 * float(np.sum(polygon[:, 0] * after[:, 1] - polygon[:, 1] * after[:, 0]))


def _crossing_sides(polygon: np.ndarray) -> tuple[int, int] | None:
    """Two sides that cross, each numbered by the corner it starts from; None where the polygon does not cross itself.

    A corner on a side is no crossing.
    """
    start, end = polygon, np.roll(polygon, -1, axis=0)

    def left_of(points: np.ndarray) -> np.ndarray:
        """(k, k) whether points are to the left (1) or to the right (-1) of each side."""
        along, to = (end - start)[:, None], points[None] - start[:, None]
        return np.sign(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    parted = left_of(start) * left_of(end) < 0
    found = np.argwhere(parted & parted.T)
    return None if len(found) == 0 else (int(found[0, 0]), int(found[0, 1]))


def _mean_values(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Floater's coordinates; on a corner or an edge the limit of them."""
    to = polygon[None] - points[:, None]
    after = np.roll(to, -1, axis=1)
    length = np.linalg.norm(to, axis=2)
    length_after = np.roll(length, -1, axis=1)
    cross = to[..., 0] * after[..., 1] - to[..., 1] * after[..., 0]
    dot = (to * after).sum(axis=2)
    scale = np.abs(polygon).max()
    on_edge = (np.abs(cross) <= 1e-12 * scale**2) & (dot <= 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        half = (length * length_after - dot) / cross  # tan of half the angle a side is seen under
        weights = (np.roll(half, 1, axis=1) + half) / length
        weights /= weights.sum(axis=1, keepdims=True)
    for row in np.flatnonzero(on_edge.any(axis=1)):
        side = int(np.argmax(on_edge[row]))
        other = (side + 1) % len(polygon)
        part = length[row, side] / max(length[row, side] + length[row, other], 1e-300)
        weights[row] = 0.0
        weights[row, side] += 1.0 - part
        weights[row, other] += part
    return weights
