"""All seven stages of the grid pipeline for a scene, timed: the contacts, and what each stage made and took.

Stages 1 to 6 are `pipeline`; stage 7 tests the features that pairs of triangles own and describes what is
near (Léonard 2021, section 3.1). In published mode the losses of the printed rules are counted as well,
outside of the times: pairs of triangles and contacts that the sound rules find and the printed ones do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.surfaces import LARGEST, Surfaces, as_meshes, checked_distance
from tangere.published.leonard_grid.cpu.representative_triangles import MANY, near_owned
from tangere.published.leonard_grid.feature_tests import Tests, count_tests
from tangere.published.leonard_grid.fused import near_in_cells
from tangere.published.leonard_grid.kdop import Objects
from tangere.published.leonard_grid.pipeline import (
    Clock,
    PipelineStages,
    RestExclusion,
    Settings,
    compared_objects,
    find_cells,
)
from tangere.query.contacts.record import Contacts
from tangere.query.proximity.contact_buffer import ContactBuffer, describe
from tangere.query.proximity.exclusion_table import Exclude, ExclusionTable, exclusions_of_each
from tangere.query.proximity.representative_triangles import near_features
from tangere.runtime.arrays import Arrays, as_points, concatenated
from tangere.runtime.errors import InputError
from tangere.runtime.non_copyable import NonCopyable
from tangere.runtime.threads import using_threads
from tangere.shape.mesh.mesh import Mesh


@dataclass(frozen=True)
class StagedDetection(NonCopyable, instead="take its contacts, which are in main memory, its counts or its seconds"):
    """The contacts of a scene at an instant, and how they were found."""

    near: ContactBuffer  #: contacts, on the device
    grids: tuple[PipelineStages, ...]  #: what stages 1 to 6 made, for each grid
    seconds: dict[str, float]  #: by stage [s]
    losses: dict[str, int]  #: in published mode: pairs of triangles and contacts that only the sound rules find
    surfaces: Surfaces
    distance: float  #: [m]

    def __repr__(self) -> str:
        return f"Detection({self.near.summary()}, in {1e3 * self.total:.3g} ms)"

    @property
    def stages(self) -> PipelineStages:
        """What the last, as a rule the only, grid made."""
        return self.grids[-1]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Triangles, cells, entries, candidates, pairs and contacts of all grids, and losses; read when asked for."""
        total: dict[str, int] = {}
        for grid in self.grids:
            for what, number in grid.counts.items():
                total[what] = total.get(what, 0) + number
        return total | {"contacts": len(self.near)} | self.losses

    @cached_property
    def tests(self) -> Tests:
        """How many pairs of features stage 7 has to compare, and how many of these boxes tell apart."""
        lists = [grid.pairs for grid in self.grids if grid.pairs is not None]
        counted = [count_tests(self.surfaces, pairs, self.distance) for pairs in lists]
        return Tests(sum(c.primitive_pairs for c in counted), sum(c.removed for c in counted))

    @property
    def contacts(self) -> Contacts:
        return self.near.contacts

    @property
    def total(self) -> float:
        """All stages together [s]."""
        return sum(self.seconds.values())


