"""What happens next: a ball flies into a wall of loose stones; no two parts ever pass through each other."""

import sys

import numpy as np

import tangere as tg
from tangere.dynamics import Body, World


def at(x, y, z):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


stone = tg.generate.box((0.4, 0.2, 0.2))
places = [(0.41 * k - 0.41 + 0.2 * (row % 2), 0.0, 0.1001 + 0.2002 * row) for row in range(5) for k in range(3)]
wall = [Body(stone, at(*place), density=2400.0, name=f"stone {number}") for number, place in enumerate(places)]
ball = Body(tg.generate.icosphere(subdivisions=2, radius=0.18), at(0.1, -1.2, 0.6), density=7800.0, name="ball")
floor = Body(tg.generate.box((2.6, 2.6, 0.1)), at(0.0, 0.3, -0.05), fixed=True, name="floor")
world = World([floor, *wall, ball], dt=0.01, friction=0.6)
world["ball"].set_state(velocity=[0.0, 6.0, 1.0])
world.run(0.6)
print(world, world.truncation)

meshes = world.meshes()
moved = np.linalg.norm(world.positions[1:-1] - [body.pose[:3, 3] for body in wall], axis=1)
print(f"{(moved > 0.05).sum()} of {len(wall)} stones moved by more than 5 cm")
assert moved.max() > 0.2
assert not any(tg.intersects(a, b, device="cpu") for i, a in enumerate(meshes) for b in meshes[:i])
if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(*meshes), path=sys.argv[1])
