"""Building an OBB tree: fit a box to a set of triangles, cut the set in two, and so on down to single triangles.

The method, and what is promised, is in `tree`. A job is (first place, end, node, depth): the places of
`order` that a node owns. A set is cut across an axis of its box at the mean or at the median of its centroids, where
that makes the larger of the two child boxes smallest (Redon 2002, section 3.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.frames import principal_frame, triangle_frame
from tangere.bvh.obb.node import ObbNode, box_axes, box_axis, box_centre, box_half
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: No node is deeper (the root has depth 0): a traversal of two trees needs at most 2 DEPTH_LIMIT + 1 places.
DEPTH_LIMIT = 47

#: Parts of at most this many triangles, or of this fraction of the mesh, are built by one thread.
_PART = 512
_PARTS = 64


def build_nodes(corners: wp.array, bounds: np.ndarray, weights: np.ndarray, median_only: bool) -> tuple[wp.array, int]:
    """The nodes of the tree over triangles with `corners`, three each, within `bounds` (2, 3), and its depth.

    Args:
        weights: of each triangle in the covariance, (n,), positive.
        median_only: never cut at the mean.
    """
    device, count = wp.get_device("cpu"), len(corners) // 3
    build: Any = Build()
    build.points = wp.empty(3 * count, dtype=wp.vec3d, device=device)
    build.weights = wp.array(weights, dtype=wp.float64, device=device)
    build.order = wp.empty(count, dtype=wp.int32, device=device)
    build.keys = wp.empty(count, dtype=wp.float64, device=device)
    build.nodes = wp.empty(2 * count - 1, dtype=ObbNode, device=device)
    build.origin = wp.vec3d(*(0.5 * bounds[0] + 0.5 * bounds[1]))
    build.slack = float(2.0**-48 * np.abs(bounds).max())
    build.median_only = int(median_only)
    launch(_prepare, count, [corners, build], device=device)
    launch(_fit_root, 1, [build], device=device)
    front = np.array([[0, count, 0, 0]], dtype=np.int32)
    parts = []
    while len(front):
        small = front[:, 1] - front[:, 0] <= max(_PART, count // _PARTS)
        parts.append(front[small])
        todo = wp.array(front[~small], dtype=wp.vec4i, device=device)
        children = wp.empty(2 * len(todo), dtype=wp.vec4i, device=device)
        launch(_split_front, len(todo), [todo, build], [children], device=device, grain=1)
        front = children.numpy().reshape(-1, 4)
    jobs = np.concatenate(parts)
    depths = wp.empty(len(jobs), dtype=wp.int32, device=device)
    inputs = [wp.array(jobs, dtype=wp.vec4i, device=device), build]
    launch(_build_part, len(jobs), inputs, [depths], device=device, grain=1)
    return build.nodes, int(depths.numpy().max())


#: Jobs that wait: one for each level, and one more.
Waiting = wp.types.matrix(shape=(DEPTH_LIMIT + 2, 4), dtype=wp.int32)


@wp.struct
class Build:
    """What the kernels that build share; each position in `order` belongs to one of them at a time."""

    points: wp.array[wp.vec3d]  # corners relative to `origin`, three a triangle
    weights: wp.array[wp.float64]  # of each triangle: its area, or a little more
    order: wp.array[int]  # triangles; a node owns a range of places
    keys: wp.array[wp.float64]  # scratch, one for each place
    nodes: wp.array[ObbNode]
    origin: wp.vec3d
    slack: wp.float64  # covers the rounding of projections
    median_only: int


#: Axes rounded to float32 have dot products off by 2^-23 from those of an orthonormal frame; four times that.
_SKEW = wp.constant(wp.float64(2.0**-21))
#: More than float32 rounding takes away: relative, and for what is nearly zero absolute.
_UP = wp.constant(wp.float64(1.0 + 2.0**-22))
_TINY = wp.constant(wp.float64(1.0e-37))
_DEPTH_LIMIT = wp.constant(DEPTH_LIMIT)
#: Boxes are compared with a padding of this part of their parent's longest half: what is flat anyway is cut across its
#: length, and the two faces of a sheet of metal are parted long before its boxes are as small as it is thick.
_PADDING = wp.constant(wp.float64(0.05))


@wp.kernel
def _prepare(first: int, corners: wp.array[wp.vec3d], build: Build):
    i = first + wp.tid()
    a = corners[3 * i] - build.origin
    b = corners[3 * i + 1] - build.origin
    c = corners[3 * i + 2] - build.origin
    build.points[3 * i] = a
    build.points[3 * i + 1] = b
    build.points[3 * i + 2] = c
    build.order[i] = i


@wp.func
def set_frame(build: Build, begin: int, end: int) -> wp.mat33d:
    """Eigenvectors of the area-weighted covariance of the triangles in a range of places."""
    weight = wp.float64(0.0)
    mean = wp.vec3d(wp.float64(0.0))
    xx = wp.vec3d(wp.float64(0.0))  # xx, yy, zz
    xy = wp.vec3d(wp.float64(0.0))  # xy, yz, zx
    for place in range(begin, end):
        i = build.order[place]
        w = build.weights[i]
        a = build.points[3 * i]
        b = build.points[3 * i + 1]
        c = build.points[3 * i + 2]
        s = a + b + c
        weight += w
        mean += w * s
        xx += w * (wp.cw_mul(a, a) + wp.cw_mul(b, b) + wp.cw_mul(c, c) + wp.cw_mul(s, s))
        a1 = wp.vec3d(a[1], a[2], a[0])
        b1 = wp.vec3d(b[1], b[2], b[0])
        c1 = wp.vec3d(c[1], c[2], c[0])
        s1 = wp.vec3d(s[1], s[2], s[0])
        xy += w * (wp.cw_mul(a, a1) + wp.cw_mul(b, b1) + wp.cw_mul(c, c1) + wp.cw_mul(s, s1))
    # Integral of x x^T over a triangle: area / 12 (aa^T + bb^T + cc^T + ss^T), s = a + b + c; of x: area / 3 s.
    mean = mean / (wp.float64(3.0) * weight)
    diagonal = xx / (wp.float64(12.0) * weight) - wp.cw_mul(mean, mean)
    mixed = xy / (wp.float64(12.0) * weight) - wp.cw_mul(mean, wp.vec3d(mean[1], mean[2], mean[0]))
    scale = wp.abs(diagonal[0]) + wp.abs(diagonal[1]) + wp.abs(diagonal[2])
    frame = wp.identity(3, dtype=wp.float64)
    if scale > wp.float64(0.0):
        diagonal = diagonal / scale
        mixed = mixed / scale
        covariance = wp.mat33d(
            diagonal[0], mixed[0], mixed[2], mixed[0], diagonal[1], mixed[1], mixed[2], mixed[1], diagonal[2]
        )
        frame = principal_frame(covariance)
    return frame


@wp.func
def fit(build: Build, begin: int, end: int) -> ObbNode:
    """The box of the triangles in a range of places."""
    frame = wp.mat33d()
    if end - begin == 1:
        t = build.order[begin]
        frame = triangle_frame(build.points[3 * t], build.points[3 * t + 1], build.points[3 * t + 2])
    else:
        frame = set_frame(build, begin, end)
    node = ObbNode()
    node.axes = wp.mat33(frame)
    rows = wp.transpose(wp.mat33d(node.axes))
    i = build.order[begin]
    lower = rows * build.points[3 * i]
    upper = lower
    for place in range(begin, end):
        j = build.order[place]
        a = rows * build.points[3 * j]
        b = rows * build.points[3 * j + 1]
        c = rows * build.points[3 * j + 2]
        lower = wp.min(lower, wp.min(a, wp.min(b, c)))
        upper = wp.max(upper, wp.max(a, wp.max(b, c)))
    # Extents are taken along the rounded axes about the rounded centre: only projections themselves still round.
    centre = build.origin + wp.transpose(rows) * (wp.float64(0.5) * (lower + upper))
    node.centre = wp.vec3(wp.float32(centre[0]), wp.float32(centre[1]), wp.float32(centre[2]))
    middle = rows * (box_centre(node) - build.origin)
    half = wp.max(upper - middle, middle - lower)
    skew = build.slack + _SKEW * (half[0] + half[1] + half[2])
    half = (half + wp.vec3d(skew, skew, skew)) * _UP + wp.vec3d(_TINY, _TINY, _TINY)
    node.half = wp.vec3(wp.float32(half[0]), wp.float32(half[1]), wp.float32(half[2]))
    node.radius = wp.float32(wp.length(box_half(node)) * _UP * _UP)
    node.right = -1
    node.triangle = -1
    if end - begin == 1:
        node.triangle = i
    return node


@wp.func
def padded_volume(node: ObbNode, padding: wp.float64) -> wp.float64:
    """An eighth of the volume of a box with `padding` on all sides."""
    half = box_half(node) + wp.vec3d(padding, padding, padding)
    return half[0] * half[1] * half[2]


@wp.func
def swap(build: Build, i: int, j: int):
    key = build.keys[i]
    item = build.order[i]
    build.keys[i] = build.keys[j]
    build.order[i] = build.order[j]
    build.keys[j] = key
    build.order[j] = item


@wp.func
def part_below(build: Build, begin: int, end: int, plane: wp.float64) -> int:
    """Bring the places with a key below `plane` to the front; the first place of the rest."""
    low = begin
    high = end - 1
    while low <= high:
        if build.keys[low] < plane:
            low += 1
        else:
            swap(build, low, high)
            high -= 1
    return low


@wp.func
def part_at(build: Build, begin: int, end: int, middle: int):
    """Order the places so that no key before `middle` is above one behind it (quickselect, ends on equal keys too)."""
    low = begin
    high = end - 1
    while low < high:
        pivot = build.keys[(low + high) / 2]
        i = low
        j = high
        while i <= j:
            while build.keys[i] < pivot:
                i += 1
            while build.keys[j] > pivot:
                j -= 1
            if i <= j:
                swap(build, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            high = low  # keys between j and i are equal: done


@wp.func
def project(build: Build, begin: int, end: int, axis: wp.vec3d) -> wp.float64:
    """Take the places of the centroids along `axis` for keys; their mean."""
    sum = wp.float64(0.0)
    for place in range(begin, end):
        i = build.order[place]
        key = wp.dot(axis, build.points[3 * i] + build.points[3 * i + 1] + build.points[3 * i + 2])
        build.keys[place] = key
        sum += key
    return sum / wp.float64(end - begin)


@wp.func
def split(build: Build, begin: int, end: int, node: int, depth: int) -> int:
    """Cut the places of a node in two and write the boxes of its children; the first place of the right child.

    Up to four ways are tried: across the longest axis at the mean, across the others at the mean, and last across the
    longest at the median, which always leads to an end.
    """
    box = build.nodes[node]
    axes = box_axes(box)
    longest = int(0)
    if box.half[1] > box.half[0]:
        longest = 1
    if box.half[2] > box.half[longest]:
        longest = 2
    padding = _PADDING * wp.float64(box.half[longest])
    room = 1 << wp.clamp(_DEPTH_LIMIT - depth - 1, 0, 30)  # triangles that still fit below the depth limit
    left = ObbNode()
    right = ObbNode()
    cut = int(begin)
    least = wp.float64(0.0)
    chosen = int(0)
    plane = wp.float64(0.0)
    way = int(0)
    if build.median_only == 1 or end - begin == 2:
        way = 3
    while way < 4:
        k = (longest + way) % 3
        place = int(begin)
        mean = wp.float64(0.0)
        if way == 3:
            project(build, begin, end, box_axis(axes, k))
            place = (begin + end) / 2
            part_at(build, begin, end, place)
        elif wp.float64(box.half[k]) > padding:  # a flatter one has nothing to gain from a cut across its thickness
            mean = project(build, begin, end, box_axis(axes, k))
            place = part_below(build, begin, end, mean)
        if place > begin and place < end and (way == 3 or wp.max(place - begin, end - place) <= room):
            low = fit(build, begin, place)
            high = fit(build, place, end)
            size = wp.max(padded_volume(low, padding), padded_volume(high, padding))
            if cut == begin or size < least:
                left = low
                right = high
                cut = place
                least = size
                chosen = way
                plane = mean
        way += 1
    if chosen < 3:  # the places are in the order of the last way: back to that of the best
        project(build, begin, end, box_axis(axes, (longest + chosen) % 3))
        part_below(build, begin, end, plane)
    build.nodes[node + 1] = left
    build.nodes[node + 2 * (cut - begin)] = right
    build.nodes[node].right = node + 2 * (cut - begin)
    return cut


@wp.kernel
def _fit_root(first: int, build: Build):
    build.nodes[0] = fit(build, 0, build.order.shape[0])


@wp.kernel
def _split_front(first: int, jobs: wp.array[wp.vec4i], build: Build, children: wp.array[wp.vec4i]):
    i = first + wp.tid()
    begin = jobs[i][0]
    end = jobs[i][1]
    node = jobs[i][2]
    depth = jobs[i][3]
    cut = split(build, begin, end, node, depth)
    children[2 * i] = wp.vec4i(begin, cut, node + 1, depth + 1)
    children[2 * i + 1] = wp.vec4i(cut, end, build.nodes[node].right, depth + 1)


@wp.kernel
def _build_part(first: int, jobs: wp.array[wp.vec4i], build: Build, depths: wp.array[int]):
    i = first + wp.tid()
    waiting = Waiting()  # right children: at most one for each level
    waiting[0] = jobs[i]
    count = int(1)
    deepest = int(0)
    while count > 0:
        count -= 1
        job = waiting[count]
        begin = job[0]
        end = job[1]
        node = job[2]
        depth = job[3]
        deepest = wp.max(deepest, depth)
        if end - begin > 1:
            cut = split(build, begin, end, node, depth)
            waiting[count] = wp.vec4i(cut, end, build.nodes[node].right, depth + 1)
            waiting[count + 1] = wp.vec4i(begin, cut, node + 1, depth + 1)
            count += 2
    depths[i] = deepest