def detect(
    meshes: Mesh | Sequence[Mesh] | Surfaces,
    *,
    distance: float,
    settings: Settings | None = None,
    exclude: Exclude = None,
    end: Arrays | None = None,
    per_pair: bool = False,
    count_losses: bool = True,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> StagedDetection:
    """Run the seven stages once.

    Args:
        meshes: the bodies, at the instant.
        distance: contact distance [m].
        settings: what is switched on; sound by default.
        exclude: pairs of features to leave out; one made by `Exclusion.at_rest` for each mesh
            lets sound cones work.
        end: (n, 3) where the vertices of all bodies, one after the other, go along lines during the step that begins at
            the instant [m]. Cones then hold the normals of the whole step: a piece is left out only if it faces one way
            throughout. Contacts are those of the instant.
        per_pair: one grid for each pair of bodies and each body alone, as published, instead of one for all.
        count_losses: in published mode, compare with the sound rules.
        device, threads: as for `proximity`.
    """
    checked_distance(distance)
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise InputError(f"settings must be Settings, not {type(settings).__name__}")
    with using_threads(threads):
        surfaces = meshes if isinstance(meshes, Surfaces) else Surfaces.of(as_meshes(meshes), device)
        excluded, rest_exclusion = ExclusionTable.of(surfaces, exclude), _rest_exclusion(surfaces, exclude)
        goal = None if end is None else _goal(end, surfaces, settings)
        seconds: dict[str, float] = {}
        clock = Clock(surfaces.device, seconds)
        everything = compared_objects(surfaces, distance, settings)
        clock.lap("objects")
        pair_keys, grids = [], []
        for objects in _one_by_one(everything) if per_pair else [everything]:
            done = find_cells(surfaces, distance, settings, rest_exclusion=rest_exclusion, objects=objects, end=goal)
            grids.append(done)
            if done.runs is not None:
                pair_keys.append(_near_features(surfaces, done, distance, settings))
            for stage, took in done.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + took
        clock = Clock(surfaces.device, seconds)
        found = concatenated(pair_keys, wp.int64, surfaces.device)
        near = describe(surfaces, found if excluded is None else excluded.removed_from(surfaces, found))
        clock.lap("contacts")
        losses = {}
        if settings.mode == "published" and count_losses:
            losses = _losses(surfaces, distance, settings, exclude, grids, near)
        return StagedDetection(near, tuple(grids) or (PipelineStages(everything),), seconds, losses, surfaces, distance)


def _near_features(surfaces: Surfaces, cells: PipelineStages, distance: float, settings: Settings) -> wp.array:
    """Stages 6b and 7, by name: a list of pairs is made only if they are to be two."""
    clock = Clock(surfaces.device, cells.seconds)
    if surfaces.device.is_cpu if settings.fused is None else settings.fused:
        pair_keys = near_in_cells(surfaces, cells, distance, boxes=settings.primitive_boxes)
    else:
        pairs = cells.pairs
        assert pairs is not None
        clock.lap("pairs")
        if surfaces.device.is_cpu and not settings.primitive_boxes and len(pairs) >= MANY:
            pair_keys = near_owned(surfaces, pairs, distance)
        else:
            pair_keys = near_features(surfaces, pairs, distance, boxes=settings.primitive_boxes)
    clock.lap("features")
    return pair_keys


def _goal(end: Arrays, surfaces: Surfaces, settings: Settings) -> wp.array:
    """Where vertices go, on the device of the scene."""
    if not settings.cones:
        raise InputError("end is what cones are made for: switch them on in settings")
    goal, count = as_points(end, "end", surfaces.device), len(surfaces.positions)
    if len(goal) != count:
        raise InputError(f"end must be {count} points, not {len(goal)}")
    usable = (np.abs(goal.numpy().reshape(-1, 3)) <= LARGEST).all(axis=1)
    if not usable.all():
        raise InputError(f"end: row {int(np.argmin(usable))} is not finite or above {LARGEST:g}")
    return goal


def _rest_exclusion(surfaces: Surfaces, exclude: Exclude) -> RestExclusion | None:
    """What sound cones may rely on: exclusions at rest that cover every body."""
    covering = []
    for exclusions in exclusions_of_each(exclude, surfaces.meshes):
        resting = [e for e in exclusions if e.rest is not None]
        if not resting:
            return None
        covering.append(max(resting, key=lambda e: e.distance))
    return RestExclusion(min(e.distance for e in covering), np.concatenate([e.rest for e in covering]))


def _one_by_one(everything: Objects) -> list[Objects]:
    rows = [slice(k, k + 1) for k in range(len(everything.jobs))]
    return [Objects(everything.boxes, everything.jobs[row], everything.regions[row]) for row in rows]


def _losses(
    surfaces: Surfaces,
    distance: float,
    settings: Settings,
    exclude: Exclude,
    grids: list[PipelineStages],
    near: ContactBuffer,
) -> dict[str, int]:
    """Contacts, and pairs of triangles without a common vertex, that only the sound rules find."""
    sound = replace(settings, mode="sound", cones=False)
    reference = detect(surfaces, distance=distance, settings=sound, exclude=exclude)
    lost = np.setdiff1d(reference.near.pair_keys.numpy(), near.pair_keys.numpy(), assume_unique=True)
    counts = {"contacts lost": len(lost)}
    found = [grid.pairs.numpy().reshape(-1, 2) for grid in grids if grid.pairs is not None]
    every = reference.stages.pairs
    if found and every is not None:
        faces, pairs = surfaces.layout.faces.numpy(), every.numpy().reshape(-1, 2)
        apart = ~(faces[pairs[:, 0], :, None] == faces[pairs[:, 1], None, :]).any(axis=(1, 2))
        printed = _packed(np.concatenate(found))
        counts["pairs lost"] = len(np.setdiff1d(_packed(pairs[apart]), printed, assume_unique=True))
    return counts


def _packed(pairs: np.ndarray) -> np.ndarray:
    return (pairs[:, 0].astype(np.int64) << 32) | pairs[:, 1]
