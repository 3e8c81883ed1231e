"""How late was it, over a run of any length? Counts in bins that grow with the delay, so that memory stays the same.

Question: which quantiles do millions of durations have?
Method:   sixteen bins for each doubling of the nanoseconds; a quantile is the upper end of its bin.
Sound:    a quantile that is told is at most 1/16 above the true one and never below it; the largest is kept exactly.
Known as: the logarithmic bins of HdrHistogram.
"""

from __future__ import annotations

_STEPS = 16  #: bins for each doubling
_BINS = 64 * _STEPS


class LatencyHistogram:
    """Durations in seconds, counted; what is below a nanosecond counts as nothing."""

    def __init__(self) -> None:
        self.count, self.largest = 0, 0.0
        self._bins = [0] * _BINS

    def add(self, seconds: float) -> None:
        """Count one duration."""
        nanoseconds = int(seconds * 1e9)
        if nanoseconds < _STEPS:
            place = max(nanoseconds, 0)
        else:
            doubling = nanoseconds.bit_length() - 5
            place = min((doubling << 4) + (nanoseconds >> doubling), _BINS - 1)
        self._bins[place] += 1
        self.count += 1
        if seconds > self.largest:
            self.largest = seconds

    def quantile(self, share: float) -> float:
        """The duration [s] that this share of all did not exceed; 0 where nothing was counted."""
        wanted, seen = share * self.count, 0
        for place, number in enumerate(self._bins):
            seen += number
            if number and seen >= wanted:
                return min(_upper_end(place), self.largest)
        return self.largest


def _upper_end(place: int) -> float:
    """Of a bin [s]."""
    if place < 2 * _STEPS:
        return 1e-9 * (place + 1)
    doubling = (place >> 4) - 1
    return 1e-9 * ((_STEPS + (place & 15) + 1) << doubling)
