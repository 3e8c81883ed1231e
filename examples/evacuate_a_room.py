"""A room empties through a door: two models of pedestrians, the flow at the door, and where it gets dense."""

import sys

import shapely

import tangere.crowd as crowd

rooms = shapely.box(0, 0, 8, 8), shapely.box(7.9, 3.4, 9, 4.6), shapely.box(8.9, 1, 13, 7)
plan = crowd.FloorPlan(shapely.union_all(rooms))
assert plan.doors(radius=0.2) == []
print(*plan.doors(radius=0.65), "is too narrow for a radius of 0.65 m")

for behaviour in (crowd.CollisionFreeSpeed(time_gap=0.8), crowd.SocialForce()):
    simulation = crowd.Simulation(plan, behaviour=behaviour, dt=0.02)
    way_out = simulation.add_exit(shapely.box(12, 1, 13, 7))
    simulation.add_people(60, shapely.box(0, 0, 7, 8), to=way_out, radius=0.2, speed=(1.34, 0.26), seed=1)
    door = simulation.add_line((8.5, 3.4), (8.5, 4.6))
    done = simulation.run(300.0, until="empty", record=0.2)
    flow = f"{door.specific_flow:.2f} people per metre and second"
    print(f"{type(behaviour).__name__}: empty after {done.evacuation_time:.1f} s, {flow}")
    assert simulation.is_empty
    assert len(door.times) == 60

if len(sys.argv) > 1:
    import tangere.view as view

    view.floor_view(done, sys.argv[1], frame=40, density=0.5, trails=4.0)
