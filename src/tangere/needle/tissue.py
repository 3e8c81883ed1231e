"""What it takes to push a needle through tissue: puncture, cutting, friction.

Known as: the forces of needle insertion: stiffness before puncture, then cutting and friction (Simone and Okamura 2002;
Okamura et al. 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.runtime import InputError, not_negative, positive


@dataclass(frozen=True)
class Tissue:
    """How tissue resists a needle; numbers, or for layers an array with one for each tetrahedron of the body.

    Args:
        puncture: the force at which the tip goes through the surface [N].
        cutting: the force at which it goes on inside [N].
        friction: along the shaft, for each metre of it inside [N/m].
        grip: of the springs between needle and tissue, in E h, Young's modulus times the mean edge of the body; what
            is much stiffer than the body asks for many sweeps, and punctures at once from 1e4 on.
        patch: radius of the disc that carries the load before puncture [m]; 0 for one point, whose depth at puncture
            follows the size of the tetrahedra.
        hardening: of the springs at the tip before puncture [N/m^2]: they are as stiff as this times how far the needle
            has come, up to `grip`; 0: `grip` at once. The force then rises first with the square of the way, as that
            of a capsule that is slack at first does, and later as the tissue behind resists.
    """

    puncture: float = 1.0
    cutting: Any = 0.4
    friction: Any = 10.0
    grip: float = 20.0
    patch: float = 0.0
    hardening: float = 0.0

    def __post_init__(self) -> None:
        positive(self.puncture, "Tissue: puncture")
        positive(self.grip, "Tissue: grip")
        not_negative(self.patch, "Tissue: patch")
        not_negative(self.hardening, "Tissue: hardening")
        for name in ("cutting", "friction"):
            values = np.asarray(getattr(self, name), dtype=float)
            if values.ndim > 1 or not np.isfinite(values).all() or (values < 0).any():
                raise InputError(f"Tissue: {name} must be a force that is not negative, or one for each tetrahedron")
            object.__setattr__(self, name, values)

    @property
    def uniform(self) -> bool:
        """Whether it has no layers."""
        return self.cutting.ndim == self.friction.ndim == 0

    def per_tet(self, name: str, count: int) -> np.ndarray:
        """`cutting` or `friction` of each tetrahedron."""
        values = getattr(self, name)
        if values.ndim == 1 and len(values) != count:
            raise InputError(f"Tissue: {name} has {len(values)} values for {count} tetrahedra")
        return np.broadcast_to(values, count)
