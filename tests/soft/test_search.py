"""How a step searches and sums: the same whoever does it, whatever was before, and however many look at once."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import warp as wp

from oracles.soft_bodies import copy_strains
from tangere.bvh.lbvh import vertex_boxes
from tangere.query.contacts import Kind
from tangere.runtime import choose_device
from tangere.shape import generate
from tangere.soft import Body, Simulation, scenes, step
from tangere.soft.contact.contact_points import ContactPoints
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.cpu.refit import refit
from tangere.soft.safe_step.patches import Patches
from tangere.soft.solver.cuda.sweeps import CudaSweeps


def put(state: Simulation, into: Simulation) -> None:
    for body in range(len(state.bodies)):
        into[body].set_state(positions=state[body].positions, velocities=state[body].velocities)
    copy_strains(state, into)


def apart(one: Simulation, other: Simulation) -> float:
    """The largest difference of a coordinate [m]."""
    return max(float(np.abs(one[body].positions - other[body].positions).max()) for body in range(len(one.bodies)))


def test_a_step_depends_on_where_things_are_and_not_on_how_they_came_there():
    """Certificates of surfaces far from rest remember; which contacts there are must not (soft tori fold deeply)."""
    old, fresh = (scenes.tori(12_800, youngs_modulus=1e3, device="cpu") for _ in range(2))
    old.run(steps=85)
    for _ in range(3):
        old.run(steps=4)
        put(old, fresh)
        old.step()
        fresh.step()
        assert old.rows.count == fresh.rows.count > 500
        assert apart(old, fresh) < 1e-9


@pytest.mark.parametrize(
    ("scene", "steps"),
    [(partial(scenes.tori, youngs_modulus=1e3), 80), (partial(scenes.cloth, 800), 25)],
    ids=["tori", "cloth"],
)
def test_features_find_the_same_alone_as_by_patches(scene, steps, monkeypatch):
    """Each on its own is how a GPU searches."""
    together = scene(device="cpu")
    together.run(steps=steps)
    monkeypatch.setattr(step, "Patches", partial(Patches, per_feature=True))
    alone = scene(device="cpu")
    put(together, alone)
    together.run(steps=3)
    alone.run(steps=3)
    assert together.rows.count == alone.rows.count > 20
    assert apart(together, alone) < 1e-9


def test_steps_with_contacts_go_the_same_way_launched_one_by_one(monkeypatch):
    """Launches are how a GPU sweeps; only the order of the sums differs."""
    together = scenes.tori(youngs_modulus=1e4, device="cpu")
    together.run(steps=60)
    monkeypatch.setattr(step, "CpuSweeps", lambda *arguments: CudaSweeps(*arguments[:-1]))  # without a rod
    launched = scenes.tori(youngs_modulus=1e4, device="cpu")
    put(together, launched)
    together.run(steps=2)
    launched.run(steps=2)
    assert together.rows.count > 10
    assert apart(together, launched) < 1e-9


def test_boxes_brought_up_to_date_are_those_of_a_new_fit(rng):
    mesh = generate.torus(2400)
    assembly = AssembledBodies.of([Body(mesh, density=1.0)], choose_device("cpu"))
    patches = Patches(assembly)

    def boxes_at(places: np.ndarray) -> wp.array:
        moved = wp.array(places, dtype=wp.vec3d, device="cpu")
        return vertex_boxes(assembly.surface.rest, moved, 1.0, 0.01, patches.frame)

    fitted = patches.tree.fit(boxes_at(mesh.vertices))
    chosen = rng.random(len(mesh.vertices)) < 0.02
    after = boxes_at(mesh.vertices + 0.3 * chosen[:, None] * rng.standard_normal(mesh.vertices.shape))
    changed = patches._dirty_clusters(wp.array(chosen.astype(np.uint8), dtype=wp.uint8, device="cpu"))
    assert 0.0 < changed[0].numpy().mean() < 0.5
    refit(fitted, after, *changed)
    expected = patches.tree.fit(after)
    for part in ("nodes", "lanes"):
        assert np.array_equal(getattr(fitted, part).numpy(), getattr(expected, part).numpy())


def test_contacts_listed_by_a_scan_are_those_listed_by_the_host():
    """Scanning is how a GPU lists them; blocks meet with sharp edges as well as with vertices."""
    simulation = scenes.drop(device="cpu")
    simulation.run(steps=40)
    detection = simulation._pipeline.detection
    detection.find_nearest()
    listed = ContactPoints.empty(4096, simulation.device)
    detection.partners.list_by_scan(listed, simulation._pipeline.surface_start)
    count = detection.contact_points.count
    assert listed.count == count
    assert {Kind.VERTEX_FACE, Kind.EDGE_EDGE} == {Kind(kind) for kind in listed.kind.numpy()[:count]}
    for name in ("quads", "weights", "features", "kind"):
        one, other = getattr(listed, name), getattr(detection.contact_points, name)
        assert np.array_equal(one.numpy()[:count], other.numpy()[:count])


def test_entries_of_contacts_sorted_by_keys_are_those_placed_by_counting():
    """Sorting is how a GPU finds what acts on a dof."""
    simulation = scenes.drop(device="cpu")
    simulation.run(steps=40)
    rows = simulation.rows
    assert rows.count > 10

    def entries() -> list[np.ndarray]:
        arrays = rows.arrays
        columns = (arrays.begin, arrays.end, arrays.entry_row, arrays.entry_pull)
        begin, end, row, pull = (array.numpy().copy() for array in columns)
        touched = np.flatnonzero(end > begin)
        places = np.concatenate([np.arange(b, e) for b, e in zip(begin[touched], end[touched], strict=True)])
        return [touched, (end - begin)[touched], row[places], pull[places]]

    counted = entries()
    rows.entries.make_room_to_sort()
    rows.entries.sort(rows.count)
    for one, other in zip(counted, entries(), strict=True):
        assert np.array_equal(one, other)


def test_colours_given_again_are_few():
    assert len(scenes.tori(device="cpu")._pipeline.assembly.colours) - 1 <= 8  # in index order they would be 10
