"""The grid pipeline up to pairs of triangles: stages 1 to 6, each a function, switchable, timed and open to inspection.

  1 objects     bounds of the bodies, which pairs of them overlap, and the regions they share
  2 triangles   bounds of the triangles, boxes or spheres; those outside of all regions of their body take no part
  3 grid        cell size and region
  4 entries     which triangle overlaps which cell
  5 sort        entries by cell
  6a cones      pieces of surface that cannot touch themselves
  6b pairs      pairs of triangles in a cell whose bounds overlap
Stage 7, the distances, is in `query.proximity`, which as a rule tests pairs as they are found: then no list of them is
made, unless it is asked for. One grid serves all bodies and self-contact at once; `detect` there can make one for each
pair of bodies instead, as the document does. Topology is read afresh at every call: nothing outlives it.
Sound:     no pair of triangles nearer than the distance is lost, whatever is switched on.
Published: cell size, octants, cell types and cones as printed (Léonard 2021, chapter 3); pairs are lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.broad_phase.triangles.triangle_aabbs import TriangleAabbs
from tangere.published.leonard_grid.cones import FaceCones, published_patches
from tangere.published.leonard_grid.cones_sound import sound_patches
from tangere.published.leonard_grid.grid.cells import Grid, define_grid
from tangere.published.leonard_grid.grid.entries import GridEntries, Runs, cell_runs, grid_entries, sorted_entries
from tangere.published.leonard_grid.grid.octants import published_entries, published_grid
from tangere.published.leonard_grid.grid.pairs import candidate_bound, cell_pairs
from tangere.published.leonard_grid.grid.walk import TypeRule
from tangere.published.leonard_grid.kdop import Objects, every_object, near_objects
from tangere.published.leonard_grid.regions import inside_regions, sphere_boxes, triangle_spheres
from tangere.runtime.errors import InputError


@dataclass(frozen=True)
class Settings:
    """What is switched on. `Settings()` is sound; `Settings(mode="published")` is the document's choice."""

    mode: Literal["sound", "published"] = "sound"
    bounds: Literal["boxes", "spheres"] = "boxes"  #: of triangles
    object_faces: int = 6  #: of the k-DOP around each body: 6 is a box
    regions: bool = True  #: leave out triangles that are outside of every region their body shares
    levels: bool = False  #: a hierarchical grid, for mixed sizes
    cell: float | None = None  #: edge of the finest cells [m]; None: by the sizes of the triangles
    cones: bool = False  #: leave out pairs within pieces that cannot touch themselves
    #: Test pairs of triangles as they are found, without a list of them; None: on CPUs, on CUDA that takes longer.
    fused: bool | None = None
    primitive_boxes: bool = False  #: compare boxes of features before their distances (stage 7)
    within: bool = True  #: bodies with themselves
    between: bool = True  #: bodies with each other

    def __post_init__(self) -> None:
        if self.mode not in ("sound", "published"):
            raise InputError(f"mode must be 'sound' or 'published', not {self.mode!r}")
        if self.bounds not in ("boxes", "spheres"):
            raise InputError(f"bounds must be 'boxes' or 'spheres', not {self.bounds!r}")
        if self.mode == "published" and self.levels:
            raise InputError("the published grid has one level")
        if self.cones and self.levels:
            raise InputError("cones need a grid of one level")
        if self.cell is not None and not (isinstance(self.cell, Real) and 0.0 < self.cell < np.inf):
            raise InputError(f"cell must be a positive length, not {self.cell!r}")


@dataclass(frozen=True)
class RestExclusion:
    """What excludes pairs that are joined nearby, so that sound cones may leave them out."""

    covered: float  #: pairs nearer than this at rest, and joined there, are excluded [m]
    rest: np.ndarray  #: (n, 3) positions at rest, of all vertices of the scene


@dataclass
class PipelineStages:
    """What every stage made, and how long it took [s]; a stage that was not run is None."""

    objects: Objects
    aabbs: TriangleAabbs | None = None
    spheres: wp.array | None = None
    grid: Grid | None = None
    rule: TypeRule | None = None  #: in published mode
    entries: GridEntries | None = None
    runs: Runs | None = None
    cones: FaceCones | None = None
    patches: wp.array | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> wp.array | None:
        """Pairs (i, j), i < j, of triangles, in any order, as (n,) vec2i; made when first asked for."""
        if self.aabbs is None or self.grid is None or self.entries is None or self.runs is None:
            return None
        return cell_pairs(self.aabbs, self.grid, self.entries, self.runs, **self.narrowed)

    @property
    def narrowed(self) -> dict[str, Any]:
        """By what pairs are left out, besides boxes: see `cell_walk`."""
        return {"spheres": self.spheres, "rule": self.rule, "patches": self.patches}

    @property
    def counts(self) -> dict[str, int]:
        """Triangles that take part, occupied cells, entries, pairs that cells have to look at by the printed rule, and
        pairs found; read from the device when asked for.
        """
        if self.entries is None or self.runs is None or self.pairs is None:
            return {}
        number = self.runs.number
        counts = {
            "triangles": int((self.entries.level.numpy() >= 0).sum()),
            "cells": int(number[-1:].numpy()[0]) + 1 if len(number) else 0,
            "entries": len(self.entries.keys),
            "candidates": int(candidate_bound(self.entries, self.runs).sum()),
            "pairs": len(self.pairs),
        }
        if self.patches is not None:
            skipped = self.patches.numpy() >= 0
            cells = np.ones(counts["cells"], bool)
            np.logical_and.at(cells, number.numpy(), skipped)
            counts |= {"entries skipped": int(skipped.sum()), "cells skipped": int(cells.sum())}
        return counts


