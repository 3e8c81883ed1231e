"""What a needle is: how long, how thick, how stiff, and what its tip does.

Question: which needle is it?
Known as: bevel-tip and symmetric needles, rigid or flexible (Webster et al. 2006; Pitiot 2015, section 9.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.runtime import InputError, check_kind, not_negative, number, positive


@dataclass(frozen=True)
class Bevel:
    """A tip that is ground on one side, and so goes along an arc when it is pushed straight.

    Args:
        force: the push to the side, as a part of what cutting takes (physical needles).
        curvature: of the path where nothing but the tip bends it [1/m] (kinematic needles); it bends towards the x axis
            of the tip's frame, see `TipFrame`.
    """

    force: float = 0.5
    curvature: float = 0.0

    def __post_init__(self) -> None:
        not_negative(self.force, "Bevel: force")
        not_negative(self.curvature, "Bevel: curvature")


@dataclass(frozen=True)
class Needle:
    """A needle.

    Args:
        length: of the shaft [m].
        radius: of the shaft [m].
        youngs_modulus: [Pa]; steel has 2e11, nitinol 7.5e10.
        tip: None for a symmetric one.
        rigid: whether it does not bend at all.

    Example:
        >>> from tangere.needle import Bevel, Needle
        >>> needle = Needle(length=0.15, radius=0.35e-3, youngs_modulus=75e9, tip=Bevel(0.5))
        >>> f"{needle.bending_stiffness:.2e} N m^2"
        '8.84e-04 N m^2'
    """

    length: float = 0.15
    radius: float = 0.35e-3
    youngs_modulus: float = 2.0e11
    tip: Bevel | None = None
    rigid: bool = False

    def __post_init__(self) -> None:
        for name in ("length", "radius", "youngs_modulus"):
            positive(getattr(self, name), f"Needle: {name}")
        if self.radius >= self.length:
            raise InputError(f"Needle: a radius of {self.radius} m is not less than the length, {self.length} m")
        if self.tip is not None:
            check_kind(self.tip, Bevel, "Needle: tip")

    @property
    def bending_stiffness(self) -> float:
        """E I of a round shaft [N m^2]; infinite if it is rigid."""
        return np.inf if self.rigid else self.youngs_modulus * np.pi * self.radius**4 / 4.0

    @property
    def curvature(self) -> float:
        """Of the path of the tip [1/m]."""
        return 0.0 if self.tip is None else self.tip.curvature


def unit_vector(values: object, name: str) -> np.ndarray:
    """Three numbers as a unit vector."""
    vector = np.asarray(values, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all() or not np.linalg.norm(vector) > 0:
        raise InputError(f"{name} must be a direction of three numbers, not {values!r}")
    return vector / np.linalg.norm(vector)


def part_of_a_cycle(value: object, name: str) -> float:
    """A number from 0 to 1."""
    part = number(value, name)
    if not 0.0 <= part <= 1.0:
        raise InputError(f"{name} must be from 0 to 1, not {value!r}")
    return part
