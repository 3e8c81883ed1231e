"""Check a path: a window-lifter motor is taken out of a door, one way is free and the other touches."""

import sys

import tangere as tg

task = tg.generate.window_lifter()  # 20,000 triangles; or tg.Mesh.load("motor.stl"), tg.Mesh.load("door.stl")

free = tg.check_path(task.part, task.fixed, tg.Path(task.free_path))
print(free, f"and certainly {1e3 * free.clearance.certain:.1f} mm all the way")

path = tg.Path(task.touching_path)
touching = tg.check_path(task.part, task.fixed, path)
print(touching, touching.contacts)

scene = tg.Scene.of(task.part.moving(path), task.fixed, contacts=touching.contacts).with_glass(task.fixed.name)
if len(sys.argv) > 1:
    tg.picture(scene, touching.time, path=sys.argv[1])

assert not free
assert touching
