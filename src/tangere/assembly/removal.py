"""Which ways does a part come out of its assembly, straight, all others staying where they are?

Question: for each direction: free, or how far until the first contact, and with what.
Method:   the part without its skin (`mesh_without_skin`), as it is mounted in contact, goes along the direction until a
          plane is between it and all others. Others whose boxes it may meet on its way are searched for their first
          contact, all directions in one batch (`rigid_first_contacts`).
Sound:    "free but for the skin": a contact deeper than `Skin.deepest` is always told, and never late; a part that
          begins deeper in another than that, or inside it, is held there at once.
Known as: disassembly by translation, separability; non-directional blocking graphs ask it of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.assembly.clash_search import world_boxes
from tangere.assembly.part import Part
from tangere.motion import Rest, Twist
from tangere.query.contacts import Status
from tangere.query.containment import check_solid, contained_vertices
from tangere.query.depth import DIRECTIONS
from tangere.query.first_contact import MovingBodies, Skin, mesh_without_skin, rigid_first_contacts
from tangere.runtime import Arrays, InputError, described, text_below, to_numpy, view_room
from tangere.shape.mesh import Mesh

#: Beside the way until a plane is between them, as a part of the part.
_BESIDE = 0.05
_AXES = np.concatenate([np.eye(3), -np.eye(3)]) + 0.0


@dataclass(frozen=True, eq=False)
class Removal:
    """What happens to a part that is pulled one way."""

    direction: np.ndarray  #: (3,) unit
    free: bool  #: it comes out, but for the skin
    distance: float  #: how far it goes until the first contact [m]; inf where it is free, 0 where it is held at once
    blocker: str | None  #: the part that it meets first
    blockers: tuple[str, ...]  #: all parts that it meets if it goes on, by distance
    point: np.ndarray  #: (3,) where it meets the first [m]; NaN where it is free
    normal: np.ndarray  #: (3,) unit, pushes the part away from what it meets

    def __repr__(self) -> str:
        way = ", ".join(f"{x:.3g}" for x in self.direction)
        return f"Removal(({way}): {'free' if self.free else f'{text_below(self.distance)} m, then {self.blocker}'})"


@dataclass(frozen=True, eq=False)
class Removals:
    """What happens to a part that is pulled several ways."""

    part: str
    rows: tuple[Removal, ...]
    skin: Skin  #: contacts shallower than its depth were ignored

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Removal]:
        return iter(self.rows)

    def __getitem__(self, row: int) -> Removal:
        return self.rows[row]

    @property
    def free(self) -> np.ndarray:
        """(k, 3) the directions in which it comes out, but for the skin."""
        return np.array([row.direction for row in self.rows if row.free]).reshape(-1, 3)

    def __repr__(self) -> str:
        return f"Removals({self.part!r}: {len(self.free)} of {len(self)} ways free but for {self.skin})"

    def _repr_html_(self) -> str:
        """For notebooks: each direction."""
        facts = {
            ", ".join(f"{x:.3g}" for x in row.direction): (
                "free" if row.free else f"{text_below(row.distance, 4)} m, {row.blocker}"
            )
            for row in self.rows[:26]
        }
        return view_room().html(repr(self), facts)


def find_removals(
    name: str, parts: Sequence[Part], moved: Sequence[int], directions: int | Arrays, skin: float, device: wp.Device
) -> Removals:
    """The removals of the parts `moved`, which go together under a name."""
    ways = checked_directions(directions)
    for number in moved:
        check_solid(parts[number].shape, f"part {parts[number].name!r}", "removal")
    taken = [mesh_without_skin(parts[number].shape, (), skin) for number in moved]
    deepest = max((each for _, each in taken), key=lambda each: each.deepest)
    others = [k for k in range(len(parts)) if k not in set(moved)]
    free = Removals(name, tuple(_free(way) for way in ways), deepest)
    if not others:
        return free
    bodies = [
        Part(parts[k].name, parts[k].path, thin, parts[k].pose) for k, (thin, _) in zip(moved, taken, strict=True)
    ]
    bodies += [parts[k] for k in others]
    shapes: list[Mesh] = list(dict.fromkeys(body.shape for body in bodies))
    shape = np.array([shapes.index(body.shape) for body in bodies], np.int32)
    poses = np.stack([body.pose for body in bodies])
    boxes = world_boxes(shapes, shape, poses)
    count = len(moved)
    lengths = _lengths(boxes[:count], boxes[count:], ways)
    way, one, other = _meetings(boxes[:count], boxes[count:], ways, lengths)
    if not len(way):
        return free
    starts, away = poses[one], ways[way] * lengths[way, None]
    obstacles = count + other
    found = rigid_first_contacts(
        MovingBodies(shapes, Twist(starts, away, np.zeros_like(away)), shape[one]),
        MovingBodies(shapes, Rest(poses[obstacles]), shape[obstacles]),
        tolerance=deepest.tolerance(None, max(body.shape.extent for body in bodies[:count])),
        device=device,
    )
    status, time = np.array(found.status), np.array(found.time)
    pairs, back = np.unique(np.stack([one, obstacles], axis=1), axis=0, return_inverse=True)
    nested = _nested(shapes, shape, poses, pairs, device)[back.reshape(-1)]
    time[nested], status[nested] = 0.0, Status.START
    rows = []
    for number, direction in enumerate(ways):
        mine = np.flatnonzero((way == number) & (status != Status.FREE))
        if not len(mine):
            rows.append(_free(direction))
            continue
        mine = mine[np.lexsort((obstacles[mine], time[mine]))]
        first = mine[0]
        names = tuple(dict.fromkeys(bodies[obstacles[k]].name for k in mine))
        distance = float(time[first] * lengths[number])
        point, normal = np.array(found.point_b[first]), np.array(found.normal[first])
        if nested[first]:
            point, normal = bodies[one[first]].mesh.bounds.mean(axis=0), np.zeros(3)
        rows.append(Removal(direction, False, distance, names[0], names, point, normal))
    return Removals(name, tuple(rows), deepest)


def checked_directions(directions: int | Arrays) -> np.ndarray:
    """(m, 3) unit: 6 or 26 of a cube, or those given."""
    if isinstance(directions, (int, np.integer)) and not isinstance(directions, bool):
        if directions not in (6, 26):
            raise InputError(f"directions must be 6, 26 or an array of shape (m, 3), not {directions}")
        return _AXES if directions == 6 else DIRECTIONS
    ways = to_numpy(directions, "directions")
    if ways.ndim != 2 or ways.shape[1] != 3 or not len(ways):
        raise InputError(f"directions must be 6, 26 or an array of shape (m, 3), not {described(directions)}")
    length = np.linalg.norm(ways, axis=1, keepdims=True)
    if not (np.isfinite(length) & (length > 0.0)).all():
        raise InputError(f"directions[{int(np.argmin(np.isfinite(length) & (length > 0.0)))}] has no direction")
    return ways / length


def _free(direction: np.ndarray) -> Removal:
    return Removal(direction, True, np.inf, None, (), np.full(3, np.nan), np.zeros(3))


def _lengths(moved: np.ndarray, others: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """(m,) how far the boxes `moved` go until a plane across the way is between them and all others [m]."""
    up, down = np.maximum(ways, 0.0), np.minimum(ways, 0.0)
    farthest = (others[:, 1] @ up.T + others[:, 0] @ down.T).max(axis=0)
    nearest = (moved[:, 0] @ up.T + moved[:, 1] @ down.T).min(axis=0)
    beside = _BESIDE * np.linalg.norm(moved[:, 1] - moved[:, 0], axis=1).max()
    return np.maximum(farthest - nearest, 0.0) + beside


def _meetings(
    moved: np.ndarray, others: np.ndarray, ways: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of way, moved body and other body whose boxes meet on the way: the slab test of a moving box."""
    shift = (ways * lengths[:, None])[:, None, None]
    near = others[None, None, :, 0] - moved[None, :, None, 1]
    far = others[None, None, :, 1] - moved[None, :, None, 0]
    slack = 1e-9 * (np.abs(others).max() + np.abs(moved).max())
    near, far = near - slack, far + slack
    still = shift == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = near / shift, far / shift
    enter = np.where(still, np.where((near <= 0.0) & (far >= 0.0), -np.inf, np.inf), np.minimum(one, two))
    leave = np.where(still, np.inf, np.maximum(one, two))
    meet = np.maximum(enter.max(axis=-1), 0.0) <= np.minimum(leave.min(axis=-1), 1.0)
    return np.nonzero(meet)


def _nested(
    shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, pairs: np.ndarray, device: wp.Device
) -> np.ndarray:
    """(k,) whether one body of a pair begins inside the other; what has no inside holds nothing."""
    inside = np.zeros(len(pairs), bool)
    for asked in (pairs, pairs[:, ::-1]):
        solid = np.array([_has_inside(shapes[k]) for k in shape[asked[:, 1]]])
        inside[solid] |= contained_vertices(shapes, shape, poses, asked[solid], device) >= 0
    return inside


def _has_inside(mesh: Mesh) -> bool:
    return mesh.topology.is_closed and mesh.topology.is_oriented
