"""Contacts for your own simulation: a NumPy loop of springs and balls asks a detector for contacts at every step."""

import sys

import numpy as np

import tangere as tg
from tangere.query.proximity import Detector

ball = tg.generate.icosphere(subdivisions=2, radius=0.1)
places = np.array([(0.0, 0.0, 0.15), (0.03, 0.0, 0.38), (-0.02, 0.02, 0.61)])
floor = tg.generate.sheet(200, size=(2.0, 2.0))
bodies = [ball.replace(vertices=ball.vertices + p) for p in places] + [floor]
detector = Detector(bodies, distance=0.01)

mass, stiffness, damping, step = 1.0, 1e5, 10.0, 5e-4  # [kg], [N/m], [N s/m], [s]
velocity = np.zeros((4, 3))
positions = np.zeros((4, 3))
most = 0
for _ in range(800):
    contacts = detector.contacts([body.vertices + p for body, p in zip(bodies, positions, strict=True)])
    push = stiffness * (0.01 - contacts.gap)[:, None] * contacts.normal  # on a; the opposite on b
    share = np.maximum(1, np.bincount(contacts.body_a * 4 + contacts.body_b, minlength=16))
    push /= share[contacts.body_a * 4 + contacts.body_b][:, None]
    force = np.zeros((4, 3))
    np.add.at(force, contacts.body_a, push)
    np.add.at(force, contacts.body_b, -push)
    velocity += step * ((force - damping * velocity) / mass - [0.0, 0.0, 9.81])
    velocity[3] = 0.0  # the floor stays
    positions += step * velocity
    most = max(most, len(contacts))

lowest = [(body.vertices + p)[:, 2].min() for body, p in zip(bodies[:3], positions[:3], strict=True)]
print(f"up to {most} contacts in a step; the balls end {np.round(lowest, 3)} m above the floor")
assert most > 0
assert min(lowest) > 0.0
if len(sys.argv) > 1:
    ended = [body.replace(vertices=body.vertices + p) for body, p in zip(bodies, positions, strict=True)]
    tg.picture(tg.Scene.of(*ended, contacts=contacts), path=sys.argv[1])
