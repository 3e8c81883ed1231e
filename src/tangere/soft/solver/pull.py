"""A spring from one surface vertex to a point, which a person pulls at, as part of the step's energy.

Method: a spring of stiffness k from a dof to a point is inertia about that point: with y the free motion,
        m/dt^2 |x - y|^2 and k |x - p|^2 are together (m/dt^2 + k) |x - (m/dt^2 y + k p) / (m/dt^2 + k)|^2.
Sound:  so the solver needs to know nothing of it, stays stable for any k, and what is pulled into something is held
        back like everything else.
Known as: a mouse spring, implicit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import warp as wp

from tangere.runtime import SOUND, InputError, PreparedLaunch, positive, three_numbers, whole
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.model.assembled_bodies import AssembledBodies, DofArrays, SurfaceArrays

wp.set_module_options(SOUND)


class Pull:
    """At most one spring; its stiffness is zero while nothing is pulled."""

    def __init__(
        self, assembly: AssembledBodies, islands: ContactIslands, start: wp.array, y: wp.array, inertia: wp.array
    ) -> None:
        """`start` is where the dofs are when a step begins, `y` their free motion, `inertia` holds them there."""
        device = assembly.device
        self._assembly, self._islands, self._inertia = assembly, islands, inertia
        self.plain_inertia = wp.clone(inertia)
        self._held = islands.anchored.numpy() == 1  # (b,) has vertices that are fixed
        self._pushed, self._pulled = np.zeros(len(self._held), bool), -1  # (b,) from outside; the body that is pulled
        self._vertex = wp.zeros(1, dtype=wp.int32, device=device)
        self._target = wp.zeros(1, dtype=wp.vec3d, device=device)
        self._stiffness = wp.zeros(1, dtype=wp.float64, device=device)
        spring = [self._vertex, self._target, self._stiffness]
        carried = [assembly.surface, assembly.dofs, start, self.plain_inertia]
        self._apply = PreparedLaunch(_apply, [*spring, *carried, y, inertia], device, serial=True)

    @property
    def vertex(self) -> int:
        """The surface vertex that is pulled, as the simulation counts them; -1 for none."""
        return -1 if self._pulled < 0 else int(self._vertex.numpy()[0])

    def attach(self, body: int, vertex: int, to: Sequence[float], stiffness: float | None) -> None:
        """Pull a vertex of a body's surface towards a point; see `SimulatedBody.pull`."""
        bodies = self._assembly.bodies
        if whole(body, "pull: body", 0) >= len(bodies):
            raise InputError(f"pull: there is no body {body}, only {len(bodies)}")
        pulled = bodies[body]
        if whole(vertex, "pull: vertex", 0) >= len(pulled.surface.vertices):
            raise InputError(f"pull: body {body} has {len(pulled.surface.vertices)} surface vertices, not a {vertex}")
        if pulled.is_obstacle:
            raise InputError(f"pull: nothing of body {body} can move")
        target = three_numbers(to, "pull: to")
        if stiffness is None:
            stiffness = pulled.youngs_modulus * (pulled.surface.extent if pulled.is_solid else pulled.thickness)
        self.release()
        self._vertex.fill_(int(self._assembly.vertex_rows(body)[vertex]))
        self._target.fill_(wp.vec3d(*target))
        self._stiffness.fill_(positive(stiffness, "stiffness"))
        self._pulled = body
        self._tell_islands()

    def take_over(self, before: Pull, sources: np.ndarray) -> None:
        """Bodies have been cut: pull the vertex that was pulled before; `sources` are what vertices were then."""
        old, bodies = before._assembly.surface.body.numpy(), self._assembly.surface.body.numpy()
        for body in np.flatnonzero(before._pushed):
            for piece in np.unique(bodies[(sources >= 0) & (old[np.maximum(sources, 0)] == body)]):
                self.anchor(int(piece))
        stiffness = float(before._stiffness.numpy()[0])
        here = np.flatnonzero(sources == int(before._vertex.numpy()[0]))
        if stiffness > 0.0 and len(here):
            body = int(bodies[here[0]])
            vertex = int(np.searchsorted(self._assembly.vertex_rows(body), here[0]))
            self.attach(body, vertex, before._target.numpy()[0].tolist(), stiffness)

    def release(self) -> None:
        """Pull nothing."""
        self._stiffness.zero_()
        wp.copy(self._inertia, self.plain_inertia)
        self._pulled = -1
        self._tell_islands()

    def anchor(self, body: int, *, on: bool = True) -> None:
        """From now on something else pushes a body from outside, or no more: its momentum is not known in advance."""
        if self._pushed[body] != on:
            self._pushed[body] = on
            self._tell_islands()

    def part_off(self, part: int, of: int, held: tuple[bool, bool], has_vertex: bool) -> Callable[[], None]:
        """A part has come off a body; says how to take that back.

        Args:
            held: whether anything of the part, and of what is left, is fixed.
            has_vertex: whether `vertex` is the part's.
        """
        before = self._held.copy(), self._pushed.copy(), self._pulled

        def back() -> None:
            self._held[:], self._pushed[:], self._pulled = before
            self._tell_islands()

        self._held[[part, of]], self._pushed[part] = held, self._pushed[of]
        if self._pulled == of and has_vertex:
            self._pulled = part
        self._tell_islands()
        return back

    def _tell_islands(self) -> None:
        """The momentum of what is held, or pushed from outside, is not known in advance."""
        anchored = self._held | self._pushed
        if self._pulled >= 0:
            anchored[self._pulled] = True
        if self._islands.device.is_cpu:
            self._islands.anchored.numpy()[:] = anchored
        else:
            self._islands.anchored.assign(anchored.astype(np.int32))

    def set_inertia(self, inertia: np.ndarray) -> None:
        """That of steps of another length."""
        self.plain_inertia.assign(inertia)
        wp.copy(self._inertia, self.plain_inertia)

    def __call__(self) -> None:
        """After the free motion is known."""
        self._apply(1)


@wp.kernel
def _apply(
    first: int,
    vertex: wp.array[int],
    target: wp.array[wp.vec3d],
    stiffness: wp.array[wp.float64],
    surface: SurfaceArrays,
    dofs: DofArrays,
    start: wp.array[wp.vec3d],
    plain: wp.array[wp.float64],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
):
    """The dofs that carry the vertex share the spring by their weights (one thread)."""
    if stiffness[0] == wp.float64(0.0):
        return
    s = vertex[0]
    here = wp.vec3d()
    for c in range(4):
        here += surface.weights[s][c] * start[surface.carriers[s][c]]
    for c in range(4):
        i = surface.carriers[s][c]
        k = stiffness[0] * wp.max(surface.weights[s][c], wp.float64(0.0))
        if k > wp.float64(0.0) and dofs.free[i] == 1:
            inertia[i] = plain[i] + k
            y[i] = (plain[i] * y[i] + k * (start[i] + target[0] - here)) / inertia[i]
            dofs.x[i] = y[i]
