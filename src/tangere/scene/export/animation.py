"""What a scene does as keyframes: poses of what moves as a whole, states of what deforms.

Question: which keys, joined by straight lines and shortest turns, show every thing where it is at all times?
Method:   the states of a thing are fitted by turns, shifts and sizes, of the thing as a whole or of each piece of it
          that hangs together (bodies of a batch, agents of a crowd); what none of these fits deforms, vertex by vertex.
          Keys are where motions have states of their own; intervals are halved while their middle is off.
Precise:  to 1e-4 of the scene's extent between keys, and to 2e-6 at keys. What jumps has keys that hold.
Known as: orthogonal Procrustes problem (Kabsch 1976; Umeyama 1991 with scale); blend shapes, morph targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere.runtime import whole
from tangere.scene.creases import split_creases
from tangere.scene.keyframes import Episode
from tangere.scene.scene import Scene, Thing

_BETWEEN = 1e-4  #: how far off a thing may be between keys, as a part of the scene's extent
_AT_KEYS = 2e-6  #: … and at them
_MOST_KEYS = 512  #: of one thing, or four times as many as its motion has states
_LONG = (0.5, 0.276, 0.809)  #: where long intervals are looked at: whole turns within one must not look like none
_LONG_PART = 1 / 64
_FINEST = 4096  #: instants that a jump can be seen between
_MOST_PIECES, _MOST_SINGLE = 20_000, 1_000
_FRAMES = 61  #: instants of a series where motions have none of their own


@dataclass(frozen=True, eq=False)
class Track:
    """Poses over time, of `count` copies of one piece."""

    times: np.ndarray  #: (k,) of the scene
    shift: np.ndarray  #: (k, count, 3) [m]
    turn: np.ndarray  #: (k, count, 4) unit quaternions x, y, z, w; neighbours in time on the shorter way
    size: np.ndarray  #: (k, count)
    holds: bool  #: whether each key holds until the next, instead of going there evenly


@dataclass(frozen=True, eq=False)
class Piece:
    """What moves as a whole, once or several times."""

    vertices: np.ndarray  #: (n, 3), repeated at creases [m]
    faces: np.ndarray  #: (m, 3)
    track: Track


@dataclass(frozen=True, eq=False)
class Deformation:
    """Vertices over time."""

    times: np.ndarray  #: (k,) of the scene
    states: np.ndarray  #: (k, n, 3) float32, from the origin; repeated at creases [m]
    faces: np.ndarray  #: (m, 3)
    origin: np.ndarray  #: (3,) [m]
    holds: bool


@dataclass(frozen=True, eq=False)
class Animated:
    """One thing: pieces, or a deformation."""

    thing: Thing
    pieces: tuple[Piece, ...] = ()
    deformation: Deformation | None = None
    span: tuple[float, float] | None = None  #: from when until when it is there; None means always


def animated(scene: Scene, frames: int | None = None) -> list[Animated]:
    """Keys of every thing.

    Args:
        frames: so many keys at even distances; None means as many as it takes.
    """
    times = key_times(scene, frames)
    return [_in_span(thing, scene, times, refine=frames is None) for thing in scene.things]


def key_times(scene: Scene, frames: int | None = None) -> np.ndarray:
    """Rising times of the scene at which its motions have states, with both ends; or so many at even distances."""
    start, end = scene.time_range
    if frames is not None:
        return np.linspace(start, end, whole(frames, "frames", least=2))
    own = [_own_times(thing) for thing in scene.things]
    times = np.unique(np.concatenate([[start], *own]))
    times = times[(times >= start) & (times < end)]
    # Seconds of files have single precision, and must rise.
    apart = np.diff(np.append(times, end)) > 1e-6 * (end - start)
    return np.append(times[apart], end) if end > start else np.array([start])


def sampled_times(scene: Scene, frames: int | None = None) -> np.ndarray:
    """Rising times for formats with a whole state at each: those of motions, or even ones, and the first contact."""
    if frames is not None:
        return key_times(scene, frames)
    if not any(thing.moves for thing in scene.things):
        return np.array([scene.time_range[1]])
    times = key_times(scene)
    recorded = any(hasattr(_motion(thing), "states") for thing in scene.things)
    if len(times) < _FRAMES and not recorded:
        times = np.union1d(times, np.linspace(*scene.time_range, _FRAMES))
    first = scene.contacts.time[np.isfinite(scene.contacts.time)].min(initial=np.inf)
    return np.union1d(times, [first]) if scene.time_range[0] <= first <= scene.time_range[1] else times


def _motion(thing: Thing) -> Any:
    return getattr(thing.shape, "motion", None) if thing.moves else None


def _own_times(thing: Thing) -> np.ndarray:
    """When the motion has states, if it says so."""
    times = getattr(_motion(thing), "times", None)
    own = np.asarray(times, float) if isinstance(times, np.ndarray) else np.empty(0)
    return own if own.ndim == 1 else np.empty(0)


def is_shown(thing: Thing, time: float) -> bool:
    """Whether a thing is there at a time."""
    motion = _motion(thing)
    return motion.shown(time) if isinstance(motion, Episode) else True


def _in_span(thing: Thing, scene: Scene, times: np.ndarray, refine: bool) -> Animated:
    """Keys of a thing, while it is there."""
    motion = _motion(thing)
    if not isinstance(motion, Episode):
        return _animated(thing, scene, times, refine)
    own = np.union1d(times[[motion.shown(float(time)) for time in times]], motion.times)
    return replace(_animated(thing, scene, own, refine), span=motion.span)


def _animated(thing: Thing, scene: Scene, times: np.ndarray, refine: bool) -> Animated:
    extent = max(scene.extent, np.finfo(float).tiny)
    rest, faces = thing.rest_vertices, thing.faces
    if not thing.moves:
        return Animated(thing, (_at_rest(rest, thing.creased.source, thing.creased.faces, times[0]),))
    states = _States(thing, extent)
    for groups in _groupings(faces, len(rest)):
        tracks = _tracks(states, rest, groups, times, refine)
        if tracks is not None:
            return Animated(thing, tuple(_piece(rest, faces, group, track) for group, track in tracks))
    return Animated(thing, deformation=_deformation(states, thing, times, refine))


class _States:
    """Vertices of a thing at times that are asked for again and again; the last few are kept."""

    def __init__(self, thing: Thing, extent: float) -> None:
        self.thing, self.extent = thing, extent
        self._kept: dict[float, np.ndarray] = {}

    def __call__(self, time: float) -> np.ndarray:
        if time not in self._kept:
            if len(self._kept) >= 4:
                self._kept.pop(next(iter(self._kept)))
            self._kept[time] = self.thing.vertices(time)
        return self._kept[time]


def _at_rest(vertices: np.ndarray, source: np.ndarray, faces: np.ndarray, time: float) -> Piece:
    """A piece about its own middle where that is far away, so that single precision is enough for it."""
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0
    far = np.abs(middle).max() > 100.0 * np.ptp(vertices, axis=0).max()
    origin = middle if far else np.zeros(3)
    turn = np.array([[[0.0, 0.0, 0.0, 1.0]]])
    track = Track(np.array([time]), origin[None, None], turn, np.ones((1, 1)), False)
    return Piece((vertices - origin)[source], faces, track)


def _groupings(faces: np.ndarray, count: int) -> Iterator[list[np.ndarray]]:
    """What may move as a whole, from coarse to fine: everything, pieces that are copies of each other, each piece."""
    yield [np.arange(count)[None]]
    copies = _pieces(faces, count)
    yield copies
    single = [row[None] for group in copies for row in group]
    if len(copies) < len(single) <= _MOST_SINGLE:
        yield single


def _pieces(faces: np.ndarray, count: int) -> list[np.ndarray]:
    """Vertices that hang together, as (copies, n) numbers: pieces with the same triangles are copies of each other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = faces[:, [0, 1]].reshape(-1), faces[:, [1, 2]].reshape(-1)
    links = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(count, count))
    number, piece = connected_components(links, directed=False)
    if not 1 < number <= _MOST_PIECES:
        return []
    order = np.argsort(piece, kind="stable")
    starts = np.searchsorted(piece[order], np.arange(number + 1))
    local = np.empty(count, np.int64)
    local[order] = np.arange(count) - np.repeat(starts[:-1], np.diff(starts))
    face_piece = piece[faces[:, 0]]
    face_order = np.argsort(face_piece, kind="stable")
    face_starts = np.searchsorted(face_piece[face_order], np.arange(number + 1))
    alike: dict[bytes, list[np.ndarray]] = {}
    for k in range(number):
        triangles = local[faces[face_order[face_starts[k] : face_starts[k + 1]]]]
        if len(triangles):  # vertices that no triangle uses are not drawn
            alike.setdefault(triangles.tobytes(), []).append(order[starts[k] : starts[k + 1]])
    return [np.stack(group) for group in alike.values()]


