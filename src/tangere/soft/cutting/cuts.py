"""All that is cut in a simulation: blades that go on, parts that come off, and what the simulation is told of it.

Question: which bodies are there after this step of a blade, where are they, and how fast?
Method:   `CutBody` cuts and parts; the step's buffers are brought up to date in place (`incremental`). Where that
          cannot be, they are laid out for the bodies that there are now, and take over what is known: places,
          velocities, contact limits, friction, what is pulled.
Sound:    after a cut the surfaces are looked at by the exact test; where they would touch, walls are inset less. What
          fails is undone as a whole, topology included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.runtime import Arrays, InputError, TangereError, to_numpy
from tangere.soft.blade import Blade
from tangere.soft.body import Body
from tangere.soft.contact.wall_inset import INSETS
from tangere.soft.cut_engine import CutEvent, enter_cut_engine, kerf_of
from tangere.soft.cutting.blade_edge import BladeEdge
from tangere.soft.cutting.carried.carried_body import CarriedCutBody
from tangere.soft.cutting.connected_parts import FoundPart
from tangere.soft.cutting.cut_body import CutBody
from tangere.soft.cutting.rest_map import to_rest
from tangere.soft.cutting.simplicial_complex import ComplexChange
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.step import BodiesChange, StepPipeline

#: Points of a blade are at most this many extents of the bodies away from where these were laid out.
_FARTHEST = 1e12


class Cuts:
    """The bodies of one simulation that can be cut."""

    def __init__(self, pipeline: StepPipeline, blades: dict[int, Blade]) -> None:
        """`blades` by their numbers among the bodies."""
        self._pipeline, self.events = pipeline, list[CutEvent]()
        distance = pipeline.options.distance
        self.bodies = [
            (CutBody if body.material is None else CarriedCutBody)(number, body, kerf_of(body, distance))
            for number, body in enumerate(pipeline.assembly.bodies)
            if body.cuttable
        ]
        for own in self.bodies:
            if own.given.material is not None and blades:
                raise InputError(
                    f"Body {own.given.name!r}: the edge of a Blade holds on to dofs, and cannot cut material that they"
                    " carry; Simulation.cut does, or let the material be the shape"
                )
        edge = min(own.complex.edge for own in self.bodies)
        self.blades = [BladeEdge(pipeline, number, blade, edge) for number, blade in blades.items()]
        for number in blades:  # its flanks are felt where they are
            limits, base = pipeline.initial_contacts.limits.numpy().copy(), pipeline.assembly.vertex_base
            begin, end = base[number : number + 2]
            limits[begin:end] = np.minimum(limits[begin:end], 0.5 * min(own.kerf for own in self.bodies))
            pipeline.initial_contacts.limits.assign(limits)
        for own in self.bodies:
            if own.kerf >= 0.5 * own.complex.altitude:
                raise InputError(
                    f"Body {own.given.name!r}: a kerf of {own.kerf:g} m is too wide for elements that are"
                    f" {own.complex.altitude:g} m high; say kerf=, less than half of that"
                )
        self._saved: dict[int, tuple[Any, ...]] = {}
        self._saved_events: list[CutEvent] = []
        self.in_place: InPlaceUpdate | None = None  #: of how the bodies are laid out now
        self._past: list[InPlaceUpdate] = []  # since `save`, the last one is the one in use
        self._saved_blades = [blade.state() for blade in self.blades]

    def cut(self, number: int, start: Arrays, end: Arrays) -> None:
        """The edge of a blade goes on through a body, from one polyline to another (k, 3) [m]."""
        begin, stop = checked_blade(start, end)
        frame = self._pipeline.patches.frame
        far = float(np.abs(np.concatenate([begin, stop]) - frame.origin).max())
        if far * frame.scale > _FARTHEST:
            raise InputError(f"cut: a point of the blade is {far:.3g} m away from where the bodies began")
        own, part = self.find(number)
        self._touch(own)
        self._change(own, lambda: own.cut(part, begin, stop, lambda *points: self._at_rest(own, part, *points)))

    def end_stroke(self, number: int) -> None:
        """The blade has left a body, and whatever has come off it."""
        own, _ = self.find(number)
        if own.stroking:
            self._touch(own)
            self._change(own, lambda: _changed(own.end_stroke()))

    def abandon_stroke(self, number: int) -> None:
        """The blade is taken out of a body: what it has opened stays, and nothing more is decided."""
        own, _ = self.find(number)
        self._touch(own)
        own.abandon_stroke()

    def pieces_of(self, number: int) -> tuple[int, ...]:
        """The numbers of a body and of all that has come off the same one."""
        return tuple(sorted(self.find(number)[0].numbers.values()))

    def advance_blades(self) -> None:
        """The phase "cut": blades go on through what they press on."""
        for blade in self.blades:
            for own, part, start, end in blade.advance(self.bodies):
                self._touch(own)
                self._change(own, lambda own=own, part=part, a=start, b=end: _changed(own.sweep(part, a, b)))
        for own in self.bodies:
            if self.blades and own.stroking and not any(blade.holds(self.bodies.index(own)) for blade in self.blades):
                self._touch(own)
                self._change(own, lambda own=own: _changed(own.end_stroke()))

    def press_blades(self) -> None:
        """The phase "press": what the edges of blades hold on to has rows in this step."""
        for blade in self.blades:
            blade.rows(self.bodies)

    def force_on(self, number: int) -> np.ndarray:
        """(3,) what a body feels of what its edge cuts, if it is a blade [N]."""
        return sum((blade.force for blade in self.blades if blade.number == number), np.zeros(3))

    def separate(self) -> None:
        """Go on looking for parts, one slice a step, where the last one did not finish."""
        for own in self.bodies:
            if not own.parts.finished:
                self._touch(own)
                if self.in_place is None or self.in_place.assembly is not self._pipeline.assembly:
                    self._prepare()
                own.begin_change()
                self._part_off(own, [], laid_out=True)

    def find(self, number: int) -> tuple[CutBody, int]:
        """What is cut, and which part of it is the body of this number."""
        for own in self.bodies:
            if number in own.numbers.values():
                return own, own.part_at(number)
        name = self._pipeline.assembly.bodies[number].name
        raise InputError(f"cut: body {number} {name!r} cannot be cut; bodies that can say cuttable=True")

    def save(self) -> None:
        """From here on everything can be taken back."""
        self._saved, self._saved_events = {}, self.events.copy()
        for update in self._past:
            update.commit()
        self._past = [] if self.in_place is None else [self.in_place]
        self._saved_blades = [blade.state() for blade in self.blades]

    def restore(self) -> None:
        """As if nothing had been cut since `save`."""
        for update in reversed(self._past):
            update.undo()
        self.in_place = self._past[0] if self._past else None
        for index, state in self._saved.items():
            self.bodies[index].undo_history(state)
        self._saved, self.events = {}, self._saved_events.copy()
        for blade, state in zip(self.blades, self._saved_blades, strict=True):
            blade.restore(state)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _touch(self, own: CutBody) -> None:
        index = self.bodies.index(own)
        if index not in self._saved:
            self._saved[index] = own.begin_history()

    def _at_rest(
        self, own: CutBody, part: int, points: np.ndarray, near: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Where points are in the rest shape of a part; see `CutBody.cut`."""
        update = self.in_place
        if update is not None and update.assembly is self._pipeline.assembly and update.fits(own):
            found = update.at_rest(own, part, points, near)
            if found is not None:
                return found
        rest = to_rest(points, own.world(self._rows(own, "x")), own.complex.rest, own.simplices_of(part))
        return rest, np.full(len(points), -1)

    def _rows(self, own: CutBody, name: str) -> np.ndarray:
        """What the dofs of a body carry now, as it counts them."""
        assembly = self._pipeline.assembly
        return getattr(assembly.dofs, name).numpy()[own.dofs.rows(assembly.dof_base)]

    def _change(self, own: CutBody, cut: Callable[[], list[ComplexChange]]) -> None:
        """Cut a body, see what has come off, and let the simulation go on with what there is then."""
        self._prepare()
        own.begin_change()
        changes = cut()
        self._part_off(own, changes, laid_out=not changes or self._update_in_place(own, changes))

    def _part_off(self, own: CutBody, changes: list[ComplexChange], *, laid_out: bool) -> None:
        """See what has come off a body; `laid_out`: whether the simulation knows of the changes."""
        parted = own.separate(len(self._pipeline.assembly), lambda new: self._prepare_part(own, new))
        for new in parted:
            for blade in self.blades:
                blade.part_off(own, self.bodies.index(own), new.part, new.of)
        if not changes and not parted:
            return
        if laid_out:
            own.take_notes(changes)
        if not laid_out or (parted and not self._label_in_place(own, parted)):
            self._lay_out_anew(own, [] if laid_out else changes)
        if not laid_out:
            own.take_notes(changes)
        self._note(own, changes, parted)

    def _prepare(self) -> None:
        """Tables for updates in place, if there are none of how the bodies are laid out now."""
        pipeline = self._pipeline
        if pipeline.assembly.has_room:
            pipeline.refresh_initial_contacts()
            if self.in_place is None or self.in_place.assembly is not pipeline.assembly:
                self.in_place = InPlaceUpdate(pipeline, self.bodies)
                self._past.append(self.in_place)
            self.in_place.refresh()

    def _update_in_place(self, own: CutBody, changes: list[ComplexChange]) -> bool:
        """Bring the buffers of the step up to date; False, and nothing done, where that cannot be."""
        pipeline = self._pipeline
        if not pipeline.assembly.has_room:
            return False
        update = self.in_place
        if update is None or update.assembly is not pipeline.assembly or not update.fits(own):
            return False
        opened = np.concatenate([change.opened.ravel() for change in changes])
        before = len(update.log)
        for inset in INSETS:
            own.set_insets(inset)
            if not update.apply(own, changes, opened):
                return False
            wrong = update.inside_out(own)
            if wrong is not None:
                _raise_inside_out(own, wrong)
            if pipeline.options.response != "hard" or update.is_apart(own):
                update.send()
                return True
            update.undo(before)
        return False

    def _label_in_place(self, own: CutBody, parted: list[FoundPart]) -> bool:
        """Make bodies of parts where their rows are; False, and nothing done, where that cannot be."""
        pipeline = self._pipeline
        update = self.in_place
        if update is None or update.assembly is not pipeline.assembly or not update.has_tables(own):
            return False
        before = len(update.log)
        for new in parted:
            if not update.part_off(own, new):
                update.undo(before)
                return False
        return True

    def _prepare_part(self, own: CutBody, new: FoundPart) -> None:
        """Find out about a part that is soon to be told."""
        update = self.in_place
        if update is not None and update.assembly is self._pipeline.assembly and update.has_tables(own):
            update.prepare_part(own, new)

    def _lay_out_anew(self, own: CutBody, changes: list[ComplexChange]) -> None:
        """All buffers of the step for the bodies that there are now."""
        pipeline, assembly = self._pipeline, self._pipeline.assembly
        x, v = self._rows(own, "x"), self._rows(own, "v")
        sources = own.vertices.rows(assembly.vertex_base)
        limits = np.where(sources >= 0, pipeline.initial_contacts.limits.numpy()[sources], np.inf)
        x, v = own.carried_over(changes, x, v)
        by_vertex = np.full(changes[0].vertices - changes[0].new_vertices if changes else own.complex.counts[1], np.inf)
        np.minimum.at(by_vertex, own.surface_dofs[: len(limits)], limits)
        for change in changes:
            by_vertex = _least_blended(change, by_vertex)
        _check_inside_out(own, changes, own.world(x))
        known = np.minimum(by_vertex[own.surface_dofs], pipeline.options.distance)
        known[: len(limits)] = limits
        sources = np.concatenate([sources, np.full(len(known) - len(sources), -1)])
        opened = np.zeros(len(known), bool)
        opened[own.opened_vertices(changes)] = True
        fixed = own.fixed_after(changes)
        tries = [(inset, everywhere) for everywhere in (False, True) for inset in INSETS]
        for inset, everywhere in tries:
            own.set_insets(inset, everywhere=everywhere)
            try:
                change, others = self._bodies_change(own, own.layout(fixed), (x, v), (sources, known, opened))
                pipeline.change_bodies(change)
                break
            except InputError as error:
                if (inset, everywhere) == tries[-1]:
                    way_out = "abandon_stroke ends the stroke without this; a narrower kerf= or finer elements help"
                    raise InputError(f"cut: {error}; nothing was cut: {way_out}") from None
        for other in self.bodies:
            if other is not own:
                self._touch(other)
                other.renumber(others)

    def _bodies_change(
        self,
        own: CutBody,
        parts: dict[int, Body],
        of_dofs: tuple[np.ndarray, ...],
        of_vertices: tuple[np.ndarray, ...],
    ) -> tuple[BodiesChange, dict[int, np.ndarray]]:
        """The bodies of all parts in their places, and all others as they are; columns as the complex counts rows.

        Of the others it says, by number, which surface vertex each one was: those cut in place are in another order.
        """
        assembly, limits = self._pipeline.assembly, self._pipeline.initial_contacts.limits.numpy()
        count = len(assembly) + sum(number >= len(assembly) for number in parts)
        bodies, columns, places_of = [], ([], [], [], [], []), {}
        others = {} if assembly.outdated is None or self.in_place is None else self.in_place.bodies_now(but=own)
        for number in range(count):
            if number in parts:
                bodies.append(parts[number])
                dofs, vertices = own.dofs.of(number), own.vertices.of(number)
                rows = *(column[dofs] for column in of_dofs), *(column[vertices] for column in of_vertices)
            else:
                body, places, _ = others.get(number, (assembly.current[number], assembly.used.vertices[number], None))
                bodies.append(body)
                places_of[number] = places
                dofs, vertices = assembly.dofs_of(number), assembly.vertex_base[assembly.used.ranges[number]] + places
                x_all, v_all = assembly.dofs.x.numpy(), assembly.dofs.v.numpy()
                nothing = np.zeros(len(vertices), bool)
                rows = x_all[dofs], v_all[dofs], vertices, limits[vertices], nothing
            for column, row in zip(columns, rows, strict=True):
                column.append(row)
        return BodiesChange(bodies, *(np.concatenate(column) for column in columns)), places_of

    def _note(self, own: CutBody, changes: list[ComplexChange], parted: list[FoundPart]) -> None:
        """Tell what has happened."""
        step = self._pipeline.steps
        self.events = [event for event in self.events if event.step >= step - 1]
        for change in changes:
            first = own.number_of(int(change.changed[0]))
            if len(change.opened):
                number = own.number_of(int(change.opened[0, 0] >> 2))
                area = own.opened_area(change)
                self.events.append(CutEvent("opened", number, len(change.opened), step, area=area))
            if change.split:
                self.events.append(CutEvent("split", first, change.split, step))
        for new in parted:
            of, number = own.numbers[new.of], own.numbers[new.part]
            self.events.append(CutEvent("parted", of, len(new.vertices), step, part=number))


