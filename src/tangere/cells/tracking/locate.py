"""Where points are: the dart whose simplex holds each of them, found by walking from the dart each had before.

Question: which cell holds this point now?
Method:   from simplex to simplex across sides the point is behind (the well-centred tracker: only the aimed dart and
          the target matter, not the way), a few sign tests per point. Points without a dart start at the nearest of a
          sample of cells; whatever is blocked or goes round in circles is looked for in every simplex. In a flat map z
          is left out.
Sound:    an answer that is not blocked is its own certificate: no side function is negative (at a vertex: beyond
          rounding). A walk from a given dart that meets a border or wall says so and keeps the last dart; it is not the
          straight way there (see `march`).
Known as: walking point location (Devillers, Pion, Teillaud 2002); particle tracking in BC cells (Pitiot 2015, section
          7.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.simplex_sides import BLOCKED, INSIDE, LOST, is_nearly_inside, points_per_index, sides, walk
from tangere.runtime import (
    SOUND,
    Arrays,
    InputError,
    UnsupportedError,
    as_points,
    indices_at_least,
    launch,
    to_numpy,
    using_threads,
)

wp.set_module_options(SOUND)

#: Cells tried as a start for points without a dart, per cube root of cells.
_SAMPLE = 2
_GRAIN = 4096


@dataclass(frozen=True)
class Locations:
    """Where each point is."""

    dart: np.ndarray  #: (n,) int32; the simplex that holds the point, or the last one before a border
    cell: np.ndarray  #: (n,) int32
    blocked: np.ndarray  #: (n,) bool: outside, or behind a border or wall as the walk saw it

    def __repr__(self) -> str:
        return f"Locations({len(self.dart)} points, {int(self.blocked.sum())} blocked)"


def locate(map: CellMap, points: Arrays, darts: Arrays | None = None, *, threads: int | None = None) -> Locations:
    """The cells that hold points.

    Args:
        points: (n, 2) or (n, 3) [m].
        darts: where to start, (n,): the darts of an earlier answer. None: anywhere; then `blocked` means outside.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        check_not_surface(map, "locate")
        places = as_map_points(map, points, "points")
        start = None if darts is None else as_darts(map, darts, len(places))
        dart, status = locate_darts(map, places, start)
        found = dart.numpy()
        return Locations(found, map.arrays.cell.numpy()[found], status.numpy() == BLOCKED)


