"""How much work the hand is given, and a tank that says how much it may be given.

Question: does the loop give the hand more energy than it got from it?
Method:   the force of a tick is held until the next one, so its work is the force times the way of the device, as it
          was measured: what the hand puts in fills a tank, what it is given empties it. A force whose work in the next
          tick would be more than there is in the tank loses so much of its part along the motion; any other is left as
          it is. The tank holds no more than its capacity: energy that was put in long ago does not pay for an
          oscillation now.
Known as: time-domain passivity observer and controller (Hannaford and Ryu 2002), energy tanks (Duindam and Stramigioli
          2004; Franken et al. 2011).
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver import vec6d
from tangere.hand.coupling.frames import PlacedFrame, angular, linear, motion_between
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class EnergyAccount:
    """What was observed."""

    given: wp.float64  # work of the forces on the device so far [J]
    most_given: wp.float64  # the largest it has been [J]
    level: wp.float64  # what is in the tank [J]
    withheld: wp.float64  # work that the tank has taken out of forces [J]
    limited: wp.int32  # ticks in which it did


@wp.func
def work_on(force: vec6d, before: PlacedFrame, now: PlacedFrame) -> wp.float64:
    """Of a held force and torque while a device went from one pose to another [J]."""
    return wp.dot(force, motion_between(before, now))


@wp.func
def after_work(account: EnergyAccount, work: wp.float64, capacity: wp.float64) -> EnergyAccount:
    """With the work of one more tick."""
    account.given += work
    account.most_given = wp.max(account.most_given, account.given)
    account.level = wp.min(account.level - work, capacity)
    return account


@wp.func
def damping_for(
    account: EnergyAccount, force: vec6d, velocity: vec6d, lever: wp.float64, period: wp.float64, most: wp.float64
) -> wp.float64:
    """Damping [Ns/m] that takes out of a force what its work in the next tick has more than the tank; 0 mostly."""
    excess = period * wp.dot(force, velocity) - wp.max(account.level, wp.float64(0.0))
    v = linear(velocity)
    w = lever * angular(velocity)
    square = wp.dot(v, v) + wp.dot(w, w)
    if excess <= wp.float64(0.0) or square <= wp.float64(1.0e-18):
        return wp.float64(0.0)
    return wp.min(excess / (period * square), most)
