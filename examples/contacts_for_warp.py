"""Contacts for a Warp simulation: positions and contacts stay on the device, and a kernel pushes a sheet off a ball."""

import sys

import warp as wp

import tangere as tg
from tangere.query.proximity import Detector


@wp.kernel
def fall(x: wp.array[wp.vec3d], v: wp.array[wp.vec3d], step: wp.float64, gravity: wp.vec3d):
    i = wp.tid()
    v[i] = v[i] + step * gravity
    x[i] = x[i] + step * v[i]


@wp.kernel
def push(quads: wp.array[wp.vec4i], w: wp.array[wp.vec4d], normal: wp.array[wp.vec3d], gap: wp.array[wp.float64],
         reach: wp.float64, per_length: wp.float64, v: wp.array[wp.vec3d]):  # fmt: skip
    k = wp.tid()
    for c in range(4):  # the vertices of both features; what the ball gets does not matter, as it stays
        wp.atomic_add(v, quads[k][c], w[k][c] * per_length * (reach - gap[k]) * normal[k])


sheet = tg.generate.sheet(1250, size=(1.0, 1.0)).at([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.35], [0, 0, 0, 1]])
ball = tg.generate.icosphere(subdivisions=3, radius=0.3)
step, law = 1e-3, (0.02, 4.0)  # [s], contact distance [m] and velocity per depth and step [1/s]
detector = Detector([sheet, ball], distance=law[0], within=False)
x = wp.array(tg.Mesh.join([sheet, ball]).vertices, dtype=wp.vec3d, device=detector.device)
v, most, free = wp.zeros_like(x), 0, len(sheet.vertices)
for _ in range(200):
    wp.launch(fall, free, [x, v, step, wp.vec3d(0.0, 0.0, -9.81)], device=x.device)
    near = detector.find(x)
    wp.launch(push, len(near), [near.quads, near.weights, near.details.normal, near.gap, *law, v], device=x.device)
    most = max(most, len(near))
assert most > 0
print(f"up to {most} contacts in a step, found where the positions are: on {x.device}")
if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(sheet.replace(vertices=x.numpy()[:free]), ball), path=sys.argv[1])
