"""A pot past a rock: pushed blindly, turning at random, it slides over what is in its way (Redon 2002, annex A)."""

import sys

import numpy as np

import tangere as tg
from tangere.dynamics import Body, World

ball = tg.generate.icosphere(4, radius=0.5)
open_top = ball.vertices[ball.faces, 2].max(axis=1) < 0.35
pot = tg.Mesh(ball.vertices, ball.faces[open_top], name="pot")  # an open surface
rock = tg.generate.bumpy_sphere(radius=0.6, name="rock")
start = np.eye(4)
start[:3, 3] = -1.6, -0.1, 0.05
world = World([Body(rock, fixed=True), Body(pot, start, mass=1.0)], order=1, gravity=(0, 0, 0), friction=0.0, dt=1.0)
random, places = np.random.default_rng(0), [start]
while world["pot"].position[0] < 1.6 and world.steps < 600:
    turn = world["pot"].body.mass_properties.inertia.max() * random.uniform(-0.025, 0.025, 3)
    world.push("pot", force=[0.02, 0.0, 0.0], torque=turn)  # 2 cm a step, were nothing in the way
    world.step()
    places.append(world["pot"].pose)
    assert not tg.intersects(*world.meshes(), device="cpu")
print(f"past it after {world.steps} steps; {world.truncation}")
assert world["pot"].position[0] >= 1.6
if len(sys.argv) > 1:
    shown = [pot.at(places[k]) for k in np.linspace(0, len(places) - 1, 6).astype(int)]
    tg.picture(tg.Scene.of(rock, *shown), path=sys.argv[1])
