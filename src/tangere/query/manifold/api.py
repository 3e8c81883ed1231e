"""Contact manifolds of analytic bodies on height grids: few points, all that matter, at any cell size.

Question: where does each body rest on the ground, how deep, and which way is out?
Method:   each body sweeps the ground below it (`sweep`), groups what it finds by normal and keeps at most four points
          of each group (`groups`): on CPU one body after the other, on CUDA all at once in `rounds` of equal work.
Sound:    a cylinder that touches always has a contact; no contact is deeper than the vertical penetration; a body with
          more groups than there was room for is done again with more room.
Spec:     specs/strashnov-cylinder-terrain 3 to 11, F-S-4 to F-S-23.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import Terrain, tiles_held
from tangere.query.contacts.record import Contacts
from tangere.query.manifold.broad_phase import ground_of_few, ground_visits, margins_of
from tangere.query.manifold.cuda.pipeline import manifold_cuda, numbers
from tangere.query.manifold.details import (
    ManifoldRow,
    contacts_of,
    empty_columns,
    few_contacts,
    on_device,
    record_of,
    row_of,
)
from tangere.query.manifold.features.contact import is_finite, stand
from tangere.query.manifold.features.wall import SteepWalls, empty_walls
from tangere.query.manifold.reduction import TIE, ContactGroups, empty_groups, group_at, kept_touch, reduce_group
from tangere.query.manifold.sweep import sweep_of
from tangere.runtime import (
    SOUND,
    Arrays,
    CapacityError,
    InputError,
    UnsupportedError,
    choose_device,
    collect,
    load,
    published,
    reserve_slots,
    to_numpy,
    using_threads,
)
from tangere.shape.analytic import Analytic, AnalyticShape, Hulls, hull_tables, place
from tangere.shape.heightfield import Heightfield, TiledHeightfield

wp.set_module_options(SOUND)

__all__ = ["manifold"]

Ground = Heightfield | TiledHeightfield

#: Bodies worth a thread.
GRAIN = 256
#: Groups of normals a body has room for at first, and how much more room is made where that does not suffice.
ROOM, MORE_ROOM = 8, 8
#: Bodies that are answered with arrays and a launch that are kept.
FEW = 64

#: What can be wrong with a body, 0 being nothing.
NO_ROOM = wp.constant(1)
NOT_FINITE = wp.constant(2)


def manifold(
    bodies: Analytic,
    terrain: Ground | Sequence[Ground],
    *,
    world: Arrays | None = None,
    mode: Literal["sound", "published"] = "sound",
    margin: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """Where n bodies rest on the ground: at most four contacts for each group of like normals.

    Args:
        bodies: placed cylinders, spheres, capsules, boxes, cones or convex meshes.
        terrain: the ground, in memory or in tiles, or one for each of several worlds.
        world: with several terrains, the number of each body's, shape (n,).
        mode: "sound"; or "published": the algorithm as printed, for cylinders, which misses contacts.
        margin: gaps up to this count [m]; None means a hundredth of the body's radius (of a hull: half its thickness).
        device: where to compute; None means where the poses are, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        Contacts by rising body (`query` and `body_a` are its number, `body_b` that of its world), with gaps: negative
        inside the ground. `key` names body point and ground feature, for warm starts.

    Example:
        >>> import numpy as np
        >>> from tangere.shape.analytic import Cylinder
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = [5.0, 5.0, 0.595]
        >>> found = manifold(Cylinder(0.5, 1.2).at(pose), Heightfield(np.zeros((11, 11))), device="cpu")
        >>> len(found), found.gap.round(6).tolist()
        (4, [-0.005, -0.005, -0.005, -0.005])
    """
    terrains, worlds = _checked(bodies, terrain, world, margin)
    if mode == "published":
        in_memory = [one for one in terrains if isinstance(one, Heightfield)]
        if len(in_memory) < len(terrains):
            raise UnsupportedError("mode='published' takes heightfields in memory, not tiles")
        if margin is not None:
            raise InputError("mode='published' takes no margin: as printed, what does not touch is no contact")
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
                ground = ground_of_few(bodies, field, margin, host)
                if ground is not None:
                    return _prepared_manifold(field, ground, bodies).answer(bodies, margin)
    with using_threads(threads):
        return _swept(bodies, terrains, worlds, margin, choose_device(device, bodies.poses))


def _checked(bodies: Any, terrain: Any, world: Any, margin: Any) -> tuple[list[Ground], np.ndarray | None]:
    if not isinstance(bodies, Analytic):
        raise UnsupportedError(f"manifold() takes cylinders, spheres, capsules, boxes, cones or hulls, not {bodies!r}")
    is_number = isinstance(margin, int | float | np.number) and not isinstance(margin, bool)
    if margin is not None and not (is_number and 0.0 <= margin < np.inf):
        raise InputError(f"margin must be a length, not {margin!r}")
    terrains = list(terrain) if isinstance(terrain, Sequence) else [terrain]
    if not terrains or not all(isinstance(one, Ground) for one in terrains):
        raise UnsupportedError(f"manifold() takes a Heightfield, a TiledHeightfield or several, not {terrain!r}")
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


def _swept(
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
        on_device(margins_of(bodies, margin), wp.float64, device),
        hull_tables(bodies.hull, device.alias),
        on_device(np.zeros(1, np.int32) if worlds is None else worlds, wp.int32, device),
    ]
    parts, ordered = [], True
    with tiles_held(terrains, device):
        for rows, ground in ground_visits(bodies, poses, terrains, worlds, margin, device):
            ordered = ordered and isinstance(rows, slice)
            chosen = numbers(count, device.alias)
            if not isinstance(rows, slice):
                chosen = wp.array(rows.astype(np.int32), dtype=wp.int32, device=device)
            if device.is_cuda:
                parts += manifold_cuda(bodies.kind, chosen, [ground, *inputs], device)
                continue
            swept = _swept_on_threads(bodies.kind, chosen, [ground, *inputs], count, device)
            ordered = ordered and len(swept) == 1
            parts += swept
    if device.is_cuda:
        return record_of(parts or [empty_columns(0, device)], bodies.poses, ordered)
    return contacts_of(_joined(parts, device), worlds, bodies.poses, ordered)


def _swept_on_threads(kind: int, chosen: wp.array, inputs: list[Any], count: int, device: wp.Device) -> list[wp.array]:
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


def _joined(parts: list[wp.array], device: wp.Device) -> wp.array:
    """All rows, in order, without a way over the host."""
    if len(parts) == 1:
        return parts[0]
    rows = wp.empty(sum(len(part) for part in parts), dtype=ManifoldRow, device=device)
    at = 0
    for part in parts:
        if len(part):
            wp.copy(rows, part, dest_offset=at, count=len(part))
        at += len(part)
    return rows


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
            view["margins"][:count] = margins_of(bodies, margin)
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
    key = ("manifold desk", bodies.hull, bodies.kind)
    desk = terrain.cache.get(key)
    if desk is None or desk.ground is not ground:  # more room for tiles is another row
        desk = terrain.cache[key] = PreparedManifold(
            ground, bodies.kind, hull_tables(bodies.hull, "cpu"), ground.device
        )
    return desk


@cache
def manifold_kernel(kind: int) -> wp.Kernel:
    """The kernel for one kind of body."""
    sweep = sweep_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def sweep_bodies(
        first: int,
        shard: int,
        chosen: wp.array[int],
        terrains: wp.array[Terrain],
        shapes: wp.array[AnalyticShape],
        poses: wp.array[wp.mat44d],
        margins: wp.array[wp.float64],
        hulls: Hulls,
        worlds: wp.array[int],
        groups: ContactGroups,
        walls: SteepWalls,
        status: wp.array[wp.uint8],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[ManifoldRow],
    ):
        k = first + wp.tid()
        i = chosen[k]
        pose = poses[i]
        shape = shapes[wp.min(i, shapes.shape[0] - 1)]
        t = terrains[worlds[wp.min(i, worlds.shape[0] - 1)]]
        body = place(shape, pose)
        here = stand(t, body, pose, margins[wp.min(i, margins.shape[0] - 1)], shard)
        if not is_finite(body, here):
            status[i] = wp.uint8(NOT_FINITE)
            return
        sweep(t, body, hulls, here, groups, walls)
        if groups.count[shard] > groups.room:
            status[i] = wp.uint8(NO_ROOM)
            return
        total = int(0)
        for g in range(groups.count[shard]):
            stay = reduce_group(groups, shard, g, TIE * here.margin)
            groups.group[group_at(groups, shard, g)].stay = stay
            for c in range(4):
                if stay[c] >= 0:
                    total += 1
        if total == 0:
            return
        at = reserve_slots(counts, shard, total, capacity)
        if at < 0:
            return
        origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
        for g in range(groups.count[shard]):
            stay = groups.group[group_at(groups, shard, g)].stay
            for c in range(4):
                if stay[c] >= 0:
                    out[at] = row_of(kept_touch(groups, shard, g, stay[c]), i, g, origin)
                    at += 1

    return sweep_bodies
