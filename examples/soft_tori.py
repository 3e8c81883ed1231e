"""Two soft tori: one falls on the other, which stands upright, rolls over it and never passes through."""

import sys

import numpy as np

import tangere as tg
from tangere.shape.tets import solid_torus
from tangere.soft import Body, Simulation

upright = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
above = np.array([[1.0, 0, 0, 1.5], [0, 1, 0, 0.6], [0, 0, 1, 9.6], [0, 0, 0, 1]])
coarse = solid_torus((24, 4), radius=5.0, tube=2.0)  # 2,304 tetrahedra carry
fine = tg.generate.torus(6400, radius=5.0, tube=2.0)  # 6,400 triangles

standing = coarse.at(upright)
lower = Body(
    standing,
    surface=fine.at(upright),
    youngs_modulus=1e7,
    fixed=standing.vertices[:, 2] < -5.5,
    name="lower",
)
upper = Body(coarse.at(above), surface=fine.at(above), youngs_modulus=1e7, name="upper")

simulation = Simulation([lower, upper], dt=0.02, friction=0.3, distance=0.15)
most = 0
for _ in range(60):
    simulation.step()
    most = max(most, simulation.rows.count)

print(simulation)
print(f"up to {most} contacts; the last step took {1e3 * sum(simulation.timings.values()):.1f} ms")
assert most > 0

meshes = simulation.meshes()
assert not tg.intersects(*meshes, device="cpu")
if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(*meshes), path=sys.argv[1])
