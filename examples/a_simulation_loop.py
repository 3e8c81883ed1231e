"""A simulation loop: a bumpy ball is thrown at a plate and stops, step by step, where it would first touch."""

import sys

import tangere as tg

ball = tg.generate.bumpy_sphere(5120, radius=0.3, name="ball")
plate = tg.generate.sheet(800, size=(2.0, 2.0), name="plate")
ball = ball.replace(vertices=ball.vertices + (-0.6, 0.0, 1.2))

velocity, gravity, step = [1.2, 0.0, 0.0], 9.81, 0.05  # [m/s], [m/s^2], [s]
hit, steps = None, 0
while not hit:
    velocity[2] -= gravity * step
    moving = ball.moving(tg.Linear(ball.vertices + [step * v for v in velocity]))
    # A millimetre of separation keeps the next step from starting in contact.
    hit = tg.first_contact(moving, plate, separation=1e-3)
    ball = moving.at(min(hit.time, 1.0))  # the whole step if it is free: its time is infinite
    steps += 1

print(f"in step {steps}: {hit}")
lowest = ball.vertices[:, 2].min()
print(f"the lowest vertex is {1e3 * lowest:.4f} mm above the plate")
assert 0.0 < lowest <= 1.01e-3

if len(sys.argv) > 1:
    tg.picture(tg.Scene.of(ball, plate, contacts=hit.contacts), 1.0, path=sys.argv[1])
