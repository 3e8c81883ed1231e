"""All bodies of a simulation in common arrays on one device: degrees of freedom, materials, colours, surfaces.

Vertices of the shapes ("dofs") and of the surfaces are numbered through, body after body. Dofs of one colour are not
coupled by any material, so that they may move at once; colours are given greedily, several times. Obstacles have dofs
too, which never move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.model.material import ElasticMaterial, material_of

wp.set_module_options(SOUND)


@wp.struct
class DofArrays:
    """The degrees of freedom of all bodies."""

    x: wp.array[wp.vec3d]  #: (n,) where they are [m]
    v: wp.array[wp.vec3d]  #: (n,) velocities [m/s]
    mass: wp.array[wp.float64]  #: (n,) [kg]
    free: wp.array[int]  #: (n,) 1 for those that move
    body: wp.array[int]  #: (n,)
    damping: wp.array[wp.float64]  #: (n,) [1/s]


@wp.struct
class WholeBodies:
    """Each body as a whole, (b,), with room for parts that come off: `DofArrays.body` then tells dofs of a range apart.

    A range of the arrays has the dofs of one body, the first of its bodies, and of what has come off it.
    """

    base: wp.array[int]  #: (r + 1,) the first dof of each range
    range: wp.array[int]  #: the range that it has dofs in
    place: wp.array[int]  #: how many bodies of its range come before it
    following: wp.array[int]  #: the next body of its range, or -1
    mass: wp.array[wp.float64]  #: [kg]
    damping: wp.array[wp.float64]  #: [1/s]
    tool: wp.array[int]  #: 1 if nothing of it is free


@wp.struct
class DofCoupling:
    """What holds the dofs together, dof after dof (`material`): weighted neighbours, and elements."""

    neighbour_ranges: wp.array[wp.vec2i]
    neighbours: wp.array[int]
    weights: wp.array[wp.float64]
    diagonal: wp.array[wp.float64]
    element_ranges: wp.array[wp.vec2i]
    opposite: wp.array[wp.vec3i]
    laws: wp.array[wp.vec3d]


@wp.struct
class SurfaceArrays:
    """The surfaces of all bodies."""

    carriers: wp.array[wp.vec4i]  #: (s,) the dofs that carry each vertex
    weights: wp.array[wp.vec4d]  #: (s,)
    rest: wp.array[wp.vec3d]  #: (s,) vertices at rest [m]
    contact_mass: wp.array[wp.float64]  #: (s,) [kg] share of each vertex in the mass of its body; 0 for obstacles
    contact_area: wp.array[wp.float64]  #: (s,) Young's modulus times the area around it [N]; 0 for obstacles
    body: wp.array[int]  #: (s,)
    traits: wp.array[int]  #: (s,) bits: CLOSED surface, STILL (none of its carriers moves), SMOOTH, WALL, RIM
    faces: wp.array2d[int]  #: (f, 3)
    face_ranges: wp.array[wp.vec2i]  #: (s,) triangles at each vertex: from … to below it in `faces_at`
    faces_at: wp.array[int]


def struct_of(kind: Any, device: wp.Device, /, **members: Any) -> Any:
    """A struct with these members; NumPy arrays go to the device, as what the struct says they are."""
    made = kind()
    for name, value in members.items():
        if isinstance(value, np.ndarray):
            value = wp.array(np.ascontiguousarray(value), dtype=kind.vars[name].type.dtype, device=device)
        setattr(made, name, value)
    return made


@dataclass(eq=False)
class AssembledBodies:
    """n dofs, s surface vertices, f surface triangles, b bodies; those of bodies that are cut have room for more."""

    current: tuple[Body, ...]  #: the bodies as they were when `outdated` was last None
    device: wp.Device
    dof_base: np.ndarray  #: (b + 1,) number of the first dof of each body, and the total
    vertex_base: np.ndarray  #: (b + 1,) the same for surface vertices
    rest_mesh: Mesh  #: all surfaces, at rest, as one mesh, when the arrays were laid out

    dofs: DofArrays
    whole: WholeBodies
    order: wp.array  #: (m,) int32: the dofs that move, by colour
    colours: np.ndarray  #: (c + 1,) where each colour begins in `order`
    material: DofCoupling
    surface: SurfaceArrays
    used: UsedRoom
    names: list[str]  #: what the bodies are called
    #: What makes the bodies anew after they were cut in place; None while they are as they were laid out.
    outdated: Callable[[], tuple[Body, ...]] | None = None
    #: Where cuts have written faces, since they were laid out: says which rows are in use, and their corners.
    faces_now: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None
    lanes: Any = None  #: what sweeps on CPUs make of it (`solver.cpu.dof_lanes`)
    swept: Any = None  #: what those on CUDA make of it where there is room (`solver.cuda.sweeps`)

    @property
    def has_room(self) -> bool:
        """Whether cuts may add to it in place."""
        return int(self.dof_base[-1]) > sum(len(body.shape.vertices) for body in self.current)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """At rest."""
        if self.outdated is not None:
            self.current, self.outdated = self.outdated(), None
        return self.current

    def __len__(self) -> int:
        """How many bodies there are."""
        return len(self.names)

    @property
    def body_room(self) -> int:
        """How many bodies there is room for."""
        return len(self.whole.mass)

    @property
    def dof_rows(self) -> np.ndarray | slice:
        """The dofs that there are, in arrays with room for more."""
        if self.used.ranges == list(range(len(self.used.dofs))):
            return _live(self.dof_base, [np.arange(count) for count in self.used.dofs])
        every = np.arange(self.dof_base[-1])
        return np.concatenate([every[self.dofs_of(body)] for body in range(len(self))])

    def inertia(self, dt: float) -> np.ndarray:
        """What holds each dof at its free motion in a step of this length [kg/s^2]: m (1 + c dt) / dt^2, damping c."""
        return self.dofs.mass.numpy() * (1.0 / dt**2 + self.dofs.damping.numpy() / dt)

    def dofs_of(self, body: int) -> np.ndarray | slice:
        """The dofs of a body, in arrays with room for more."""
        own = self.used.ranges[body]
        if self.used.ranges.count(own) > 1:
            return self.used.parted[own](body)
        return slice(int(self.dof_base[own]), int(self.dof_base[own]) + self.used.dofs[own])

    def vertex_rows(self, body: int) -> np.ndarray:
        """The surface vertices of a body, in arrays with room for more."""
        _ = self.bodies
        return self.vertex_base[self.used.ranges[body]] + self.used.vertices[body]

    def face_rows(self, body: int) -> np.ndarray:
        """The surface triangles of a body, rising with its own numbers or not."""
        _ = self.bodies
        return self.used.faces_of[body]

    @staticmethod
    def of(bodies: Sequence[Body], device: wp.Device, *, growing: bool = False) -> AssembledBodies:
        """Lay out bodies; `growing`: with room for what cuts add."""
        room = [_spare_room(body) if growing else (0, 0) for body in bodies]
        dof_room, vertex_room = ([one[k] for one in room] for k in range(2))
        materials = [material_of(body) for body in bodies]
        surfaces = [body.surface for body in bodies]
        dof_count, vertex_count = [len(b.shape.vertices) for b in bodies], [len(s.vertices) for s in surfaces]
        dof_base = _bases([a + b for a, b in zip(dof_count, dof_room, strict=True)])
        vertex_base = _bases([a + b for a, b in zip(vertex_count, vertex_room, strict=True)])

        def by_dof(rows: list[np.ndarray], fill: Any = None) -> np.ndarray:
            return _with_room(rows, dof_room, fill)

        def by_vertex(rows: list[np.ndarray], fill: Any = None) -> np.ndarray:
            return _with_room(rows, vertex_room, fill)

        faces = [surface.faces + np.int32(base) for surface, base in zip(surfaces, vertex_base, strict=False)]
        whole = Mesh(by_vertex([surface.vertices for surface in surfaces]), np.concatenate(faces), name="all surfaces")
        free = by_dof([~body.fixed for body in bodies], fill=False)
        parts, lengths = _joined_material(materials, dof_base, dof_room)
        order, colours = _by_colour(parts["neighbour_ranges"], parts["neighbours"], free)
        carriers = by_vertex([body.carriers[0] + base for body, base in zip(bodies, dof_base, strict=False)])
        weights = by_vertex([body.carriers[1] for body in bodies])
        still = ~(free[carriers] & (weights != 0.0)).any(axis=1)
        closed = by_vertex([np.full(len(s.vertices), s.topology.is_closed) for s in surfaces], fill=False)
        area = by_vertex([_vertex_areas(surface) for surface in surfaces], fill=0.0)
        capacity = np.diff(vertex_base)
        heavy = np.repeat([0.0 if b.is_obstacle else b.mass_per_area for b in bodies], capacity)
        stiff = np.repeat([0.0 if b.is_obstacle else b.youngs_modulus for b in bodies], capacity)
        around = whole.topology.vertex_faces
        walls = by_vertex([int(WALL if b.is_solid else RIM) * b.wall_vertices for b in bodies], fill=0)
        traits = int(CLOSED) * closed + int(STILL) * still + int(SMOOTH) * smooth_vertices(whole) + walls
        more_faces = 2 * sum(vertex_room)

        dofs = struct_of(
            DofArrays,
            device,
            x=by_dof([body.shape.vertices for body in bodies]),
            v=by_dof([body.velocity for body in bodies], fill=0.0),
            mass=by_dof([body.vertex_mass for body in bodies], fill=0.0),
            free=free,
            body=np.repeat(np.arange(len(bodies)), np.diff(dof_base)),
            damping=np.repeat([body.damping for body in bodies], np.diff(dof_base)),
        )
        surface = struct_of(
            SurfaceArrays,
            device,
            carriers=carriers,
            weights=weights,
            rest=whole.vertices,
            contact_mass=area * heavy,
            contact_area=area * stiff,
            body=np.repeat(np.arange(len(bodies)), capacity),
            traits=traits,
            faces=_with_room([whole.faces], [more_faces], fill=0),
            face_ranges=np.stack([around.offsets[:-1], around.offsets[1:]], axis=1),
            faces_at=_with_room([around.indices], [16 * sum(vertex_room)], fill=0),
        )

        return AssembledBodies(
            current=tuple(bodies),
            device=device,
            dof_base=dof_base,
            vertex_base=vertex_base,
            rest_mesh=whole,
            dofs=dofs,
            whole=_whole_bodies(bodies, dof_base, MOST_PARTS if growing else 0, device),
            order=wp.array(order, dtype=wp.int32, device=device),
            colours=colours,
            material=struct_of(DofCoupling, device, **parts),
            surface=surface,
            used=UsedRoom(
                dofs=dof_count,
                vertices=[np.arange(count) for count in vertex_count],
                faces_of=np.split(np.arange(len(whole.faces)), np.cumsum([len(own) for own in faces])[:-1]),
                faces=len(whole.faces),
                faces_at=len(around.indices),
                **lengths,
                ranges=list(range(len(bodies))),
                parted={},
            ),
            names=[str(body.name) for body in bodies],
        )


@dataclass(eq=False)
class UsedRoom:
    """How much of the arrays is in use."""

    dofs: list[int]  #: of each range
    vertices: list[np.ndarray]  #: of each body, from the first of its range
    faces_of: list[np.ndarray]  #: of each body
    faces: int
    faces_at: int
    neighbours: int
    elements: int
    ranges: list[int]  #: which each body has rows in
    parted: dict[int, Callable[[int], np.ndarray]]  #: by range: the dofs of one of its bodies, where there are several


def _whole_bodies(bodies: Sequence[Body], base: np.ndarray, room: int, device: wp.Device) -> WholeBodies:
    """Bodies that have a range each, and room for so many more."""

    def by_body(values: Iterable[Any], fill: Any) -> np.ndarray:
        return np.array([*values, *([fill] * room)])

    return struct_of(
        WholeBodies,
        device,
        base=base,
        range=by_body(range(len(bodies)), 0),
        place=by_body([0] * len(bodies), 0),
        following=by_body([-1] * len(bodies), -1),
        mass=by_body([float(body.vertex_mass.sum()) for body in bodies], 0.0),
        damping=by_body([float(body.damping) for body in bodies], 0.0),
        tool=by_body([int(body.fixed.all()) for body in bodies], 1),
    )


@wp.func
def inertia_per_mass(body: int, whole: WholeBodies, per_dt2: wp.float64, dt: wp.float64) -> wp.float64:
    """What holds a body at its free motion, divided by its mass [1/s^2]; `per_dt2` is one by the square of dt."""
    return per_dt2 + whole.damping[body] / dt


def _spare_room(body: Body) -> tuple[int, int]:
    """Dofs and surface vertices that cuts may add to a body before it is laid out anew; none to one with material."""
    if not body.cuttable or body.material is not None:
        return 0, 0
    return len(body.shape.vertices) // 4 + 64, len(body.surface.vertices) // 4 + 128


def _with_room(rows: list[np.ndarray], room: list[int], fill: Any) -> np.ndarray:
    """Rows of all bodies, each followed by some more: a number, or the first row again."""
    if not any(room):
        return np.concatenate(rows)
    count = sum(map(len, rows)) + sum(room)
    made = np.zeros((count, *rows[0].shape[1:]), np.result_type(*rows))  # what nobody writes takes no time
    begin = 0
    for own, more in zip(rows, room, strict=True):
        end = begin + len(own)
        made[begin:end] = own
        if more and (fill is None or fill != 0):
            made[end : end + more] = own[0] if fill is None else fill
        begin = end + more
    return made


def _live(base: np.ndarray, places: list[np.ndarray]) -> np.ndarray | slice:
    """The rows in use, of arrays with room for more."""
    if sum(map(len, places)) == base[-1]:
        return slice(None)
    return np.concatenate([begin + own for begin, own in zip(base, places, strict=False)])


#: Parts that may come off before bodies are laid out anew.
MOST_PARTS = 32
#: Times colours are given; each time those given last come first, which never takes more of them (tori: 10, 9, 8).
COLOURINGS = 4
#: Edges between faces whose normals differ by more than this are sharp [degrees].
SHARP = 30.0
SHARP_COSINE = float(np.cos(np.radians(SHARP)))
#: Bits of `AssembledBodies.traits`; the last two are of what a blade has opened, of a solid or of a sheet.
CLOSED = wp.constant(1)
STILL = wp.constant(2)
SMOOTH = wp.constant(4)
WALL = wp.constant(8)
RIM = wp.constant(16)


def sharp_edges(mesh: Mesh) -> np.ndarray:
    """Numbers of the edges that are rims, or where faces meet at an angle."""
    around = mesh.topology.edge_faces
    sides = np.diff(around.offsets)
    pair = np.flatnonzero(sides == 2)
    one, other = (mesh.face_normals[around.indices[around.offsets[pair] + k]] for k in range(2))
    sharp = sides != 2
    sharp[pair] = np.einsum("ij,ij->i", one, other) < SHARP_COSINE
    return np.flatnonzero(sharp).astype(np.int32)


def smooth_vertices(mesh: Mesh) -> np.ndarray:
    """(v,) whether no edge at a vertex is sharp."""
    smooth = np.ones(len(mesh.vertices), bool)
    smooth[mesh.edges[sharp_edges(mesh)]] = False
    return smooth


def _bases(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _vertex_areas(surface: Mesh) -> np.ndarray:
    """(n,) a third of the triangles at each vertex [m^2]."""
    return np.bincount(surface.faces.ravel(), np.repeat(surface.face_areas / 3.0, 3), len(surface.vertices))


def _joined_material(
    materials: list[ElasticMaterial], base: np.ndarray, room: list[int]
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The lists of all bodies one after the other, as `DofCoupling` has them, and how long they are without room."""

    def ranges(lists: list[np.ndarray]) -> np.ndarray:
        begins = _bases([int(part[-1]) for part in lists])
        both = [np.stack([p[:-1], p[1:]], axis=1) + b for p, b in zip(lists, begins, strict=False)]
        return _with_room(both, room, fill=0)

    def joined(lists: list[np.ndarray], per_dof: int) -> np.ndarray:
        more = per_dof * sum(room)
        return _with_room([np.concatenate(lists)], [more], fill=0)

    opposite = [np.where(m.opposite >= 0, m.opposite + b, -1) for m, b in zip(materials, base, strict=False)]
    parts = {
        "neighbour_ranges": ranges([m.neighbours.offsets for m in materials]),
        "neighbours": joined([m.neighbours.indices + b for m, b in zip(materials, base, strict=False)], 48),
        "weights": joined([m.weights for m in materials], 48),
        "diagonal": _with_room([m.diagonal for m in materials], room, fill=0.0),
        "element_ranges": ranges([m.elements.offsets for m in materials]),
        "opposite": joined(opposite, 96),
        "laws": joined([m.laws for m in materials], 96),
    }
    lengths = {"neighbours": sum(len(m.weights) for m in materials), "elements": sum(len(m.laws) for m in materials)}
    return parts, lengths


