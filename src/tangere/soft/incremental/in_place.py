"""A cut in place: all that a simulation knows of a body that is cut, brought up to date by what is touched.

Question: a blade has gone on through a body; what changes in the buffers of the step, and only there?
Method:   dofs and what holds them together (`dof_update`, of sheets `sheet_update`), faces, edges and clusters
          (`face_update`), walls, areas and sharp edges (`wall_update`), each by a kernel over what the cut has touched;
          then the exact test of what was put elsewhere (`local_overlap`). A part that comes off is labelled
          (`part_labels`). Arrays have room and do not move, so prepared launches stay valid. Patches that have lost or
          gained a face have no certificate any more, and are searched, until all is laid out anew: that is done where
          some room is used up.
Sound:    the same dofs, rows, faces and features as if everything were laid out anew; only their order is another. What
          is written is noted, and can be put back (`undo_log`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox
from tangere.runtime import PreparedLaunch
from tangere.soft.incremental.cpu import dof_update, face_update, hinge_update, sheet_update, wall_update
from tangere.soft.incremental.cpu.local_overlap import OWN_BOXES, OWN_GROUPS, find_pairs, keep_near, keep_uncertain
from tangere.soft.incremental.host_mirror import KINDS, HostBoxes, HostMirror
from tangere.soft.incremental.room import BodyRoom, FittedSurfaces, SharedRoom, blank
from tangere.soft.incremental.undo_log import UndoLog, host
from tangere.soft.phase_graphs import PhaseGraphs
from tangere.soft.validation import touch_exactly

if TYPE_CHECKING:
    from tangere.soft.cutting.connected_parts import FoundPart
    from tangere.soft.cutting.cut_body import CutBody
    from tangere.soft.step import StepPipeline

#: Pairs that are asked exactly, at most.
_MOST_PAIRS = 65536


class InPlaceUpdate:
    """Updates of one layout of the bodies of a simulation."""

    def __init__(self, pipeline: StepPipeline, bodies: list[CutBody], *, apart: bool | None = None) -> None:
        """`apart`: whether the host has copies of what the device has; None: where they are apart."""
        self._pipeline, self.assembly = pipeline, pipeline.assembly
        device, patches = self.assembly.device, pipeline.patches
        self.log = UndoLog()
        self._mirror = mirror = HostMirror(device, apart=device.is_cuda if apart is None else apart)
        self._shared = SharedRoom(pipeline, mirror)
        self._sent_lists = self._shared.list_ends()
        self._here, self._boxes = mirror.of(pipeline.surface_end), None
        if mirror.apart:
            self._boxes = HostBoxes(mirror, patches.tree, pipeline.surface_end, patches.frame)
        fitted = patches.moving_boxes.nodes if self._boxes is None else self._boxes.nodes
        frame = wp.vec3d(*patches.frame.origin), patches.frame.scale
        self._surfaces = FittedSurfaces([self._shared.tree.arrays, fitted, self._here, *frame], self._fit_surfaces)
        known = [own for own in bodies if own.given.material is None]
        self._bodies = {id(own): self._prepared(BodyRoom(self._shared, pipeline, own)) for own in known}
        self._graphs = PhaseGraphs(device)
        self._graphs.ready = True  # a step, and boxes that were fitted, have loaded all kernels
        self._looks = -1  # of the initial contacts, that the host has seen
        self._wait: Callable[[], None] = lambda: None  # until all is here that `refresh` has begun to read
        self._retired: list[np.ndarray] = []
        self._pair_count = blank(2)
        self._pairs = wp.zeros((_MOST_PAIRS, 5), dtype=wp.int32, device="cpu")
        self._elsewhere = blank(len(patches.faces))
        listed, traits = [self._pair_count, self._pairs], mirror.of(self.assembly.surface.traits)
        self._keeping = (
            PreparedLaunch(keep_near, [self._here, traits, *listed], mirror.host, dim=1, serial=True),
            PreparedLaunch(keep_uncertain, [self._here, *listed], mirror.host, dim=1, serial=True),
        )

    def refresh(self) -> None:
        """Before a cut: what the device has made of the bodies since the last one."""
        if not self._mirror.apart:
            return
        pipeline, dofs, contacts = self._pipeline, self.assembly.dofs, self._pipeline.initial_contacts
        assert self._boxes is not None
        wait = self._mirror.read(dofs.x)  # all that the blade, and the topology, need
        self._graphs("where surfaces are", self._find_surfaces)
        changed = [dofs.v, pipeline.surface_end, *self._boxes.fitted]
        if contacts.looks != self._looks:  # else nobody but cuts has written these
            changed += [self.assembly.surface.traits, contacts.given_traits, contacts.limits]
            self._looks = contacts.looks
        self._wait = self._mirror.read(*changed)
        wait()

    def _find_surfaces(self) -> None:
        """On the device, for the host."""
        assert self._boxes is not None
        self._pipeline.carry_surface()
        self._boxes.fit()

    def fits(self, own: CutBody) -> bool:
        """Whether a body can be updated here: its own arrays are those that there was room for."""
        room = self._bodies.get(id(own))
        return room is not None and room[0].fits(own)

    def apply(self, own: CutBody, changes: list[Any], opened: np.ndarray) -> bool:
        """Bring everything up to date; False, and nothing done, if some room is used up.

        Args:
            changes: of the complex.
            opened: facets that have just been opened.
        """
        self._wait()
        room, launches = self._bodies[id(own)]
        before = len(self.log)
        done = room.set_input(own, changes, opened)
        for (kernels, arrays), sent in zip(launches if done else (), room.sent, strict=False):
            for kernel in kernels:
                if done:
                    kernel.run()
                    done = not room.is_full
            for kind, numbers, noted in zip(KINDS, sent, self.log.take(room.write_log, *arrays), strict=True):
                self._mirror.note(kind, numbers, noted, self.log)
            if not done:
                break
        if not done:
            self.undo(before)
            return False
        count = len(self._retired)
        self._retired.append(room.retired())
        self.log.call(lambda: self._retired.__delitem__(slice(count, None)))
        self._forget_certificates(room)
        self._tell(own, room)
        return True

    def has_tables(self, own: CutBody) -> bool:
        """Whether it knows of a body, whose arrays are still those that it was made for."""
        return id(own) in self._bodies and self._bodies[id(own)][0].has_arrays_of(own)

    def prepare_part(self, own: CutBody, new: FoundPart) -> None:
        """Find the rows of what is a body soon, as far as it is listed, and what that weighs."""
        self._bodies[id(own)][0].labels.weigh(new)

    def part_off(self, own: CutBody, new: FoundPart) -> bool:
        """Make a body of a part that has come off, where its rows are; False, and nothing done, if that cannot be."""
        pipeline, assembly = self._pipeline, self.assembly
        pipeline.refresh_initial_contacts()
        room, _ = self._bodies[id(own)]
        part, of, labels = own.numbers[new.part], own.numbers[new.of], room.labels
        if part >= assembly.body_room or not room.has_room_for(new.part) or of in pipeline.initial_contacts.shells:
            return False
        labels.weigh(new)  # or what of it is not known yet
        home = assembly.used.ranges[of]
        begin = int(assembly.dof_base[home])
        rows = begin, begin + assembly.used.dofs[home]
        self.log.call(labels.label(part, of, rows, (assembly.dofs.body, assembly.surface.body)))
        if not labels.moves:
            return False  # what cannot move at all is an obstacle, which others meet in another way
        pulled_with_it = labels.has_surface(pipeline.pull.vertex)
        self.log.call(pipeline.pull.part_off(part, of, labels.held, pulled_with_it))
        self._shared.enter_part(part, of, labels.mass, labels.surface, self.log)
        room.enter_part(new, part, self.log)
        self._tell_of_part(own, new)
        self.send()
        return True

    def at_rest(
        self, own: CutBody, part: int, points: np.ndarray, near: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Where points are in the rest shape of a part, and the tetrahedra that have them; None if that is not sure."""
        room, _ = self._bodies[id(own)]
        return room.at_rest(part, points, near, self._surfaces)

    def inside_out(self, own: CutBody) -> np.ndarray | None:
        """(4, 3) the corners of a tetrahedron that was cut and is inside out where it is; None if there is none [m]."""
        return self._bodies[id(own)][0].inside_out()

    def is_apart(self, own: CutBody) -> bool:
        """Whether what was put elsewhere touches nothing; decided exactly."""
        room, _ = self._bodies[id(own)]
        patches, boxes, tree = self._pipeline.patches, self._boxes, self._shared.tree
        self._fit_surfaces()
        if room.asking is None:
            if boxes is None:
                fitted = (patches.moving_boxes.nodes, patches.moving_vertex_boxes)
            else:
                fitted = (boxes.nodes, boxes.vertices)
            inputs = [room.faces, room.walls, self._elsewhere, tree.arrays, tree.parent]
            inputs += [wp.vec3d(*patches.frame.origin), patches.frame.scale, *fitted]
            inputs += [blank(24 * OWN_GROUPS, -1), wp.empty(OWN_BOXES, dtype=MovingBox, device="cpu")]
            inputs += [wp.empty(12 * OWN_GROUPS, dtype=Lanes, device="cpu")]
            inputs += [self._here, self._pair_count, self._pairs]
            room.asking = PreparedLaunch(find_pairs, inputs, self._mirror.host, dim=1, serial=True)
        room.asking.run()
        for kept in self._keeping:
            if host(self._pair_count)[0]:
                kept.run()
        count, left_out = host(self._pair_count).tolist()
        if left_out:
            return False
        if not count:
            return True
        pairs = host(self._pairs)[:count]
        return not touch_exactly(self._here, pairs[:, :2], pairs[:, 2:])

    def send(self) -> None:
        """The cut stays for now: the device gets to know of it."""
        if self._mirror.apart:
            self._sent_lists = self._shared.send_lists(self._sent_lists)
            self._mirror.send(self.log)

    def undo(self, down_to: int = 0) -> None:
        """Put back what was written after so many entries of the log."""
        self.log.undo(down_to)

    def commit(self) -> None:
        """All that was written stays; what it has left may be used again."""
        self.log.forget()
        self._mirror.commit()
        for blocks in self._retired:
            self._shared.free(blocks)
        self._retired = []

    # -- inside ------------------------------------------------------------------------------------------------------

    def _fit_surfaces(self) -> None:
        """Know where surfaces are, and boxes for them."""
        self._wait()
        if self._boxes is None and not self._pipeline.surfaces_known:
            self._pipeline.fit_here()

    def _prepared(self, room: BodyRoom) -> tuple[BodyRoom, list[tuple[list[PreparedLaunch], Any]]]:
        """The launches of an update, in order, and which arrays they write."""
        shared, host_device = self._shared, self._mirror.host

        def prepared(kernel: wp.Kernel, *arguments: Any) -> PreparedLaunch:
            return PreparedLaunch(kernel, list(arguments), host_device, dim=1, serial=True)

        complex_, store, log = room.complex_arrays, room.store, room.write_log
        dofs, faces, walls, material = room.dofs, room.faces, room.walls, shared.material
        lanes, couple = shared.lanes, dof_update.couple_dofs if dofs.solid else sheet_update.couple_sheet
        of_dofs = [  # one by one: what is compiled as one is so large that nothing in it is inlined
            prepared(dof_update.place_dofs, room.dof_counts, complex_, dofs, log),
            prepared(couple, complex_, dofs, log, material),
            prepared(dof_update.lay_lanes, dofs, log, lanes, material),
        ]
        of_faces = [prepared(face_update.update_faces, room.face_counts, complex_, store, faces, log)]
        of_walls = [
            prepared(wall_update.inset_walls, complex_, store, faces, walls, log),
            prepared(wall_update.find_traits, faces, walls, log),
        ]
        of_hinges = [prepared(hinge_update.update_hinges, complex_, faces, walls, shared.hinges, log)]
        of_patches = [prepared(face_update.forget_certificates, *shared.certificates, faces, log)]
        prepared(wall_update.note_places, complex_, store, faces, walls, log).run()
        host(log.numbers)[:] = 0
        launches = of_dofs, of_faces, of_walls, of_hinges, of_patches
        written = room.dof_arrays, room.face_arrays, room.wall_arrays, shared.hinge_arrays, shared.certificate_arrays
        return room, list(zip(launches, written, strict=True))

    def _forget_certificates(self, room: BodyRoom) -> None:
        """Patches that have a cluster with other faces, of their own or around them, are searched from now on.

        Their certificates are gone by now (`forget_certificates`).
        """
        patches = self._pipeline.patches
        if patches.per_feature:
            return
        added = patches.changes.added
        length = len(added)
        added.append(room.touched_clusters)
        self.log.call(lambda: added.__delitem__(slice(length, None)))

    def _tell(self, own: CutBody, room: BodyRoom) -> None:
        """Whoever asks for bodies gets them as they are now; what was touched before counts no more."""
        assembly, pipeline = self.assembly, self._pipeline
        used, before = assembly.used, (assembly.outdated, list(assembly.used.dofs), pipeline.detection.sharp.count)
        hinged, pairs = pipeline.patches.hinged, pipeline.patches.hinged.count
        places = own.dofs, own.vertices
        counts = own.dofs.count, own.vertices.count
        told = assembly.current, list(used.vertices), list(used.faces_of), assembly.faces_now

        def back() -> None:
            assembly.outdated, used.dofs[:], pipeline.detection.sharp.count = before
            assembly.current, used.vertices[:], used.faces_of[:], assembly.faces_now = told
            places[0].count, places[1].count = counts
            hinged.count, hinged.outdated = pairs, True

        self.log.call(back)
        hinged.count, hinged.outdated = int(host(self._shared.hinges.count)[0]), True
        used.dofs[:] = [int(count) for count in room.dof_counts_of_ranges]
        pipeline.detection.sharp.count = room.sharp_count
        room.tell_places(own)
        assembly.outdated = lambda: self._bodies_now()
        assembly.faces_now = lambda: self._shared.faces_now()  # another one after each cut
        pipeline.detection.clear()
        pipeline.rows.live.zero_()

    def _tell_of_part(self, own: CutBody, new: FoundPart) -> None:
        """There is a body more: whoever asks for bodies gets it too."""
        assembly, pipeline = self.assembly, self._pipeline
        used, before, told = assembly.used, assembly.outdated, assembly.current
        lists = [(values, list(values)) for values in (assembly.names, used.ranges, used.vertices, used.faces_of)]
        of, number = own.numbers[new.of], own.numbers[new.part]
        places = (own.dofs, new.vertices), (own.vertices, new.names)

        def back() -> None:
            assembly.outdated, assembly.current = before, told
            for values, known in lists:
                values[:] = known
            for column, rows in places:
                column.label(rows, of)

        self.log.call(back)
        for column, rows in places:
            column.label(rows, number)
        home = used.ranges[of]
        assembly.names.append(own.name_of(new.part))
        used.ranges.append(home)
        used.vertices.append(np.zeros(0, np.int64))
        used.faces_of.append(np.zeros(0, np.int64))
        used.parted[home] = lambda body: own.dofs.rows_of(body, assembly.dof_base)
        assembly.outdated = lambda: self._bodies_now()
        pipeline.detection.clear()
        pipeline.rows.live.zero_()

    def _bodies_now(self) -> tuple[Any, ...]:
        """All bodies as they are now; notes which rows are theirs."""
        bodies, used = dict(enumerate(self.assembly.current)), self.assembly.used
        for number, (body, vertices, faces) in self.bodies_now().items():
            bodies[number], used.vertices[number], used.faces_of[number] = body, vertices, faces
        return tuple(bodies[number] for number in range(len(self.assembly)))

    def bodies_now(self, but: CutBody | None = None) -> dict[int, tuple[Any, np.ndarray, np.ndarray]]:
        """By number what has been cut, as it is now, but for one: the body, its vertices, and its faces."""
        rooms = [room for key, (room, _) in self._bodies.items() if key != id(but)]
        return {number: rest for room in rooms for number, *rest in room.bodies_now()}
