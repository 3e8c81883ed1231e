"""Barrels on a kerb: three barrels rest on a height grid, and the ground pushes each where it touches."""

import sys

import numpy as np

import tangere as tg

road = tg.generate.terrain.kerbs(size=(4.0, 3.0), cell=0.05, height=0.15, road=2.6, pavement=2.0)
radius, height = 0.3, 0.9

# On its base, on its side, and with the rim on the road and the kerb (along x = 2.6) under the base.
standing, lying, leaning = np.eye(4), np.eye(4), np.eye(4)
standing[:3, 3] = [0.85, 2.5, 0.5 * height]
lying[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
lying[:3, 3] = [0.9, 0.7, radius]
sin = 0.15 / 0.45  # the kerb is 0.45 m from the rim, along the base
along, axis = np.array([(1 - sin**2) ** 0.5, 0.0, sin]), np.array([-sin, 0.0, (1 - sin**2) ** 0.5])
leaning[:3, :3] = np.stack([along, [0, 1, 0], axis], axis=1)
leaning[:3, 3] = [2.6, 1.3, 0.15] + (radius - 0.45) * along + 0.5 * height * axis

barrels = tg.Cylinder(radius, height).at(np.stack([standing, lying, leaning]))
found = tg.manifold(barrels, road)
for barrel, name, ways in ((0, "standing", 1), (1, "lying", 1), (2, "leaning", 2)):
    mine = found[found.query == barrel]
    normals = np.unique(mine.normal.round(3) + 0.0, axis=0)
    print(f"{name}: {len(mine)} contacts, normals {normals.tolist()}")
    assert len(normals) == ways
assert abs(found.gap).max() < 1e-6

if len(sys.argv) > 1:
    ground = tg.scene.Thing("road", road, (0.6, 0.61, 0.63))
    lift = np.eye(4)
    lift[2, 3] = 1e-3  # [m]: faces that coincide would flicker
    glass = tg.scene.Thing("barrels", barrels, (0.36, 0.55, 0.75), opacity=0.5, frame=lift)
    camera = tg.scene.Camera((0.4, -1.0, 0.5), zoom=1.08)
    tg.picture(tg.Scene((ground, glass), found, camera=camera, mark_size=0.9), path=sys.argv[1])
