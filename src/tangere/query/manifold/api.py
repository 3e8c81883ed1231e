"""Contact manifolds of analytic bodies on height grids: few points, all that matter, at any cell size.

Question: where does each body rest on the ground, how deep, and which way is out?
Method:   each body goes through the ground below it (`traversal`), groups what it finds by normal and keeps at most
          four points of each group (`reduction`): on CPU one body after the other, on CUDA all at once
          (`cuda.pipeline`).
Sound:    a cylinder that touches always has a contact; no contact is deeper than the vertical penetration; a body with
          more groups than there was room for is done again with more room.
Known as: contact manifold. After Strashnov and Torgashev 2020; what they print is `mode="published"`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import HeightPyramid, PagedPyramid, Terrain, terrain_visits, tiles_held
from tangere.query.contacts.record import Contacts, empty_columns
from tangere.query.dispatch import refuse_unsupported
from tangere.query.manifold.cuda.pipeline import index_range, manifold_cuda
from tangere.query.manifold.details import (
    Columns,
    ManifoldRow,
    contacts_of,
    few_contacts,
    on_device,
    record_of,
)
from tangere.query.manifold.reduction import empty_groups, empty_walls
from tangere.query.manifold.traversal import NO_ROOM, NOT_FINITE, manifold_kernel
from tangere.runtime import (
    Arrays,
    CapacityError,
    InputError,
    UnsupportedError,
    choose_device,
    collect,
    concatenated,
    load,
    not_negative,
    published,
    to_numpy,
    using_threads,
)
from tangere.shape.analytic import HULL, Analytic, AnalyticShape, hull_tables
from tangere.shape.heightfield import Heightfield, TiledHeightfield

Ground = Heightfield | TiledHeightfield

#: Gaps up to this part of a body's size count as contacts, unless a distance is given.
MARGIN = 0.01
#: Bodies worth a thread.
GRAIN = 256
#: Groups of normals a body has room for at first, and how much more room is made where that does not suffice.
ROOM, MORE_ROOM = 8, 8
#: Bodies that are answered with arrays and a launch that are kept.
FEW = 64


def heightfield_manifold(
    bodies: Analytic,
    terrain: Ground | Sequence[Ground],
    *,
    world: Arrays | None = None,
    mode: Literal["sound", "published"] = "sound",
    distance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """Where n bodies rest on the ground: at most four contacts for each group of like normals.

    Arguments as for `manifold`; `bodies` are placed cylinders, spheres, capsules, boxes, cones or convex meshes.

    Returns:
        Contacts by rising body (`query` and `body_a` are its number, `body_b` that of its world), with gaps: negative
        inside the ground. `key` names body point and ground feature, for warm starts.
    """
    terrains, worlds = _checked(bodies, terrain, world, distance)
    if mode == "published":
        in_memory = [one for one in terrains if isinstance(one, Heightfield)]
        if len(in_memory) < len(terrains):
            raise UnsupportedError("mode='published' takes heightfields in memory, not tiles")
        if distance is not None:
            raise InputError("mode='published' takes no distance: as printed, what does not touch is no contact")
        if device is not None and not choose_device(device).is_cpu:
            raise UnsupportedError(f"mode='published' runs on the CPU, not on {device!r}")
        with using_threads(threads):
            return published("strashnov_three_cases").published_manifold(bodies, in_memory, worlds)
    if mode != "sound":
        raise InputError(f"mode must be 'sound' or 'published', not {mode!r}")
    if len(bodies) <= FEW and worlds is None and type(bodies.poses) is np.ndarray:
        field = terrains[0]
        if device == "cpu" or choose_device(device).is_cpu:
            host = wp.get_device("cpu")
            # A moment is a tenth of the time here: ground in memory has no tiles to hold.
            holding = tiles_held(terrains, host) if isinstance(field, TiledHeightfield) else nullcontext()
            with using_threads(threads), holding:
                ground = _ground_of_few(bodies, field, distance, host)
                if ground is not None:
                    return _prepared_manifold(field, ground, bodies).answer(bodies, distance)
    with using_threads(threads):
        return _contacts_of_many(bodies, terrains, worlds, distance, choose_device(device, bodies.poses))


def _checked(bodies: Any, terrain: Any, world: Any, distance: Any) -> tuple[list[Ground], np.ndarray | None]:
    if not isinstance(bodies, Analytic):
        refuse_unsupported("manifold", bodies, terrain)
    if distance is not None:
        not_negative(distance, "distance")
    terrains = list(terrain) if isinstance(terrain, Sequence) else [terrain]
    if not terrains or not all(isinstance(one, Ground) for one in terrains):
        refuse_unsupported("manifold", bodies, terrain)
    for one in terrains:
        if 3 * (one.shape[0] + 1) * (one.shape[1] + 1) >= 2**31:
            raise CapacityError(f"{one!r} has more edges than keys of contacts can number (2^31)")
    if world is None:
        if len(terrains) > 1:
            raise InputError(f"world must say which of the {len(terrains)} terrains each body is on")
        return terrains, None
    numbers = world.numpy() if isinstance(world, wp.array) else to_numpy(world, "world", None)
    if numbers.shape != (len(bodies),) or not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(f"world must be {len(bodies)} whole numbers, not {numbers.dtype} of shape {numbers.shape}")
    wrong = (numbers < 0) | (numbers >= len(terrains))
    if wrong.any():
        raise InputError(
            f"world[{int(np.argmax(wrong))}] is {numbers[wrong][0]}, but there are {len(terrains)} terrains"
        )
    return terrains, numbers.astype(np.int32)


def _contacts_of_many(
    bodies: Analytic, terrains: list[Ground], worlds: np.ndarray | None, margin: float | None, device: wp.Device
) -> Contacts:
    """All bodies in one launch, or in as many as their room in memory and the resident tiles ask for."""
    count = len(bodies)
    poses = bodies.poses
    if isinstance(poses, np.ndarray):
        poses = wp.array(poses, dtype=wp.mat44d, device=device)
    elif not isinstance(poses, wp.array):
        poses = wp.from_dlpack(poses.detach().contiguous() if hasattr(poses, "detach") else poses, dtype=wp.mat44d)
    poses = poses.to(device)
    inputs = [
        on_device(bodies.records, AnalyticShape, device),
        poses,
        on_device(_margins_of(bodies, margin), wp.float64, device),
        hull_tables(bodies.hull, device.alias),
        on_device(np.zeros(1, np.int32) if worlds is None else worlds, wp.int32, device),
    ]
    parts, ordered = [], True
    with tiles_held(terrains, device):
        for rows, ground in _ground_visits(bodies, poses, terrains, worlds, margin, device):
            ordered = ordered and isinstance(rows, slice)
            chosen = index_range(count, device.alias)
            if not isinstance(rows, slice):
                chosen = wp.array(rows.astype(np.int32), dtype=wp.int32, device=device)
            if device.is_cuda:
                parts += manifold_cuda(bodies.kind, chosen, [ground, *inputs], device)
                continue
            rows_found = _rows_on_threads(bodies.kind, chosen, [ground, *inputs], count, device)
            ordered = ordered and len(rows_found) == 1
            parts += rows_found
    if device.is_cuda:
        return record_of(parts or [empty_columns(Columns, 0, device)], bodies.poses, ordered)
    return contacts_of(concatenated(parts, ManifoldRow, device), worlds, bodies.poses, ordered)


def _rows_on_threads(kind: int, chosen: wp.array, inputs: list[Any], count: int, device: wp.Device) -> list[wp.array]:
    """The rows of the chosen of `count` bodies; those with many groups once more, with more room."""
    parts, room = [], ROOM
    while len(chosen):
        status = wp.zeros(count, dtype=wp.uint8, device=device)
        slots = -(-len(chosen) // GRAIN)
        groups, walls = empty_groups(slots, room, device), empty_walls(slots, device)
        arguments = [chosen, *inputs, groups, walls, status]
        capacity = 4 * min(len(chosen), 4096)
        kernel = manifold_kernel(kind)
        parts.append(
            collect(kernel, len(chosen), arguments, ManifoldRow, device=device, grain=GRAIN, capacity=capacity)
        )
        codes = status.numpy()
        if (codes == NOT_FINITE).any():
            raise InputError(f"body {int(np.argmax(codes == NOT_FINITE))}: its pose is not finite")
        chosen = wp.array(np.flatnonzero(codes == NO_ROOM).astype(np.int32), dtype=wp.int32, device=device)
        room *= MORE_ROOM
    return parts


class PreparedManifold:
    """Arrays for a few bodies on one terrain, and a launch recorded over them: a Warp array costs some 15 us."""

    def __init__(self, ground: wp.array, kind: int, hulls: Any, device: wp.Device) -> None:
        self.lock, self.ground = threading.Lock(), ground
        arrays = {
            "chosen": wp.array(np.arange(FEW, dtype=np.int32), dtype=wp.int32, device=device),
            "shapes": wp.empty(FEW, dtype=AnalyticShape, device=device),
            "poses": wp.empty(FEW, dtype=wp.mat44d, device=device),
            "margins": wp.empty(FEW, dtype=wp.float64, device=device),
            "status": wp.empty(FEW, dtype=wp.uint8, device=device),
            "counts": wp.zeros(8, dtype=wp.int64, device=device),
        }
        self._kept = arrays
        self._views = {name: array.numpy() for name, array in arrays.items()}
        self._inputs = [
            arrays["chosen"],
            ground,
            arrays["shapes"],
            arrays["poses"],
            arrays["margins"],
            hulls,
            wp.zeros(1, dtype=wp.int32, device=device),
        ]
        self._kernel, self._device = manifold_kernel(kind), device
        self._room, self._capacity = ROOM, 32 * FEW
        self._record()

    def _record(self) -> None:
        load(self._kernel, self._device)
        rows = wp.empty(self._capacity, dtype=ManifoldRow, device=self._device)
        groups, walls = empty_groups(1, self._room, self._device), empty_walls(1, self._device)
        arguments = [*self._inputs, groups, walls, self._kept["status"], self._kept["counts"], self._capacity, rows]
        self._launch: Any = wp.launch(
            self._kernel, FEW, [0, 0, *arguments], device=self._device, record_tape=False, record_cmd=True
        )
        self._dim = FEW
        self._rows = (rows, rows.numpy())

    def answer(self, bodies: Analytic, margin: float | None) -> Contacts:
        count = len(bodies)
        view = self._views
        with self.lock:
            view["shapes"][:count] = bodies.records
            view["poses"][:count] = bodies.poses
            view["margins"][:count] = _margins_of(bodies, margin)
            while True:
                view["counts"][0] = 0
                view["status"][:count] = 0
                if self._dim != count:
                    self._launch.set_dim(count)
                    self._dim = count
                self._launch.launch()
                found = int(view["counts"][0])
                lacking = view["status"][:count].max(initial=0)
                if lacking == NOT_FINITE:
                    raise InputError(f"body {int(np.argmax(view['status'][:count]))}: its pose is not finite")
                if found <= self._capacity and not lacking:
                    break
                self._room *= MORE_ROOM if lacking else 1
                self._capacity = max(self._capacity, 2 * found)
                self._record()
            return few_contacts(self._rows[1][:found], None)


def _prepared_manifold(terrain: Ground, ground: wp.array, bodies: Analytic) -> PreparedManifold:
    key = ("prepared manifold", bodies.hull, bodies.kind)
    prepared = terrain.cache.get(key)
    if prepared is None or prepared.ground is not ground:  # more room for tiles is another row
        prepared = terrain.cache[key] = PreparedManifold(
            ground, bodies.kind, hull_tables(bodies.hull, "cpu"), ground.device
        )
    return prepared


def _ground_visits(
    bodies: Analytic,
    poses: wp.array,
    terrains: Sequence[Ground],
    worlds: np.ndarray | None,
    margin: float | None,
    device: wp.Device,
) -> Iterator[tuple[Any, wp.array]]:
    """Bodies (an index) and the terrains of all worlds, of which those of these bodies are ready."""
    in_memory = [one for one in terrains if isinstance(one, Heightfield)]
    if len(in_memory) == len(terrains) == 1:
        yield slice(None), HeightPyramid.of(in_memory[0], device).row
        return
    if len(in_memory) == len(terrains):
        structs = [HeightPyramid.of(one, device).terrain for one in in_memory]
        yield slice(None), wp.array(structs, dtype=Terrain, device=device)
        return
    reach = _reach(bodies) + 2.0 * _margins_of(bodies, margin)
    if len(terrains) == 1:
        pyramid = PagedPyramid.of(terrains[0], device)
        for rows, _ in pyramid.visits(_origins(poses), on_device(reach, wp.float64, device)):
            yield rows, pyramid.row
        return
    centres, reach = poses.numpy()[:, :3, 3], np.broadcast_to(reach, len(bodies))
    for number, field in enumerate(terrains):
        mine = np.arange(len(bodies)) if worlds is None else np.flatnonzero(worlds == number)
        for rows, ground in terrain_visits(field, centres[mine], reach[mine], device) if len(mine) else ():
            whole = isinstance(rows, slice) and len(mine) == len(bodies)
            yield rows if whole else mine[rows], wp.array([ground] * len(terrains), dtype=Terrain, device=device)


def _ground_of_few(bodies: Analytic, field: Ground, margin: float | None, device: wp.Device) -> wp.array | None:
    """The terrain as one row, ready for bodies with poses on the host; None if they need several visits."""
    if isinstance(field, Heightfield):
        return HeightPyramid.of(field, device).row
    pyramid = PagedPyramid.of(field, device)
    rows, _ = next(pyramid.visits(bodies.poses[:, :3, 3], _reach(bodies) + 2.0 * _margins_of(bodies, margin)))
    return pyramid.row if isinstance(rows, slice) else None


def _origins(poses: wp.array) -> wp.array:
    """Where the origins of bodies are, (n, 3) [m]: a view."""
    if poses.ptr is None:  # no bodies
        return wp.empty((0, 3), dtype=wp.float64, device=poses.device)
    number = wp.types.type_size_in_bytes(wp.float64)
    return wp.array(
        ptr=poses.ptr + 3 * number,  # the last column of a pose
        dtype=wp.float64,
        shape=(len(poses), 3),
        strides=(16 * number, 4 * number),
        device=poses.device,
    )


def _reach(bodies: Analytic) -> np.ndarray:
    """How far any point of a body is from its origin at most, (1,) or (n,) [m]."""
    records = bodies.records
    if bodies.kind == HULL:
        return np.linalg.norm(records["half"][:, None] * bodies.hull.corners, axis=2).max(axis=1)
    return records["radius"] + records["half"][:, 2]


def _margins_of(bodies: Analytic, margin: float | None) -> np.ndarray:
    """(1,) or (n,) [m]."""
    if margin is not None:
        return np.array([float(margin)])
    records = bodies.records
    if bodies.kind == HULL:
        return MARGIN * 0.5 * (np.ptp(bodies.hull.corners, axis=0) * records["half"]).min(axis=1)
    return MARGIN * records["radius"]
