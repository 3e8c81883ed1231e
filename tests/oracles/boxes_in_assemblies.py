"""How two boxes clash, in rational arithmetic: boxes along common axes, wherever these are turned to afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

KINDS = ("duplicate", "inside", "hard", "touching", "near", "free")


@dataclass(frozen=True)
class TwoBoxes:
    """Each box by its lower and upper corner, three numbers each."""

    low_a: tuple
    high_a: tuple
    low_b: tuple
    high_b: tuple

    def kind(self, clearance: float, skin: float, touch: float) -> str | None:
        """One of `KINDS`; None where a length is within rounding of what decides."""
        a = [(Fraction(x), Fraction(y)) for x, y in zip(self.low_a, self.high_a, strict=True)]
        b = [(Fraction(x), Fraction(y)) for x, y in zip(self.low_b, self.high_b, strict=True)]
        clearance, skin, touch = map(Fraction, (clearance, skin, touch))
        if a == b:
            return "duplicate"
        gaps = [max(p[0] - q[1], q[0] - p[1], Fraction(0)) for p, q in zip(a, b, strict=True)]
        squared = sum(gap * gap for gap in gaps)
        if squared > 0:
            for limit in (clearance, touch):
                if limit and abs(float(squared) ** 0.5 / float(limit) - 1.0) < 1e-6:
                    return None
            if squared > touch * touch:
                return "near" if squared <= clearance * clearance else "free"
        for p, q in ((a, b), (b, a)):
            margin = min(min(x[0] - y[0], y[1] - x[1]) for x, y in zip(p, q, strict=True))
            if margin > 2 * touch:
                return "inside"
            if margin > 0:
                return None
        sides = ((a, b), (b, a))
        deep = [any(self._deep(p, q, skin + shift) for p, q in sides) for shift in (-touch, touch)]
        if deep[0] != deep[1]:
            return None
        return "hard" if deep[0] else "touching"

    @staticmethod
    def _deep(p, q, skin) -> bool:
        """Whether the first without its skin, as a solid, meets the second."""
        return all(min(x[1] - skin, y[1]) >= max(x[0] + skin, y[0]) for x, y in zip(p, q, strict=True))


def drawn(rng: np.random.Generator, kind: str, clearance: float, skin: float) -> TwoBoxes:
    """Two boxes that may well be of this kind: nested, the same, bars that cross, flush flats, tight fits, gaps."""
    size = rng.uniform(0.02, 0.3, 3)
    low = rng.uniform(-0.5, 0.5, 3)
    other = rng.uniform(0.02, 0.3, 3)
    if kind == "duplicate":
        return TwoBoxes(tuple(low), tuple(low + size), tuple(low), tuple(low + size))
    if kind == "inside":
        high = low + size + 0.05
        boxes = [low, high, low + rng.uniform(1e-5, 0.02, 3), high - rng.uniform(1e-5, 0.02, 3)]
        return TwoBoxes(*(tuple(x) for x in (boxes if rng.random() < 0.5 else boxes[2:] + boxes[:2])))
    shift = (rng.uniform(-0.9, 0.9, 3) * 0.5 * (size + other)) + 0.5 * (size - other)
    axis = rng.integers(3)
    overlap = {
        "hard": rng.choice([2.0 * skin, 10.0 * skin, 0.01]),
        "touching": rng.choice([0.0, 0.0, 0.5 * skin]),
        "near": -rng.uniform(0.02, 0.98) * clearance,
        "free": -rng.choice([1.02, 1.5, 30.0]) * clearance,
    }[kind]
    shift[axis] = size[axis] - overlap
    if kind == "hard" and rng.random() < 0.4:  # bars that cross: no corner of one is in the other
        size, other = np.array([0.4, 0.03, 0.03]), np.array([0.03, 0.4, 0.03])
        shift = np.array([0.2, -0.2, 0.03 - overlap])
    return TwoBoxes(*(tuple(x) for x in (low, low + size, low + shift, low + shift + other)))
