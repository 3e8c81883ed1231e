"""Watch it: a sheet falls on a ball; scrub through time in the browser and see the contacts appear."""

import sys

import numpy as np

import tangere as tg

ball = tg.generate.icosphere(3, radius=0.6, name="ball")
flat = tg.generate.sheet(7200, size=(2.0, 2.0), name="sheet")
x, y, _ = flat.vertices.T
crumple = 0.05 * np.sin(5.0 * x + 1.0) * np.cos(4.0 * y)
sheet = flat.replace(vertices=np.stack([x, y, 1.0 + crumple], axis=1))
fall = np.stack([0 * x, 0 * y, 0.5 + 0.45 * (x**2 + y**2)], axis=1)
falling = sheet.moving(tg.Linear(sheet.vertices - fall))

contacts = tg.all_contacts(falling, ball)
scene = tg.Scene.of(falling, ball, contacts=contacts, title="A sheet falls on a ball")
print(scene)
assert len(contacts) > 0

if "--check" not in sys.argv and len(sys.argv) == 1:
    with tg.view.show(scene, block=False) as viewer:  # on this machine only
        viewer.set_time(float(contacts.time.min()))
        print(f"{viewer.url} (Ctrl-C ends)")
        viewer.wait()
elif sys.argv[1] != "--check":
    tg.picture(scene, 1.0, path=sys.argv[1])
