"""Every pair: how far apart are bodies, meshes and the ground, when do they touch, and where."""

import sys

import numpy as np

import tangere as tg

bodies = {
    "sphere": tg.Sphere(0.5),
    "capsule": tg.Capsule(0.3, 0.6),
    "box": tg.Box([0.5, 0.4, 0.3]),
    "cylinder": tg.Cylinder(0.4, 0.8),
    "cone": tg.Cone(0.5, 0.9),
    "hull": tg.ConvexMesh(tg.generate.icosphere(1, radius=0.5)),
    "mesh": tg.generate.torus(grid=(24, 12), radius=0.4, tube=0.15),
}
start, dunes = np.eye(4), 0.1 * np.sin(np.arange(7)[:, None] + 0.5 * np.arange(7))
start[:3, 3] = 0.1, 0.05, 2.0
print(f"{'':10}" + "".join(f"{name:>19}" for name in [*bodies, "ground"]))
things, found = [], []
for row, (name, body) in enumerate(bodies.items()):
    cells = []
    for column, other in enumerate([*bodies.values(), None]):
        x, y, place = 1.6 * column, -1.6 * row, np.eye(4)
        place[:2, 3] = x, y
        below = tg.Heightfield(dunes, 0.2, (x - 0.6, y - 0.6, 0.0)) if other is None else other.at(place)
        falling = body.moving(tg.Twist(place @ start, displacement=[0.0, 0.0, -2.0], rotation=[0.3, 0.2, 0.0]))
        hit = tg.first_contact(falling, below)
        cells.append(f"{tg.distance(body.at(place @ start), below).upper:8.3f} m, t = {hit.time:.2f}")
        met = body.at(falling.motion.pose(hit.time))
        things.append(tg.scene.Thing(f"{name} {len(things)}", met, (0.95, 0.62, 0.3)))
        things.append(tg.scene.Thing(f"below {len(things)}", below, (0.36, 0.55, 0.75)))
        found.append(tg.manifold(met, below, distance=0.02))
    print(f"{name:10}" + "".join(f"{cell:>19}" for cell in cells))
print(sum(map(len, found)), "contacts of", len(found), "pairs")
if len(sys.argv) > 1:
    camera = tg.scene.Camera((0.3, -1.0, 1.1))
    tg.picture(tg.Scene(tuple(things), tg.Contacts.joined(found), camera=camera, mark_size=0.6), path=sys.argv[1])
