"""Steer a needle: a bevel tip reaches a target behind a vessel, planned anew every second, cells fine around it."""

import sys

import numpy as np

import tangere as tg
from tangere.cells.generate import hex_grid
from tangere.needle import Bevel, KinematicSimulation, Needle, Vessel, follow_plan, plan_steering

vessel = Vessel([[0.02, 0.05, 0.05], [0.08, 0.05, 0.05]], radius=3e-3)  # across the straight way
target, clearance, speed = np.array([0.05, 0.052, 0.095]), 2e-3, 0.01  # m, m, m/s
needle = Needle(
    length=0.2, radius=0.4e-3, tip=Bevel(curvature=18.0)
)  # the plan believes 20: tissue is not known exactly

simulation = KinematicSimulation(
    hex_grid(4, 4, 4, size=0.025, device="cpu"),
    needle,
    entry=[0.05, 0.05, 0.002],
    direction=[0, 0, 1],
    vessels=[vessel],
    distance=0.01,
    level=3,
)
plans, nearest = 0, np.inf
while (left := np.linalg.norm(target - simulation.tip.position)) > 5e-4 and plans < 30:
    plan = plan_steering(simulation.frame, target, curvature=20.0, obstacles=[vessel], clearance=clearance)
    follow_plan(simulation, plan, min(speed * 1.0, plan.length))  # for a second
    plans += 1
    if len(simulation.contacts):
        nearest = min(nearest, simulation.contacts.gap[0])

print(f"{1e3 * left:.2f} mm from the target after {plans} plans and {1e3 * simulation.length:.1f} mm")
print(f"nearest to the vessel: {1e3 * nearest:.1f} mm")
assert left < 1e-3
assert nearest > 0.5e-3

if len(sys.argv) > 1:
    tg.picture(simulation.scene(), path=sys.argv[1])
