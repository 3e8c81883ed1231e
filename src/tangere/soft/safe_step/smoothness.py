"""Whether a patch and its surroundings deform so smoothly that they stay apart: what `certificates` are made of.

The twin for CPUs is `cpu.simd_smoothness`.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.safe_step.patch_layout import PatchReference

wp.set_module_options(SOUND)

#: Rounds of the bound on the smallest singular value.
BOUND_ITERATIONS = wp.constant(16)


@wp.func
def smallest_stretch(f: wp.mat33d) -> wp.float64:
    """A lower bound of the smallest singular value: s3 >= 2 |det| / (|F|^2 - s3^2), from below."""
    determinant = wp.float64(2.0) * wp.abs(wp.determinant(f))
    squared = wp.ddot(f, f)
    bound = wp.float64(0.0)
    if squared > wp.float64(0.0):
        for _ in range(BOUND_ITERATIONS):
            bound = determinant / (squared - bound * bound)
    return bound


@wp.func
def across_filled(f: wp.mat33d, tangents: wp.mat33d) -> wp.mat33d:
    """A map along the tangents, completed by how their normal turns."""
    return f + wp.outer(wp.normalize(wp.cross(f * tangents[0], f * tangents[1])), tangents[2])


@wp.func
def is_certified(
    p: int,
    reference: PatchReference,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
) -> bool:
    half = wp.float64(0.5)
    begin = reference.offsets[p]
    stop = reference.offsets[p + 1]
    if reference.clearance[p] <= wp.float64(0.0):
        return False
    centre0 = start[reference.vertices[begin]]
    centre1 = end[reference.vertices[begin]]
    mean0 = wp.vec3d()
    mean1 = wp.vec3d()
    f0 = wp.mat33d()
    f1 = wp.mat33d()
    for e in range(begin, stop):  # places at rest add up to zero: any centre gives the same map
        v = reference.vertices[e]
        from0 = start[v] - centre0
        from1 = end[v] - centre1
        mean0 += from0
        mean1 += from1
        f0 += wp.outer(from0, reference.rest[e])
        f1 += wp.outer(from1, reference.rest[e])
    centre0 += mean0 / wp.float64(stop - begin)
    centre1 += mean1 / wp.float64(stop - begin)
    f0 = across_filled(f0 * reference.duals[p], reference.tangents[p])
    f1 = across_filled(f1 * reference.duals[p], reference.tangents[p])
    worst = wp.float64(0.0)
    worst_own = wp.float64(0.0)
    for e in range(begin, stop):
        e0 = start[reference.vertices[e]] - centre0 - f0 * reference.rest[e]
        e1 = end[reference.vertices[e]] - centre1 - f1 * reference.rest[e]
        squared = wp.max(wp.dot(e0, e0), wp.dot(e1, e1))
        worst = wp.max(worst, squared)
        if reference.own[e] == 1:
            worst_own = wp.max(worst_own, squared)
    change = f1 - f0
    stretch = smallest_stretch(half * (f0 + f1)) - half * wp.sqrt(wp.ddot(change, change))
    return stretch * reference.clearance[p] > wp.sqrt(worst_own) + wp.sqrt(worst) + least


@wp.func
def needs_check(
    p: int, cluster_offsets: wp.array[int], clusters: wp.array[int], changed: wp.array[wp.uint8], wanted: wp.array[int]
) -> bool:
    """Whether a cluster of the patch, or one around it, goes elsewhere than before."""
    if wanted[0] == 1:
        for c in range(cluster_offsets[p], cluster_offsets[p + 1]):
            if changed[clusters[c]] != wp.uint8(0):
                return True
    return False