class Clock:
    """Times named stages; on CUDA it waits for the device, so only where times are asked for."""

    def __init__(self, device: wp.Device, seconds: dict[str, float]) -> None:
        self._device, self._seconds, self._last = device, seconds, time.perf_counter()

    def lap(self, name: str) -> None:
        if self._device.is_cuda:
            wp.synchronize_device(self._device)
        now = time.perf_counter()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        self._last = now


def find_pairs(surfaces: Surfaces, distance: float, settings: Settings, **options: Any) -> PipelineStages:
    """Stages 1 to 6 for a scene, up to the list of pairs; arguments as for `find_cells`."""
    done = find_cells(surfaces, distance, settings, **options)
    if done.runs is not None:
        clock = Clock(surfaces.device, done.seconds)
        assert done.pairs is not None
        clock.lap("pairs")
    return done


def find_cells(
    surfaces: Surfaces,
    distance: float,
    settings: Settings,
    *,
    rest_exclusion: RestExclusion | None = None,
    objects: Objects | None = None,
    end: wp.array | None = None,
) -> PipelineStages:
    """Stages 1 to 6a for a scene: all that is needed to go through pairs of triangles.

    Args:
        distance: [m].
        rest_exclusion: needed for sound cones to leave anything out.
        objects: the first stage, if it is done already.
        end: (n,) vec3d where vertices go along lines [m]: cones then hold the normals of the whole step.
    """
    seconds: dict[str, float] = {}
    clock = Clock(surfaces.device, seconds)
    if objects is None:
        objects = compared_objects(surfaces, distance, settings)
    done = PipelineStages(objects, seconds=seconds)
    clock.lap("objects")
    if not len(objects.jobs):
        return done  # bodies that are far from each other cost nothing more
    done.aabbs, done.spheres = _bounded(surfaces, distance, settings, objects)
    clock.lap("triangles")
    done.grid = _grid(surfaces, settings, objects, done.aabbs)
    clock.lap("grid")
    done.entries, done.rule = _entries(surfaces, settings, done)
    clock.lap("entries")
    done.entries = sorted_entries(done.entries)
    clock.lap("sort")
    done.runs = cell_runs(done.entries)
    clock.lap("runs")
    if settings.cones and len(done.entries.keys):
        done.cones = FaceCones.of(surfaces, end)
        if settings.mode == "published":
            done.patches = published_patches(surfaces, done.entries, done.runs, done.cones)
        elif rest_exclusion is not None:
            done.patches = sound_patches(
                *(surfaces, done.entries, done.runs, done.cones, distance),
                **{"covered": rest_exclusion.covered, "rest": rest_exclusion.rest},
            )
        clock.lap("cones")
    return done


def compared_objects(surfaces: Surfaces, distance: float, settings: Settings) -> Objects:
    """Stage 1. Positions that were given on the device stay there: every pair of bodies is compared, everywhere."""
    which = {"within": settings.within, "between": settings.between}
    if surfaces.bounded:
        return near_objects(surfaces.meshes, distance, k=settings.object_faces, **which)
    if settings.mode == "published":
        raise InputError("published mode needs bounds of the bodies: give meshes")
    return every_object(len(surfaces.meshes), **which)


def _bounded(
    surfaces: Surfaces, distance: float, settings: Settings, objects: Objects
) -> tuple[TriangleAabbs, wp.array | None]:
    """Stage 2."""
    aabbs, spheres = TriangleAabbs.of(surfaces, distance, objects.jobs), None
    if settings.bounds == "spheres":
        spheres = triangle_spheres(surfaces, distance)
        aabbs = TriangleAabbs(sphere_boxes(surfaces, spheres), aabbs.body, aabbs.compared, aabbs.longest_axis)
    # A body that is compared with itself takes part as a whole.
    wholes = np.count_nonzero(objects.jobs[:, 0] == objects.jobs[:, 1])
    if settings.regions and surfaces.bounded and wholes < len(surfaces.meshes):
        inside_regions(surfaces, objects, aabbs.boxes)
    return aabbs, spheres


def _grid(surfaces: Surfaces, settings: Settings, objects: Objects, aabbs: TriangleAabbs) -> Grid:
    """Stage 3."""
    frame = surfaces.frame
    if settings.mode == "published":
        hull = np.stack([objects.regions[:, 0].min(axis=0), objects.regions[:, 1].max(axis=0)])
        return published_grid(aabbs, (hull - frame.origin) * frame.scale, frame.scale)
    cell = None if settings.cell is None else settings.cell * frame.scale
    return define_grid(aabbs, levels=settings.levels, cell=cell)


def _entries(surfaces: Surfaces, settings: Settings, done: PipelineStages) -> tuple[GridEntries, TypeRule | None]:
    """Stage 4."""
    assert done.aabbs is not None
    assert done.grid is not None
    if settings.mode == "sound":
        return grid_entries(done.aabbs, done.grid), None
    frame = surfaces.frame
    return published_entries(
        done.aabbs, done.grid, surfaces.layout.faces, done.spheres, (tuple(frame.origin), frame.scale)
    )
