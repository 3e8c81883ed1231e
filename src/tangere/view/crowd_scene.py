"""Crowds as scenes for pictures, the viewer and files: ground, walls, points as balls and bodies as prisms.

Walls are drawn as walls: the border of the map and blocked edges stand upright, obstacles are blocks. Points are
coloured by the speed they want, as in Pitiot 2015, section 9.1.1.
"""

from __future__ import annotations

import numpy as np

from tangere.crowd import Simulation, Trajectories, cell_triangles, wall_quads
from tangere.runtime import check_kind
from tangere.scene import Camera, Keyframes, Scene, Thing, moving_balls
from tangere.shape.analytic import Sphere
from tangere.shape.mesh import Mesh

_GROUND, _OBSTACLE, _WALL, _BODY = (0.80, 0.82, 0.84), (0.45, 0.46, 0.50), (0.13, 0.15, 0.17), (0.78, 0.33, 0.24)
#: How high bodies stand above the ground [m].
_BODY_HEIGHT = 0.3
#: Slow agents are blue, fast ones orange.
SPEED_COLOURS = ((0.27, 0.47, 0.67), (0.45, 0.70, 0.62), (0.93, 0.68, 0.42), (0.80, 0.36, 0.30))
_CAMERA = Camera((0.4, -1.0, 0.7))


def crowd_scene(crowd: Simulation | Trajectories) -> Scene:
    """A crowd as it is now, or over the time it was recorded: ground, walls, points and bodies."""
    if isinstance(crowd, Trajectories):
        return _recorded_scene(crowd)
    check_kind(crowd, Simulation, "simulation")
    map, things = crowd.map, []
    if map.dimension == 2:
        triangles, cells = cell_triangles(map, raised=True)
        level = np.where(map.arrays.obstacle.numpy()[cells] != 0, -1, map.levels[cells])
        for k in np.unique(level):
            grey = tuple(float(max(0.2, 1.0 - 0.1 * k)) * c for c in _GROUND) if k >= 0 else _OBSTACLE
            things.append(Thing(f"cells of level {k}" if k >= 0 else "obstacles", _mesh(triangles[level == k]), grey))
        things += _walls(wall_quads(map))
    classes = speed_classes(crowd.points.traits["speed"])
    for kind, number in enumerate(np.unique(classes)):
        chosen = classes == number
        poses = np.tile(np.eye(4), (int(chosen.sum()), 1, 1))
        poses[:, :3, 3] = crowd.positions[chosen]
        radius = crowd.points.traits["radius"][chosen]
        things.append(Thing(f"points {kind + 1}", Sphere(radius).at(poses), SPEED_COLOURS[number]))
    for k, body in enumerate(crowd.bodies.bodies):
        prisms = [prism(crowd.bodies.outline(k, s))[prism_faces(len(c))] for s, c in enumerate(body.sections)]
        things.append(Thing(f"body {k}", _mesh(np.concatenate(prisms)), _BODY))
    return Scene(tuple(things), camera=_CAMERA, title=repr(crowd))


def speed_classes(speed: np.ndarray) -> np.ndarray:
    """0 to 3 by quarter of the range of speeds."""
    span = np.ptp(speed) if len(speed) else 0.0
    return np.zeros(len(speed), int) if span == 0 else np.minimum((4 * (speed - speed.min()) / span).astype(int), 3)


def prism(outline: np.ndarray) -> np.ndarray:
    """(…, 2 k + 1, 3) corners of the prism over an outline (…, k, 3): foot, roof and the middle of the roof [m]."""
    middle = outline.mean(axis=-2, keepdims=True)
    normal = np.cross(outline - middle, np.roll(outline, -1, axis=-2) - middle).sum(axis=-2, keepdims=True)
    up = _BODY_HEIGHT * normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)
    return np.concatenate([outline, outline + up, middle + up], axis=-2)


def prism_faces(corners: int) -> np.ndarray:
    """(3 k, 3) triangles of the roof and the sides of a prism over so many corners."""
    foot = np.arange(corners)
    after, roof = np.roll(foot, -1), foot + corners
    sides = np.stack([foot, after, after + corners], axis=1), np.stack([foot, after + corners, roof], axis=1)
    return np.concatenate([np.stack([np.full(corners, 2 * corners), roof, after + corners], axis=1), *sides])


def _recorded_scene(crowd: Trajectories) -> Scene:
    """The run over time: 0 is the first time recorded and 1 the last, and the clock shows both."""
    things = [Thing("ground", _mesh(crowd.ground), _GROUND)] if len(crowd.ground) else []
    things += _walls(crowd.walls)
    seen = np.isfinite(crowd.positions).all(axis=2).any(axis=0)
    if seen.any():
        places, radius = crowd.positions[:, seen], crowd.radii[seen]
        things.append(moving_balls("points", places, radius=radius, times=crowd.times, colour=SPEED_COLOURS[0]))
    first, last = float(crowd.times[0]), float(crowd.times[-1])
    parts = (crowd.times - first) / ((last - first) or 1.0)
    for k, row in enumerate(crowd.outlines):
        corners = crowd.particles[:, row[row >= 0]]
        there = np.isfinite(corners).all(axis=(1, 2))
        if not there.any():
            continue
        start = corners[there.argmax()]  # one that comes later is a point till then
        states = prism(np.where(there[:, None, None], corners, start.mean(axis=0)))
        mesh = Mesh(prism(start), prism_faces(len(start)))
        things.append(Thing(f"body section {k}", mesh.moving(Keyframes(states, parts)), _BODY))
    return Scene(tuple(things), camera=_CAMERA, title=repr(crowd), clock=(first, last))


def _walls(quads: np.ndarray) -> list[Thing]:
    """Upright walls, to be seen from both sides; none is nothing."""
    panels = np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]])
    return [Thing("walls", _mesh(np.concatenate([panels, panels[:, ::-1]])), _WALL)] if len(quads) else []


def _mesh(triangles: np.ndarray) -> Mesh:
    return Mesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))
