"""Which bodies touch, directly or through others, and how such a group moves as a whole.

Nothing outside pushes a group without held dofs but gravity: its momentum after a step is known exactly, and its mean
move is a frame in which nothing needs to be held back.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND
from tangere.soft.assembly import Assembly
from tangere.soft.prepared import Prepared

wp.set_module_options(SOUND)

__all__ = ["SLICES", "Groups", "mass_moves"]

#: Sums over the dofs of a body are taken in this many slices.
SLICES = wp.constant(32)


def mass_moves(assembly: Assembly, after: wp.array, before: wp.array, sums: wp.array) -> Prepared:
    """Sums of mass times move and of mass (vec4d) over the dofs of each body, in slices."""
    base = wp.array(assembly.dof_base, dtype=wp.int32, device=assembly.device)
    return Prepared(_sums, [base, assembly.mass, after, before, sums], assembly.device, grain=1024)


class Groups:
    """The groups of one step."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._held = np.array([bool(body.fixed.any()) for body in assembly.bodies])
        self._sums = wp.zeros(len(assembly.bodies) * int(SLICES), dtype=wp.vec4d, device=assembly.device)
        self.clear()

    def clear(self) -> None:
        """Every body is a group of its own."""
        self.label = np.arange(len(self._assembly.bodies))

    def merge(self, touching: np.ndarray) -> None:
        """Join the groups of bodies that touch, (n, 2)."""
        count = len(self.label)
        if count == 1 or not len(touching):
            return
        seen = np.zeros(count * count, bool)
        seen[touching[:, 0].astype(np.int64) * count + touching[:, 1]] = True
        for key in np.flatnonzero(seen):
            one, other = self.label[key // count], self.label[key % count]
            if one != other:
                self.label[self.label == max(one, other)] = min(one, other)

    def members(self, touching: np.ndarray) -> np.ndarray:
        """(b,) bool: the bodies in the groups of these pairs."""
        return np.isin(self.label, self.label[np.unique(touching)])

    def drift(self, after: wp.array, before: wp.array) -> np.ndarray:
        """(b, 3) mean move by mass of the group of each body [m]; zero where a dof of the group is held."""
        moved, mass = self._moments(after, before)
        return self._shared(moved, mass)

    def lost_momentum(self, after: wp.array, expected: wp.array) -> np.ndarray:
        """(b, 3) what to move each body by so that its group is, in the mean, where it is expected [m]."""
        moved, mass = self._moments(expected, after)
        return self._shared(moved, mass)

    def _shared(self, moved: np.ndarray, mass: np.ndarray) -> np.ndarray:
        total = np.zeros_like(moved)
        np.add.at(total, self.label, moved)
        whole = np.bincount(self.label, mass, len(mass))
        held = np.bincount(self.label, self._held, len(mass)) > 0
        mean = total / np.where(whole > 0.0, whole, 1.0)[:, None]
        mean[held] = 0.0
        return mean[self.label]

    def _moments(self, after: wp.array, before: wp.array) -> tuple[np.ndarray, np.ndarray]:
        """Per body the sum of mass times move, (b, 3), and of mass, (b,)."""
        assembly = self._assembly
        mass_moves(assembly, after, before, self._sums)(len(self._sums))
        sums = self._sums.numpy().reshape(len(assembly.bodies), int(SLICES), 4).sum(axis=1)
        return sums[:, :3], sums[:, 3]


@wp.kernel
def _sums(
    first: int,
    base: wp.array[int],
    mass: wp.array[wp.float64],
    after: wp.array[wp.vec3d],
    before: wp.array[wp.vec3d],
    sums: wp.array[wp.vec4d],
):
    k = first + wp.tid()
    body = k / SLICES
    size = base[body + 1] - base[body]
    part = (size + SLICES - 1) / SLICES
    begin = base[body] + (k % SLICES) * part
    total = wp.vec4d()
    for i in range(begin, wp.min(begin + part, base[body + 1])):
        m = mass[i]
        d = m * (after[i] - before[i])
        total += wp.vec4d(d[0], d[1], d[2], m)
    sums[k] = total
