"""A hand in real time: loops in two processes, or on two threads."""

from tangere.hand.real_time.separate_loops import SeparateLoops
from tangere.hand.real_time.threaded_loops import ThreadedLoops

__all__ = ["SeparateLoops", "ThreadedLoops"]
