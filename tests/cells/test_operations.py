"""The verifier after each of many random operations: move, add, remove, split, merge and deform, in any order."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from cells.operations import GRIDS, inside, mergeable
from cells.verifier import check_map, check_registration
from tangere.cells.registration import Registration, crossing
from tangere.runtime import InputError

#: After so many operations things start anew: a map that is bent again and again wears out.
LIFE = 200
#: The forms of registration, and grids with how deep to split them.
CASES = [(form, name) for form in ("sorted", "incremental") for name in ("quads", "triangles", "hexahedra")]


def fresh(name, form, rng, device):
    make, size, _, _ = GRIDS[name]
    map = make(jitter=0.05, device=device)
    rows = rng.integers(0, 12, (4, 2)), rng.integers(0, 12, (2, 3))
    return Registration(map, inside(rng, map, size, 12), *rows, form=form)


def operate(registration, size, rng) -> str:
    """Do one random thing; returns what."""
    map, flat = registration.map, [1, 1, registration.map.dimension == 3]
    what = rng.choice(["move", "move", "add", "remove", "split", "split", "merge", "deform"])
    if what == "move":
        far = rng.choice([0.02, 0.2, 1.0])
        target = np.clip(registration.points + rng.normal(0, far, registration.points.shape), 0.01, size - 0.01)
        registration.move(target * flat)
    elif what == "add" and len(registration.points) < 24:
        registration.add(inside(rng, map, size, 2))
    elif what == "remove":
        used = np.concatenate([registration.segments.ravel(), registration.triangles.ravel()])
        free = np.setdiff1d(np.arange(len(registration.points)), used)
        registration.remove(free[:1])
    elif what == "split":
        leaves = map.leaves[map.levels[map.leaves] < (3 if map.dimension == 2 else 2)]
        leaves = leaves if len(map.leaves) < 60 else leaves[:0]
        chosen = rng.choice(leaves, min(len(leaves), int(rng.integers(1, 3))), replace=False)
        registration.split(chosen, balanced=bool(rng.integers(0, 2)))
    elif what == "merge":
        ready = mergeable(map)
        registration.merge(rng.choice(ready, min(len(ready), int(rng.integers(1, 3))), replace=False))
    elif what == "deform":
        x = map.positions.copy()
        bump = np.prod(np.sin(np.pi * x / size) ** 2, axis=1, where=np.array(flat, bool))[:, None]
        with suppress(InputError):  # refused where a cell would lose its shape: everything is as it was
            registration.deform(x + 0.05 * bump * rng.normal(0, 1, 3) * flat, carried=bool(rng.integers(0, 2)))
    return what


def run(form, name, count, rng, device, near=1):
    """Operate and verify, who is near only every so many operations."""
    size, done = GRIDS[name][1], {}
    for k in range(count):
        if k % LIFE == 0:
            registration = fresh(name, form, rng, device)
        what = operate(registration, size, rng)
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


@pytest.mark.parametrize("name", ["quads", "hexahedra"])
def test_many_segments_are_registered_by_all_threads_as_few_are_by_one(name, rng, device, effort, monkeypatch):
    monkeypatch.setattr(crossing, "_FEW", -1)
    run("sorted", name, effort(20), rng, device)


def test_the_last_of_many_segments_may_lie_in_one_cell(rng, device, monkeypatch):
    monkeypatch.setattr(crossing, "_FEW", -1)
    make, size, _, _ = GRIDS["quads"]
    map = make(device=device)
    registration = Registration(map, inside(rng, map, size, 4), np.array([[0, 1], [2, 3], [3, 3]]))
    check_registration(registration)
    assert len(registration.crossed("segments", 2)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("form", "name"), CASES)
def test_everybody_is_registered_rightly_after_each_of_a_hundred_thousand_operations(form, name, rng, effort):
    done = run(form, name, effort(100_000 // len(CASES)), rng, "cpu", near=10)
    assert len(done) == 6