def _by_colour(ranges: np.ndarray, neighbours: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The free dofs sorted by colour, and where each colour begins."""
    host = wp.get_device("cpu")
    order = np.flatnonzero(free)
    links = [wp.array(ranges, dtype=wp.vec2i, device=host), wp.array(neighbours, dtype=wp.int32, device=host)]
    for again in range(COLOURINGS):
        colour = wp.full(len(free), -1, dtype=wp.int32, device=host)
        launch(_colour, 1, [*links, wp.array(order, dtype=wp.int32, device=host)], [colour], device=host)
        found = colour.numpy()
        order = np.flatnonzero(free)
        if again < COLOURINGS - 1:
            order = order[np.argsort(-found[order], kind="stable")]
    return order[np.argsort(found[order], kind="stable")], _bases(np.bincount(found[order]).tolist())


@wp.kernel
def _colour(
    first: int,
    ranges: wp.array[wp.vec2i],
    neighbours: wp.array[int],
    order: wp.array[int],
    colour: wp.array[int],
):
    """The smallest colour no neighbour has yet, one dof after the other (one thread); all are -1 at first."""
    for k in range(order.shape[0]):
        i = order[k]
        chosen = int(0)
        taken = int(1)
        while taken == 1:
            taken = int(0)
            for e in range(ranges[i][0], ranges[i][1]):
                if colour[neighbours[e]] == chosen:
                    taken = 1
            chosen += taken
        colour[i] = chosen
