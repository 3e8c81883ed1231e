"""Parts that are in contact where they are mounted: contacts shallower than a skin are ignored, deeper ones are told.

Question: does a part come free, although it lies on its seat, and facets of a shaft and its bore cross a little?
Method:   the part is asked about without its skin: all faces moved inwards by a depth (`tangere.shape.mesh.offset`).
Sound:    no point of the part moved farther than `Skin.deepest`: a surface that gets deeper than that into the part, at
          any time of the motion, is told. What stays shallower than `Skin.depth` is not, but where the skin had to be
          thinner, and at seams of pieces. Between the two, at sharp edges, it may be either. Depth is counted from all
          faces of the mesh, also from those inside a solid that is made of pieces; pieces that would come apart are
          refused. An obstacle that lies wholly inside the part is not told.
Known as: allowed penetration, a collision margin that goes inwards; the mesh without its skin is an inward offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.motion import Rigid
from tangere.query.intersection.self_intersection import self_intersections
from tangere.runtime import InputError, described, positive
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, chord_error, inset

#: Coordinates that were float32 once are known to this part of them.
_SINGLE = 2.0**-23
#: A search sees contacts to within 1e-6 of the larger body; what lies flush is apart by more than that.
_SEEN = 4e-6
#: A skin that nobody gave is at most this part of the part.
_LARGEST = 0.02
#: Skins whose meshes are kept with a mesh; each has trees of its own.
_KEPT = 4


@dataclass(frozen=True)
class Skin:
    """What a part was asked about without."""

    depth: float  #: contacts shallower than this are ignored [m]
    deepest: float  #: contacts deeper than this are always told [m]
    thinner: int = 0  #: vertices where the skin had to be thinner than `depth`

    def __str__(self) -> str:
        return f"{self.depth:.3g} m ({self.deepest:.3g} m at edges)"

    def tolerance(self, asked: float | None, extent: float) -> float:
        """What a search may be off by so that it sees the gap that the skin leaves [m]."""
        return min(1e-6 * extent, 0.25 * self.depth) if asked is None else asked


def without_skin(part: Any, others: Sequence[Any], depth: float | None) -> tuple[Any, Skin]:
    """A mesh at rest or in rigid motion without its skin, moving as it did; arguments as for `mesh_without_skin`."""
    if isinstance(part, Moving) and isinstance(part.shape, Mesh) and isinstance(part.motion, Rigid):
        thinner, skin = mesh_without_skin(part.shape, others, depth)
        return thinner.moving(part.motion), skin
    if isinstance(part, Mesh):
        return mesh_without_skin(part, others, depth)
    raise InputError(f"start='leaving' is about a rigid mesh that comes off others, not about {described(part)}")


def mesh_without_skin(mesh: Mesh, others: Sequence[Any], depth: float | None) -> tuple[Mesh, Skin]:
    """The mesh without its skin.

    Args:
        others: what it leaves: meshes, at rest or moving.
        depth: of the skin [m]; None means the chord errors of the mesh and of the others, and the rounding of float32.
    """
    if depth is None:
        depth = _default_depth(mesh, [other.shape if isinstance(other, Moving) else other for other in others])
    kept = mesh.cache.setdefault(Skin, {})
    if positive(depth, "skin") not in kept:
        taken = inset(mesh, depth)
        thinner = mesh.replace(vertices=taken.vertices)
        if not _meeting_pieces(mesh) <= _meeting_pieces(thinner):
            raise InputError(
                f"mesh {mesh.name!r} is made of pieces that touch, and without a skin of {depth:.3g} m they come apart:"
                " unite them to one solid first, or give a smaller skin"
            )
        kept[depth] = thinner, Skin(taken.depth, taken.farthest, taken.thinner)
        if len(kept) > _KEPT:
            kept.pop(next(iter(kept)))
    return kept[depth]


def _meeting_pieces(mesh: Mesh) -> set[tuple[int, int]]:
    """Which connected pieces of a mesh touch or cross each other, or themselves."""
    pairs = self_intersections(mesh, device="cpu")
    if not len(pairs):
        return set()
    piece = mesh.topology.component
    of_edge, of_face = piece[mesh.edges[pairs[:, 0], 0]], piece[mesh.faces[pairs[:, 1], 0]]
    return set(zip(np.minimum(of_edge, of_face).tolist(), np.maximum(of_edge, of_face).tolist(), strict=True))


def _default_depth(mesh: Mesh, others: Sequence[Any]) -> float:
    meshes = [mesh, *(other for other in others if isinstance(other, Mesh))]
    largest = max(float(np.abs(each.bounds).max()) for each in meshes)
    depth = chord_error(mesh) + max((chord_error(each) for each in meshes[1:]), default=0.0)
    depth += 4.0 * _SINGLE * largest + _SEEN * max(each.extent for each in meshes)
    if depth > _LARGEST * mesh.extent:
        raise InputError(
            f"the facets of {mesh.name!r}, {mesh.extent:.3g} m large, and of what it touches are so coarse that"
            f" {depth:.3g} m would have to be ignored: give skin= (and units= if these are not metres)"
        )
    return depth
