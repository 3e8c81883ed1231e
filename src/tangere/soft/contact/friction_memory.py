"""What is kept of each contact from step to step: how far it is strained sideways, and from which gap on it pushes.

Question: which friction does a contact carry when a step begins, so that what rests on a slope stays there?
Method:   a bristle for each feature that may touch (`ContactPartners`): the slip it has taken up, at most that below
          which friction is proportional to it. A contact that goes on with the same body starts from there; beyond
          that length it slides, and the bristle goes along.
Walls:    those of a cut are born a kerf apart. Contacts there push below the gap at which they were first seen, and
          when that opens, below the wider one, up to the contact distance (`ratcheted`): nothing pushes at birth. So
          do all contacts of what a blade has parted. A later cut may put walls elsewhere, nearer to each other: then
          a contact there begins anew. So does one of which the points were nearer to each other when the last step
          began than what touched there: they were passed over, because a face looked the other way or was at no cut.
Pressed:  bodies that were put near each other push below that gap only (`initial_contacts`), with little force. A gap
          that is pressed nearly shut is wider from the next step on (`widened`), up to the contact distance.
          What presses then is lifted by no more than its force over the stiffness of the contact.
Sound:    at rest nothing creeps; friction never exceeds that of Coulomb's law. Forgotten where contact ends, and where
          bodies are put elsewhere; a step that is undone leaves it as it was.
Known as: bristle models of friction, stick-slip with an anchor (Dahl 1968; Haessig and Friedland 1991); gap activation.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.model.assembled_bodies import AssembledBodies

wp.set_module_options(SOUND)


#: What is put elsewhere by less than this part of the contact distance is where it was.
ROUNDING = wp.constant(wp.float64(1e-6))
#: Contacts push below so much of the gap at which they are first seen: that rounding does not decide who pushes.
_HARDLY_LESS = wp.constant(wp.float64(1.0 - 1e-9))
#: What a step changes.
_SAVED = ("strain", "partner", "limit", "beside", "elsewhere", "gap", "last")
#: A contact of two bodies whose gap is less than this part of the one below which it pushes has nearly all of its force
#: used up: from then on it pushes below so many times that gap.
PRESSED, WIDER = wp.constant(wp.float64(0.25)), wp.constant(wp.float64(1.5))


@wp.struct
class Bristles:
    """By place of the feature, see `ContactPartners`."""

    strain: wp.array[wp.vec3d]  #: [m]
    partner: wp.array[int]  #: the body it touched, -1 for none
    limit: wp.array[wp.float64]  #: the gap below which it pushed, or would have; 0 where nothing was in reach [m]
    beside: wp.array[int]  #: the body that this was from
    gap: wp.array[wp.float64]  #: how far it was from that when the last step began [m]
    last: wp.array[wp.vec3d]  #: by surface vertex: where it was then [m]
    elsewhere: wp.array[int]  #: by surface vertex: 1 if a cut has put it elsewhere since, or off its body
    family: wp.array[int]  #: by body: one of those that a blade has parted from each other, the same for all of them


class FrictionMemory:
    """The bristles of a simulation's contacts."""

    def __init__(self, places: int, assembly: AssembledBodies) -> None:
        device = assembly.device
        self._device, self.bristles = device, Bristles()
        self.bristles.strain = wp.zeros(places, dtype=wp.vec3d, device=device)
        self.bristles.partner = wp.full(places, -1, dtype=wp.int32, device=device)
        self.bristles.limit = wp.zeros(places, dtype=wp.float64, device=device)
        self.bristles.beside = wp.full(places, -1, dtype=wp.int32, device=device)
        self.bristles.gap = wp.zeros(places, dtype=wp.float64, device=device)
        self.bristles.last = wp.zeros_like(assembly.surface.rest)
        self.bristles.elsewhere = wp.zeros(len(assembly.surface.rest), dtype=wp.int32, device=device)
        origins = [id(body.origin) for body in assembly.current]
        family = np.arange(assembly.body_room, dtype=np.int32)
        family[: len(origins)] = [origins.index(origin) for origin in origins]
        self.bristles.family = wp.array(family, dtype=wp.int32, device=device)
        self._saved = {name: wp.clone(getattr(self.bristles, name)) for name in _SAVED}
        self._launch: tuple[RowArrays, PreparedLaunch] | None = None

    def forget(self) -> None:
        """Nothing touches."""
        self.bristles.partner.fill_(-1)
        self.bristles.limit.zero_()

    def take_over(
        self, before: FrictionMemory, sources: np.ndarray, vertices: np.ndarray, elsewhere: np.ndarray
    ) -> None:
        """Features are counted anew: what each one remembers is what its source did, if it has one (not -1).

        Args:
            vertices: (s,) the same of surface vertices.
            elsewhere: (s,) bool: which surface vertices are elsewhere than they were, or of another body.
        """
        self.bristles.elsewhere.assign(elsewhere.astype(np.int32))
        known = sources >= 0
        for name, fill in (("strain", 0.0), ("partner", -1), ("limit", 0.0), ("beside", -1), ("gap", 0.0)):
            old = getattr(before.bristles, name).numpy()
            new = np.full((len(sources), *old.shape[1:]), fill, old.dtype)
            new[known] = old[sources[known]]
            getattr(self.bristles, name).assign(new)
        last = before.bristles.last.numpy()[np.maximum(vertices, 0)]
        self.bristles.last.assign(last)

    def save(self) -> None:
        """Keep what a step changes."""
        for name, kept in self._saved.items():
            wp.copy(kept, getattr(self.bristles, name))

    def restore(self) -> None:
        """As if the step had not been begun."""
        for name, kept in self._saved.items():
            wp.copy(getattr(self.bristles, name), kept)

    def keep(self, rows: RowArrays, x: wp.array, positions: wp.array, count: int) -> None:
        """After a step: what its contacts are strained where the dofs are now.

        Args:
            positions: of the surface when it began.
            count: rows to launch for.
        """
        if self._launch is None or self._launch[0] is not rows:
            self._launch = rows, PreparedLaunch(_keep, [x, rows, self.bristles], self._device, grain=1024)
        self.forget()
        self._launch[1](count)
        wp.copy(self.bristles.last, positions)
        self.bristles.elsewhere.zero_()


