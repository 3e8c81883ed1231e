"""Loose bodies that stand, fall and hang together: a stack, a pile, an arch, a house of cards, a chain, a bolt.

Stones and cards stand a security distance apart at the start, so that they do not fall into place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.scenes.threads import threaded_bolt, threaded_nut
from tangere.dynamics.world import World
from tangere.motion import Twist
from tangere.runtime import random_source, whole
from tangere.shape import generate
from tangere.shape.mesh import Mesh

STONE, STEEL, PAPER = 2400.0, 7800.0, 800.0  #: densities [kg/m^3]


def posed(x: float = 0.0, y: float = 0.0, z: float = 0.0, *, turn: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    """(4, 4): turned by a rotation vector [rad], then put at a place [m]."""
    pose = Twist(np.eye(4), np.zeros(3), np.asarray(turn, float)).pose(1.0)
    pose[:3, 3] = x, y, z
    return pose


def floor(size: float, level: float = 0.0) -> Body:
    """A fixed plate whose top is at a level [m]."""
    return Body(generate.box((size, size, 0.1)), posed(z=level - 0.05), fixed=True, name="floor")


def stack(count: int = 10, **options: Any) -> World:
    """Cubes of 20 cm on top of each other.

    Args:
        count: of cubes.
        options: of the `World`.
    """
    cube, gap = generate.box((0.2, 0.2, 0.2)), 7e-5
    bodies = [
        Body(cube, posed(z=0.1 + gap + (0.2 + gap) * k), density=STONE, name=f"cube {k}")
        for k in range(whole(count, "count", least=1))
    ]
    return World([floor(2.0), *bodies], **{"friction": 0.6, **options})


def pile(count: int = 100, *, seed: int = 0, **options: Any) -> World:
    """Boxes of 1 by 0.8 by 0.6 m, turned any way, fall into a bin that they fill to about a half of its width.

    Args:
        count: of boxes.
        seed: of how they are turned.
        options: of the `World`.
    """
    random = random_source(seed, "seed")
    side = int(np.ceil((whole(count, "count", least=1) / 3.0) ** (1.0 / 3.0)))
    layers = -(-count // side**2)
    half, high = 0.8 * side + 0.4, 1.6 * layers + 3.0
    box, wall = generate.box((1.0, 0.8, 0.6)), generate.box((0.2, 2.0 * half + 0.4, high))
    ground = generate.box((2.0 * half + 0.4, 2.0 * half + 0.4, 0.2))
    bodies = [Body(ground, posed(z=-0.1), fixed=True, name="floor")]
    for k, angle in enumerate(0.5 * np.pi * np.arange(4)):
        at = (half + 0.1) * np.array([np.cos(angle), np.sin(angle)])
        pose = posed(*at, 0.5 * high + 1e-3, turn=(0.0, 0.0, angle))
        bodies.append(Body(wall, pose, fixed=True, name=f"wall {k}"))
    for k in range(count):
        layer, (row, column) = k // side**2, divmod(k % side**2, side)
        axis = random.normal(size=3)
        turn = axis / np.linalg.norm(axis) * random.uniform(0.0, np.pi)
        place = 1.6 * (column - 0.5 * (side - 1)), 1.6 * (row - 0.5 * (side - 1)), 1.0 + 1.6 * layer
        bodies.append(Body(box, posed(*place, turn=turn), name=f"box {k}"))
    return World(bodies, **{"friction": 0.5, **options})


def arch(stones: int = 25, *, thickness: float = 0.25, **options: Any) -> World:
    """Half a circle of loose stones, of radius 1 m in the middle, that holds itself up.

    Args:
        stones: how many.
        thickness: of the arch [m]; one below 0.11 falls (Couplet 1730, Heyman 1966).
        options: of the `World`.
    """
    count, gap = whole(stones, "stones", least=3), 7e-5
    borders = np.linspace(np.pi, 0.0, count + 1)
    bodies = [floor(4.0, -gap)]
    for k in range(count):
        # A gap all along: as an angle it would be narrower inside.
        stone = _voussoir(borders[k], borders[k + 1], 1.0 - 0.5 * thickness, 1.0 + 0.5 * thickness, 0.5 * gap)
        bodies.append(Body(stone, density=STONE, name=f"stone {k}"))
    return World(bodies, **{"friction": 0.6, **options})


def _voussoir(left: float, right: float, inner: float, outer: float, gap: float) -> Mesh:
    """The stone between two angles [rad], moved off its borders by a gap [m]."""
    depth, middle = 0.3, 0.5 * (left + right)
    shift = gap / np.cos(0.5 * abs(left - right))
    corners = []
    for angle, side in ((left, -1.0), (right, 1.0)):
        along = np.array([np.cos(angle), 0.0, np.sin(angle)])
        across = np.array([-np.sin(angle), 0.0, np.cos(angle)]) * side
        corners += [radius * along + shift * across for radius in (inner, outer)]
    flat = np.array(corners)
    points = np.concatenate([flat + [0.0, y, 0.0] for y in (-0.5 * depth, 0.5 * depth)])
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array([face for a, b, c, d in quads for face in ([a, b, c], [a, c, d])])
    normal = np.cross(points[faces[0, 1]] - points[faces[0, 0]], points[faces[0, 2]] - points[faces[0, 0]])
    if normal[1] > 0.0:  # the first quad is the front one
        faces = faces[:, ::-1]
    return Mesh(points, faces, name=f"voussoir at {np.degrees(middle):.0f} degrees")


def card_house(levels: int = 3, **options: Any) -> World:
    """A house of cards of 88 mm: pairs that lean on each other, and a long card on which the next level stands.

    Args:
        levels: how many.
        options: of the `World`.
    """
    count = whole(levels, "levels", least=1)
    length, width, thin, gap, lean = 0.088, 0.063, 0.0006, 2e-5, np.radians(24.0)
    card = generate.box((thin, width, length), name="card")
    high = length * np.cos(lean) + thin * np.sin(lean)
    wide = 0.5 * (length * np.sin(lean) + thin * np.cos(lean)) + gap
    pitch, bodies, level = 4.0 * wide + 2.0 * gap, [floor(0.8)], gap
    for row in range(count):
        tents = count - row
        for k in range(tents):
            x = pitch * (k - 0.5 * (tents - 1))
            for side in (-1.0, 1.0):
                pose = posed(x + side * wide, 0.0, level + 0.5 * high, turn=(0.0, -side * lean, 0.0))
                bodies.append(Body(card, pose, density=PAPER, name=f"card {len(bodies)}"))
        level += high + gap
        if tents > 1:
            lid = generate.box((pitch * (tents - 0.8), width, thin), name="lid")
            bodies.append(Body(lid, posed(z=level + 0.5 * thin), density=PAPER, name=f"lid {row}"))
        level += thin + gap
    return World(bodies, **{"friction": 0.8, "dt": 0.005, **options})


def chain(links: int = 10, **options: Any) -> World:
    """A chain of steel rings whose first one is held: stretched out sideways, it swings down.

    Args:
        links: how many.
        options: of the `World`.
    """
    count = whole(links, "links", least=2)
    ring = generate.torus(grid=(24, 10), radius=0.05, tube=0.012, name="link")
    bodies = []
    for k in range(count):
        pose = posed(0.074 * k, turn=(0.5 * np.pi * (k % 2), 0.0, 0.0))
        bodies.append(Body(ring, pose, density=STEEL, fixed=k == 0, name=f"link {k}"))
    return World(bodies, **{"friction": 0.3, "dt": 0.005, **options})


def bolt(**options: Any) -> World:
    """A steel bolt in a nut that is held turns down its thread by its own weight, until the head meets the nut.

    Args:
        options: of the `World`; friction is 0 unless given.
    """
    pitch = 0.04
    nut = Body(threaded_nut(pitch=pitch), density=STEEL, fixed=True, name="nut")
    screw = Body(threaded_bolt(pitch=pitch), posed(z=-0.5 * pitch, turn=(0.0, 0.0, -np.pi)), density=STEEL, name="bolt")
    return World([nut, screw], **{"friction": 0.0, "dt": 0.005, **options})


def cradle(balls: int = 5, *, lifted: int = 1, **options: Any) -> World:
    """Newton's cradle: balls on strings side by side, the first of them pulled aside by 40 degrees.

    Args:
        balls: how many.
        lifted: how many of them are pulled aside.
        options: of the `World`.
    """
    count, aside = whole(balls, "balls", least=2), whole(lifted, "lifted", least=1)
    ball, length = generate.icosphere(subdivisions=2, radius=0.05), 0.5
    width = float(np.ptp(ball.vertices[:, 0])) + 2e-4
    angle = np.radians(40.0)
    bodies, hooks = [], []
    for k in range(count):
        hook = np.array([width * k, 0.0, 0.0])
        swung = angle if k < aside else 0.0
        place = hook - length * np.array([np.sin(swung), 0.0, np.cos(swung)])
        bodies.append(Body(ball, posed(*place), density=STEEL, name=f"ball {k}"))
        hooks.append((place, hook))
    world = World(bodies, **{"restitution": 1.0, "friction": 0.0, "dt": 0.005, **options})
    for k, (place, hook) in enumerate(hooks):
        world.join("distance", k, at=place, to=hook, name=f"string {k}")
    return world
