"""Where do two bodies touch? The engines of contact manifolds, each loaded when it is first asked.

`manifold` is what people call. Bodies on ground are answered by `api`, two analytic bodies by `convex`, meshes by
`mesh`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import warp as wp

from tangere.motion import Path, Rigid
from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import BODIES, TERRAIN, answer, is_analytic, kind_of, refuse_unsupported
from tangere.runtime import Arrays, InputError, not_negative, to_numpy
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def manifold(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    world: Arrays | None = None,
    mode: Literal["sound", "published"] = "sound",
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """Where n bodies rest on the ground, or lie on n other bodies, or any two of a list: points, normals, gaps.

    Args:
        a: placed cylinders, spheres, capsules, boxes, cones or convex meshes; or a mesh. Meshes are surfaces. Or a list
            of these, ground too: any two of them; with a list `b`, one of each.
        b: the ground, in memory or in tiles, or one for each of several worlds; or other bodies, or a mesh, n with n or
            n with 1.
        allowed: of a list, pairs of bodies that may touch, (k, 2), by number or by name: they are left out.
        time: of bodies that move, the instant in [0, 1], one or (n,); of a list one.
        world: with several terrains, the number of each body's, shape (n,).
        mode: "sound"; or "published": the algorithm as printed, for cylinders on ground, which misses contacts.
        distance: gaps up to this count [m]; None means a hundredth: on ground of the body's radius (of a hull: of half
            its thickness), of two bodies of their size, of a body and a mesh of the body's, of meshes of half of the
            smaller one's.
        device: where to compute; None means where the poses are, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        Contacts by rising body or pair (`query`; of a list by `body_a` and `body_b`), with gaps: negative inside. On
        ground at most four for each group of like normals; of two bodies all corners of the polygon that they have in
        common, on discs eight points of the rim and middles of arcs as well; with a mesh as many as say all that the
        others say. `key` names body point and ground feature, or the corner, for warm starts.

    Raises:
        UnsupportedError: two meshes that pass through each other, or a mesh below the ground: ask `tg.depth`.

    Example:
        >>> import numpy as np, tangere as tg
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = [5.0, 5.0, 0.595]
        >>> found = tg.manifold(tg.Cylinder(0.5, 1.2).at(pose), tg.Heightfield(np.zeros((11, 11))), device="cpu")
        >>> len(found), found.gap.round(6).tolist()
        (4, [-0.005, -0.005, -0.005, -0.005])
        >>> pose[:3, 3] = [0.8, 0.3, 1.49]
        >>> found = tg.manifold(tg.Box([0.5, 0.5, 0.5]).at(pose), tg.Box([1.0, 1.0, 1.0]), device="cpu")
        >>> found.gap.round(9).tolist(), found.normal[0].round(9).tolist()
        ([-0.01, -0.01, -0.01, -0.01], [0.0, 0.0, 1.0])
    """
    kinds = kind_of(a), None if b is None else kind_of(b)
    if BODIES in kinds:
        if mode != "sound" or world is not None:
            raise InputError("a list of bodies takes no mode and no world: ground in it is that of all of them")
        asked = {"time": time, "distance": distance, "device": device, "threads": threads}
        if distance is not None:
            not_negative(distance, "distance")
        return answer("manifold", a, b, allowed=allowed, **asked)
    if allowed is not None:
        raise InputError("allowed says which bodies of a list may touch: manifold([a, b, c], allowed=[(0, 1)])")
    if b is None:
        refuse_unsupported("manifold", a)
    if is_analytic(b) or is_surface(a) or is_surface(b):
        engine = _engine_of_two(a, b)
        if mode != "sound":
            raise InputError(f"manifolds of two bodies know the mode 'sound', not {mode!r}")
        if world is not None:
            raise InputError("world says which of several terrains each body is on: two bodies have none")
        if distance is not None:
            not_negative(distance, "distance")
        return engine(a, b, time=time, distance=distance, device=device, threads=threads)
    from tangere.query.manifold.api import heightfield_manifold

    if isinstance(a, Moving) and is_analytic(a) and kinds[1] == TERRAIN:
        if not isinstance(a.motion, (Rigid, Path)):
            refuse_unsupported("manifold", a, b)
        a = a.shape.at(a.motion.pose(to_numpy(time, "time")))
    options: dict[str, Any] = {"world": world, "mode": mode, "distance": distance, "device": device, "threads": threads}
    return heightfield_manifold(a, b, **options)


def _engine_of_two(a: Any, b: Any) -> Callable[..., Contacts]:
    """Who answers about two bodies, or a mesh and the ground."""
    if is_analytic(a) and is_analytic(b):
        from tangere.query.manifold.convex.api import convex_manifold

        return convex_manifold
    if is_surface(a) and kind_of(b) == TERRAIN:
        from tangere.query.manifold.mesh.surfaces import ground_manifold

        return ground_manifold
    if is_surface(a) and is_surface(b):
        from tangere.query.manifold.mesh.surfaces import mesh_manifold

        return mesh_manifold
    if (is_analytic(a) or is_surface(a)) and (is_analytic(b) or is_surface(b)):
        from tangere.query.manifold.mesh.api import body_on_mesh_manifold

        return body_on_mesh_manifold if is_analytic(a) else swapped(body_on_mesh_manifold)
    refuse_unsupported("manifold", a, b)


def is_surface(thing: Any) -> bool:
    """Whether this is a mesh, at rest or moving."""
    return isinstance(thing.shape if isinstance(thing, Moving) else thing, Mesh)


def swapped(engine: Callable[..., Contacts]) -> Callable[..., Contacts]:
    """The engine for the second thing first."""

    def ask(a: Any, b: Any, **options: Any) -> Contacts:
        found = engine(b, a, **options)
        return replace(
            found,
            point_a=found.point_b,
            point_b=found.point_a,
            normal=-found.normal,
            feature_a=found.feature_b,
            feature_b=found.feature_a,
        )

    return ask
