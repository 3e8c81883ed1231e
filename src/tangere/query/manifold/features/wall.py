"""Steep faces beside a body: the way out past a kerb is sideways, not up over its top.

A barrel that overlaps a kerb by a centimetre is as deep below the kerb's top as the kerb is high, but the wall of the
kerb is a centimetre away (ERR-12 of Strashnov and Torgashev 2020: depth along the ground's normal only). A
steep face that the body's centre is in front of is a wall; its depth is that of the body's deepest point behind it.
When the body has moved out along the wall's normal it is in front of the wall's whole plane: so every contact behind
that plane is gone as well, and where the wall is the shorter way, the wall's contact stands for it.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.query.manifold.contact_point import ContactPoint
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["STEEP", "WALLS", "SteepWalls", "add_wall", "clear_walls", "empty_walls", "wall_at", "wall_before"]

real = wp.float64

#: A face with a smaller n_z is steep.
STEEP = wp.constant(real(0.7))
#: Walls kept for a body; of more, those with the shortest way out (a contact behind none of them goes up, as ever).
WALLS = wp.constant(8)
_ALIKE = wp.constant(real(1.0 - 1.0e-9))


@wp.struct
class SteepWalls:
    """Room for the walls of some bodies, WALLS each."""

    step: wp.int32  # from a wall of a body to its next: 1, or the number of bodies
    count: wp.array[int]
    used: wp.array[int]  # whether a wall stands for a contact
    number: wp.array[int]  # where its contact is in the list of contacts, -1 where there is none
    kept: wp.array[ContactPoint]


def empty_walls(bodies: int, device: wp.Device, listed: bool = False) -> Any:
    """Room for the walls of so many bodies.

    Args:
        listed: their contacts come from a list; then neighbouring bodies lie side by side, as CUDA threads want them.
    """
    walls: Any = SteepWalls()
    walls.step = bodies if listed else 1
    walls.count = wp.empty(bodies, dtype=int, device=device)
    walls.used = wp.empty(bodies * WALLS, dtype=int, device=device)
    walls.number = wp.empty(bodies * WALLS, dtype=int, device=device)
    walls.kept = wp.empty(bodies * WALLS, dtype=ContactPoint, device=device)
    return walls


@wp.func
def clear_walls(walls: SteepWalls, body: int):
    walls.count[body] = 0


@wp.func
def wall_at(walls: SteepWalls, body: int, w: int) -> int:
    """Where wall w of a body is."""
    if walls.step == 1:
        return body * WALLS + w
    return w * walls.step + body


@wp.func
def add_wall(walls: SteepWalls, body: int, contact: ContactPoint, number: int, tolerance: real):
    """Remember a wall, unless one in the same plane is known or all known ones are shorter ways out."""
    place = walls.count[body]
    farthest = contact.depth + real(0.0)
    for w in range(walls.count[body]):
        other = walls.kept[wall_at(walls, body, w)]
        if wp.dot(other.normal, contact.normal) > _ALIKE and wp.abs(other.depth - contact.depth) <= tolerance:
            return
        if walls.count[body] == WALLS and other.depth > farthest:
            farthest = other.depth
            place = w
    if place == WALLS:
        return
    at = wall_at(walls, body, place)
    walls.kept[at] = contact
    walls.number[at] = number
    walls.used[at] = 0
    walls.count[body] = wp.max(walls.count[body], place + 1)


@wp.func
def wall_before(walls: SteepWalls, body: int, contact: ContactPoint, tolerance: real) -> int:
    """Where the wall with the shortest way out is that makes this contact unnecessary; -1 if there is none."""
    best = int(-1)
    least = contact.depth - tolerance
    for w in range(walls.count[body]):
        at = wall_at(walls, body, w)
        wall = walls.kept[at]
        if wall.depth < least:
            ground = contact.point + wp.vec3d(real(0.0), real(0.0), contact.depth / contact.normal[2])
            if wp.dot(wall.normal, wall.point - ground) + wall.depth >= -tolerance:
                least = wall.depth
                best = at
    return best
