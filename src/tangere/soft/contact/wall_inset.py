"""Where the walls of a cut are as surfaces: inside the material, half a kerf from where it was opened.

Question: two walls are born at one place; how do they become surfaces that are apart, without moving a single dof?
Method:   a surface vertex on a wall is carried by a simplex of its own side, at the point half a kerf inside along the
          direction that is nearest to all normals of the walls around it: the centre of the smallest cap of the unit
          sphere that has them, which is on the right side of each whenever there is such a direction. At the front of
          the cut, where the walls of both sides meet in one vertex, normals cancel and it stays where it is; if it is
          on a wall that was there before, it goes along with that one. Where others are at the same place, it goes
          twice as far towards the middle of its simplices. Either way is turned so that the vertex hardly comes nearer
          to any of its walls. If surfaces touch then, other ways are tried (`INSETS`).
Sound:    dofs, masses and energies are untouched. Weights add up to 1; they are negative by a few hundredths where a
          wall meets the skin at an acute angle.
Known as: the smallest enclosing cap, found point by point as the smallest enclosing disc is (Welzl 1991); relaxation of
          linear inequalities (Agmon 1954).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Walls around a vertex look the same way if the cosine of the smallest cap of their normals is more than this.
SAME_WAY = 0.1
#: Normals cancel at a vertex if their sum is shorter than this part of the sum of their lengths.
CANCELS = 0.25
#: Directions are stretched so that each wall is half a kerf away, at most this much.
MOST_STRETCHED = 2.0
#: Times that a direction is turned away from the wall that it comes nearest to, at most.
TURNS = 16
#: How a vertex is inset, by bits: it stays, if it may, where normals cancel most of all at its place; it goes straight
#: towards the middle of its simplices where they cancel; it does not go along with a wall that was there before; and
#: from there on how often its depth is divided by four.
STAYS, STRAIGHT, NOT_ALONG, DIVIDED = wp.constant(1), wp.constant(2), wp.constant(4), wp.constant(8)
#: Ways to inset walls, one tried after the other until surfaces are apart.
INSETS = range(3 * int(DIVIDED))
#: Simplices have a point equally well if its least weights differ by less: then the first one carries it.
COARSE = 1e-6


@dataclass(frozen=True, eq=False)
class WallFacets:
    """m facets that a blade has opened, in their order, of c corners each: triangles of a solid, edges of a sheet."""

    corners: np.ndarray  #: (m, c) surface vertices
    normals: np.ndarray  #: (m, 3) outward at rest, as long as the facet is large
    owners: np.ndarray  #: (m,) their simplices


def inset_carriers(
    walls: WallFacets,
    used: np.ndarray,
    dofs: np.ndarray,
    rest: np.ndarray,
    simplices: np.ndarray,
    half_kerf: float,
    insets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What carries the surface vertices: for each four vertices of the body (s, 4), and their weights (s, 4).

    Args:
        used: (k,) the surface vertices that there are.
        dofs: (s,) the vertex of the body at each surface vertex.
        rest: (v, 3) vertices of the body at rest [m].
        simplices: (n, 3 or 4) of the body.
        half_kerf: how far walls go [m].
        insets: (s,) how each vertex is inset, of `INSETS`.
    """
    count = len(dofs)
    carriers, weights = np.repeat(dofs[:, None], 4, axis=1), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    if not len(walls.owners):
        return carriers, weights
    per_facet = walls.corners.shape[1]
    vertex = walls.corners.ravel()
    normals, owners = np.repeat(walls.normals, per_facet, axis=0), np.repeat(walls.owners, per_facet)
    by_vertex = _by_vertex(vertex, normals, count)
    ways, least = _smallest_caps(*by_vertex)
    alone = least > SAME_WAY
    ways *= np.clip(1.0 / np.where(alone, least, 1.0), 1.0, MOST_STRETCHED)[:, None]
    sums, left = _sums(vertex, normals, count)
    stays, straight = insets & int(STAYS) != 0, insets & int(STRAIGHT) != 0
    along = np.flatnonzero(~alone & (left > CANCELS) & (insets & int(NOT_ALONG) == 0))
    ways[along] = _turned(sums[along], along, *by_vertex)
    ways[along] /= np.clip(np.einsum("ij,ij->i", ways[along], sums[along]), 1.0 / MOST_STRETCHED, 1.0)[:, None]
    alone[along] = True
    crowded = _crowded(vertex[~alone[vertex]], used, rest[dofs])
    if stays.any():
        crowded = _without_first(crowded, rest[dofs], left, stays)
    ways[crowded] = _outward(crowded, vertex, rest[dofs], rest[simplices[owners]].mean(axis=1))
    turned = crowded[~straight[crowded]]
    ways[turned] = _turned(ways[turned], turned, *by_vertex)
    ways[crowded] *= MOST_STRETCHED
    alone[crowded] = True
    ways *= (half_kerf * 0.25 ** (insets // int(DIVIDED)))[:, None]
    moved = alone[vertex]
    vertex, owners = vertex[moved], owners[moved]
    found = _weights_in(rest[dofs[vertex]] - ways[vertex], rest[simplices[owners]])
    inside = np.floor(found.min(axis=1) / COARSE + 0.5)  # 0 is between no two
    order = np.lexsort((owners, -inside, vertex))  # of the simplices at a vertex the one that has it best
    best = order[np.unique(vertex[order], return_index=True)[1]]
    corners = simplices[owners[best]]
    width = corners.shape[1]
    carriers[vertex[best], :width], weights[vertex[best], :width] = corners, found[best]
    return carriers, weights


def _by_vertex(vertex: np.ndarray, normals: np.ndarray, count: int) -> tuple[wp.array, wp.array]:
    """Unit normals, those of each vertex together: where they begin and end (count + 1,), and themselves (m, 3)."""
    order = np.argsort(vertex, kind="stable")
    units = normals[order] / np.linalg.norm(normals[order], axis=1, keepdims=True)
    ends = np.searchsorted(vertex[order], np.arange(count + 1))
    return wp.array(ends, dtype=wp.int32, device="cpu"), wp.array(units, dtype=wp.vec3d, device="cpu")


def _smallest_caps(ends: wp.array, normals: wp.array) -> tuple[np.ndarray, np.ndarray]:
    """Centre (v, 3) and cosine (v,) of the smallest cap of the normals at each vertex; infinity for none."""
    count = len(ends) - 1
    found = wp.zeros(count, dtype=wp.vec3d, device="cpu"), wp.zeros(count, dtype=wp.float64, device="cpu")
    launch(_caps, count, [ends, normals], list(found), device=ends.device)
    return found[0].numpy(), found[1].numpy()


def _turned(ways: np.ndarray, of: np.ndarray, ends: wp.array, normals: wp.array) -> np.ndarray:
    """(k, 3) directions of some vertices, turned by `turned_to_walls`."""
    turned = wp.array(ways, dtype=wp.vec3d, device="cpu")
    launch(_turn, len(of), [wp.array(of, dtype=wp.int32, device="cpu"), ends, normals], [turned], device=ends.device)
    return turned.numpy()


def _sums(vertex: np.ndarray, normals: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the normals at each vertex the direction of the sum (count, 3), and how long it is beside that of lengths."""
    whole = np.bincount(vertex, np.linalg.norm(normals, axis=1), count)
    sums = np.stack([np.bincount(vertex, normals[:, k], count) for k in range(3)], axis=1)
    size = np.linalg.norm(sums, axis=1)
    return sums / np.where(size > 0.0, size, 1.0)[:, None], size / np.where(whole > 0.0, whole, 1.0)


def _crowded(asked: np.ndarray, used: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Which surface vertices, of those asked, have another one at the same place."""
    _, group, count = np.unique(places[used], axis=0, return_inverse=True, return_counts=True)
    return np.intersect1d(asked, used[count[group.ravel()] > 1])


def _without_first(crowded: np.ndarray, places: np.ndarray, by: np.ndarray, stay: np.ndarray) -> np.ndarray:
    """Without the one of each place that is the least by these numbers, where there are several, if it may stay."""
    if not len(crowded):
        return crowded
    _, group, count = np.unique(places[crowded], axis=0, return_inverse=True, return_counts=True)
    order = np.lexsort((by[crowded], group.ravel()))
    first = order[np.unique(group.ravel()[order], return_index=True)[1]]
    left = np.ones(len(crowded), bool)
    left[first[(count > 1) & stay[crowded[first]]]] = False
    return crowded[left]


def _outward(asked: np.ndarray, vertex: np.ndarray, places: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """(k, 3) unit vectors from the middle of the simplices at each surface vertex asked to it."""
    count = np.maximum(np.bincount(vertex, minlength=len(places)), 1)
    sums = np.stack([np.bincount(vertex, middles[:, k], len(places)) for k in range(3)], axis=1)
    way = places[asked] - (sums / count[:, None])[asked]
    return way / np.linalg.norm(way, axis=1, keepdims=True)


def _weights_in(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(m, k) weights of the corners (m, k, 3) of simplices that give points (m, 3); in the plane of triangles."""
    sides = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)
    away = points - corners[:, 0]
    if corners.shape[1] == 4:
        inner = np.linalg.solve(sides, away[..., None])[..., 0]
    else:
        square = np.einsum("mia,mib->mab", sides, sides)
        inner = np.linalg.solve(square, np.einsum("mia,mi->ma", sides, away)[..., None])[..., 0]
    return np.column_stack([1.0 - inner.sum(axis=1), inner])


#: Directions whose cosines differ by less are equally far.
_SAME = wp.constant(wp.float64(1e-12))
#: And a right angle is exceeded by no more than this.
_NEARLY = wp.constant(wp.float64(1e-3))


@wp.func
def cap_of_three(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Centre of the cap that has three unit vectors on its rim."""
    axis = wp.normalize(wp.cross(b - a, c - a))
    if wp.dot(axis, a) < wp.float64(0.0):
        axis = -axis
    return axis


@wp.func
def smallest_cap(normals: wp.array[wp.vec3d], begin: int, end: int):
    """Centre of the smallest cap that has these unit vectors, and the least cosine of one to it.

    If there is no half sphere that has all of them the cosine is not positive, and the centre any direction.
    """
    axis = normals[begin]
    least = wp.float64(1.0) - _SAME
    for i in range(begin + 1, end):
        if wp.dot(axis, normals[i]) < least:
            axis = normals[i]
            least = wp.float64(1.0) - _SAME
            for j in range(begin, i):
                if wp.dot(axis, normals[j]) < least:
                    axis = wp.normalize(normals[i] + normals[j])
                    least = wp.dot(axis, normals[j]) - _SAME
                    for k in range(begin, j):
                        if wp.dot(axis, normals[k]) < least:
                            axis = cap_of_three(normals[i], normals[j], normals[k])
                            least = wp.dot(axis, normals[k]) - _SAME
    for i in range(begin, end):
        least = wp.min(least, wp.dot(axis, normals[i]))
    return axis, least


@wp.func
def least_cosine(way: wp.vec3d, normals: wp.array[wp.vec3d], begin: int, end: int) -> wp.float64:
    """From a unit vector to that of some others which is farthest from it."""
    least = wp.float64(1.0)
    for i in range(begin, end):
        least = wp.min(least, wp.dot(way, normals[i]))
    return least


@wp.func
def turned_to_walls(way: wp.vec3d, normals: wp.array[wp.vec3d], begin: int, end: int) -> wp.vec3d:
    """A unit vector turned until no normal is more than a right angle from it, or by as little more as can be."""
    best = way
    for _turn in range(TURNS):
        worst = int(begin)
        for i in range(begin + 1, end):
            if wp.dot(best, normals[i]) < wp.dot(best, normals[worst]) - _SAME:
                worst = i
        behind = wp.dot(best, normals[worst])
        across = best - wp.min(behind, wp.float64(0.0)) * normals[worst]
        if wp.length_sq(across) > _SAME:
            best = wp.normalize(across)
    least = least_cosine(best, normals, begin, end)
    if least < -_NEARLY:  # then it is one between two or three of them
        for i in range(begin, end):
            for j in range(begin, i):
                for k in range(begin, j + 1):
                    tried = normals[i] + normals[j]
                    if k < j:
                        tried = wp.cross(normals[j] - normals[i], normals[k] - normals[i])
                    if wp.length_sq(tried) > _SAME:
                        tried = wp.normalize(tried)
                        for _side in range(2):
                            cosine = least_cosine(tried, normals, begin, end)
                            if cosine > least + _NEARLY:
                                best = tried
                                least = cosine
                            tried = -tried
    return best


@wp.kernel
def _turn(first: int, of: wp.array[int], ends: wp.array[int], normals: wp.array[wp.vec3d], ways: wp.array[wp.vec3d]):
    k = first + wp.tid()
    ways[k] = turned_to_walls(ways[k], normals, ends[of[k]], ends[of[k] + 1])


@wp.kernel
def _caps(
    first: int,
    ends: wp.array[int],
    normals: wp.array[wp.vec3d],
    axes: wp.array[wp.vec3d],
    cosines: wp.array[wp.float64],
):
    """Of each vertex, of which the normals are from one end to the next."""
    v = first + wp.tid()
    cosine = wp.float64(wp.inf)
    if ends[v + 1] > ends[v]:
        axis, cosine = smallest_cap(normals, ends[v], ends[v + 1])
        axes[v] = axis
    cosines[v] = cosine
