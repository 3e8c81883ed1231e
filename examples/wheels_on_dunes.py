"""Wheels on dunes: spinning wheels are thrown at a dune field, and each stops where it first touches the sand."""

import sys

import numpy as np

import tangere as tg

dunes = tg.generate.terrain.dunes(size=(14.0, 9.0), height=1.2, length=8.0)
x, y = (grid.ravel() for grid in np.meshgrid(np.arange(1.0, 12.0, 1.7), np.arange(1.2, 8.0, 1.6)))
turn = np.random.default_rng(0).uniform(-0.6, 0.6, len(x))
c, s, none = np.cos(turn), np.sin(turn), 0.0 * turn
poses = np.tile(np.eye(4), (len(x), 1, 1))  # below: three axes, of which the last is the axle, and the place
poses[:, :3] = np.moveaxis([[c, none, -s, x], [s, none, c, y], [none, none - 1.0, none, none + 2.6]], 2, 0)

wheels = tg.Cylinder(radius=0.35, height=0.22)
throw = tg.Twist(poses, displacement=[2.0, 0.0, -3.0], rotation=[0.4, 12.0, 0.8])  # forward, down, and almost two turns
hits = tg.first_contact(wheels.moving(throw), dunes)
print(hits)
assert hits.hit.all()

# Each wheel where it first touches; a millimetre before that it is free, and a millimetre below it is not.
at_rest = throw.pose(hits.time)
for shift, touching in ((1e-3, False), (-1e-3, True)):
    shifted = at_rest.copy()
    shifted[:, :3, 3] += shift * hits.normal
    assert (tg.touches(wheels.at(shifted), dunes).hit == touching).all()

found = tg.manifold(wheels.at(at_rest), dunes)
print(f"{len(found)} contacts, at most {1e3 * found.gap.max():.2f} mm from the sand")
assert set(found.query) == set(range(len(wheels.at(poses))))

if len(sys.argv) > 1:
    sand = tg.scene.Thing("sand", dunes, (0.88, 0.77, 0.58))
    tyres = tg.scene.Thing("tyres", wheels.at(at_rest), (0.17, 0.18, 0.2))
    hubs = tg.scene.Thing("hubs", tg.Cylinder(0.2, 0.235).at(at_rest), (0.86, 0.87, 0.88))
    camera = tg.scene.Camera((0.35, -1.0, 0.62), zoom=1.08)
    tg.picture(tg.Scene((sand, tyres, hubs), found, camera=camera, mark_size=0.6), path=sys.argv[1])