def locate_darts(
    map: CellMap, points: wp.array, darts: wp.array | None, *, anywhere: bool = False
) -> tuple[wp.array, wp.array]:
    """The same on the device: darts (int32) and how each walk ended (uint8: INSIDE or BLOCKED).

    Args:
        anywhere: from given darts too, BLOCKED means outside: who is not where the walk was stopped is looked for.
    """
    count, device, m = len(points), map.device, map.arrays
    out, status = (wp.empty(count, dtype=kind, device=device) for kind in (wp.int32, wp.uint8))
    walked = darts is not None
    if darts is None:
        darts = wp.empty(count, dtype=wp.int32, device=device)
        leaves = map.leaves
        step = max(1, int(len(leaves) ** (2 / 3)) // _SAMPLE)
        sample = wp.array(leaves[::step].astype(np.int32), dtype=wp.int32, device=device)
        launch(_nearest_start, count, [m, points, sample], [darts], device=device, grain=_GRAIN)
    chunk = points_per_index(device)
    indices = -(-count // chunk)
    launch(_walk, indices, [m, points, darts, chunk], [out, status], device=device, grain=_GRAIN // chunk)
    lost = indices_at_least(status, int(BLOCKED if anywhere or not walked else LOST))
    launch(_search, len(lost), [m, points, lost, int(walked)], [out, status], device=device, grain=16)
    return out, status


def classify(
    map: CellMap, points: Arrays, darts: Arrays, epsilon: float | None = None, *, threads: int | None = None
) -> np.ndarray:
    """What each point is on: the dimension of the smallest cell within `epsilon` (0 vertex, 1 edge, 2 face, 3 volume).

    Args:
        darts: simplices that hold the points, as `locate` gives them.
        epsilon: thickness of faces, edges and vertices [m]; None: a millionth of the shortest edge.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    with using_threads(threads):
        places = as_map_points(map, points, "points")
        if epsilon is None:
            epsilon = 1e-6 * _shortest_edge(map)
        if not 0 <= epsilon < np.inf:
            raise InputError(f"epsilon must be a length [m], not {epsilon}")
        state = wp.empty(len(places), dtype=wp.int32, device=map.device)
        inputs = [map.arrays, places, as_darts(map, darts, len(places)), wp.float64(epsilon)]
        launch(_classify, len(places), inputs, [state], device=map.device, grain=_GRAIN)
        return state.numpy()


def check_not_surface(map: CellMap, name: str) -> None:
    """Raise where sides of planes do not say where a point is."""
    if map.is_surface:
        raise UnsupportedError(f"{name} is for flat maps and for space; points of a curved surface move with glide")


def as_map_points(map: CellMap, points: Arrays, name: str, count: int | None = None) -> wp.array:
    """Points of the plane or of space as vec3d on the map's device; in a flat map, with z = 0.

    NaN and infinite ones are refused, and another number of them than `count` (one for each of so many points).
    """
    array = to_numpy(points, name)
    if array.ndim == 2 and array.shape[1] == 2 and map.dimension == 2:
        array = np.concatenate([array, np.zeros((len(array), 1))], axis=1)
        points = array
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"{name} must have shape (n, {'2 or ' if map.dimension == 2 else ''}3), not {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name}: point {np.argwhere(~np.isfinite(array))[0, 0]} is not finite")
    if count is not None and len(array) != count:
        raise InputError(f"{name}: there are {len(array)} for {count} points")
    if map.flat and array[:, 2].any():
        points = array * [1.0, 1.0, 0.0]
    return as_points(points, name, map.device)


def as_darts(map: CellMap, darts: Arrays, count: int) -> wp.array:
    """Dart numbers as an int32 array on the map's device; dead or missing darts are refused."""
    host = darts.numpy() if isinstance(darts, wp.array) else np.asarray(darts)
    if host.shape != (count,) or not np.issubdtype(host.dtype, np.integer):
        raise InputError(f"darts must be {count} whole numbers, not {host.dtype} of shape {host.shape}")
    tags = map.numpy("tag")
    wrong = (host < 0) | (host >= len(tags))
    if not wrong.any():
        wrong = tags[host] < 0
    if wrong.any():
        raise InputError(f"darts: point {int(np.argmax(wrong))} aims at dart {host[np.argmax(wrong)]}, which is none")
    if isinstance(darts, wp.array) and darts.dtype == wp.int32 and darts.device == map.device:
        return darts
    return wp.array(host.astype(np.int32), dtype=wp.int32, device=map.device)


def _shortest_edge(map: CellMap) -> float:
    start, end = map.edge_ends(map.darts)
    return float(np.sqrt(((end - start) ** 2).sum(axis=1).min()))


@wp.kernel
def _walk(
    first: int,
    m: MapArrays,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    chunk: int,
    out: wp.array[int],
    status: wp.array[wp.uint8],
):
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, points.shape[0])):
        end = walk(m, points[i], darts[i])
        out[i] = end[0]
        status[i] = wp.uint8(end[1])


@wp.kernel
def _nearest_start(first: int, m: MapArrays, points: wp.array[wp.vec3d], sample: wp.array[int], darts: wp.array[int]):
    i = first + wp.tid()
    best = wp.float64(wp.inf)
    for k in range(sample.shape[0]):
        c = sample[k]
        away = wp.length_sq(points[i] - m.centre[c])
        if away < best:
            best = away
            darts[i] = m.anchor[c]


@wp.kernel
def _search(
    first: int,
    m: MapArrays,
    points: wp.array[wp.vec3d],
    chosen: wp.array[int],
    walked: int,
    out: wp.array[int],
    status: wp.array[wp.uint8],
):
    i = chosen[first + wp.tid()]
    if walked == 1 and status[i] == wp.uint8(BLOCKED):
        if is_nearly_inside(m, out[i], points[i]):
            status[i] = wp.uint8(INSIDE)
            return
    status[i] = wp.uint8(BLOCKED)
    for d in range(m.counts[0]):
        if m.tag[d] >= 0:
            if wp.min(sides(m, d, points[i])) >= wp.float64(0.0):
                out[i] = d
                status[i] = wp.uint8(INSIDE)
                return


@wp.func
def _near_edge(m: MapArrays, d: int, x: wp.vec3d, epsilon: wp.float64) -> bool:
    s = m.position[m.origin[d]]
    along = m.position[m.origin[m.phi1[d]]] - s
    return wp.length(wp.cross(along, x - s)) <= epsilon * wp.length(along)


@wp.kernel
def _classify(
    first: int,
    m: MapArrays,
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    epsilon: wp.float64,
    state: wp.array[int],
):
    i = first + wp.tid()
    x = points[i]
    d = darts[i]
    s = m.position[m.origin[d]]
    e = m.position[m.origin[m.phi1[d]]]
    result = m.dimension
    if m.dimension == 3:
        normal = wp.cross(s - m.face_centre[d], e - m.face_centre[d])
        if wp.abs(wp.dot(normal, x - s)) <= epsilon * wp.length(normal):
            result = 2
    if _near_edge(m, d, x, epsilon):
        result = 1
    # Beside a corner, the edge before or after may be the near one.
    if wp.length(x - s) <= wp.length(x - e):
        if _near_edge(m, m.phi_1[d], x, epsilon):
            result = 1
    elif _near_edge(m, m.phi1[d], x, epsilon):
        result = 1
    if wp.length(x - s) <= epsilon or wp.length(x - e) <= epsilon:
        result = 0
    state[i] = result
