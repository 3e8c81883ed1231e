"""What a mesh is made of and what a user may want to know before trusting it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tangere.shape.mesh.units import METRE

if TYPE_CHECKING:
    from tangere.shape.mesh.mesh import Mesh


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Counts and properties of a mesh; `notes` says in words what is unusual."""

    name: str
    vertices: int
    edges: int
    triangles: int
    welded_vertices: int  #: vertices merged on loading because their coordinates were equal
    zero_area_triangles: int
    closed: bool
    oriented: bool
    manifold: bool
    components: int
    bounds: np.ndarray  #: (2, 3) smallest and largest coordinates [m]
    units: str  #: of the file's lengths, and whether they were assumed; "metres" for meshes from no file
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        words = [
            "closed" if self.closed else "open",
            "oriented" if self.oriented else "not oriented",
            "manifold" if self.manifold else "not manifold",
            f"{self.components} component{'s' if self.components != 1 else ''}",
        ]
        low, high = (" ".join(f"{x:.6g}" for x in corner) for corner in self.bounds)
        lines = [
            f"Mesh {self.name!r}: {self.vertices} vertices, {self.edges} edges, {self.triangles} triangles",
            f"  {', '.join(words)}",
            f"  from ({low}) to ({high})",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


def report_on(mesh: Mesh, welded: int) -> Report:
    """The report of a mesh that had `welded` vertices merged on loading."""
    topology = mesh.topology
    zero_area = int((mesh.face_areas == 0.0).sum())
    unused = topology.vertex_count - len(np.unique(topology.faces))
    notes = [
        (welded, "vertices welded on loading because equal"),
        (zero_area, "triangles without area"),
        (unused, "vertices of no triangle"),
        (topology.open_edge_count, "edges with one triangle only"),
        (topology.crowded_edge_count, "edges with more than two triangles"),
        (topology.reversed_edge_count, "edges whose triangles disagree which side is out"),
    ]
    converted = (
        ()
        if mesh.source is None or mesh.source.unit is METRE
        else (f"lengths converted from {mesh.source.units} to metres",)
    )
    return Report(
        name=mesh.name,
        vertices=topology.vertex_count,
        edges=len(topology.edges),
        triangles=len(topology.faces),
        welded_vertices=welded,
        zero_area_triangles=zero_area,
        closed=topology.is_closed,
        oriented=topology.is_oriented,
        manifold=topology.is_manifold,
        components=topology.component_count,
        bounds=mesh.bounds,
        units=METRE.name if mesh.source is None else mesh.source.units,
        notes=(*converted, *(f"{text}: {count}" for count, text in notes if count)),
    )
