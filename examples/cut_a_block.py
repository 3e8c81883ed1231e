"""A blade through a soft block: it pushes until its toughness is reached, cuts, and the halves are two bodies."""

import sys

import tangere as tg
from tangere.shape.tets import solid_block
from tangere.soft import Blade, Body, Recorder, Simulation

solid = solid_block((8, 4, 4), size=(0.2, 0.1, 0.1), name="block")
block = Body(solid, cuttable=True, kerf=0.003, fixed=solid.vertices[:, 2] < -0.0499)
blade = Blade.wedge(length=0.13, height=0.15, thickness=0.003, toughness=20.0, at=(0.003, 0.0, 0.052))
simulation = Simulation([block, blade])
simulation[1].drive([0.0, 0.0, -0.15])

recorder, area = Recorder(simulation), 0.0
for step in range(30):
    simulation.step()
    recorder()
    area += sum(event.area for event in simulation.events if event.step == step)
    if step % 6 == 5:
        print(f"{simulation.time:.2f} s: {1e4 * area:5.1f} cm2 opened, {simulation[1].force[2]:5.2f} N on the hand")
print(simulation)

assert len(simulation) == 3  # block, blade, and what has come off
assert area > 0.5 * 0.1 * 0.1
assert not tg.intersects(simulation[0].mesh, simulation[2].mesh, device="cpu")
if len(sys.argv) > 1:
    tg.picture(recorder.recording().scene(), 0.7, path=sys.argv[1])
