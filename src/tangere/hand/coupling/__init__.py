"""The fast loop: a device and a part, tied by a spring and a damper that contacts may stretch."""

from tangere.hand.coupling.fast_loop import FastLoop
from tangere.hand.coupling.fast_tick import LAWS, ForceLaw
from tangere.hand.coupling.metaphor import METAPHORS, Metaphor
from tangere.hand.coupling.rows import ContactRowSet
from tangere.hand.coupling.settings import FADING, TANK, coupling_settings

__all__ = [
    "FADING",
    "LAWS",
    "METAPHORS",
    "TANK",
    "ContactRowSet",
    "FastLoop",
    "ForceLaw",
    "Metaphor",
    "coupling_settings",
]