def _piece(rest: np.ndarray, faces: np.ndarray, group: np.ndarray, track: Track) -> Piece:
    number = np.full(len(rest), -1)
    number[group[0]] = np.arange(group.shape[1])
    own = number[faces[(number[faces] >= 0).all(axis=1)]].astype(np.int32)
    template = _template(rest, group)
    creased = split_creases(template, own)
    return Piece(template[creased.source], creased.faces, track)


def _template(rest: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The first copy: where it rests if it is alone, so that its poses are the motion's; else about its middle."""
    template = rest[group[0]]
    alone = group.shape == (1, len(rest)) and np.abs(template).max() <= 100.0 * np.ptp(template, axis=0).max()
    return template if alone else template - template.mean(axis=0)


def _tracks(
    states: _States, rest: np.ndarray, groups: list[np.ndarray], times: np.ndarray, refine: bool
) -> list[tuple[np.ndarray, Track]] | None:
    """Poses of every group; None where a piece of one deforms."""
    templates = [_template(rest, group) for group in groups]
    fits: dict[float, list[np.ndarray] | None] = {}

    def fitted(time: float) -> list[np.ndarray] | None:
        if time not in fits:
            state, found = states(time), []
            for group, template in zip(groups, templates, strict=True):
                pose, residual = _fit(template, state[group])
                found.append(pose)
                if residual > _AT_KEYS * states.extent:
                    found = None
                    break
            fits[time] = found
        return fits[time]

    if not groups or any(fitted(float(time)) is None for time in (times[0], times[-1], *times)):
        return None

    def off(before: float, after: float, part: float) -> float:
        a, b, c = fitted(before), fitted(before + part * (after - before)), fitted(after)
        if a is None or b is None or c is None:
            return np.inf
        return max(_off(*poses, part) for poses in zip(templates, a, b, c, strict=True))

    times, holds = _refined(times, off, _BETWEEN * states.extent) if refine else (times, False)
    if any(fitted(float(time)) is None for time in times):
        return None
    every = [fitted(float(time)) or [] for time in times]
    return [(group, _track(times, np.stack([f[g] for f in every]), holds)) for g, group in enumerate(groups)]


def _track(times: np.ndarray, poses: np.ndarray, holds: bool) -> Track:
    """Of poses (k, count, 8): shift, turn, size."""
    shift, turn, size = poses[..., :3], poses[..., 3:7].copy(), poses[..., 7]
    for k in range(1, len(turn)):  # q and -q are the same turn
        turn[k] *= np.where(np.einsum("ci,ci->c", turn[k - 1], turn[k]) < 0.0, -1.0, 1.0)[:, None]
    kept = _changes(np.concatenate([shift, turn, size[..., None]], axis=2)) if holds else np.ones(len(times), bool)
    return Track(times[kept], shift[kept], turn[kept], size[kept], holds)


def _changes(states: np.ndarray) -> np.ndarray:
    """Keys that are not what was held before."""
    return np.concatenate([[True], (states[1:] != states[:-1]).reshape(len(states) - 1, -1).any(axis=1)])


def _fit(template: np.ndarray, copies: np.ndarray) -> tuple[np.ndarray, float]:
    """Poses (count, 8) that take a template (n, 3) to copies (count, n, 3) best, and the farthest a vertex is off."""
    from scipy.spatial.transform import Rotation

    middle, middles = template.mean(axis=0), copies.mean(axis=1)
    a, b = template - middle, copies - middles[:, None]
    turns = np.tile(np.eye(3), (len(copies), 1, 1))
    size = np.ones(len(copies))
    shifted = np.abs(b - a).max(axis=(1, 2)) <= 1e-12 * np.abs(a).max(initial=1e-300)
    rest = np.flatnonzero(~shifted)
    if len(rest):
        left, _, right = np.linalg.svd(np.einsum("ni,cnj->cij", a, b[rest]))
        mirror = np.linalg.det(left @ right) < 0.0
        left[mirror, :, 2] *= -1.0
        turns[rest] = np.swapaxes(left @ right, 1, 2)
        size[rest] = np.sqrt((b[rest] ** 2).sum(axis=(1, 2)) / max((a**2).sum(), 1e-300))
        size[np.abs(size - 1.0) < 1e-6] = 1.0
    moved = size[:, None, None] * (a @ np.swapaxes(turns, 1, 2))
    residual = float(np.abs(b - moved).max(initial=0.0))
    shift = middles - size[:, None] * (turns @ middle)
    turn = Rotation.from_matrix(turns).as_quat()
    turn[shifted | (size == 0.0)] = [0.0, 0.0, 0.0, 1.0]
    return np.concatenate([shift, turn, size[:, None]], axis=1), residual


def _off(template: np.ndarray, before: np.ndarray, between: np.ndarray, after: np.ndarray, part: float) -> float:
    """How far corners of the box around a template are off on the way, done in part, from one pose to another."""
    low, high = template.min(axis=0), template.max(axis=0)
    corners = np.where((np.arange(8)[:, None] >> np.arange(3)) & 1, high, low)
    cosine = np.einsum("ci,ci->c", before[:, 3:7], after[:, 3:7])[:, None]
    angle = np.arccos(np.minimum(np.abs(cosine), 1.0))
    way = (1.0 - part) * before + part * after
    # Along the great arc; where there is none to speak of, along the chord.
    arc = np.sin((1.0 - part) * angle) * before[:, 3:7] + np.sign(cosine) * np.sin(part * angle) * after[:, 3:7]
    way[:, 3:7] = np.where(angle > 1e-6, arc / np.maximum(np.sin(angle), 1e-300), before[:, 3:7])
    return float(np.abs(_placed(corners, way) - _placed(corners, between)).max())


def _placed(points: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(count, n, 3): points turned, sized and shifted."""
    axis, real = poses[:, None, 3:6], poses[:, None, 6:7]
    cross = np.cross(axis, points[None])
    turned = points[None] + 2.0 * (real * cross + np.cross(axis, cross))
    return poses[:, None, 7:8] * turned + poses[:, None, :3]


def _refined(
    times: np.ndarray, off: Callable[[float, float, float], float], tolerance: float
) -> tuple[np.ndarray, bool]:
    """Times between which nothing is off, and whether there is no such end: then keys hold. A jump takes an instant."""
    most, least = max(_MOST_KEYS, 4 * len(times)), (times[-1] - times[0]) / _FINEST
    done: set[tuple[float, float]] = set()
    while True:
        added = []
        for before, after in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
            if (before, after) in done:
                continue
            parts = _LONG if after - before > _LONG_PART * (times[-1] - times[0]) else _LONG[:1]
            if after - before <= least or all(off(before, after, part) <= tolerance for part in parts):
                done.add((before, after))
            else:
                added.append(0.5 * (before + after))
        if not added:
            return times, False
        if len(times) + len(added) > most:
            return times, True
        times = np.union1d(times, added)


def _deformation(states: _States, thing: Thing, times: np.ndarray, refine: bool) -> Deformation:
    def off(before: float, after: float, part: float) -> float:
        between = states(before + part * (after - before))
        return float(np.abs((1.0 - part) * states(before) + part * states(after) - between).max())

    times, holds = _refined(times, off, _BETWEEN * states.extent) if refine else (times, False)
    first = states(float(times[0]))
    middle = (first.min(axis=0) + first.max(axis=0)) / 2.0
    origin: Any = middle if np.abs(middle).max() > 100.0 * np.ptp(first, axis=0).max() else np.zeros(3)
    every = np.stack([(states(float(time)) - origin).astype(np.float32) for time in times])
    kept = _changes(every) if holds else np.ones(len(times), bool)
    return Deformation(times[kept], every[kept][:, thing.creased.source], thing.creased.faces, origin, holds)
