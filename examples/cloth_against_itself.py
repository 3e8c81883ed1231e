"""Cloth against itself: a sheet folds through itself; every contact of the step is found."""

import sys

import numpy as np

import tangere as tg

sheet = tg.generate.sheet(5000, size=(2.0, 1.4), name="cloth")
x, y, _ = sheet.vertices.T

# A hairpin whose two wings swing through each other.
wing, angle = np.maximum(np.abs(x) - 0.25, 0.0), np.clip(x / 0.25, -1.0, 1.0) * np.pi / 2.0
across = (0.25 + 0.05 * np.sin(6.0 * x + 2.0 * y)) * np.sin(angle)
start = np.stack([across + 0.2 * wing * np.sign(x), y, wing - 0.25 * np.cos(angle)], axis=1)
end = np.stack([across - (0.45 + 0.2 * y) * wing * np.sign(x), y, 0.9 * wing - 0.25 * np.cos(angle)], axis=1)
cloth = sheet.replace(vertices=start).moving(tg.Linear(end))

hit = tg.first_contact(cloth)  # one body: with itself; triangles that share a vertex are neighbours, not contacts
contacts = tg.all_contacts(cloth)
print(hit)
print(contacts)

assert len(contacts) > 100
assert hit.time <= contacts.time.min() + 1e-6

if len(sys.argv) > 1:
    camera = tg.scene.Camera((0.55, -1.0, 0.35))
    tg.picture(tg.Scene.of(cloth, contacts=contacts, camera=camera), 1.0, path=sys.argv[1])
