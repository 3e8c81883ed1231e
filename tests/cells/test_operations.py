"""The verifier after each of many random operations: move, add, remove, split, merge and deform, in any order."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from oracles.cell_maps import check_map, check_registration
from oracles.families.cell_operations import GRIDS, inside, mergeable
from tangere.cells.generate import map_of_mesh
from tangere.cells.registration import Registration
from tangere.cells.tracking import crossings as crossing
from tangere.cells.tracking import on_surface
from tangere.runtime import InputError, prepared_launch, using_threads
from tangere.shape import generate

#: After so many operations things start anew: a map that is bent again and again wears out.
LIFE = 200
#: Two grids of the plane, two closed surfaces, a block, each with both forms of registration.
NAMES = ("quads", "triangles", "sphere", "torus", "hexahedra")
SURFACES = {"sphere": lambda: generate.icosphere(0), "torus": lambda: generate.torus(32)}
CASES = [(form, name) for form in ("sorted", "incremental") for name in NAMES]


def fresh(name, form, rng, device):
    if name in SURFACES:
        map = map_of_mesh(SURFACES[name](), device=device)
    else:
        map = GRIDS[name][0](jitter=0.05, device=device)
    rows = rng.integers(0, 12, (4, 2)), rng.integers(0, 12, (2, 3))
    return Registration(map, somewhere(map, rng, 12), *rows, form=form)


def extent(map) -> float:
    return float(np.ptp(map.positions, axis=0).max())


def is_curved(map) -> bool:
    return map.dimension == 2 and not map.flat


def somewhere(map, rng, count):
    if is_curved(map):
        return on_surface(map, rng.choice(map.darts, count), rng.dirichlet([1, 1, 1], count))
    return inside(rng, map, extent(map), count)


def operate(registration, rng) -> str:
    """Do one random thing; returns what."""
    map, flat = registration.map, [1, 1, not registration.map.flat]
    size = extent(map)
    what = str(rng.choice(["move", "move", "add", "remove", "split", "split", "merge", "deform"]))
    if what == "move":
        target = registration.points + rng.normal(0, rng.choice([0.02, 0.2, 1.0]), registration.points.shape)
        registration.move(target if is_curved(map) else np.clip(target, 0.01, size - 0.01) * flat)
    elif what == "add" and len(registration.points) < 24:
        registration.add(somewhere(map, rng, 2))
    elif what == "remove":
        used = np.concatenate([registration.segments.ravel(), registration.triangles.ravel()])
        free = np.setdiff1d(np.arange(len(registration.points)), used)
        registration.remove(free[:1])
    elif what == "split":
        leaves = map.leaves[map.levels[map.leaves] < (3 if map.dimension == 2 else 2)]
        leaves = leaves if len(map.leaves) < (60 if map.dimension == 2 else 30) else leaves[:0]
        chosen = rng.choice(leaves, min(len(leaves), int(rng.integers(1, 3))), replace=False)
        registration.split(chosen, balanced=bool(rng.integers(0, 2)))
    elif what == "merge":
        ready = mergeable(map)
        registration.merge(rng.choice(ready, min(len(ready), int(rng.integers(1, 3))), replace=False))
    elif what == "deform":
        x = map.positions.copy()
        # Borders stay where they are; a closed surface has none.
        bump = np.prod(np.sin(np.pi * x / size) ** 2, axis=1, where=np.array(flat, bool))[:, None]
        bump = 0.3 * np.sin(x @ rng.normal(0, 2, 3))[:, None] if is_curved(map) else bump
        with suppress(InputError):  # refused where a cell would lose its shape: everything is as it was
            registration.deform(x + 0.05 * bump * rng.normal(0, 1, 3) * flat, carried=bool(rng.integers(0, 2)))
    return what


def run(form, name, count, rng, device, near=1):
    """Operate and verify, who is near only every so many operations."""
    done = {}
    for k in range(count):
        if k % LIFE == 0:
            registration = fresh(name, form, rng, device)
        what = operate(registration, rng)
        done[what] = done.get(what, 0) + 1
        if what in ("split", "merge", "deform"):
            check_map(registration.map)
        check_registration(registration, near=k % near == 0)
    return done


@pytest.mark.feature("F-P-22", "F-P-31", "F-P-34")
@pytest.mark.parametrize(("form", "name"), CASES)
def test_everybody_is_registered_rightly_after_each_random_operation(form, name, rng, device, effort):
    done = run(form, name, effort(20), rng, device)
    assert len(done) >= 5 or effort(20) < 20


def share_the_work(monkeypatch) -> None:
    """Let two threads work side by side even where there is little to do."""

    def ranges(dim, grain=0, threads=None):
        size = dim if threads == 1 else max(5, -(-dim // 2))
        return [(first, min(size, dim - first)) for first in range(0, dim, size)]

    monkeypatch.setattr(crossing, "_FEW", -1)
    monkeypatch.setattr(prepared_launch, "shard_ranges", ranges)


@pytest.mark.parametrize("name", ["quads", "sphere", "hexahedra"])
def test_several_threads_register_everybody_as_one_does(name, rng, effort, monkeypatch):
    share_the_work(monkeypatch)
    with using_threads(2):
        run("sorted", name, effort(20), rng, "cpu")


def test_the_last_of_many_segments_may_lie_in_one_cell(rng, device, monkeypatch):
    monkeypatch.setattr(crossing, "_FEW", -1)
    make, size, _, _ = GRIDS["quads"]
    map = make(device=device)
    registration = Registration(map, inside(rng, map, size, 4), np.array([[0, 1], [2, 3], [3, 3]]))
    check_registration(registration)
    assert len(registration.crossed("segments", 2)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("form", "name"), CASES)
def test_everybody_is_registered_rightly_after_each_of_a_hundred_thousand_operations(
    form, name, rng, effort, monkeypatch
):
    if form == "sorted":
        share_the_work(monkeypatch)
    with using_threads(2):
        done = run(form, name, effort(100_000 // len(CASES)), rng, "cpu", near=50)
    assert len(done) == 6
