"""First contact of two meshes: two bumpy tori fly into each other."""

import sys

import tangere as tg

left = tg.generate.torus(8192, bumps=0.2, name="lying")
right = left.at([[1, 0, 0, 3.2], [0, 0, -1, 0.3], [0, 1, 0, 0], [0, 0, 0, 1]])  # a quarter turn about x, then a shift

# Every vertex goes along a straight line from where it is (t = 0) to where it is sent (t = 1).
a = left.moving(tg.Linear(left.vertices + (0.9, 0.0, 0.0)))
b = right.moving(tg.Linear(right.vertices - (0.6, 0.0, 0.1)))

hit = tg.first_contact(a, b)
print(hit)  # never later than the true time: the bodies are apart at every t < hit.time
print(f"certain by t = {hit.time_upper:.9f}")
print(f"at {hit.contacts.point_a[0].round(4)}, normal {hit.contacts.normal[0].round(4)}")

assert left.vertices[:, 0].max() < right.vertices[:, 0].min()  # apart at the start
assert 0.0 < hit.time <= hit.time_upper <= 1.0

if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(a, b, contacts=hit.contacts), hit.time, path=sys.argv[1])
