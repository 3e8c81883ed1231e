"""How a step searches and sums: the same whoever does it, whatever was before, and however many look at once."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import warp as wp

from tangere.bound import vertex_boxes
from tangere.runtime import choose_device
from tangere.shape import generate
from tangere.soft import Body, Simulation, scenes, simulation
from tangere.soft.assembly import Assembly
from tangere.soft.patches import Patches
from tangere.soft.refitting import refit
from tangere.soft.sweep_end import SweepEnd


def put(state: Simulation, into: Simulation) -> None:
    for body in range(len(state.bodies)):
        into.set_state(body, positions=state.positions(body), velocities=state.velocities(body))


def apart(one: Simulation, other: Simulation) -> float:
    """The largest difference of a coordinate [m]."""
    return max(float(np.abs(one.positions(body) - other.positions(body)).max()) for body in range(len(one.bodies)))


def test_a_step_depends_on_where_things_are_and_not_on_how_they_came_there():
    """Certificates of surfaces far from rest remember; which contacts there are must not (soft tori fold deeply)."""
    old, fresh = (scenes.tori(12_800, stiffness=1e3, device="cpu") for _ in range(2))
    old.run(85)
    for _ in range(3):
        old.run(4)
        put(old, fresh)
        old.step()
        fresh.step()
        assert old.rows.count == fresh.rows.count > 500
        assert apart(old, fresh) < 1e-9


@pytest.mark.parametrize(
    ("scene", "steps"),
    [(partial(scenes.tori, stiffness=1e3), 80), (partial(scenes.cloth, 800), 25)],
    ids=["tori", "cloth"],
)
def test_features_find_the_same_alone_as_by_patches(scene, steps, monkeypatch):
    """Each on its own is how a GPU searches."""
    together = scene(device="cpu")
    together.run(steps)
    monkeypatch.setattr(simulation, "Patches", partial(Patches, alone=True))
    alone = scene(device="cpu")
    put(together, alone)
    together.run(3)
    alone.run(3)
    assert together.rows.count == alone.rows.count > 20
    assert apart(together, alone) < 1e-9


def test_sums_taken_at_once_end_a_sweep_as_sums_taken_in_order_do(monkeypatch):
    """At once is how a GPU adds; here only the order of the sums differs."""
    in_order = scenes.tori(stiffness=1e4, device="cpu")
    in_order.run(60)
    monkeypatch.setattr(simulation, "SweepEnd", partial(SweepEnd, at_once=True))
    at_once = scenes.tori(stiffness=1e4, device="cpu")
    put(in_order, at_once)
    in_order.run(2)
    at_once.run(2)
    assert in_order.rows.count > 10
    assert apart(in_order, at_once) < 1e-9


def test_boxes_brought_up_to_date_are_those_of_a_new_fit(rng):
    mesh = generate.torus(2400)
    assembly = Assembly.of([Body(mesh)], choose_device("cpu"))
    patches = Patches(assembly)

    def boxes_at(places: np.ndarray) -> wp.array:
        moved = wp.array(places, dtype=wp.vec3d, device="cpu")
        return vertex_boxes(assembly.rest, moved, 1.0, 0.01, patches.frame)

    fitted = patches.tree.fit(boxes_at(mesh.vertices))
    chosen = rng.random(len(mesh.vertices)) < 0.02
    after = boxes_at(mesh.vertices + 0.3 * chosen[:, None] * rng.standard_normal(mesh.vertices.shape))
    changed = patches._with(wp.array(chosen.astype(np.uint8), dtype=wp.uint8, device="cpu"))
    assert 0.0 < changed[0].numpy().mean() < 0.5
    refit(fitted, after, *changed)
    expected = patches.tree.fit(after)
    for part in ("items", "nodes", "lanes"):
        assert np.array_equal(getattr(fitted, part).numpy(), getattr(expected, part).numpy())


def test_colours_given_again_are_few():
    assert len(scenes.tori(device="cpu")._assembly.colours) - 1 <= 8  # in index order they would be 10
