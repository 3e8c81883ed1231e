"""Repair a plan: a bar that clips the frame of a window is led through it by gradients, and the plan is certified."""

import sys

import numpy as np

import tangere as tg

wall = tg.generate.plate_with_hole(64, size=(1.2, 1.2, 0.05), radius=0.092, sides=4)  # a window of 13 cm
bar = tg.generate.plate(332, size=(0.5, 0.08, 0.08)).at([[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
TIMES, MARGIN = np.linspace(0.0, 1.0, 77), 0.01


def slope(moving: tg.shape.Moving) -> np.ndarray:
    """(20, 6) of what the poses lack to the margin: by distances outside, by the deepest vertices inside."""
    near = tg.gradients.distance(tg.distance(moving, wall, time=TIMES), moving, wall, time=TIMES)
    found = tg.signed_distance(np.concatenate([moving.at(t).vertices for t in TIMES]), wall)
    k = (depth := found.distance.reshape(77, -1)).argmin(axis=1)
    inside = tg.gradients.through(moving, TIMES, bar.vertices[k], found.normal.reshape(77, -1, 3)[range(77), k])
    out = np.tensordot(depth.min(axis=1) < MARGIN, inside.waypoints, 1)
    return -out - 3.0 * np.tensordot(near.value < MARGIN, near.a.waypoints, 1)


x = np.linspace([0.05, -0.04, -0.6, 0.3, 0.15, 0.0], [0.05, -0.04, 0.6, 0.3, 0.15, 0.0], 20)  # places, rotation vectors
plans, mean, square = [], 0.0 * x, 0.0 * x
for step in range(1, 300):  # Adam; the ends stay
    plans.append(bar.moving(tg.Path(tg.Twist(np.eye(4), x[:, :3], x[:, 3:]).pose(1.0))))
    if not (by := slope(plans[-1])).any():
        break
    mean, square = 0.9 * mean + 0.1 * by, 0.999 * square + 0.001 * by * by
    x[1:-1] -= (0.01 * mean / (1.0 - 0.9**step) / np.sqrt(square / (1.0 - 0.999**step) + 1e-12))[1:-1]

before, after = (tg.check_path(bar, wall, plan.motion) for plan in (plans[0], plans[-1]))
print(before, after, f"now certainly {1e3 * after.clearance.certain:.1f} mm off the frame", sep="\n")
if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(plans[-1], wall).with_glass(wall.name), 0.5, path=sys.argv[1])
assert before
assert not after
