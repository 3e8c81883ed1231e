"""JuPedSim's "double bottleneck" notebook, ported: two groups meet in a corridor; flow, a file for its viewer."""

import sys

import shapely

import tangere.crowd as crowd

area = shapely.union_all([shapely.box(0, 0, 10, 10), shapely.box(10, 4, 15, 6), shapely.box(15, 0, 25, 10)])
simulation = crowd.Simulation(crowd.FloorPlan(area), behaviour=crowd.CollisionFreeSpeed(restlessness=2.0))
right, left = (simulation.add_exit(shapely.box(x, 0, x + 1, 10)) for x in (24, 0))
simulation.add_people([(7, 7), (1, 3), (1, 5), (1, 7), (2, 7)], to=right, speed=1.2, radius=0.15)
simulation.add_people([(23, 7), (21, 3), (21, 5), (21, 7), (22, 7)], to=left, speed=1.2, radius=0.15)
line = simulation.add_line((12.5, 4), (12.5, 6))
done = simulation.run(120.0, until="empty", record=0.1)
print(f"{len(line.times)} passed the corridor, the last left after {done.evacuation_time:.1f} s")
assert simulation.is_empty
if len(sys.argv) > 1:
    import tangere.view as view

    view.floor_view(done, sys.argv[1], trails=60.0)  # done.save("two-ways.sqlite") is for JuPedSim's viewer
