"""A hand draws a blade through a soft block: what it cuts, and what is felt a thousand times a second.

Run: python examples/cut_with_a_hand.py [cut.png]
"""

import sys

import numpy as np

import tangere as tg

made = tg.hand.led_tool("cut")  # a block that is held below, a blade above it, and a way for the hand
device = tg.hand.SimulatedDevice(made.way)  # a handle of 250 g in a hand of 400 N/m; a UDP driver is held alike
hand = made.held_by(device)
felt, opened = [], 0


def after(time):
    felt.append(hand.force)
    if round(1000 * time) % 10 == 0:  # after each step of the block
        global opened
        opened += sum(event.count for event in made.simulation.events if event.kind == "opened")


hand.run(1.2, after_tick=after)
felt = np.array(felt)
jump = np.linalg.norm(np.diff(felt, axis=0), axis=1).max()
print(f"{opened} facets opened; {felt[:, 2].max():.1f} N at most, {jump:.2f} N in a millisecond; {hand.report}")
assert opened > 0
assert jump <= 0.3
assert hand.report.passive

if len(sys.argv) > 1:
    tg.picture(made.simulation.scene(), path=sys.argv[1])
