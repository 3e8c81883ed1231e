"""Detection for step loops: give positions each step, get contacts; everything is prepared once.

A detector keeps the trees of its scene, all arrays and, on CUDA, the captured graph of a whole detection: a step is one
graph launch and one read-back of a few counters. Positions are copied on the device, contacts stay there. When contacts
outgrow their room the step is repeated with more (specs/leonard-deformable-gpu C18 to C20). The topology is that of the
meshes given; after a cut make another detector.

The contacts are exactly those of `proximity`, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import warp as wp
import warp.utils

from tangere.bound import Frame
from tangere.partition.broad_phase_boxes import every_job
from tangere.partition.pipeline_surfaces import LARGEST, Surfaces
from tangere.query.contacts import Contacts
from tangere.query.proximity.exclusion import Exclude, listed, that_count, that_count_kernel
from tangere.query.proximity.feature_trees import FeatureTrees, Placed, place_vertices
from tangere.query.proximity.meshes import checked_distance
from tangere.query.proximity.near import Near, bases_of, describe, fill, name_bits
from tangere.query.proximity.tree_search import EXPECTED, Search, Side, joined, plan_searches
from tangere.runtime import SOUND, Arrays, CapacityError, InputError, as_points, launch, using_threads
from tangere.runtime.collecting import COUNTER_STRIDE
from tangere.shape import Mesh

wp.set_module_options(SOUND)

__all__ = ["Detector"]

#: Room for this many times the contacts of the step that needed more.
GROWTH = 1.25
_LARGEST_ROOM = 2**31 - 1
_LARGEST = wp.constant(wp.float64(LARGEST))


class Detector:
    """The contacts of one mesh with itself, or of several with each other and themselves, step after step.

    Args:
        meshes: the bodies, where they begin.
        distance: features nearer than this are in contact [m].
        exclude: pairs to leave out, besides those that share a vertex, see `Exclusion`.
        within, between: whether bodies are compared with themselves, and with each other.
        device: where positions will come from; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.proximity import Detector
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> detector = Detector([ball, ball], distance=0.02, within=False, device="cpu")
        >>> for step in range(3):
        ...     moved = ball.vertices + [2.1 - 0.045 * step, 0.0, 0.0]
        ...     near = detector.find([ball.vertices, moved])
        ...     print(len(near.contacts))
        0
        0
        48
    """

    def __init__(
        self,
        meshes: Mesh | Sequence[Mesh],
        *,
        distance: float,
        exclude: Exclude = None,
        within: bool = True,
        between: bool = True,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        checked_distance(distance)
        self._surfaces = Surfaces.of([meshes] if isinstance(meshes, Mesh) else list(meshes), device)
        self._distance, self._threads, self._exclude = distance, threads, listed(exclude)
        jobs = every_job(len(self._surfaces.meshes))
        self._jobs = jobs[(within & (jobs[:, 0] == jobs[:, 1])) | (between & (jobs[:, 0] != jobs[:, 1]))]
        layout, where = self._surfaces.layout, self._surfaces.device
        self._positions = wp.empty(int(layout.vertex_base[-1]), dtype=wp.vec3d, device=where)
        self._bases = bases_of(layout)
        self._exclusions = [e.prepared(layout) for e in self._exclude] if where.is_cuda else []
        self._flags = wp.zeros((2 + len(self._exclude)) * COUNTER_STRIDE, dtype=wp.int64, device=where)
        self._order()

    @property
    def device(self) -> wp.Device:
        return self._surfaces.device

    def find(self, positions: Arrays | Sequence[Arrays]) -> Near:
        """The contacts with all vertices at `positions` [m]: (n, 3), one body after the other, or a list of such.

        They are valid until the next call: arrays are used again.
        """
        self._take(positions)
        with using_threads(self._threads):
            return self._find_captured() if self.device.is_cuda else self._find()

    def contacts(self, positions: Arrays | Sequence[Arrays]) -> Contacts:
        """The same in main memory."""
        return self.find(positions).contacts

    def reorder(self) -> None:
        """Order the trees by the last positions: worth it when bodies have crumpled since they were ordered."""
        host = self._positions.numpy()
        parts = np.split(host, self._surfaces.layout.vertex_base[1:-1])
        meshes = [mesh.replace(vertices=part) for mesh, part in zip(self._surfaces.meshes, parts, strict=True)]
        self._surfaces = Surfaces.of(meshes, self.device)
        self._order()

    def _order(self) -> None:
        """Trees, their boxes, and the searches to be made, for the bodies where they are."""
        surfaces = self._surfaces
        self._frame: Frame = surfaces.frame
        self._bodies: dict[int | None, tuple[FeatureTrees, Placed]] = {}
        self._branches = {kind: _Branch() for kind in ("edges", "vertices")}
        sides: dict[tuple[int | None, str], Side] = {}
        for a, b, one, other in plan_searches(self._jobs, len(surfaces.meshes)):
            for body, kind in ((a, one), (b, other)):
                if body not in self._bodies:
                    trees = FeatureTrees.built(surfaces, body)
                    self._bodies[body] = (trees, Placed.empty(trees))
                if (body, kind) not in sides:
                    sides[body, kind] = Side.of(*self._bodies[body], kind)
                    self._branches[one].sides.append(sides[body, kind])
            search = Search.of(surfaces.layout, sides[a, one], sides[b, other], self._distance)
            self._branches[one].searches.append(search)
        self._room: _Room | None = None
        self._graph = None
        if self.device.is_cuda:
            self._aside = wp.Stream(self.device)

    def _take(self, positions: Arrays | Sequence[Arrays]) -> None:
        """Copy positions to where the searches expect them."""
        base = self._surfaces.layout.vertex_base
        if isinstance(positions, list | tuple) and len(positions) == len(self._surfaces.meshes):
            parts, begins = [as_points(p, f"positions[{k}]", self.device) for k, p in enumerate(positions)], base[:-1]
            sizes = np.diff(base)
        else:
            parts, begins, sizes = [as_points(positions, "positions", self.device)], base[:1], base[-1:]
        for part, begin, size in zip(parts, begins.tolist(), sizes.tolist(), strict=True):
            if len(part) != size:
                raise InputError(f"positions must be {size} points, not {len(part)}")
            wp.copy(self._positions, part, dest_offset=begin, count=size)

    def _place(self) -> None:
        for trees, placed in self._bodies.values():
            place_vertices(trees, self._positions, self._distance, self._frame, placed)

    def _find(self) -> Near:
        surfaces = self._surfaces.replaced(self._positions)
        self._flags.zero_()
        launch(_find_unusable, len(self._positions), [self._positions], [self._flags], device=self.device, threads=1)
        self._check(self._flags.numpy())
        self._place()
        names = []
        for branch in self._branches.values():
            branch.fit()
            names += [search.run(self.device) for search in branch.searches]
        return describe(surfaces, that_count(surfaces, joined(names, self.device), self._exclude))

    def _find_captured(self) -> Near:
        while True:
            if self._room is None:
                self._room, self._graph = _Room.of(self, EXPECTED * 1024), None
            if self._graph is None:
                self._run(self._room)  # loads kernels, which a capture could not
                with wp.ScopedCapture(self.device) as capture:
                    self._run(self._room)
                self._graph = capture.graph
            wp.capture_launch(self._graph)
            flags = self._flags.numpy()
            self._check(flags)
            found = flags[COUNTER_STRIDE::COUNTER_STRIDE]
            if int(found.max()) <= self._room.size:
                return replace(self._room.near, count=int(found[-1]))
            size = int(GROWTH * int(found.max())) + 1024
            if size > _LARGEST_ROOM:
                raise CapacityError(f"there are {int(found.max())} contacts, more than one array can hold")
            self._room, self._graph = _Room.of(self, size), None

    def _run(self, room: _Room) -> None:
        """Everything a step does on CUDA, without a word to the host. Edges, and vertices among faces, go side by side:
        a traversal waits for memory most of the time.
        """
        device, stream = self.device, self.device.stream
        self._flags.zero_()
        counters = [self._flags[k * COUNTER_STRIDE :] for k in range(1, 2 + len(self._exclusions))]
        bits = name_bits(self._surfaces.layout)
        for names in room.names:
            names.fill_((1 << bits) - 1)  # beyond every name: what is not written sorts last
        names = room.names[0]
        self._place()
        with wp.ScopedStream(self._aside):
            launch(_find_unusable, len(self._positions), [self._positions], [self._flags], device=device)
            self._branches["vertices"].run([counters[0], room.size, names], device)
        self._branches["edges"].run([counters[0], room.size, names], device)
        stream.wait_stream(self._aside)
        for k, prepared in enumerate(self._exclusions):
            inputs = [0, counters[k], names, *prepared, self._positions]
            names = room.names[k + 1]
            launch(that_count_kernel, room.size, inputs, [counters[k + 1], room.size, names], device=device)
        warp.utils.radix_sort_pairs(names, room.places, room.size, 0, bits)
        fill(room.near, self._bases)

    def _check(self, flags: np.ndarray) -> None:
        worst = len(self._positions) - int(flags[0])
        if worst < len(self._positions):
            base = self._surfaces.layout.vertex_base
            body = int(np.searchsorted(base, worst, side="right")) - 1
            name = self._surfaces.meshes[body].name
            raise InputError(f"positions of {name!r}: vertex {worst - base[body]} is not finite or above {LARGEST:g}")


@dataclass(frozen=True)
class _Branch:
    """Searches that share boxes with no others."""

    sides: list[Side] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)

    def fit(self) -> None:
        for side in self.sides:
            side.fit()

    def run(self, outputs: list, device: wp.Device) -> None:
        """Fit and search, as far as the room in `outputs` goes."""
        self.fit()
        for search in self.searches:
            launch(search.kernel, search.dim, [0, *search.inputs], outputs, device=device)


@dataclass(frozen=True)
class _Room:
    """Arrays for so many contacts on CUDA."""

    size: int
    names: list[wp.array]  #: (2 size,) int64: found, then without each exclusion; sorting needs twice the room
    places: wp.array  #: (2 size,) int32: what sorting moves along
    near: Near

    @staticmethod
    def of(detector: Detector, size: int) -> _Room:
        device = detector.device
        names = [wp.empty(2 * size, dtype=wp.int64, device=device) for _ in range(1 + len(detector._exclusions))]
        number = detector._flags[-COUNTER_STRIDE:]
        near = Near.empty(detector._surfaces.layout, detector._positions, names[-1][:size], number, 0)
        return _Room(size, names, wp.zeros(2 * size, dtype=wp.int32, device=device), near)


@wp.kernel
def _find_unusable(first: int, positions: wp.array[wp.vec3d], flags: wp.array[wp.int64]):
    """How many vertices there are from the first one on whose coordinates are not finite or too large; else 0."""
    i = first + wp.tid()
    p = wp.abs(positions[i])
    if not (p[0] + p[1] + p[2] <= _LARGEST):
        wp.atomic_max(flags, 0, wp.int64(positions.shape[0] - i))
