"""Which triangles of two rigid meshes meet, at one instant, or does one mesh pass through itself?

Exact:  for the positions as rounded to double precision in the world (`traversal`, `self_intersection`). Closed sets:
        touching counts. One mesh wholly inside another does not meet it, unless they are said to be solid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.query.dispatch import answer, engine_for
from tangere.query.intersection.body_pairs import meeting_pairs
from tangere.query.intersection.cpu.search import prepared_search
from tangere.query.intersection.posed import as_posed, paired
from tangere.query.intersection.self_intersection import intersects_itself
from tangere.query.intersection.traversal import meeting_triangles, meshes_meet
from tangere.runtime import Arrays, InputError, choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

if TYPE_CHECKING:
    from tangere.query.intersection.body_lists import MeetingBodies


def intersecting_pairs(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    time: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """All pairs of triangles, one of each mesh, that meet: (n, 2) int32, in rising order.

    Args:
        a, b: meshes at rest, or moving rigidly.
        time: the instant in [0, 1].
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.intersection import intersecting_pairs
        >>> box = tg.generate.icosphere(subdivisions=1)
        >>> len(intersecting_pairs(box, box.at([[1, 0, 0, 3], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])))
        0
    """
    engine_for("intersecting_pairs", a, b)
    with using_threads(threads):
        found = meeting_triangles(a, b, time, device, every=True, prepared=prepared_search)
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def intersects(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    solid: bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> bool | np.ndarray | MeetingBodies:
    """Whether any triangles of two meshes meet at one instant, one mesh passes through itself, or analytic bodies meet.

    Arguments as for `intersecting_pairs`; without `b`: is this a valid state of the mesh? Analytic bodies are solid:
    they meet unless a plane certainly separates them, so that nothing but rounding is called touching that is not. `b`
    may be the ground, a `Heightfield` or `TiledHeightfield`, which is solid: a body below its surface meets it.

    Of batches of poses, bodies, motions or instants, n with n or n with 1, the answer is (n,) bool, one of each pair.

    Of a list, ground too, any two are compared; with a list `b`, one of each. The answer is a `MeetingBodies`: true if
    any meet, with the numbers of each pair that does in `body_a` and `body_b`.

    Args:
        allowed: of a list, pairs of bodies that may touch, (k, 2), by number or by name: they are left out.
        time: instants in [0, 1], one or (n,); of a list one.
        solid: one body inside another meets it as well; closed meshes whose triangles agree, others are refused.

    Example:
        >>> import tangere as tg
        >>> small, large = tg.generate.box([1, 1, 1]), tg.generate.box([3, 3, 3])
        >>> tg.intersects(small, large, device="cpu"), tg.intersects(small, large, solid=True, device="cpu")
        (False, True)
        >>> tg.intersects(tg.Sphere(0.2), tg.Box([1, 1, 1]), device="cpu")
        True
        >>> tg.intersects([small, tg.Sphere(0.2), tg.Box([1, 1, 1])], device="cpu")
        MeetingBodies(0 with 2, 1 with 2)
    """
    engine, of_list = engine_for("intersects", a, b), {}
    if engine == "lists":
        of_list = {"allowed": allowed}
    elif allowed is not None:
        raise InputError("allowed says which bodies of a list may touch: intersects([a, b, c], allowed=[(0, 1)])")
    if engine != "meshes":
        with using_threads(threads):
            return answer("intersects", a, b, time=time, solid=solid, device=device, **of_list)
    if solid:
        return _solids_meet(a, b, time, device, threads)
    if b is None:
        return intersects_itself(a if isinstance(a, Mesh) else a.at(time), device=device, threads=threads)
    if threads is not None:
        with using_threads(threads):
            return _surfaces_meet(a, b, time, device)
    return _surfaces_meet(a, b, time, device)


def _surfaces_meet(
    a: Mesh | Moving, b: Mesh | Moving, time: Arrays, device: str | wp.Device | None
) -> bool | np.ndarray:
    """Whether surfaces meet: of one pair, or of each of n."""
    one, other = as_posed(a, time), as_posed(b, time)
    if one.single and other.single:
        return meshes_meet(a, b, time=time, device=device, prepared=prepared_search)
    on = choose_device(device)
    count = len(paired(one, other, on))
    poses = np.concatenate([np.broadcast_to(each.poses, (count, 4, 4)) for each in (one, other)])
    pairs = np.stack([np.arange(count), count + np.arange(count)], axis=1)
    return meeting_pairs((one.mesh, other.mesh), np.repeat([0, 1], count), poses, pairs, on)[:, 0] >= 0


def _solids_meet(
    a: Mesh | Moving, b: Mesh | Moving | None, time: Arrays, device: str | wp.Device | None, threads: int | None
) -> bool | np.ndarray:
    """Whether surfaces meet, or one body is inside the other."""
    from tangere.query.containment.api import check_solid, contained  # as an engine: who does not ask does not load it

    if b is None:
        raise InputError("solid=True is about one body inside another: give b")
    check_solid(a, "a")
    check_solid(b, "b")
    with using_threads(threads):
        meet = _surfaces_meet(a, b, time, device)
        if meet is True or np.all(meet):
            return meet
        in_b, in_a = contained(as_posed(a, time), as_posed(b, time), device)
        inside = (in_b >= 0) | (in_a >= 0)
        return bool(inside[0]) if isinstance(meet, bool) else meet | inside
