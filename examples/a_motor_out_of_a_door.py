"""A motor out of a door: a hand that trembles pulls it straight out, and it finds the slot by sliding."""

import sys

import numpy as np

import tangere as tg
from tangere.dynamics import scenes

world = scenes.motor_removal()  # 20,000 triangles, in a world where velocities follow forces
guide = world.phases["guide"]  # two poses: turned by a right angle, and outside
poses, touched = [world["motor"].pose], 0
while not guide.done and world.steps < 600:
    world.step()
    poses.append(world["motor"].pose)
    touched += len(world.contacts) > 0
missing, turned = guide.missing()
print(f"out after {world.steps} steps, {touched} of them in contact; {1e3 * missing:.2f} mm from where it was to go")
assert guide.done
assert world.truncation.all_bodies == 0
assert not tg.intersects(*world.meshes(), device="cpu")

if len(sys.argv) > 1:
    motor = world["motor"].body.mesh
    shown = [motor.at(poses[k]) for k in np.linspace(0, len(poses) - 1, 6).astype(int)]
    scene = tg.Scene.of(world["door"].mesh, *shown, camera=tg.scene.Camera((0.35, 1.0, 0.45)))
    tg.picture(scene.with_glass(scene.things[0].name, opacity=0.25), path=sys.argv[1])
