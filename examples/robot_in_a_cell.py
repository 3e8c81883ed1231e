"""A robot in its cell: a whole plan is certified in one call; where it touches, and how to go on from there."""

import sys

import numpy as np

import tangere as tg

robot = tg.robot.generate.arm(gripper=True)  # or tg.Robot.load("ur5.urdf")
table, pillar, shelf = np.eye(4), np.eye(4), np.eye(4)
table[2, 3], pillar[:3, 3], shelf[:3, 3] = -0.03, (0.55, 0.1, 0.4), (0.1, -0.62, 0.75)
world = {
    "table": tg.generate.box((1.6, 1.6, 0.05)).at(table),
    "pillar": tg.generate.prism(16, radius=0.04, height=0.8).at(pillar),
    "shelf": tg.generate.box((0.6, 0.25, 0.02)).at(shelf),
}

plan = np.linspace([-1.2, 0.8, 0.5, 0.2, 0.0, 0.0, 0.02], [1.2, 0.8, 0.5, 0.2, 0.0, 0.0, 0.02], 21)
found = robot.check(plan, world=world, clearance=0.1)
print(found)
print("follow it to", found.last_valid.configuration.round(3))

over = plan.copy()
over[:, 1:4] += np.sin(np.linspace(0.0, np.pi, 21))[:, None] * [-0.6, -0.4, 0.0]  # lift the arm on the way
lifted = robot.check(over, world=world, clearance=0.1)
print(lifted)

if len(sys.argv) > 1:
    tg.picture(robot.scene(plan, world, found), found.time, path=sys.argv[1])

assert found
assert not lifted
