"""What needles look like: the tissue as glass, needle and vessels redder the nearer they are, cells cut by a plane.

Everything is a thing of a `tangere.scene`. Colours change from frame to frame, while a thing has one: so there is a
thing for each shade, and what has another shade has no size in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tangere.needle.nearness import contacts_of, near_pieces, redness
from tangere.scene import Camera, Episode, Keyframes, Scene, Thing
from tangere.shape.mesh import Mesh

_TISSUE, _RED = (0.86, 0.62, 0.52), (0.86, 0.04, 0.06)
#: Colours of what is far, by kind.
_FAR = {"needle": (0.62, 0.66, 0.72), "vessels": (0.30, 0.42, 0.72), "membranes": (0.80, 0.74, 0.52)}
#: Shades from far to touching.
SHADES = 6
_SIDES = 8
#: A needle and vessels are drawn at least so thick, as a part of the extent of the picture.
_THINNEST = 0.003
#: Cells are drawn a little smaller than they are, so that one sees where they end.
_SHRUNK = 0.94
#: Membranes and cells are see-through, because of what is behind.
_GLASS, _CELL_GLASS = 0.35, 0.6
_CELLS = ((0.93, 0.94, 0.96), (0.20, 0.33, 0.52))


@dataclass(frozen=True, eq=False)
class NeedleFrame:
    """A needle and what is around it, at one time."""

    time: float  #: [s]
    nodes: np.ndarray  #: (n, 3) of the needle [m]
    points: np.ndarray  #: (p, 3) of vessels and membranes [m]
    shades: dict[str, np.ndarray]  #: of pieces of the needle, segments and triangles, 0 far to `SHADES` - 1 touching
    tissue: np.ndarray  #: (v, 3) vertices of its surface [m]; none of a kinematic needle
    faces: np.ndarray  #: (f, 3) of its surface; others after a cut
    cells: np.ndarray  #: (c, 3, 3) triangles of the cut through cells [m]
    levels: np.ndarray  #: (c,) of these cells
    numbers: dict[str, float] = field(default_factory=dict)  #: force [N], travel [m], depth [m]


def frame_of(simulation: Any, time: float) -> NeedleFrame:
    """What there is now, of a simulation of either kind."""
    nodes, points, anatomy = simulation.nodes, simulation.anatomy_points, simulation.anatomy
    found = near_pieces(nodes, simulation.needle.radius, anatomy, points, simulation.distance)
    near = redness(contacts_of(found, anatomy), anatomy, len(nodes) - 1, simulation.distance)
    shades = {name: np.round(values * (SHADES - 1)).astype(np.uint8) for name, values in near.items()}
    cut, levels = np.empty((0, 3, 3)), np.empty(0, np.uint8)
    tissue = getattr(simulation, "surface", None)
    if tissue is None:
        bends = simulation.frame.rotation[:, 0] if simulation.needle.curvature > 0.0 else None
        cut, levels = cut_cells(simulation.map, nodes[-1], plane_of(nodes, bends))
    return NeedleFrame(
        time=time,
        nodes=nodes,
        points=points,
        shades=shades,
        tissue=np.empty((0, 3)) if tissue is None else tissue.vertices,
        faces=np.empty((0, 3), np.int64) if tissue is None else tissue.faces,
        cells=cut,
        levels=levels,
        numbers=simulation.measures,
    )


def scene_of(simulation: Any, **options: Any) -> Scene:
    """A simulation as it is now."""
    from tangere.needle.recording import Recorder

    recorder = Recorder(simulation)
    recorder()
    return recorder.recording().scene(**options)


def plane_of(nodes: np.ndarray, bends: np.ndarray | None = None) -> np.ndarray:
    """(3,) the normal of the plane that a needle lies in; of a straight one, that in which its tip bends, if any."""
    offsets = nodes - nodes.mean(axis=0)
    _, sizes, axes = np.linalg.svd(offsets, full_matrices=True)
    if len(sizes) > 1 and sizes[1] > 1e-3 * sizes[0]:
        return axes[2]
    if bends is not None:
        return bends
    ahead = axes[0]
    normal = np.cross(ahead, [0.0, 0.0, 1.0] if abs(ahead[2]) < 0.99 else [1.0, 0.0, 0.0])
    return normal / np.linalg.norm(normal)


def cut_cells(map: Any, point: np.ndarray, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a plane cuts the leaf cells of a map: triangles (n, 3, 3) [m], and the levels (n,) of their cells."""
    darts = map.darts
    cell = map.host("cell")[darts]
    a, b = map.edge_ends(darts)
    before, after = (a - point) @ normal, (b - point) @ normal
    crossing = (before > 0.0) != (after > 0.0)
    a, b, before, after, cell = (x[crossing] for x in (a, b, before, after, cell))
    x = a + (before / (before - after))[:, None] * (b - a)
    cells, number, count = np.unique(cell, return_inverse=True, return_counts=True)
    middle = np.zeros((len(cells), 3))
    np.add.at(middle, number, x)
    middle /= count[:, None]
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    v = np.cross(normal, u)
    offset = x - middle[number]
    order = np.lexsort((np.arctan2(offset @ v, offset @ u), number))
    x, number = middle[number[order]] + _SHRUNK * offset[order], number[order]
    last = np.cumsum(count) - 1
    following = np.arange(1, len(x) + 1)
    following[last] = last - count + 1
    triangles = np.stack([middle[number], x, x[following]], axis=1)
    area = np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)
    kept = area > 1e-12 * max(area.max(initial=0.0), 1e-300)
    return triangles[kept], map.levels[cells[number[kept]]].astype(np.uint8)


