"""The fast loop: a device and a part, tied by a spring and a damper that contacts may stretch."""

from tangere.hand.coupling.fast_loop import FastLoop
from tangere.hand.coupling.fast_tick import LAWS, ForceLaw
from tangere.hand.coupling.metaphor import METAPHORS, Metaphor
from tangere.hand.coupling.rows import ContactRowSet

__all__ = ["LAWS", "METAPHORS", "ContactRowSet", "FastLoop", "ForceLaw", "Metaphor"]
