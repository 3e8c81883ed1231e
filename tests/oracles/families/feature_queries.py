"""Families of vertex-face and edge-edge queries under linear motion, for fuzzing.

A family is a function `(kind, n, rng) -> Queries`; `FAMILIES` lists all of them by name. The same seed gives the same
bits. A *planted* family chooses the positions at a contact, the weights of the meeting point and the time of contact
as short dyadic numbers, so that start and end positions are exact doubles and the contact is exact. The two
primitives may also touch earlier: a planted time is an upper bound of the first contact.

Points are (n, 8, 3): four vertices at t = 0, the same four at t = 1; vertex-face `v f0 f1 f2`, edge-edge `a0 a1 b0 b1`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracles.families.planted_contacts import (
    Queries,
    carried_away,
    dyadic,
    edge_touch,
    face_touch,
    first_moved,
    integer_embedding,
    parallel_touch,
    passing,
    planted,
    planted_in_plane,
    planted_tangential,
    random_touch,
    rigid,
    scaled_by,
    unit,
    weights_inside,
    weights_on_boundary,
    with_relative_velocity,
)
from tangere.query.contacts import Kind

__all__ = ["FAMILIES", "Family", "Queries", "random_half_colliding"]

Family = Callable[[Kind, int, np.random.Generator], Queries]


# --- Random queries without structure -------------------------------------------------------------------------------


def random_half_colliding(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Unit-sized primitives facing each other, moving together and wobbling: about half of them touch."""
    if kind == Kind.VERTEX_FACE:
        face = rng.uniform(-1, 1, (n, 3, 3))
        normal = unit(np.cross(face[:, 1] - face[:, 0], face[:, 2] - face[:, 0]))
        below = np.einsum("ij,ijk->ik", rng.dirichlet([1, 1, 1], n), face)
        vertex = below + normal * rng.uniform(0.05, 1, (n, 1))
        moved = vertex - normal * rng.uniform(0, 2, (n, 1)) + rng.normal(0, 0.2, (n, 3))
        moved_face = face + rng.normal(0, 0.2, (n, 3, 3))
        return Queries(np.concatenate([vertex[:, None], face, moved[:, None], moved_face], axis=1), None)
    edge_a, edge_b, centre = rng.uniform(-1, 1, (3, n, 3))
    normal = unit(np.cross(edge_a, edge_b))
    s, w = rng.uniform(0, 1, (2, n, 1))
    above = centre + normal * rng.uniform(0.05, 1, (n, 1))
    start = np.stack(
        [above - edge_a * s, above + edge_a * (1 - s), centre - edge_b * w, centre + edge_b * (1 - w)], axis=1
    )
    end = start + rng.normal(0, 0.2, (n, 4, 3))
    end[:, :2] += (rng.normal(0, 0.2, (n, 3)) - normal * rng.uniform(0, 2, (n, 1)))[:, None]
    return Queries(np.concatenate([start, end], axis=1), None)


