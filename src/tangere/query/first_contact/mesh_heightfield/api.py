"""First contact of moving meshes with the ground: rigid parts, parts along a path, meshes that deform.

Question: the earliest time in [0, 1] at which a mesh touches the surface of a terrain.
Method:   squares of the ground that the mesh may come near are meshes at rest (`broad_phase.ground`), so the
          engines of meshes answer: `rigid_first_contact` for one rigid motion and few squares, `scene_first_contact`
          for many, which drops squares that are reached later, `rigid_first_contacts` for many motions,
          `deforming_first_contact` for `Linear` motion. So are the walls of its border and of holes, where the mesh
          may come near one.
Sound:    as these engines: never late; at `time` the distance is at most separation + tolerance. Ground is solid, and a
          mesh of which any part is below its surface at t = 0 is START (`below_ground`).
Known as: continuous collision of triangle meshes with a heightmap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import rest_still, swept_boxes
from tangere.broad_phase.ground import GroundBlock, GroundBlocks, GroundWalls, WallBlock
from tangere.motion import Linear, Path, Rest, Rigid
from tangere.query.contacts.record import DeferredContacts, Status
from tangere.query.first_contact.deforming.api import deforming_first_contact
from tangere.query.first_contact.mesh_heightfield.below_ground import deforming_below_ground, rigid_below_ground
from tangere.query.first_contact.mesh_heightfield.details import first_on_squares, in_ground, refuse_unnumbered
from tangere.query.first_contact.options import Accuracy, Mode, Start, check_start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.first_contact.rigid.api import rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.query.first_contact.rigid.path import along_path
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.runtime import choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

Ground = Heightfield | TiledHeightfield

#: No tolerance that is not given is smaller than this part of the coordinates: rounding would hide contacts. Engines
#: take 1e-12 of the lengths of both sides' coordinates, and are asked with a quarter of it (`below_ground`).
LEAST_PART = 2.0**-36
#: … or than this part of how far off the mesh is.
FAR_PART = 2.0**-38
FREE = FirstContact(np.inf, np.inf, Status.FREE)


def mesh_heightfield_first_contact(
    a: Mesh | Moving,
    terrain: Ground,
    *,
    mode: Mode = "sound",
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """The earliest time in [0, 1] at which a mesh touches the surface of the ground or one of its walls, from any side.

    Args:
        a: a mesh at rest or moving, by `Linear`, by a `Path` or by one or n rigid motions.
        terrain: the ground.
        mode, start, separation, device, threads: as for `first_contact`.
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            mesh's size, or 1.5e-11 of the coordinates where that is more.

    Returns:
        `feature_b` is the number of the ground's vertex, edge or face, as `manifold` has it; of a wall that of the one
        it hangs from. Of n motions `FirstContacts`.
    """
    accuracy = Accuracy(mode, separation, tolerance)
    check_start(start)
    refuse_unnumbered(terrain)
    shape, motion = (a, Rest()) if isinstance(a, Mesh) else (a.shape, a.motion)
    ground, on = SolidGround(GroundBlocks.of(terrain), GroundWalls.of(terrain)), choose_device(device)
    blocks = ground.blocks
    if accuracy.tolerance is None:
        scale = np.abs(shape.bounds).max() + np.abs(terrain.bounds).max()
        far = FAR_PART * _farthest(motion)
        accuracy = replace(accuracy, tolerance=max(TOLERANCE * shape.extent, LEAST_PART * float(scale), far))
    with using_threads(threads):
        if isinstance(motion, Linear):
            found = _deforming(a, ground, accuracy, start, device)
            begin = partial(deforming_below_ground, shape, blocks, accuracy, device)
        elif isinstance(motion, Path):
            found = along_path(
                [a],
                lambda parts: _each(shape, parts.motion, ground, accuracy, "trusted", on),
                lambda part: _rigid(shape, part.motion, ground, accuracy, start, on),
            )
            begin = partial(rigid_below_ground, shape, motion.pose(0.0), blocks, accuracy, on)
        elif motion.shape:
            return _each(shape, motion, ground, accuracy, start, on)
        else:
            found = _rigid(shape, motion, ground, accuracy, start, on)
            begin = partial(rigid_below_ground, shape, motion.pose(0.0), blocks, accuracy, on)
        below = begin() if start == "checked" and found.time > 0.0 else None
        return below or found


@dataclass(frozen=True)
class SolidGround:
    """The surface of a ground in squares, and its walls."""

    blocks: GroundBlocks
    walls: GroundWalls

    def meshes_near(self, lower: np.ndarray, upper: np.ndarray) -> list[Mesh]:
        """Of squares and walls that are in one of the boxes."""
        squares = self.blocks.blocks(self.blocks.near(lower, upper))
        return [block.mesh for block in (*squares, *self.walls_near(lower, upper))]

    def walls_near(self, lower: np.ndarray, upper: np.ndarray) -> list[WallBlock]:
        """Those that are in one of the boxes, (…, 3) lower and upper corners [m]."""
        first, last = lower.reshape(-1, 3).min(axis=0).tolist(), upper.reshape(-1, 3).max(axis=0).tolist()
        if not self.walls.may_meet_box(*first[:2], *last[:2]):
            return []
        squares = self.walls.near(lower, upper)
        return self.walls.blocks(squares, first[2], last[2])


def _rigid(
    mesh: Mesh, motion: Rigid, ground: SolidGround, accuracy: Accuracy, start: Start, device: wp.Device
) -> FirstContact:
    """One rigid motion, with the surface and the walls."""
    slices = swept_boxes([mesh], [motion], _reach(accuracy), device=device)[0]
    near: list[GroundBlock | WallBlock] = [*ground.blocks.blocks(ground.blocks.near(slices[:, 0], slices[:, 1]))]
    near += ground.walls_near(slices[:, 0], slices[:, 1])
    if not near or rest_still([motion])[0]:
        return FREE
    moving = mesh.moving(motion)
    found, block = first_on_squares(moving, near, accuracy.separation, accuracy.tolerance, start, device)
    if found.status == Status.FREE:
        return found
    return replace(found, contacts=DeferredContacts.by(lambda: in_ground(found.contacts, block)))


def _each(
    mesh: Mesh, motions: Rigid, ground: SolidGround, accuracy: Accuracy, start: Start, device: wp.Device
) -> FirstContacts:
    """n rigid motions: each with every square of ground, and all walls, that it may come near."""
    count = motions.shape[0]
    each = [motions[k] for k in range(count)]
    columns: dict[str, Any] = {
        "time": np.full(count, np.inf),
        "time_upper": np.full(count, np.inf),
        "status": np.zeros(count, np.uint8),
        "kind": np.zeros(count, np.uint8),
        "weights": np.full((count, 4), np.nan),
        **{name: np.full((count, 3), np.nan) for name in ("point_a", "point_b", "normal")},
    }
    slices = swept_boxes([mesh] * count, each, _reach(accuracy), device=device) if count else ()
    meshes: dict[Any, int] = {}  # numbers of the squares and walls that are near
    near = [
        [meshes.setdefault(mesh, len(meshes)) for mesh in ground.meshes_near(boxes[:, 0], boxes[:, 1])]
        for boxes in slices
    ]
    if meshes:
        motion = np.repeat(np.arange(count), list(map(len, near)))
        found = rigid_first_contacts(
            MovingBodies((mesh,), motions[motion]),
            MovingBodies(list(meshes), Rest(), np.concatenate([np.array(some, np.int64) for some in near])),
            separation=accuracy.separation,
            tolerance=accuracy.tolerance,
            start=start,
            device=device,
        )
        order = np.lexsort((found.status != Status.START, found.time, motion))
        rows, first = np.unique(motion[order], return_index=True)
        for name, column in columns.items():
            column[rows] = getattr(found, name)[order[first]]
        np.minimum.at(columns["time_upper"], motion, found.time_upper)  # contact with any square is contact
    if start == "checked":
        for row in np.flatnonzero(columns["time"] > 0.0):
            below = rigid_below_ground(mesh, each[row].pose(0.0), ground.blocks, accuracy, device)
            if below is not None:
                columns["time"][row] = columns["time_upper"][row] = 0.0
                columns["status"][row] = Status.START
                for name in ("kind", "weights", "point_a", "point_b", "normal"):
                    columns[name][row] = getattr(below.contacts, name)[0]
    return FirstContacts(**columns)


def _deforming(
    a: Moving, ground: SolidGround, accuracy: Accuracy, start: Start, device: str | wp.Device | None
) -> FirstContact:
    """A mesh whose vertices go along lines: with the surface of the rectangle around its way, and the walls there."""
    ways, reach = np.stack([a.start, a.end]).reshape(-1, 3), _reach(accuracy)
    lower, upper = ways.min(axis=0) - reach, ways.max(axis=0) + reach
    near = ground.blocks.near(lower, upper)
    blocks = [*([ground.blocks.around(near)] if len(near) else []), *ground.walls_near(lower, upper)]
    settings = {"mode": accuracy.mode, "separation": accuracy.separation, "tolerance": accuracy.tolerance}
    best, upper_time = FREE, np.inf
    for block in blocks:
        found = deforming_first_contact(a, block.mesh, start=start, **settings, device=device)
        upper_time = min(upper_time, found.time_upper)  # contact with any of them is contact
        if found.status != Status.FREE and (found.time, found.status != Status.START) < (best.time, True):
            best = replace(found, contacts=in_ground(found.contacts, block))
    return best if best is FREE else replace(best, time_upper=upper_time)


def _farthest(motion: Any) -> float:
    """The largest coordinate of a place where a rigid motion begins or ends [m]; 0 of others."""
    if isinstance(motion, Path):
        return float(np.abs(motion.poses[:, :3, 3]).max())
    if not isinstance(motion, Rigid):
        return 0.0
    records = motion.records()
    return sum(float(np.abs(records[name]).max(initial=0.0)) for name in ("origin", "velocity", "pivot"))


def _reach(accuracy: Accuracy) -> float:
    """How far from the mesh ground counts, and a little."""
    return (accuracy.separation + (accuracy.tolerance or 0.0)) * (1.0 + 1e-9)
