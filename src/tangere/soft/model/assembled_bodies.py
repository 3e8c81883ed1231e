"""All bodies of a simulation in common arrays on one device: degrees of freedom, materials, colours, surfaces.

Vertices of the shapes ("dofs") and of the surfaces are numbered through, body after body. Dofs of one colour are not
coupled by any material, so that they may move at once; colours are given greedily, several times. Obstacles have dofs
too, which never move.
"""

from __future__ import annotations

from collections.abc import Sequence
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
class DofCoupling:
    """What holds the dofs together, dof after dof (`material`): weighted neighbours, and elements."""

    neighbour_offsets: wp.array[int]
    neighbours: wp.array[int]
    weights: wp.array[wp.float64]
    diagonal: wp.array[wp.float64]
    element_offsets: wp.array[int]
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
    face_offsets: wp.array[int]  #: (s + 1,) triangles at each vertex
    faces_at: wp.array[int]


def struct_of(kind: Any, device: wp.Device, /, **members: Any) -> Any:
    """A struct with these members; NumPy arrays go to the device, as what the struct says they are."""
    made = kind()
    for name, value in members.items():
        if isinstance(value, np.ndarray):
            value = wp.array(np.ascontiguousarray(value), dtype=kind.vars[name].type.dtype, device=device)
        setattr(made, name, value)
    return made


@dataclass(frozen=True)
class AssembledBodies:
    """n dofs, s surface vertices, f surface triangles, b bodies."""

    bodies: tuple[Body, ...]
    device: wp.Device
    dof_base: np.ndarray  #: (b + 1,) number of the first dof of each body, and the total
    vertex_base: np.ndarray  #: (b + 1,) the same for surface vertices
    rest_mesh: Mesh  #: all surfaces, at rest, as one mesh

    dofs: DofArrays
    order: wp.array  #: (m,) int32: the dofs that move, by colour
    colours: np.ndarray  #: (c + 1,) where each colour begins in `order`
    material: DofCoupling
    surface: SurfaceArrays

    @staticmethod
    def of(bodies: Sequence[Body], device: wp.Device) -> AssembledBodies:
        materials = [material_of(body) for body in bodies]
        dof_base = _bases([len(body.shape.vertices) for body in bodies])
        surfaces = [body.surface for body in bodies]
        vertex_base = _bases([len(surface.vertices) for surface in surfaces])
        whole = Mesh.join(surfaces, name="all surfaces")
        free = ~np.concatenate([body.fixed for body in bodies])
        parts = _joined_material(materials, dof_base)
        order, colours = _by_colour(parts["neighbour_offsets"], parts["neighbours"], free)
        carriers = np.concatenate([body.carriers[0] + base for body, base in zip(bodies, dof_base, strict=False)])
        weights = np.concatenate([body.carriers[1] for body in bodies])
        still = ~(free[carriers] & (weights != 0.0)).any(axis=1)
        closed = _per_vertex([surface.topology.is_closed for surface in surfaces], surfaces)
        area = np.concatenate([_vertex_areas(surface) for surface in surfaces])
        heavy = [0.0 if b.is_obstacle else b.mass_per_area for b in bodies]
        stiff = [0.0 if b.is_obstacle else b.youngs_modulus for b in bodies]
        around = whole.topology.vertex_faces
        walls = np.concatenate([int(WALL if b.is_solid else RIM) * b.wall_vertices for b in bodies])
        traits = int(CLOSED) * closed + int(STILL) * still + int(SMOOTH) * smooth_vertices(whole) + walls

        dofs = struct_of(
            DofArrays,
            device,
            x=np.concatenate([body.shape.vertices for body in bodies]),
            v=np.concatenate([body.velocity for body in bodies]),
            mass=np.concatenate([body.vertex_mass for body in bodies]),
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
            contact_mass=area * _per_vertex(heavy, surfaces),
            contact_area=area * _per_vertex(stiff, surfaces),
            body=np.repeat(np.arange(len(bodies)), np.diff(vertex_base)),
            traits=traits,
            faces=whole.faces,
            face_offsets=around.offsets,
            faces_at=around.indices,
        )

        return AssembledBodies(
            bodies=tuple(bodies),
            device=device,
            dof_base=dof_base,
            vertex_base=vertex_base,
            rest_mesh=whole,
            dofs=dofs,
            order=wp.array(order, dtype=wp.int32, device=device),
            colours=colours,
            material=struct_of(DofCoupling, device, **parts),
            surface=surface,
        )


#: Times colours are given; each time those given last come first, which never takes more of them (tori: 10, 9, 8).
COLOURINGS = 4
#: Edges between faces whose normals differ by more than this are sharp [degrees].
SHARP = 30.0
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
    sharp[pair] = np.einsum("ij,ij->i", one, other) < np.cos(np.radians(SHARP))
    return np.flatnonzero(sharp).astype(np.int32)


def smooth_vertices(mesh: Mesh) -> np.ndarray:
    """(v,) whether no edge at a vertex is sharp."""
    smooth = np.ones(len(mesh.vertices), bool)
    smooth[mesh.edges[sharp_edges(mesh)]] = False
    return smooth


def _bases(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _per_vertex(values: list, surfaces: list[Mesh]) -> np.ndarray:
    return np.repeat(values, [len(surface.vertices) for surface in surfaces])


def _vertex_areas(surface: Mesh) -> np.ndarray:
    """(n,) a third of the triangles at each vertex [m^2]."""
    return np.bincount(surface.faces.ravel(), np.repeat(surface.face_areas / 3.0, 3), len(surface.vertices))


def _joined_material(materials: list[ElasticMaterial], base: np.ndarray) -> dict[str, np.ndarray]:
    """The lists of all bodies one after the other, as `DofCoupling` has them."""

    def offsets(lists: list[np.ndarray]) -> np.ndarray:
        begins = _bases([int(part[-1]) for part in lists])
        return np.concatenate([part[:-1] + begin for part, begin in zip(lists, begins, strict=False)] + [begins[-1:]])

    opposite = [np.where(m.opposite >= 0, m.opposite + b, -1) for m, b in zip(materials, base, strict=False)]
    return {
        "neighbour_offsets": offsets([m.neighbours.offsets for m in materials]),
        "neighbours": np.concatenate([m.neighbours.indices + b for m, b in zip(materials, base, strict=False)]),
        "weights": np.concatenate([m.weights for m in materials]),
        "diagonal": np.concatenate([m.diagonal for m in materials]),
        "element_offsets": offsets([m.elements.offsets for m in materials]),
        "opposite": np.concatenate(opposite),
        "laws": np.concatenate([m.laws for m in materials]),
    }


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
