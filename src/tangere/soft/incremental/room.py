"""Tables beside the arrays of a simulation that updates in place need: who owns what, what is free, where things are.

They are made once for each layout: of all bodies (`SharedRoom`), and of one that is cut (`BodyRoom`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LinearTree
from tangere.runtime import PreparedLaunch
from tangere.soft.incremental.cpu import dof_update, face_update, hinge_update, wall_update
from tangere.soft.incremental.cpu.rest_walk import UNSURE, find_at_rest, find_lost
from tangere.soft.incremental.cpu.sheet_rest import find_at_rest_of_sheet
from tangere.soft.incremental.host_mirror import HostMirror
from tangere.soft.incremental.part_labels import PartLabels
from tangere.soft.incremental.undo_log import UndoLog, flat, host, write_log
from tangere.soft.model.assembled_bodies import CLOSED, MOST_PARTS, RIM, WALL, DofCoupling, WholeBodies, struct_of
from tangere.soft.model.material import lame_moduli, rigidity_of
from tangere.soft.safe_step.patch_layout import ears
from tangere.soft.solver.cpu.dof_lanes import dof_lanes

if TYPE_CHECKING:
    from tangere.soft.cutting.connected_parts import FoundPart
    from tangere.soft.cutting.cut_body import CutBody
    from tangere.soft.step import StepPipeline

#: Notes of one kernel, and things touched by one cut, at most.
_NOTES, _MOST_TOUCHED = 1 << 19, 1 << 15


@dataclass(frozen=True)
class FittedSurfaces:
    """Where surfaces are, and a tree over them, for kernels of the host."""

    inputs: list[Any]  #: tree, boxes of its nodes, places of surface vertices, origin and scale of the boxes
    fit: Callable[[], None]  #: makes sure that they are of now


def ints(array: Any) -> wp.array:
    """Whole numbers on the host."""
    return wp.array(np.ascontiguousarray(array), dtype=wp.int32, device="cpu")


def blank(count: int, value: int = 0) -> wp.array:
    """So many whole numbers."""
    return wp.full(count, value, dtype=wp.int32, device="cpu")


def _places(tree: LinearTree, items: int) -> tuple[np.ndarray, np.ndarray]:
    """By item the place in a tree, -1 for none; by place the cluster."""
    first, last, clusters = tree.first.numpy(), tree.last.numpy(), tree.clusters.numpy()
    size = last[clusters] - first[clusters] + 1
    filled = int(size.sum())
    place_of = np.full(items, -1)
    place_of[tree.order.numpy()[:filled]] = np.arange(filled)
    room = np.where(size > 0, size, 8)
    return place_of, np.repeat(np.arange(len(clusters)), room)


class SharedRoom:
    """Of the layout of all bodies."""

    def __init__(self, pipeline: StepPipeline, mirror: HostMirror) -> None:
        assembly, patches, sharp = pipeline.assembly, pipeline.patches, pipeline.detection.sharp
        self.pipeline, self.assembly, self.mirror = pipeline, assembly, mirror
        whole, faces, vertices = assembly.rest_mesh, len(patches.faces), len(assembly.surface.rest)
        topology, edges = whole.topology, len(patches.edges)
        self.lanes = dof_lanes(assembly)
        place_of, cluster_of = _places(patches.tree, faces)
        order = patches.tree.order.numpy()
        live = int((place_of >= 0).sum())
        vertex_face = np.full(vertices, -1)
        vertex_face[patches.tree.items.numpy()[:live].ravel()] = np.repeat(order[:live], 3)
        edge_face, ear_of, sharp_of = np.full(edges, -1), np.full(vertices, -1), np.full(edges, -1)
        around = topology.edge_faces
        edge_face[: len(topology.edges)] = around.indices[around.offsets[:-1]]
        own_ears = ears(topology)
        ear_of[own_ears] = len(topology.edges) + np.arange(len(own_ears))
        sharp_of[sharp.number.numpy()[: sharp.count]] = np.arange(sharp.count)
        face_edges = np.zeros((faces, 3), np.int64)
        face_edges[: len(whole.faces)] = _edges_of_faces(topology)
        ranges = assembly.surface.face_ranges.numpy()
        numbers = np.full(face_update.NUMBERS, -1)
        numbers[:6] = assembly.used.faces, patches.used_edges, assembly.used.faces_at, 0, 0, 0
        lists, tree, surface = patches.lists, mirror.tree(patches.tree), assembly.surface
        self.tree, self.material = tree, mirror.struct(DofCoupling, assembly.material)
        spare = int(
            np.flatnonzero(tree.last.numpy()[tree.clusters.numpy()] < tree.first.numpy()[tree.clusters.numpy()])[0]
        )
        self.face_columns: dict[str, Any] = {
            "numbers": ints(numbers),
            "found": blank(face_update.FOUND),
            "faces": flat(mirror.of(patches.faces)),
            "ranges": flat(mirror.of(surface.face_ranges)),
            "at": mirror.of(surface.faces_at),
            "at_room": ints(ranges[:, 1] - ranges[:, 0]),
            "items": flat(tree.items),
            "order": tree.order,
            "last": tree.last,
            "first": tree.first,
            "node_of": tree.clusters,
            "lanes": flat(tree.corners),
            "place_of": ints(place_of),
            "cluster_of": ints(cluster_of),
            "spare_cluster": spare,
            "clusters": len(tree.clusters),
            "face_edges": ints(face_edges.ravel()),
            "ends": flat(mirror.of(patches.edges)),
            "edge_face": ints(edge_face),
            "vertex_face": ints(vertex_face),
            "ear_of": ints(ear_of),
            "edge_room": lists.edges.room,
            "vertex_room": lists.vertices.room,
            "edge_features": mirror.of(lists.edges.features),
            "edge_ranges": flat(mirror.of(lists.edges.ranges)),
            "vertex_features": mirror.of(lists.vertices.features),
            "vertex_ranges": flat(mirror.of(lists.vertices.ranges)),
            "free_faces": blank(faces),
            "free_edges": blank(edges),
            "sharp_of": ints(sharp_of),
            "slot_of": blank(faces, -1),
            "cluster_stamp": blank(len(tree.clusters)),
            "pending": blank(faces),
            "touched_clusters": blank(len(tree.clusters)),
            "keys": blank(_MOST_TOUCHED),
            "changed": blank(_MOST_TOUCHED),
            "touched": blank(_MOST_TOUCHED),
            "loose_edges": blank(_MOST_TOUCHED),
            "loose_vertices": blank(_MOST_TOUCHED),
            "slots": blank(_MOST_TOUCHED),
            "counts": ints([len(own) for own in assembly.used.vertices]),
            "rooms": ints(np.diff(assembly.vertex_base)),
            "body": mirror.of(surface.body),
        }
        hinged = patches.hinged
        self.hinges = struct_of(
            hinge_update.HingeRoom,
            mirror.host,
            count=ints([hinged.count]),
            pairs=flat(mirror.of(hinged.pairs)),
            second=flat(mirror.of(hinged.second)),
        )
        self.hinge_arrays = [self.hinges.pairs.numpy(), self.hinges.second.numpy(), self.hinges.count.numpy()], []
        certificates, at_clusters = patches.certificates, patches.patches_at_clusters
        clearances = [mirror.of(array) for array in certificates.clearances]
        #: Where the patches of each cluster begin, these, and what says that one need not be searched.
        self.certificates = [ints(at_clusters.offsets), ints(at_clusters.entries), mirror.of(certificates.certified)]
        self.certificates += [clearances[0], clearances[-1]]
        self.certificate_arrays = [host(self.certificates[2])], [host(array) for array in clearances]
        self.dof_columns = self._dof_columns()
        self.whole = mirror.struct(WholeBodies, assembly.whole)
        self.family = mirror.of(pipeline.rows.memory.bristles.family)
        self.wall_columns = self._wall_columns(vertices, faces, edges)
        self._freeing = PreparedLaunch(
            dof_update.free_blocks,
            [struct_of(dof_update.DofRoom, mirror.host, **self.dof_columns)],
            mirror.host,
            dim=1,
        )

    def _dof_columns(self) -> dict[str, Any]:
        pipeline, assembly, lanes, of = self.pipeline, self.assembly, self.lanes, self.mirror.of
        dofs, used, material = assembly.dofs, assembly.used, self.material
        count, table, lane_dofs = len(dofs.x), lanes.table.numpy(), lanes.dofs.numpy()
        colours = lanes.colours.numpy()
        lane_of, colour_of, fill = np.full(count, -1), np.full(count, -1), np.zeros(len(table), int)
        for colour, (begin, end) in enumerate(colours):
            groups = np.arange(begin, end)
            for lane in range(7, -1, -1):  # of a dof that is repeated the first lane counts
                lane_of[lane_dofs[groups, lane]] = 8 * groups + lane
            colour_of[lane_dofs[groups].ravel()] = colour
            fill[groups] = 1 + (np.diff(lane_dofs[groups], axis=1) != 0).sum(axis=1) if len(groups) else 0
        near_rows = int((table[:, 0] + table[:, 1]).max())
        part_rows = int((table[:, 2] + table[:, 3]).max())
        numbers = np.zeros(dof_update.NUMBERS, int)
        numbers[2:6] = used.neighbours, used.elements, near_rows, part_rows
        self.dt = wp.zeros(1, dtype=wp.float64, device="cpu")
        return {
            "numbers": ints(numbers),
            "changed": blank(_MOST_TOUCHED),
            "blended": wp.zeros(_MOST_TOUCHED, dtype=wp.vec3i, device="cpu"),
            "blends": wp.zeros(_MOST_TOUCHED, dtype=wp.float64, device="cpu"),
            "counts": ints(used.dofs),
            "rooms": ints(np.diff(assembly.dof_base)),
            "body": of(dofs.body),
            "touched": blank(_MOST_TOUCHED),
            "star": blank(dof_update.MOST_AROUND),
            "near": blank(dof_update.MOST_AROUND),
            "near_weight": wp.zeros(dof_update.MOST_AROUND, dtype=wp.float64, device="cpu"),
            "near_place": blank(count),
            "near_stamp": blank(count),
            "x": flat(of(dofs.x)),
            "v": flat(of(dofs.v)),
            "mass": of(dofs.mass),
            "diagonal": material.diagonal,
            "inertia": of(pipeline.inertia),
            "plain_inertia": of(pipeline.pull.plain_inertia),
            "damping": of(dofs.damping),
            "dt": self.dt,
            "limit": wp.full(count, np.inf, dtype=wp.float64, device="cpu"),
            "free": of(dofs.free),
            "near_ranges": flat(material.neighbour_ranges),
            "part_ranges": flat(material.element_ranges),
            "lane_of": ints(lane_of),
            "colour_of": ints(colour_of),
            "fill": ints(fill),
            "group_stamp": blank(len(table)),
            "groups": blank(len(table)),
            "colour_ranges": flat(lanes.colours),
            "colour_ends": ints(np.append(colours[1:, 0], len(table))),
            "table": flat(lanes.table),
            "lane_dofs": flat(lanes.dofs),
            "swept": blank(8 * len(table)) if assembly.swept is None else of(assembly.swept[0]),
            "spare_near": blank(dof_update.MOST_ROWS, -1),
            "spare_part": blank(dof_update.MOST_ROWS, -1),
            "next_near": blank(len(lanes.weights), -1),
            "next_part": blank(len(lanes.laws), -1),
            "retired": wp.zeros(len(table), dtype=wp.vec4i, device="cpu"),
        }

    def _wall_columns(self, vertices: int, faces: int, edges: int) -> dict[str, Any]:
        pipeline, assembly, of = self.pipeline, self.assembly, self.mirror.of
        surface, detection, bristles = assembly.surface, pipeline.detection, pipeline.rows.memory.bristles
        sharp, contacts = detection.sharp, pipeline.initial_contacts
        known = np.zeros(vertices, int)
        known[np.concatenate([assembly.vertex_rows(number) for number in range(len(assembly))])] = 1
        columns: dict[str, Any] = {
            "numbers": blank(wall_update.NUMBERS),
            "x": self.dof_columns["x"],
            "free": of(assembly.dofs.free),
            "carriers": flat(of(surface.carriers)),
            "weights": flat(of(surface.weights)),
            "rest": flat(of(surface.rest)),
            "contact_mass": of(surface.contact_mass),
            "contact_area": of(surface.contact_area),
            "limits": of(contacts.limits),
            "start": flat(of(pipeline.surface_start)),
            "end": flat(of(pipeline.surface_end)),
            "traits": of(surface.traits),
            "given_traits": of(contacts.given_traits),
            "first_vertex": ints(np.resize(assembly.vertex_base[:-1], assembly.body_room)),
            "body": of(surface.body),
            "dof_limit": self.dof_columns["limit"],
            "distance": pipeline.options.distance,
            "known": ints(known),
            "forgets": blank(vertices),
            "moved": blank(vertices),
            "vertex_stamp": blank(vertices),
            "face_stamp": blank(faces),
            "edge_stamp": blank(edges),
            "cluster_stamp": blank(len(pipeline.patches.tree.clusters)),
            "clusters_around": blank(len(pipeline.patches.tree.clusters)),
            "facets": blank(_MOST_TOUCHED),
            "normals": wp.zeros(_MOST_TOUCHED, dtype=wp.vec3d, device="cpu"),
            "ring": blank(_MOST_TOUCHED),
            "around": blank(_MOST_TOUCHED),
            "sharp_ends": flat(of(sharp.ends)),
            "free_list": blank(max(1, len(sharp.ends))),
            "first_edge": detection.partners.first_edge,
            "partner": of(bristles.partner, read=False),
            "strain": flat(of(bristles.strain, read=False)),
            "bristle_limit": of(bristles.limit, read=False),
            "elsewhere": of(bristles.elsewhere, read=False),
        }
        numbers = columns["numbers"].numpy()
        if sharp.tree is not None:
            tree = self.mirror.tree(sharp.tree)
            place_of, cluster_of = _places(tree, len(sharp.ends))
            nodes = tree.clusters.numpy()
            spare = int(np.flatnonzero(tree.last.numpy()[nodes] < tree.first.numpy()[nodes])[0])
            columns |= {"items": flat(tree.items), "order": tree.order, "last": tree.last, "first": tree.first}
            columns |= {"node_of": tree.clusters, "place_of": ints(place_of), "cluster_of": ints(cluster_of)}
            columns["clusters"] = len(nodes)
            numbers[3:6] = sharp.count, 0, spare
        else:
            columns |= dict.fromkeys(("items", "order", "last", "first", "node_of", "place_of", "cluster_of"), blank(1))
            columns["clusters"] = 0
        return columns

    def list_ends(self) -> tuple[int, int]:
        """How long the lists of neighbours and of elements are."""
        neighbours, elements = self.dof_columns["numbers"].numpy()[
            [int(dof_update.NEIGHBOURS), int(dof_update.ELEMENTS)]
        ]
        return int(neighbours), int(elements)

    def faces_now(self) -> tuple[np.ndarray, np.ndarray]:
        """(f,) the rows of all faces that there are, rising, and their corners (f, 3)."""
        columns = self.face_columns
        rows = np.flatnonzero(host(columns["place_of"]) >= 0)
        return rows, host(columns["faces"]).reshape(-1, 3)[rows]

    def send_lists(self, begin: tuple[int, int]) -> tuple[int, int]:
        """What has come to these lists since they were so long goes to the device; says how long they are."""
        end, material = self.list_ends(), self.assembly.material
        for array, k in ((material.neighbours, 0), (material.weights, 0), (material.opposite, 1), (material.laws, 1)):
            self.mirror.send_rows(array, begin[k], end[k])
        return end

    def enter_part(self, part: int, of: int, mass: float, surface: np.ndarray, log: UndoLog) -> None:
        """A part has come off a body: what is known of each as a whole, and one of its surface vertices."""
        used, whole, both = self.assembly.used, self.whole, np.array([part, of])
        home, after = used.ranges[of], int(host(whole.following)[of])
        left = float(host(whole.mass)[of]) - mass
        for array, values in (
            (whole.range, (home, home)),
            (whole.place, (used.ranges.count(home), host(whole.place)[of])),
            (whole.following, (after, part)),
            (whole.mass, (mass, left)),
            (whole.damping, host(whole.damping)[of]),
            (whole.tool, (0, 0)),
            (self.family, host(self.family)[of]),
        ):
            log.keep(array, both)[both] = values
            self.mirror.note_rows(array, both, log)
        firsts, bodies = self.wall_columns["first_vertex"], host(self.wall_columns["body"])
        first = int(host(firsts)[of])
        if bodies[first] != of:
            begin, end = self.assembly.vertex_base[home : home + 2]
            first = int(begin + np.argmax(bodies[begin:end] == of))
        log.keep(firsts, both)[both] = surface[0], first

    def free(self, blocks: np.ndarray) -> None:
        """These blocks of rows may be used again."""
        if len(blocks):
            host(self.dof_columns["retired"])[: len(blocks)] = blocks
            host(self.dof_columns["numbers"])[int(dof_update.RETIRED)] = len(blocks)
            self._freeing.run()


class BodyRoom:
    """Of one body that is cut."""

    def __init__(self, shared: SharedRoom, pipeline: StepPipeline, own: CutBody) -> None:
        assembly, given, mirror = pipeline.assembly, own.given, shared.mirror
        self._shared, self._pipeline, self._own = shared, pipeline, own
        self.complex_arrays, self.store = own.complex.arrays, own.surface_store
        self.write_log = write_log(_NOTES)
        self.asking: PreparedLaunch | None = None
        self._names = own.numbers.copy()
        parts = max(own.numbers) + 1 + MOST_PARTS
        of_dofs, of_vertices = (np.zeros((parts, 3), np.int32) for _ in range(2))
        for part, number in own.numbers.items():
            of_dofs[part] = number, number, assembly.dof_base[number]  # a range of its own: nothing has come off it yet
            of_vertices[part] = number, number, assembly.vertex_base[number]
        mu, lam = lame_moduli(given)
        vertex_room, name_room = self.complex_arrays.vertex_room, own.name_room
        row_of = np.full(vertex_room, -1)
        rows = own.dofs.rows(assembly.dof_base)
        row_of[: len(rows)] = rows
        self.dof_counts, self.face_counts = blank(2), blank(1)
        self._x = mirror.of(assembly.dofs.x)
        self._walk: list[wp.array] = [blank(0)]
        self._walk_counts = blank(3)
        self.dofs = struct_of(
            dof_update.DofRoom,
            mirror.host,
            **shared.dof_columns,
            known=ints([len(rows)]),
            row_of=ints(row_of),
            parts=of_dofs,
            vertex_stamp=blank(vertex_room),
            simplex_stamp=blank(self.complex_arrays.simplex_room),
            mu=mu,
            lam=lam,
            density=given.density,
            thickness=given.thickness,
            rigidity=rigidity_of(given),
            solid=int(given.is_solid),
        )
        vertex_row = np.full(name_room, -1)
        names = own.vertices.rows(assembly.vertex_base)
        vertex_row[: len(names)] = names
        face_row = self._face_rows(vertex_row)
        slot_of = shared.face_columns["slot_of"].numpy()
        slots = np.flatnonzero(face_row >= 0)
        slot_of[face_row[slots]] = slots
        self.faces = struct_of(
            face_update.FaceRoom,
            mirror.host,
            **shared.face_columns,
            known=ints([len(names)]),
            opened=blank(name_room),
            vertex_row=ints(vertex_row),
            face_row=ints(face_row),
            parts=of_vertices,
            vertex_stamp=blank(name_room),
        )
        limits, alive = pipeline.initial_contacts.limits.numpy(), names >= 0
        by_dof = shared.dof_columns["limit"].numpy()
        np.minimum.at(by_dof, row_of[own.surface_dofs[: len(names)][alive]], limits[names[alive]])
        self.inset = wp.array(own.insets(name_room), dtype=wp.int32, device="cpu", copy=False)
        self.walls = struct_of(
            wall_update.WallRoom,
            mirror.host,
            **shared.wall_columns,
            heads=blank(2 * name_room + 1, -1),
            following=blank(name_room, -1),
            hash_of=blank(name_room, -1),
            row_of=self.dofs.row_of,
            inset=self.inset,
            half_kerf=0.5 * own.kerf,
            at_cut=int(WALL if given.is_solid else RIM),
            mass_per_area=given.mass_per_area,
            stiffness=given.youngs_modulus,
        )

        def views(struct: Any, *columns: str) -> list[np.ndarray]:
            return [getattr(struct, name).numpy() for name in columns]

        d, f, w = self.dofs, self.faces, self.walls
        ints_of_dofs = "row_of free near_ranges part_ranges lane_of colour_of fill colour_ranges table lane_dofs counts"
        ints_of_dofs += " known swept body"
        values_of_dofs = "x v mass diagonal limit inertia plain_inertia"
        self.dof_arrays = views(d, *ints_of_dofs.split()), views(d, *values_of_dofs.split())
        of_faces = "numbers vertex_row face_row counts faces ranges at at_room items order last lanes place_of"
        of_faces += " face_edges ends edge_face vertex_face ear_of edge_features edge_ranges vertex_features"
        of_faces += " vertex_ranges free_faces free_edges sharp_of slot_of known body"
        self.face_arrays = views(f, *of_faces.split()), []
        of_walls = "numbers heads following hash_of carriers traits given_traits sharp_ends items order last place_of"
        of_walls = [*views(w, *of_walls.split(), "free_list"), f.sharp_of.numpy(), w.partner.numpy()]
        of_walls += [*views(f, "free_edges", "numbers"), *views(w, "elsewhere", "known")]
        values_of_walls = "weights rest contact_mass contact_area limits start end strain bristle_limit"
        self.wall_arrays = of_walls, views(w, *values_of_walls.split())
        bristles, rows = pipeline.rows.memory.bristles, {"row_of": d.row_of, "vertex_row": f.vertex_row}
        rows |= {"mass": d.mass, "free": d.free, "dof_body": d.body, "surface_body": f.body}
        self.labels = PartLabels(mirror, rows, bristles.elsewhere)
        #: Of these lists, which array that is sent each one is.
        written = self.dof_arrays, self.face_arrays, self.wall_arrays, shared.hinge_arrays, shared.certificate_arrays
        self.sent = [tuple(map(mirror.numbers, arrays)) for arrays in written]

    def _face_rows(self, vertex_row: np.ndarray) -> np.ndarray:
        """By triangle of the cut surface the face of the simulation that has the same corners."""
        assembly, triangles = self._pipeline.assembly, self._own.triangles_by_slot
        slots = np.flatnonzero(triangles[:, 0] >= 0)
        ours = np.concatenate([assembly.face_rows(number) for number in self._own.numbers.values()])
        corners = np.sort(assembly.surface.faces.numpy()[ours], axis=1)
        wanted = np.sort(vertex_row[triangles[slots]], axis=1)
        one, other = np.lexsort(corners.T[::-1]), np.lexsort(wanted.T[::-1])
        assert np.array_equal(corners[one], wanted[other])
        found = np.full(self._own.slot_room, -1)
        found[slots[other]] = ours[one]
        return found

    def at_rest(
        self, part: int, points: np.ndarray, near: np.ndarray | None, surfaces: FittedSurfaces
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Where points are in the rest shape of a part, and simplices that have them or -1; None if it is not sure.

        Surfaces are fitted only where some point is not near to where one was.
        """
        count, arrays, own = len(points), self._walk, self._own
        if len(arrays[0]) < count:
            arrays = self._walk = [
                wp.zeros(2 * count, dtype=kind, device="cpu") for kind in (wp.vec3d, wp.int32, wp.vec3d, wp.int32)
            ]
            body, host_device = [self.dofs.row_of, self._x, *arrays], self._shared.mirror.host
            kernel, inputs = find_at_rest, [self._walk_counts, self.complex_arrays]
            if self.complex_arrays.size == 3:
                room = blank(2 * count), wp.zeros(2 * count, dtype=wp.float64, device="cpu")
                kernel, body = find_at_rest_of_sheet, [*body, *room]
            else:
                body = [wp.uint64(own.complex.tree.id), own.complex.edge, *body]
                far = [*inputs, self.store, self.faces, *surfaces.inputs, own.kerf, *body]
                self._finding = PreparedLaunch(find_lost, far, host_device, dim=1, serial=True)
            self._walking = PreparedLaunch(kernel, [*inputs, *body], host_device, dim=1, serial=True)
        given, seeds, found, kinds = (host(array) for array in arrays)
        given[:count] = points
        seeds[:count] = -1 if near is None else near
        counts = host(self._walk_counts)
        counts[:2] = count, part
        self._walking.run()
        if counts[2]:
            surfaces.fit()
            self._finding.run()
        if (kinds[:count] == int(UNSURE)).any():
            return None
        return found[:count].copy(), seeds[:count].copy()

    def inside_out(self) -> np.ndarray | None:
        """(4, 3) the corners of one that is inside out [m]."""
        which = int(host(self._shared.dof_columns["numbers"])[int(dof_update.INSIDE_OUT)])
        if which < 0:
            return None
        return host(self._x)[host(self.dofs.row_of)[host(self.complex_arrays.corners)[which]]]

    def fits(self, own: CutBody) -> bool:
        """Whether the arrays of the body are still those this was made for, and so are its parts."""
        return self.has_arrays_of(own) and own.numbers == self._names

    def has_arrays_of(self, own: CutBody) -> bool:
        """Whether the arrays of the body are still those this was made for: they grow."""
        return own.complex.arrays is self.complex_arrays and (own.surface is None or own.surface.arrays is self.store)

    def has_room_for(self, part: int) -> bool:
        """Whether there is room for a part of this number."""
        return part < len(host(self.dofs.parts))

    def enter_part(self, new: FoundPart, number: int, log: UndoLog) -> None:
        """A part has come off, and is the body of this number."""
        for array in (self.dofs.parts, self.faces.parts):
            _, home, first = host(array)[new.of]
            log.keep(array, [new.part])[new.part] = number, home, first
        self._names[new.part] = number
        log.call(lambda: self._names.__delitem__(new.part))

    def set_input(self, own: CutBody, changes: list[Any], opened: np.ndarray) -> bool:
        """Tell the kernels what has changed; False if it is more than they have room for, or opens a closed sheet."""
        changed = changes[0].changed if len(changes) == 1 else np.unique(np.concatenate([c.changed for c in changes]))
        blended = np.concatenate([change.blended for change in changes])
        slots = own.looked_at()
        if max(len(changed), len(blended), len(slots)) > _MOST_TOUCHED:
            return False
        columns = self._shared.dof_columns
        host(columns["changed"])[: len(changed)] = changed
        host(columns["blended"])[: len(blended)] = blended
        host(columns["blends"])[: len(blended)] = np.concatenate([change.blends for change in changes])
        host(self.dof_counts)[:] = len(changed), len(blended)
        host(self._shared.dt)[0] = self._pipeline.dt
        host(self._shared.face_columns["slots"])[: len(slots)] = slots
        host(self.face_counts)[0] = len(slots)
        if len(opened) and own.complex.size == 3:
            any_row = host(self.faces.vertex_row)[0]
            if host(self.walls.given_traits)[any_row] & int(CLOSED):
                return False
        host(self.faces.opened)[own.names_at(opened)] = 1
        return True

    @property
    def is_full(self) -> bool:
        """Whether some room was used up."""
        return bool(host(self.write_log.numbers)[1])

    @property
    def touched_clusters(self) -> np.ndarray:
        """(k,) with other faces, or other features."""
        columns = self._shared.face_columns
        return host(columns["touched_clusters"])[: host(columns["found"])[int(face_update.CLUSTERS)]].copy()

    @property
    def dof_counts_of_ranges(self) -> np.ndarray:
        """(r,) dofs in each range."""
        return host(self._shared.dof_columns["counts"])

    @property
    def sharp_count(self) -> int:
        """Sharp edges, with places that are free."""
        return int(host(self._shared.wall_columns["numbers"])[int(wall_update.SHARP)])

    def retired(self) -> np.ndarray:
        """(k, 4) blocks of rows that groups have left."""
        columns = self._shared.dof_columns
        return host(columns["retired"])[: host(columns["numbers"])[int(dof_update.RETIRED)]].copy()

    def tell_places(self, own: CutBody) -> None:
        """Where new rows of the complex, and of the cut surface, are in the arrays of the simulation."""
        assembly = self._pipeline.assembly
        rows = host(self.dofs.row_of)[own.dofs.count : own.complex.counts[1]]
        own.dofs.append(rows, assembly.dof_base, host(self.dofs.body))
        names = host(self.faces.vertex_row)[own.vertices.count : int(host(self.faces.known)[0])]
        own.vertices.append(names, assembly.vertex_base, host(self.faces.body))

    def bodies_now(self) -> list[tuple[int, Any, np.ndarray, np.ndarray]]:
        """Bodies by numbers, and their rows: vertices counted from the first of the body, and faces."""
        own, assembly, found = self._own, self._pipeline.assembly, []
        vertex_row, face_row = host(self.faces.vertex_row), host(self.faces.face_row)
        for number, body, names, slots in own.shapes(own.fixed):
            begin = assembly.vertex_base[assembly.used.ranges[number]]
            found.append((number, body, vertex_row[names] - begin, face_row[slots]))
        return found


def _edges_of_faces(topology: Any) -> np.ndarray:
    """(f, 3) the edge between corner k and the next one."""
    keys = np.sort(topology.edges, axis=1).astype(np.int64) @ [topology.vertex_count, 1]
    order = np.argsort(keys)
    sides = np.stack([topology.faces, np.roll(topology.faces, -1, axis=1)], axis=2)
    asked = np.sort(sides, axis=2).astype(np.int64) @ [topology.vertex_count, 1]
    return order[np.searchsorted(keys[order], asked)]
