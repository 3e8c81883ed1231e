"""A driver of your own: a thread that speaks UDP is the device of a hand, and feels a peg stopped by its hole."""

import sys
import threading
import time

import numpy as np

import tangere as tg
from tangere.hand import led_part

made = led_part("peg", device="cpu")  # a square peg, in its hole by a centimetre
device = tg.hand.UdpDevice(0, timeout=5.0)  # any free port; `tangere hand peg --device udp:5005` has a fixed one
felt, done = [], threading.Event()


def drive() -> None:
    """What a driver does: say where the handle is, feel the force that comes back."""
    driver, pose, begun = tg.hand.UdpDriver(device.port), made.way.poses[0].copy(), time.monotonic()
    while not done.is_set():
        moved = pose.copy()
        moved[0, 3] += 0.004 * min(time.monotonic() - begun, 1.0)  # to the side, against the wall of the hole
        driver.send(moved)
        force = driver.force(0.01)
        if force is not None:
            felt.append(force.force)
    driver.close()


threading.Thread(target=drive, daemon=True).start()
device.wait(10.0)
hand = tg.hand.Hand(made.world, made.body, device)
hand.run(1.5, pacer=tg.hand.ThreadedLoops(priority=None))
done.set()
print(hand.report)
print(f"the wall pushes back with {-min(force[0] for force in felt):.1f} N; clearance {1e6 * hand.clearance:.0f} um")
assert np.abs(hand.pose[0, 3]) < 1e-3  # the driver asked for four times that
if len(sys.argv) > 1:
    tg.picture(made.world.scene(forces=False), path=sys.argv[1])
