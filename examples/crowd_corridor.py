"""A crowd in a corridor: two groups change sides while cars cross, and cells adapt to the density."""

import sys

import numpy as np

import tangere.crowd as crowd
import tangere.view as view
from tangere.cells.generate import quad_grid

ground = quad_grid(12, 4, size=6.0)  # 72 x 24 m in cells of 6 m, which split where it is crowded
simulation = crowd.Simulation(ground, behaviour=crowd.Bubbles(range=1.5))

random = np.random.default_rng(1)
left = np.stack([random.uniform(2, 22, 150), random.uniform(2, 22, 150)], axis=1)
starts = np.concatenate([left, left * [-1, 1] + [72, 0]])
goals = starts * [-1, 1] + [72, 0]
simulation.add_points(starts, goals=goals, speed=random.uniform(1.0, 1.8, 300))
cars = [[30.0, 6.0], [42.0, 18.0]]
ways = [[[30, 20], [30, 4]], [[42, 4], [42, 20]]]
simulation.add_bodies(crowd.box(4.0, 2.0), cars, headings=[[0, 1], [0, -1]], goals=ways, repeat=True)

result = simulation.run(20.0, record=1.0)
merges, splits = simulation.operations
print(simulation)
speed, stalling = (result.measures[name][1:].mean() for name in ("speed", "stalling"))
print(f"{splits} splits and {merges} merges of cells; mean speed {speed:.2f} m/s, {100 * stalling:.1f} % stalled")
assert splits > 0
assert np.isfinite(result.positions).all()
assert (result.positions[:, :, :2] >= 0).all()

if len(sys.argv) > 1:
    view.top_view(simulation, sys.argv[1], width=960)
