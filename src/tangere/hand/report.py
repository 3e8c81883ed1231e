"""What there is to tell about a hand: energy, walks, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass

#: Energy that is rounding [J].
ROUNDING = 1e-12


@dataclass(frozen=True)
class HandReport:
    """Of all ticks since the part was taken.

    A loop is passive where `most_given` is not above zero: the hand was never given more than it had put in.
    """

    fast_ticks: int  #: made
    slow_ticks: int  #: made
    given: (
        float  #: work of the forces on the device, as the loop observes it: below zero where the hand put in more [J]
    )
    most_given: float  #: the largest that has been [J]
    tank: float  #: energy that the hand may still be given [J]
    withheld: float  #: work that the tank took out of forces [J]
    limited: int  #: ticks in which it did
    walks_asked: int  #: slow ticks in which a first contact had to be asked for; motion bounds did for the others
    walks_stopped: int  #: slow ticks in which the part could not go where the fast loop had it
    relaxed: int  #: fast ticks in which contacts asked for more than there was room for
    held_back: int  #: fast ticks in which the part waited for the next slow tick
    late: int  #: ticks that a pacer tells to have been late
    lateness: float  #: the largest that it tells [s]
    lost: str | None  #: why the device is not followed any more; None as long as it is

    @property
    def passive(self) -> bool:
        """Whether the hand was never given more than it had put in."""
        return self.most_given <= ROUNDING

    def __str__(self) -> str:
        energy = f"the hand was given {1e3 * self.given:.3g} mJ, {1e3 * self.most_given:.3g} mJ at most"
        walks = f"{self.walks_stopped} of {self.slow_ticks} walks stopped, {self.walks_asked} asked for contacts"
        lost = "" if self.lost is None else f"; the device is lost: {self.lost}"
        return f"{self.fast_ticks} ticks: {energy}; {walks}{lost}"