def _changed(change: ComplexChange) -> list[ComplexChange]:
    return [change] if change else []


def checked_blade(start: Arrays, end: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Two polylines of as many points, of which the first has a length."""
    begin, stop = to_numpy(start, "cut: start"), to_numpy(end, "cut: end")
    if begin.ndim != 2 or begin.shape[1:] != (3,) or len(begin) < 2 or begin.shape != stop.shape:
        raise InputError(f"cut: start and end are polylines (k, 3), k at least 2, not {begin.shape} and {stop.shape}")
    if not np.isfinite(begin.sum() + stop.sum()) and not (np.isfinite(begin).all() and np.isfinite(stop).all()):
        raise InputError("cut: a point of the blade is not finite")
    for which, line in (("start", begin), ("end", stop)):
        if line[0].tolist() == line[-1].tolist() and (line == line[0]).all():
            raise InputError(f"cut: the blade has no length at its {which}")
    return begin, stop


def _least_blended(change: ComplexChange, values: np.ndarray) -> np.ndarray:
    """Values (v,) of vertices after a change: a new one has the lesser of those it lies between."""
    grown = np.full(change.vertices, np.inf)
    grown[: len(values)] = values
    for m, p, q in change.blended[change.blended[:, 0] >= len(values)].tolist():
        grown[m] = min(grown[p], grown[q])
    return grown


def _check_inside_out(own: CutBody, changes: list[ComplexChange], x: np.ndarray) -> None:
    """Raise if tetrahedra that were cut are inside out where they are: their walls would cross."""
    if own.complex.size == 3 or not changes:
        return
    changed = np.unique(np.concatenate([change.changed for change in changes]))
    corners = own.complex.arrays.corners.numpy()[changed]
    a, b, c, d = np.moveaxis(x[corners], 1, 0)
    wrong = np.flatnonzero(np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) <= 0.0)
    if len(wrong):
        _raise_inside_out(own, x[corners[wrong[0]]])


def _raise_inside_out(own: CutBody, corners: np.ndarray) -> None:
    """Say that a tetrahedron, (4, 3) where it is [m], is inside out."""
    place = corners.mean(axis=0).round(6).tolist()
    raise TangereError(f"cut: body {own.given.name!r} is inside out near {place}, where the blade is; nothing was cut")


enter_cut_engine(Cuts)
