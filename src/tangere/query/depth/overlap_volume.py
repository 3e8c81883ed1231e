"""How much space do two solids share? Through the optional package manifold3d; shown, never decided by.

Flat faces that touch give volumes of rounding, of either sign: whether bodies overlap is for `intersects` and `depth`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.query.containment.api import check_solid
from tangere.query.intersection.posed import as_posed
from tangere.runtime import InputError, needs_extra
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def overlap_volume(a: Mesh | Moving, b: Mesh | Moving) -> float:
    """The volume that two closed meshes have in common [m^3]. Needs the extra [solid].

    Args:
        a, b: at rest, or moving: then where they are at t = 0.

    Example:
        >>> import tangere as tg
        >>> box = tg.generate.box([2, 2, 2])
        >>> round(tg.overlap_volume(box, box.at([[1, 0, 0, 1.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])), 9)
        2.0
    """
    check_solid(a, "a", "overlap_volume")
    check_solid(b, "b", "overlap_volume")
    with needs_extra("manifold3d", "solid"):
        import manifold3d
    one, other = (_manifold(thing, manifold3d) for thing in (a, b))
    return float((one ^ other).volume())


def _manifold(thing: Mesh | Moving, manifold3d: Any) -> Any:
    """A mesh in the world, as manifold3d has it."""
    posed = as_posed(thing, 0.0)
    if not posed.single:
        raise InputError("the volume that bodies share is measured at one pose of each")
    pose = posed.poses[0]
    vertices = np.ascontiguousarray(posed.mesh.vertices @ pose[:3, :3].T + pose[:3, 3])
    solid = manifold3d.Manifold(manifold3d.Mesh64(vertices, posed.mesh.faces.astype(np.uint64)))
    if solid.status() != manifold3d.Error.NoError:
        raise InputError(f"mesh {posed.mesh.name!r} is no manifold to manifold3d: {solid.status().name}")
    return solid