def random_on_grid(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Random queries rounded to eighths: ordinary motion with many coincidences."""
    return Queries(np.round(random_half_colliding(kind, n, rng).points * 8) / 8, None)


def random_in_single_precision(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Random queries rounded to float32, as simulators store them."""
    return Queries(random_half_colliding(kind, n, rng).points.astype(np.float32).astype(np.float64), None)


def random_short_motion(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Random queries with a tenth of the motion: most are free, as in a simulation."""
    points = random_half_colliding(kind, n, rng).points
    points[:, 4:] = points[:, :4] + 0.1 * (points[:, 4:] - points[:, :4])
    return Queries(points, None)


def random_in_one_plane(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Random dyadic motion within one plane: the polynomial is zero whether they touch or not."""
    return Queries(dyadic((n, 8, 2), rng, bits=4) @ integer_embedding(n, rng), None)


# --- Planted contacts -----------------------------------------------------------------------------------------------


def generic(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Contact inside the features, independent vertex velocities."""
    return planted(random_touch(kind, n, rng), dyadic((n, 4, 3), rng), rng)


def integer_grid(kind: Kind, n: int, rng: np.random.Generator, reach: int = 3) -> Queries:
    """Corners and velocities are small integers: shared vertices, coplanar and parallel features are common."""
    touch = random_touch(kind, n, rng, grid=lambda shape: dyadic(shape, rng, bits=0, reach=reach))
    return planted(touch, dyadic((n, 4, 3), rng, bits=0, reach=reach), rng)


def tiny_integer_grid(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """As `integer_grid`, of -1, 0, 1 only: most queries are degenerate."""
    return integer_grid(kind, n, rng, reach=1)


def boundary_weights(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Contact on an edge or a corner of the face, on the ends of the edges."""
    return planted(random_touch(kind, n, rng, weights_on_boundary(kind, n, rng)), dyadic((n, 4, 3), rng), rng)


def rigid_translation(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Both features translate: the coplanarity polynomial is linear."""
    return planted(random_touch(kind, n, rng), rigid(kind, dyadic((n, 4, 3), rng)), rng)


def coplanar(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Everything moves within one plane: the polynomial is zero."""
    return planted_in_plane(random_touch(kind, n, rng), dyadic((n, 4, 3), rng), rng)


def coplanar_boundary(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Within one plane, contact at a feature's boundary, on a coarse grid."""
    touch = random_touch(kind, n, rng, weights_on_boundary(kind, n, rng), lambda shape: dyadic(shape, rng, bits=2))
    return planted_in_plane(touch, dyadic((n, 4, 3), rng, bits=2), rng)


def parallel_always(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Edges stay parallel (they translate and stretch); a vertex runs along the line of an edge of the face."""
    velocity = rigid(kind, dyadic((n, 4, 3), rng))
    stretch = rng.integers(-4, 5, (n, 2, 1)) / 8.0
    if kind == Kind.VERTEX_FACE:
        touch = random_touch(kind, n, rng, weights_on_boundary(kind, n, rng))
        velocity[:, 0] = velocity[:, 1] + stretch[:, 0] * touch.tangents[:, 0]
    else:
        touch = parallel_touch(n, rng)
        velocity[:, 1] += stretch[:, 0] * touch.tangents[:, 0]
        velocity[:, 3] += stretch[:, 1] * touch.tangents[:, 0]
    return planted(touch, velocity, rng)


def parallel_at_impact(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Turning edges that are parallel at the moment of contact; a vertex moving along an edge at that moment."""
    velocity = dyadic((n, 4, 3), rng)
    if kind == Kind.EDGE_EDGE:
        return planted(parallel_touch(n, rng), velocity, rng)
    touch = random_touch(kind, n, rng, weights_on_boundary(kind, n, rng))
    along = rng.integers(-4, 5, (n, 1)) / 4.0 * touch.tangents[:, 0]
    return planted(touch, with_relative_velocity(kind, touch, velocity, along), rng)


def grazing(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """The relative velocity at contact lies in the tangent plane: a double root."""
    touch = random_touch(kind, n, rng, grid=lambda shape: dyadic(shape, rng, bits=5))
    return planted_tangential(kind, touch, dyadic((n, 4, 3), rng, bits=5), rng)


def sliding(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """The second feature translates and the first slides on it, in contact for a while."""
    touch = random_touch(kind, n, rng, grid=lambda shape: dyadic(shape, rng, bits=5))
    return planted_tangential(kind, touch, rigid(kind, dyadic((n, 4, 3), rng, bits=5)), rng)


def collapsed(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Faces that are a segment or a point and edges of length zero, for the whole step or at contact only."""
    velocity = dyadic((n, 4, 3), rng)
    to_point, always = rng.random((2, n, 1)) < 0.5
    if kind == Kind.VERTEX_FACE:
        face = dyadic((n, 3, 3), rng)
        share = rng.integers(-4, 9, (n, 1)) / 4.0
        face[:, 1] = np.where(to_point, face[:, 0], face[:, 1])
        face[:, 2] = face[:, 0] + share * (face[:, 1] - face[:, 0])
        touch = face_touch(face, weights_inside(kind, n, rng))
        stays = velocity[:, 1] + share * (velocity[:, 2] - velocity[:, 1])
        velocity[:, 3] = np.where(always, stays, velocity[:, 3])
        velocity[:, 2:] = np.where((always & to_point)[:, None], velocity[:, 1:2], velocity[:, 2:])
    else:
        edge_a, edge_b, centre = dyadic((3, n, 3), rng)
        touch = edge_touch(np.where(to_point, 0.0, edge_a), 0.0 * edge_b, centre, weights_inside(kind, n, rng))
        velocity[:, 1] = np.where(always & to_point, velocity[:, 0], velocity[:, 1])
        velocity[:, 3] = np.where(always, velocity[:, 2], velocity[:, 3])
    return planted(touch, velocity, rng)


def slow_closing(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """A common velocity plus relative velocities of 2^-10 to 2^-26."""
    relative = dyadic((n, 4, 3), rng) * 2.0 ** rng.integers(-26, -9, (n, 1, 1))
    return planted(random_touch(kind, n, rng), dyadic((n, 1, 3), rng) + relative, rng)


def needles(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """One side of the face, or one edge, is 2^-10 to 2^-28 long."""
    thin = 2.0 ** rng.integers(-28, -9, (n, 1))
    if kind == Kind.VERTEX_FACE:
        face = dyadic((n, 3, 3), rng)
        face[:, 1] = face[:, 0] + thin * face[:, 1]
        touch = face_touch(face, weights_inside(kind, n, rng))
    else:
        edge_a, edge_b, centre = dyadic((3, n, 3), rng)
        touch = edge_touch(thin * edge_a, edge_b, centre, weights_inside(kind, n, rng))
    velocity = dyadic((n, 4, 3), rng)
    return planted(touch, np.where(rng.random((n, 1, 1)) < 0.5, velocity, rigid(kind, velocity)), rng)


def scaled(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Boundary contacts at every size from 1e-12 to 1e6, by powers of two."""
    return scaled_by(boundary_weights(kind, n, rng), 2.0 ** rng.integers(-40, 21, (n, 1, 1)))


def scaled_extremely(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Boundary contacts at sizes 2^-340 to 2^300."""
    return scaled_by(boundary_weights(kind, n, rng), 2.0 ** rng.integers(-340, 301, (n, 1, 1)))


def far_offset_1e6(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Boundary contacts a million units from the origin."""
    return carried_away(boundary_weights(kind, n, rng), 10**6, rng)


def far_offset_1e9(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Boundary contacts a thousand million units from the origin."""
    return carried_away(boundary_weights(kind, n, rng), 10**9, rng)


# --- Near misses: a planted family, disturbed -----------------------------------------------------------------------


def jittered(family: Family) -> Family:
    """Every coordinate moved by up to 2 ulp: contacts become near misses or stay, by chance."""

    def disturbed(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
        points = family(kind, n, rng).points
        return Queries(points * (1 + rng.integers(-2, 3, points.shape) * 2.0**-52), None)

    return disturbed


def offset(family: Family) -> Family:
    """The first feature moved away by 2^-10 to 2^-46 of the query's size."""

    def disturbed(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
        return first_moved(family(kind, n, rng), kind, 2.0 ** rng.integers(-46, -9, (n, 1, 1)), rng)

    return disturbed


def moved(family: Family) -> Family:
    """The first feature moved by 2^-1 to 2^-6 of the query's size: the same structure, contact only by chance."""

    def disturbed(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
        return first_moved(family(kind, n, rng), kind, 2.0 ** rng.integers(-6, 0, (n, 1, 1)), rng)

    return disturbed


def just_outside_step(kind: Kind, n: int, rng: np.random.Generator) -> Queries:
    """Contacts by 2^-10 to 2^-30 before t = 0 or after t = 1."""
    beyond = 2.0 ** rng.integers(-30, -9, n)
    time = np.where(rng.random(n) < 0.5, -beyond, 1.0 + beyond)
    return Queries(passing(random_touch(kind, n, rng), dyadic((n, 4, 3), rng), time), None)


_PLANTED: tuple[Family, ...] = (
    generic,
    integer_grid,
    tiny_integer_grid,
    boundary_weights,
    rigid_translation,
    coplanar,
    coplanar_boundary,
    parallel_always,
    parallel_at_impact,
    grazing,
    sliding,
    collapsed,
    slow_closing,
    needles,
    scaled,
    scaled_extremely,
    far_offset_1e6,
    far_offset_1e9,
)
_FREE_FORM: tuple[Family, ...] = (
    random_half_colliding,
    random_on_grid,
    random_in_single_precision,
    random_short_motion,
    random_in_one_plane,
    just_outside_step,
)

#: Every family by name; `<planted>_jittered`, `<planted>_offset` and `<planted>_moved` are its near misses.
FAMILIES: dict[str, Family] = {family.__name__: family for family in (*_FREE_FORM, *_PLANTED)} | {
    f"{family.__name__}_{disturb.__name__}": disturb(family)
    for family in _PLANTED
    for disturb in (jittered, offset, moved)
}