def things_of(
    frames: list[NeedleFrame],
    parts: np.ndarray,
    *,
    segments: np.ndarray,
    triangles: np.ndarray,
    radius: np.ndarray,
    needle_radius: float,
    opacity: float,
    extent: float,
) -> list[Thing]:
    """Everything that is seen in frames which are shown at parts of the time, 0 to 1."""
    things, thin = [], _THINNEST * extent
    if len(frames[0].faces):
        things += _tissue(frames, parts, opacity)
    pieces = max(len(frame.nodes) for frame in frames) - 1

    def needle_piece(frame: NeedleFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nodes, shade = frame.nodes, frame.shades["needle"]
        spare = pieces - (len(nodes) - 1)  # a needle that grows: pieces that are not there yet are at its tip
        nodes = np.concatenate([nodes, np.repeat(nodes[-1:], spare, axis=0)])
        return nodes[:-1], nodes[1:], np.concatenate([shade, np.repeat(shade[-1:], spare)])

    things += _tubes("needle", frames, parts, needle_piece, np.full(pieces, max(needle_radius, thin)))
    if len(segments):

        def vessel_piece(frame: NeedleFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return frame.points[segments[:, 0]], frame.points[segments[:, 1]], frame.shades["segments"]

        things += _tubes("vessels", frames, parts, vessel_piece, np.maximum(radius, thin))
    if len(triangles):
        things += _membranes(frames, parts, triangles)
    things += _cut(frames, parts)
    return things


def camera_of(frame: NeedleFrame) -> Camera:
    """From the side of the plane in which cells are cut; else a view from above."""
    if not len(frame.cells):
        return Camera((0.55, -1.0, 0.35))
    x, y, z = plane_of(frame.nodes).tolist()
    return Camera((x, y, z), up=(0.0, 0.0, 1.0) if abs(z) < 0.9 else (0.0, 1.0, 0.0))


@dataclass(frozen=True, eq=False)
class _FrameByFrame:
    """A motion that jumps: vertices are where the nearest frame has them."""

    times: np.ndarray
    place: Callable[[int], np.ndarray]

    def positions(self, start: Any, time: float) -> np.ndarray:
        return self.place(int(np.argmin(np.abs(self.times - time))))


def _tissue(frames: list[NeedleFrame], parts: np.ndarray, opacity: float) -> list[Thing]:
    """Its surface, a thing from each cut to the next."""
    cuts = [k for k in range(1, len(frames)) if not np.array_equal(frames[k].faces, frames[k - 1].faces)]
    things = []
    for begin, end in pairwise([0, *cuts, len(frames)]):
        name = "tissue" if begin == 0 else f"tissue, cut {len(things)}"
        states = np.stack([frame.tissue for frame in frames[begin:end]])
        mesh, motion = Mesh(states[0], frames[begin].faces, name=name), Keyframes(states, parts[begin:end])
        if cuts:
            until = float(parts[end]) if end < len(frames) else 1.0
            mesh = mesh.moving(Episode(motion, (float(parts[begin]), until)))
        elif (states != states[0]).any():
            mesh = mesh.moving(motion)
        things.append(Thing(name, mesh, _TISSUE, opacity))
    return things


def _shade(kind: str, shade: int) -> tuple[float, float, float]:
    part = shade / (SHADES - 1)
    red, green, blue = ((1.0 - part) * a + part * b for a, b in zip(_FAR[kind], _RED, strict=True))
    return red, green, blue


def _jumping(
    name: str,
    place: Callable[[int], np.ndarray],
    faces: np.ndarray,
    parts: np.ndarray,
    colour: Any,
    opacity: float = 1.0,
) -> Thing:
    mesh = Mesh(place(0), faces, name=name)
    return Thing(name, mesh.moving(_FrameByFrame(parts, place)) if len(parts) > 1 else mesh, colour, opacity)


def _tubes(
    name: str,
    frames: list[NeedleFrame],
    parts: np.ndarray,
    piece: Callable[[NeedleFrame], tuple[np.ndarray, np.ndarray, np.ndarray]],
    radius: np.ndarray,
) -> list[Thing]:
    """Pieces of lines as prisms, a thing for each shade."""
    shades = np.stack([piece(frame)[2] for frame in frames])
    ring = np.arange(_SIDES)
    after = (ring + 1) % _SIDES
    sides = [np.stack([ring, after, after + _SIDES], 1), np.stack([ring, after + _SIDES, ring + _SIDES], 1)]
    caps = np.stack([np.zeros(_SIDES - 2, int), ring[2:], ring[1:-1]], 1)
    faces = np.concatenate([*sides, caps, caps[:, ::-1] + _SIDES])
    things = []
    for shade in np.unique(shades):
        chosen = np.flatnonzero((shades == shade).any(axis=0))

        def place(number: int, shade: int = shade, chosen: np.ndarray = chosen) -> np.ndarray:
            a, b, now = piece(frames[number])
            return _prisms(a[chosen], b[chosen], radius[chosen] * (now[chosen] == shade))

        every = (faces + 2 * _SIDES * np.arange(len(chosen))[:, None, None]).reshape(-1, 3)
        label = name if shade == 0 else f"{name}, near ({shade} of {SHADES - 1})"
        things.append(_jumping(label, place, every, parts, _shade(name, int(shade))))
    return things


def _prisms(a: np.ndarray, b: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """(n * 2 * _SIDES, 3) vertices of prisms from a to b, (n, 3) each, a little longer so that bends are closed."""
    way = b - a
    length = np.linalg.norm(way, axis=1, keepdims=True)
    ahead = np.divide(way, length, out=np.tile([0.0, 0.0, 1.0], (len(a), 1)), where=length > 0)
    x = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead), axis=1)])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.cross(ahead, x)
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    ring = np.cos(angle)[:, None] * x[:, None] + np.sin(angle)[:, None] * y[:, None]
    ring = radius[:, None, None] * ring
    more = (0.3 * np.minimum(radius, length[:, 0]))[:, None] * ahead
    return np.stack([(a - more)[:, None] + ring, (b + more)[:, None] + ring], axis=1).reshape(-1, 3)


