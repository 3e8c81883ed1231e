"""A soft ring in ten lines: dropped on a beam, it sags on either side of it and never passes through."""

import sys

import tangere as tg
from tangere.shape.tets import solid_torus
from tangere.soft import Body, Simulation

solid, surface = solid_torus((24, 3), radius=0.5, tube=0.15), tg.generate.torus(3200, radius=0.5, tube=0.15)
ring = Body(solid, surface=surface, youngs_modulus=6e4, name="ring")
beam = tg.generate.plate(300, size=(1.6, 0.25, 0.1))
beam = Body(beam.replace(vertices=beam.vertices - [0.0, 0.0, 0.3]), fixed=True, name="beam")
simulation = Simulation([ring, beam], distance=0.02, friction=0.6)
simulation.run(0.8)
print(simulation, f"{len(simulation.contacts)} contacts")

meshes = simulation.meshes()
assert len(simulation.contacts) > 0
assert not tg.intersects(*meshes, device="cpu")
if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(*meshes), path=sys.argv[1])
