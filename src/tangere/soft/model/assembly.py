"""All bodies of a simulation in common arrays on one device: degrees of freedom, materials, colours, surfaces.

Vertices of the shapes ("dofs") and of the surfaces are numbered through, body after body. Dofs of one colour are not
coupled by any material, so that they may move at once; colours are given greedily, several times. Obstacles have dofs
too, which never move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.model.material import Material, material_of
from tangere.soft.model.sharp_edges import smooth_vertices

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class Assembly:
    """n dofs, s surface vertices, f surface triangles, b bodies."""

    bodies: tuple[Body, ...]
    device: wp.Device
    dof_base: np.ndarray  #: (b + 1,) number of the first dof of each body, and the total
    vertex_base: np.ndarray  #: (b + 1,) the same for surface vertices
    rest_mesh: Mesh  #: all surfaces, at rest, as one mesh

    x: wp.array  #: (n,) vec3d, where the dofs are [m]
    v: wp.array  #: (n,) vec3d, velocities [m/s]
    mass: wp.array  #: (n,) [kg]
    free: wp.array  #: (n,) int32, 1 for dofs that move
    body_of_dof: wp.array  #: (n,) int32
    damping: wp.array  #: (n,) [1/s]

    order: wp.array  #: (m,) int32: the dofs that move, by colour
    colours: np.ndarray  #: (c + 1,) where each colour begins in `order`
    material: tuple[wp.array, ...]  #: neighbour offsets, neighbours, weights, diagonal, element offsets, opposite, laws

    carriers: wp.array  #: (s,) vec4i, the dofs that carry each surface vertex
    weights: wp.array  #: (s,) vec4d
    rest: wp.array  #: (s,) vec3d, surface vertices at rest [m]
    contact_mass: wp.array  #: (s,) [kg] share of each surface vertex in the mass of its body; 0 for obstacles
    contact_area: wp.array  #: (s,) Young's modulus times the area around the vertex [N]; 0 for obstacles
    body_of_vertex: wp.array  #: (s,) int32
    traits: wp.array  #: (s,) int32, bits: CLOSED surface, STILL (none of its carriers moves), SMOOTH
    faces: wp.array  #: (f, 3) int32
    face_offsets: wp.array  #: (s + 1,) triangles at each surface vertex
    faces_at: wp.array

    @staticmethod
    def of(bodies: Sequence[Body], device: wp.Device) -> Assembly:
        materials = [material_of(body) for body in bodies]
        dof_base = _bases([len(body.shape.vertices) for body in bodies])
        surfaces = [body.surface for body in bodies]
        vertex_base = _bases([len(surface.vertices) for surface in surfaces])
        whole = Mesh.join(surfaces, name="all surfaces")
        free = ~np.concatenate([body.fixed for body in bodies])
        parts = _joined_material(materials, dof_base)
        order, colours = _by_colour(parts[0], parts[1], free)
        carriers = np.concatenate([body.carriers[0] + base for body, base in zip(bodies, dof_base, strict=False)])
        weights = np.concatenate([body.carriers[1] for body in bodies])
        still = ~(free[carriers] & (weights != 0.0)).any(axis=1)
        closed = _per_vertex([surface.topology.is_closed for surface in surfaces], surfaces)
        area = np.concatenate([_vertex_areas(surface) for surface in surfaces])
        heavy = [0.0 if b.is_obstacle else b.vertex_mass.sum() / b.surface.face_areas.sum() for b in bodies]
        stiff = [0.0 if b.is_obstacle else b.youngs_modulus for b in bodies]
        around = whole.topology.vertex_faces

        def on_device(array, dtype) -> wp.array:
            return wp.array(np.ascontiguousarray(array), dtype=dtype, device=device)

        return Assembly(
            bodies=tuple(bodies),
            device=device,
            dof_base=dof_base,
            vertex_base=vertex_base,
            rest_mesh=whole,
            x=on_device(np.concatenate([body.shape.vertices for body in bodies]), wp.vec3d),
            v=on_device(np.concatenate([body.velocity for body in bodies]), wp.vec3d),
            mass=on_device(np.concatenate([body.vertex_mass for body in bodies]), wp.float64),
            free=on_device(free, wp.int32),
            body_of_dof=on_device(np.repeat(np.arange(len(bodies)), np.diff(dof_base)), wp.int32),
            damping=on_device(np.repeat([body.damping for body in bodies], np.diff(dof_base)), wp.float64),
            order=on_device(order, wp.int32),
            colours=colours,
            material=tuple(on_device(part, dtype) for part, dtype in zip(parts, _MATERIAL_TYPES, strict=True)),
            carriers=on_device(carriers, wp.vec4i),
            weights=on_device(weights, wp.vec4d),
            rest=on_device(whole.vertices, wp.vec3d),
            contact_mass=on_device(area * _per_vertex(heavy, surfaces), wp.float64),
            contact_area=on_device(area * _per_vertex(stiff, surfaces), wp.float64),
            body_of_vertex=on_device(np.repeat(np.arange(len(bodies)), np.diff(vertex_base)), wp.int32),
            traits=on_device(
                int(CLOSED) * closed + int(STILL) * still + int(SMOOTH) * smooth_vertices(whole), wp.int32
            ),
            faces=on_device(whole.faces, wp.int32),
            face_offsets=on_device(around.offsets, wp.int32),
            faces_at=on_device(around.indices, wp.int32),
        )


#: Times colours are given; each time those given last come first, which never takes more of them (tori: 10, 9, 8).
COLOURINGS = 4
#: Bits of `Assembly.traits`.
CLOSED = wp.constant(1)
STILL = wp.constant(2)
SMOOTH = wp.constant(4)

_MATERIAL_TYPES = (wp.int32, wp.int32, wp.float64, wp.float64, wp.int32, wp.vec3i, wp.vec3d)


def _bases(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _per_vertex(values: list, surfaces: list[Mesh]) -> np.ndarray:
    return np.repeat(values, [len(surface.vertices) for surface in surfaces])


def _vertex_areas(surface: Mesh) -> np.ndarray:
    """(n,) a third of the triangles at each vertex [m^2]."""
    return np.bincount(surface.faces.ravel(), np.repeat(surface.face_areas / 3.0, 3), len(surface.vertices))


def _joined_material(materials: list[Material], base: np.ndarray) -> list[np.ndarray]:
    """The lists of all bodies one after the other, in the order of `Assembly.material`."""

    def offsets(lists: list[np.ndarray]) -> np.ndarray:
        begins = _bases([int(part[-1]) for part in lists])
        return np.concatenate([part[:-1] + begin for part, begin in zip(lists, begins, strict=False)] + [begins[-1:]])

    opposite = [np.where(m.opposite >= 0, m.opposite + b, -1) for m, b in zip(materials, base, strict=False)]
    return [
        offsets([m.neighbours.offsets for m in materials]),
        np.concatenate([m.neighbours.indices + b for m, b in zip(materials, base, strict=False)]),
        np.concatenate([m.weights for m in materials]),
        np.concatenate([m.diagonal for m in materials]),
        offsets([m.elements.offsets for m in materials]),
        np.concatenate(opposite),
        np.concatenate([m.laws for m in materials]),
    ]


def _by_colour(offsets: np.ndarray, neighbours: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The free dofs sorted by colour, and where each colour begins."""
    host = wp.get_device("cpu")
    order, links = np.flatnonzero(free), [wp.array(a, dtype=wp.int32, device=host) for a in (offsets, neighbours)]
    for again in range(COLOURINGS):
        colour = wp.full(len(free), -1, dtype=wp.int32, device=host)
        launch(_colour, 1, [*links, wp.array(order, dtype=wp.int32, device=host)], [colour], device=host)
        found = colour.numpy()
        order = np.flatnonzero(free)
        if again < COLOURINGS - 1:
            order = order[np.argsort(-found[order], kind="stable")]
    return order[np.argsort(found[order], kind="stable")], _bases(np.bincount(found[order]).tolist())


@wp.kernel
def _colour(first: int, offsets: wp.array[int], neighbours: wp.array[int], order: wp.array[int], colour: wp.array[int]):
    """The smallest colour no neighbour has yet, one dof after the other (one thread); all are -1 at first."""
    for k in range(order.shape[0]):
        i = order[k]
        chosen = int(0)
        taken = int(1)
        while taken == 1:
            taken = int(0)
            for e in range(offsets[i], offsets[i + 1]):
                if colour[neighbours[e]] == chosen:
                    taken = 1
            chosen += taken
        colour[i] = chosen
