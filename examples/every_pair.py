"""Spheres, capsules, boxes, cylinders, cones and hulls: how far apart, and when do they touch, each with each."""

import numpy as np

import tangere as tg

rng = np.random.default_rng(1)
bodies = {
    "sphere": tg.Sphere(0.5),
    "capsule": tg.Capsule(0.3, 1.0),
    "box": tg.Box([0.5, 0.4, 0.3]),
    "cylinder": tg.Cylinder(0.4, 1.0),
    "cone": tg.Cone(0.5, 1.0),
    "hull": tg.ConvexMesh(tg.generate.icosphere(1)),
}
start = np.eye(4)
start[:3, 3] = 3.0, 0.5, 0.2
throw = tg.Twist(start, displacement=[-3.0, 0.0, 0.0], rotation=[1.0, 2.0, 3.0])

print(f"{'':10}" + "".join(f"{name:>18}" for name in bodies))
for name, body in bodies.items():
    cells = []
    for other in bodies.values():
        apart = tg.distance(body, other.at(start), device="cpu")
        hit = tg.first_contact(body, other.moving(throw), device="cpu")
        cells.append(f"{apart.upper:8.4f} m t={hit.time:5.3f}")
    print(f"{name:10}" + "".join(f"{cell:>18}" for cell in cells))

# A thousand balls thrown at a mesh: exact bodies, no facets.
torus = tg.generate.bumpy_torus(48, 24)
starts = np.tile(np.eye(4), (1000, 1, 1))
starts[:, :3, 3] = [0.0, 0.0, 3.0]
aims = torus.vertices[rng.integers(0, len(torus.vertices), 1000)] - starts[:, :3, 3]
hits = tg.first_contact(tg.Sphere(0.05).moving(tg.Twist(starts, aims, np.zeros((1000, 3)))), torus, device="cpu")
print(hits)