def _membranes(frames: list[NeedleFrame], parts: np.ndarray, triangles: np.ndarray) -> list[Thing]:
    shades, things = np.stack([frame.shades["triangles"] for frame in frames]), []
    for shade in np.unique(shades):
        chosen = np.flatnonzero((shades == shade).any(axis=0))

        def place(number: int, shade: int = shade, chosen: np.ndarray = chosen) -> np.ndarray:
            frame = frames[number]
            corners = frame.points[triangles[chosen]]
            there = frame.shades["triangles"][chosen] == shade
            return np.where(there[:, None, None], corners, corners[:, :1]).reshape(-1, 3)

        faces = np.arange(3 * len(chosen)).reshape(-1, 3)
        label = "membranes" if shade == 0 else f"membranes, near ({shade} of {SHADES - 1})"
        things.append(_jumping(label, place, faces, parts, _shade("membranes", int(shade)), _GLASS))
    return things


def _cut(frames: list[NeedleFrame], parts: np.ndarray) -> list[Thing]:
    """Cells by level, darker the finer; as many triangles as the frame with most has."""
    things, finest = [], max((int(frame.levels.max(initial=0)) for frame in frames), default=0)
    for level in range(finest + 1):
        most = max(int((frame.levels == level).sum()) for frame in frames)
        if most:

            def place(number: int, level: int = level, most: int = most) -> np.ndarray:
                frame = frames[number]
                found = frame.cells[frame.levels == level]
                spare = np.broadcast_to(frame.nodes[-1], (most - len(found), 3, 3))
                return np.concatenate([found, spare]).reshape(-1, 3)

            part = level / max(finest, 1)
            colour = tuple((1.0 - part) * a + part * b for a, b in zip(*_CELLS, strict=True))
            faces = np.arange(3 * most).reshape(-1, 3)
            things.append(_jumping(f"cells of level {level}", place, faces, parts, colour, _CELL_GLASS))
    return things
