"""Exact answers: what rounding leaves open is decided by integer arithmetic."""

import sys
from fractions import Fraction

import numpy as np

import tangere as tg

# Vertices fall on the side y = x / 3 of a triangle. As doubles they lie a hair inside it, or a hair outside.
triangle = np.array([[0.0, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
x = np.array([0.3, 0.9, 1.1, 2.3])
x0 = np.tile(np.concatenate([np.zeros((1, 3)), triangle]), (4, 1, 1))
x0[:, 0] = np.stack([x, x / 3.0, np.ones(4)], axis=1)
x1 = x0 * 1.0
x1[:, 0, 2] = -1.0

sound, exact = (tg.query.vertex_face(x0, x1, mode=mode) for mode in ("sound", "exact"))
print("sound: ", sound.time, "certain by", sound.time_upper)  # never misses: reports all four, proves none
print("exact: ", exact.time, "certain by", exact.time_upper)

inside = [Fraction(y) * 3 >= Fraction(x) for x, y in x0[:, 0, :2].tolist()]
assert sound.hit.all()
assert exact.hit.tolist() == inside
assert exact.time[inside].tolist() == [0.5] * sum(inside)

if len(sys.argv) > 1:
    board = tg.Mesh(triangle, [[0, 1, 2]], name="triangle")
    needle = tg.Mesh(
        x0[2, 0] + [[0, 0, 0], [0.03, 0, 0.6], [0, 0.03, 0.6], [-0.03, -0.03, 0.6]], [[0, 1, 2], [0, 2, 3], [0, 3, 1]]
    )
    falling = needle.moving(tg.Linear(needle.vertices - (0, 0, 1.5)))
    hit = tg.first_contact(falling, board, mode="exact")
    tg.picture(tg.Scene.of(falling, board, contacts=hit.contacts), hit.time, path=sys.argv[1])
