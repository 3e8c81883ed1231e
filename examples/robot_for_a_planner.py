"""A planner of OMPL asks tangere: whole motions are certified, so that no edge of its tree is sampled."""

import sys

import numpy as np

import tangere as tg

robot, pose = tg.robot.generate.arm(), np.eye(4)
pose[:3, 3] = 0.6, 0.0, 0.6
world = {"pillar": tg.generate.box((0.1, 0.1, 1.2)).at(pose)}
start, goal = [-0.8, 0.7, 0.5, 0.0, 0.0, 0.0], [0.8, 0.7, 0.5, 0.0, 0.0, 0.0]
try:
    from ompl import base, geometric, util

    class Motions(base.MotionValidator):
        def checkMotion(self, one, other):  # OMPL's name
            return robot.check([[one[k] for k in range(6)], [other[k] for k in range(6)]], world).valid

    util.RNG.setSeed(1)
    space = base.RealVectorStateSpace(6)
    space.setBounds(-2.0, 2.0)
    setup = geometric.SimpleSetup(space)
    setup.setStateValidityChecker(lambda state: robot.check([[state[k] for k in range(6)]], world).valid)
    setup.getSpaceInformation().setMotionValidator(Motions(setup.getSpaceInformation()))
    ends = [space.allocState() for _ in range(2)]
    for state, values in zip(ends, (start, goal), strict=True):
        for k in range(6):
            state[k] = values[k]
    setup.setStartAndGoalStates(*ends)
    assert setup.solve(60.0)
    plan = np.array([[state[k] for k in range(6)] for state in setup.getSolutionPath().getStates()])
except ImportError:  # without the package ompl: a way found by hand
    plan = np.array([start, [-0.8, -0.7, -0.5, 0.0, 0.0, 0.0], [0.8, -0.7, -0.5, 0.0, 0.0, 0.0], goal])

assert robot.check([start, goal], world), "the straight way touches the pillar"
found = robot.check(plan, world, clearance=0.05)
print(found)
if len(sys.argv) > 1:
    tg.picture(robot.scene(plan, world, found), 0.5, path=sys.argv[1])
