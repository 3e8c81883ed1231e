"""How far each contact is strained sideways, kept from step to step: what rests on a slope stays there.

Question: which friction does a contact carry when a step begins?
Method:   a bristle for each feature that may touch (`ContactPartners`): the slip it has taken up, at most that below
          which friction is proportional to it. A contact that goes on with the same body starts from there; beyond
          that length it slides, and the bristle goes along.
Sound:    at rest nothing creeps; friction never exceeds that of Coulomb's law. Forgotten where contact ends, and where
          bodies are put elsewhere; a step that is undone leaves it as it was.
Known as: bristle models of friction, stick-slip with an anchor (Dahl 1968; Haessig and Friedland 1991).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.row_entries import RowArrays

wp.set_module_options(SOUND)


@wp.struct
class Bristles:
    """By place of the feature, see `ContactPartners`."""

    strain: wp.array[wp.vec3d]  #: [m]
    partner: wp.array[int]  #: the body it touched, -1 for none


class FrictionMemory:
    """The bristles of a simulation's contacts."""

    def __init__(self, places: int, device: wp.Device) -> None:
        self._device, self.bristles = device, Bristles()
        self.bristles.strain = wp.zeros(places, dtype=wp.vec3d, device=device)
        self.bristles.partner = wp.full(places, -1, dtype=wp.int32, device=device)
        self._saved = wp.zeros_like(self.bristles.strain), wp.clone(self.bristles.partner)
        self._launch: tuple[RowArrays, PreparedLaunch] | None = None

    def forget(self) -> None:
        """Nothing touches."""
        self.bristles.partner.fill_(-1)

    def save(self) -> None:
        """Keep what a step changes."""
        wp.copy(self._saved[0], self.bristles.strain)
        wp.copy(self._saved[1], self.bristles.partner)

    def restore(self) -> None:
        """As if the step had not been begun."""
        wp.copy(self.bristles.strain, self._saved[0])
        wp.copy(self.bristles.partner, self._saved[1])

    def keep(self, rows: RowArrays, x: wp.array, count: int) -> None:
        """After a step: what its contacts are strained where the dofs are now; `count` rows to launch for."""
        if self._launch is None or self._launch[0] is not rows:
            self._launch = rows, PreparedLaunch(_keep, [x, rows, self.bristles], self._device, grain=1024)
        self.forget()
        self._launch[1](count)


@wp.func
def recall(place: int, body: int, bristles: Bristles) -> wp.vec3d:
    """What a contact with a body is strained when the step begins."""
    strain = wp.vec3d()
    if place >= 0:
        if bristles.partner[place] == body:
            strain = bristles.strain[place]
    return strain


@wp.kernel
def _keep(first: int, x: wp.array[wp.vec3d], rows: RowArrays, bristles: Bristles):
    r = first + wp.tid()
    if r >= rows.live[0] or rows.place[r] < 0:
        return
    gap = wp.vec3d()
    strain = rows.strain[r]
    for k in range(rows.sizes[r]):
        dof = rows.dofs[r][k]
        gap += rows.weights[r][k] * x[dof]
        strain += rows.weights[r][k] * (x[dof] - rows.start[dof])
    n = rows.normal[r]
    if rows.law[r][1] - wp.dot(n, gap) > wp.float64(0.0):
        strain -= wp.dot(strain, n) * n
        bristles.strain[rows.place[r]] = strain * (rows.slip / wp.max(wp.length(strain), rows.slip))
        bristles.partner[rows.place[r]] = rows.bodies[r][1]