@wp.func
def recall(place: int, body: int, bristles: Bristles) -> wp.vec3d:
    """What a contact with a body is strained when the step begins."""
    strain = wp.vec3d()
    if place >= 0:
        if bristles.partner[place] == body:
            strain = bristles.strain[place]
    return strain


@wp.func
def ratcheted(
    place: int, body: int, gap: wp.float64, distance: wp.float64, anew: bool, bristles: Bristles
) -> wp.float64:
    """The gap below which a contact with a body pushes at a cut: where it was first seen, or the widest since [m].

    Args:
        anew: whether it is seen for the first time now, whatever was there before.
    """
    limit = wp.min(_HARDLY_LESS * gap, distance)
    if place >= 0 and not anew:
        if bristles.beside[place] == body:
            limit = wp.max(limit, bristles.limit[place])
    return limit


@wp.func
def put_elsewhere(quad: wp.vec4i, weights: wp.vec4d, bristles: Bristles) -> bool:
    """Whether a cut has put a point of a contact elsewhere, or off its body, since the last step."""
    moved = bool(False)
    for k in range(4):
        moved = moved or (weights[k] != wp.float64(0.0) and bristles.elsewhere[quad[k]] == 1)
    return moved


@wp.func
def was_passed_over(place: int, quad: wp.vec4i, weights: wp.vec4d, distance: wp.float64, bristles: Bristles) -> bool:
    """Whether the points of a contact were nearer to each other when the last step began than what touched there."""
    if place < 0 or put_elsewhere(quad, weights, bristles):  # then nobody knows
        return False
    way = wp.vec3d()
    for k in range(4):
        if weights[k] != wp.float64(0.0):
            way += weights[k] * bristles.last[quad[k]]
    return wp.length(way) < bristles.gap[place] - ROUNDING * distance


@wp.func
def widened(place: int, body: int, gap: wp.float64, limit: wp.float64, bristles: Bristles) -> wp.float64:
    """The gap below which a contact with another body pushes: a limit, or what that became by being pressed [m]."""
    found = wp.float64(limit)
    if place >= 0:
        if bristles.partner[place] == body:
            found = wp.max(found, bristles.limit[place])
            if gap < PRESSED * found:
                found *= WIDER
    return found


@wp.kernel
def _keep(first: int, x: wp.array[wp.vec3d], rows: RowArrays, bristles: Bristles):
    r = first + wp.tid()
    if r >= rows.live[0] or rows.place[r] < 0:
        return
    bristles.limit[rows.place[r]] = rows.law[r][1]
    bristles.beside[rows.place[r]] = rows.bodies[r][1]
    gap = wp.vec3d()
    began = wp.vec3d()
    strain = rows.strain[r]
    for k in range(rows.sizes[r]):
        dof = rows.dofs[r][k]
        began += rows.weights[r][k] * rows.start[dof]
        gap += rows.weights[r][k] * x[dof]
        strain += rows.weights[r][k] * (x[dof] - rows.start[dof])
    bristles.gap[rows.place[r]] = wp.length(began)
    n = rows.normal[r]
    if rows.law[r][1] - wp.dot(n, gap) > wp.float64(0.0):
        strain -= wp.dot(strain, n) * n
        bristles.strain[rows.place[r]] = strain * (rows.slip / wp.max(wp.length(strain), rows.slip))
        bristles.partner[rows.place[r]] = rows.bodies[r][1]
