"""What a world looks like: bodies in colours of their own, fixed ones grey, and forces as arrows.

One arrow stands at each contact and points the way that one of both bodies is pushed: the one that is carried, which
the other pushes up; where neither is, the first, and never one that cannot move. Its length is in proportion to the
force, the weight of the heaviest body being a quarter of the size of what moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tangere.dynamics.body import Body
from tangere.scene import PALETTE, Camera, Scene, Thing
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.dynamics.world import World

STILL = (0.80, 0.81, 0.83)
GLASS = 0.25  #: opacity of what would hide others
FORCE = (0.85, 0.08, 0.12)
#: Length of the arrow of the weight of the heaviest body, and of the longest arrow, as parts of the size.
WEIGHT_ARROW, LONGEST_ARROW = 0.25, 0.35
#: Sides of an arrow; and along it, radius and height of its rings.
_SIDES, _RINGS = 8, ((0.0, 0.0), (0.022, 0.0), (0.022, 0.75), (0.06, 0.75), (0.0, 1.0))


def world_scene(world: World, *, forces: bool = True, opacity: float = 1.0) -> Scene:
    """All bodies of a world where they are now.

    Args:
        forces: whether those of the contacts of the last step are drawn, as arrows.
        opacity: of the bodies; contacts are mostly behind something.
    """
    bodies, poses = world.bodies, world.poses
    things = body_things(bodies, poses, world.gravity, opacity)
    points = moving_points(bodies, poses)
    everything = np.concatenate([points, *(thing.mesh.bounds for thing in things)])
    drawn = force_arrows(world) if forces else None
    if drawn is not None:
        things.append(drawn)
    camera = camera_for(world.gravity, points, everything)
    return Scene(tuple(things), camera=camera, title=f"rigid bodies after {world.time:g} s")


def force_arrows(world: World) -> Thing | None:
    """The forces of the contacts of the last step; None where there are none."""
    contacts = world.contacts
    pairs = np.stack([contacts.body_a, contacts.body_b], axis=1)
    pushed = on_who_is_carried(world.bodies, pairs, world.forces, world.gravity)
    acting = np.linalg.norm(pushed, axis=1) > 0.0
    if not acting.any():
        return None
    points = 0.5 * (contacts.point_a + contacts.point_b)[acting]
    size = size_of(world.bodies, world.poses)
    scale = arrow_scale(world.bodies, world.gravity, size)
    return Thing("forces", arrows(points, scale * pushed[acting], LONGEST_ARROW * size), FORCE)


def thing_names(bodies: Sequence[Body]) -> list[str]:
    """A name for each body, no two the same."""
    return [f"{number}: {body.name}" for number, body in enumerate(bodies)]


def body_colour(bodies: Sequence[Body], number: int) -> tuple[float, float, float]:
    """Grey for what is fixed."""
    return STILL if bodies[number].fixed else PALETTE[number % len(PALETTE)]


def body_things(bodies: Sequence[Body], poses: np.ndarray, gravity: np.ndarray, opacity: float = 1.0) -> list[Thing]:
    """All bodies at poses (n, 4, 4)."""
    seen = opacities(bodies, poses, gravity)
    return [
        Thing(name, body.mesh.at(poses[k]), body_colour(bodies, k), min(opacity, seen[k]))
        for k, (name, body) in enumerate(zip(thing_names(bodies), bodies, strict=True))
    ]


def opacities(bodies: Sequence[Body], poses: np.ndarray, gravity: np.ndarray) -> list[float]:
    """Of each body: walls and housings, which rise above the middle of what moves, would hide it and are of glass."""
    up = -gravity if gravity.any() else np.array([0.0, 0.0, 1.0])
    heights = moving_points(bodies, poses) @ up
    middle = 0.5 * (heights.min() + heights.max())
    tops = [float((body.mesh.at(pose).vertices @ up).max()) for body, pose in zip(bodies, poses, strict=True)]
    some_move = not all(body.fixed for body in bodies)
    return [GLASS if some_move and body.fixed and top > middle else 1.0 for body, top in zip(bodies, tops, strict=True)]


def size_of(bodies: Sequence[Body], poses: np.ndarray) -> float:
    """Diagonal of the box round what is not fixed, or round everything [m]."""
    points = moving_points(bodies, poses)
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def moving_points(bodies: Sequence[Body], poses: np.ndarray) -> np.ndarray:
    """(n, 3) corners of the boxes of what is not fixed, or of everything [m]."""
    chosen = [k for k, body in enumerate(bodies) if not body.fixed] or list(range(len(bodies)))
    corners = []
    for k in chosen:
        low, high = bodies[k].mesh.bounds
        box = np.where((np.arange(8)[:, None] >> np.arange(3)) & 1, high, low)
        corners.append(box @ poses[k][:3, :3].T + poses[k][:3, 3])
    return np.concatenate(corners)


def camera_for(gravity: np.ndarray, points: np.ndarray, everything: np.ndarray) -> Camera:
    """A camera that looks at points from above and the side, gravity going down in the picture.

    Args:
        points: (n, 3) what is to fill the picture.
        everything: (m, 3) what a picture would be filled with otherwise.
    """
    strength = float(np.linalg.norm(gravity))
    up = -gravity / strength if strength > 0.0 else np.array([0.0, 0.0, 1.0])
    side = np.eye(3)[int(np.argmin(np.abs(up)))]
    side = side - (side @ up) * up
    side /= np.linalg.norm(side)
    direction = 0.55 * side - 1.0 * np.cross(up, side) + 0.45 * up
    target = 0.5 * (points.min(axis=0) + points.max(axis=0))
    look = Camera(_three(direction), _three(up), target=_three(target))
    near, far = (np.linalg.norm((view := look.placed(seen, 4 / 3)).eye - view.target) for seen in (points, everything))
    return Camera(_three(direction), _three(up), target=_three(target), zoom=max(1.0, 0.8 * float(far / near)))


def arrow_scale(bodies: Sequence[Body], gravity: np.ndarray, size: float) -> float:
    """Length of the arrow of a force [m/N]."""
    heaviest = max((float(body.mass) for body in bodies if body.moves), default=1.0)
    return WEIGHT_ARROW * size / (heaviest * (float(np.linalg.norm(gravity)) or 1.0))


def on_who_is_carried(bodies: Sequence[Body], pairs: np.ndarray, forces: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """(n, 3) forces on one body of each pair, of those on the first ones [N].

    That is the one that is pushed up, whatever the order of the pair, so that a stack is drawn as it carries; where
    gravity tells nothing the first one; and the other where one cannot move.

    Args:
        pairs: (n, 2) numbers of bodies.
        forces: (n, 3) on the first body of each.
    """
    moves = np.array([body.moves for body in bodies])
    first, second = moves[pairs].T
    up = forces @ -np.asarray(gravity, float)
    sideways = 1e-6 * np.linalg.norm(forces, axis=1) * np.linalg.norm(gravity)
    return np.where((first & (~second | (up >= -sideways)))[:, None], forces, -forces)


def arrows(points: np.ndarray, vectors: np.ndarray, longest: float = np.inf) -> Mesh:
    """An arrow at each point (n, 3) along each vector (n, 3), as one mesh; all have the same shape.

    Args:
        longest: arrows that would be longer are as long as this [m].
    """
    length = np.linalg.norm(vectors, axis=1)
    along = vectors / np.where(length > 0.0, length, 1.0)[:, None]
    along[length == 0.0] = 0.0, 0.0, 1.0
    other = np.eye(3)[np.argmin(np.abs(along), axis=1)]
    first = np.cross(along, other)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    frames = np.stack([first, np.cross(along, first), along], axis=1)
    vertices, faces = _ARROW
    drawn = np.minimum(length, longest)[:, None, None] * (vertices @ frames)
    every = faces + len(vertices) * np.arange(len(points))[:, None, None]
    return Mesh((points[:, None] + drawn).reshape(-1, 3), every.reshape(-1, 3), name="forces")


def _unit_arrow() -> tuple[np.ndarray, np.ndarray]:
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(_SIDES)], axis=1)
    rings = [radius * circle + [0.0, 0.0, height] for radius, height in _RINGS[1:-1]]
    vertices = np.concatenate([*rings, [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    bottom, tip = len(vertices) - 2, len(vertices) - 1
    k, after = np.arange(_SIDES), (np.arange(_SIDES) + 1) % _SIDES
    faces = [np.stack([np.full(_SIDES, bottom), after, k], axis=1)]
    for ring in range(len(rings) - 1):
        low, high = ring * _SIDES, (ring + 1) * _SIDES
        faces += [np.stack([low + k, low + after, high + after], axis=1)]
        faces += [np.stack([low + k, high + after, high + k], axis=1)]
    last = (len(rings) - 1) * _SIDES
    faces.append(np.stack([last + k, last + after, np.full(_SIDES, tip)], axis=1))
    return vertices, np.concatenate(faces)


def _three(vector: np.ndarray) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])


_ARROW = _unit_arrow()
