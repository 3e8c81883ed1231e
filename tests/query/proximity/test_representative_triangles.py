"""Pairs of triangles that are tested as they are found: the same contacts in the same order, in less memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.memory import peak_bytes
from oracles.families.moving_meshes import grid as sheet
from oracles.families.moving_meshes import soup
from oracles.near_pairs import SCENES as SMALL
from oracles.near_pairs import assert_same_contacts, crossing_plates, reach
from tangere.broad_phase.triangles import Surfaces
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.cpu import sorted_append as sorted_append
from tangere.published.leonard_grid.cpu.sorted_append import scattered, scattering
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.proximity import Exclusion, proximity
from tangere.runtime import CapacityError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def crumpled(rng: np.random.Generator) -> Mesh:
    flat = sheet(40, 40)
    return flat.replace(vertices=0.03 * flat.vertices + 0.05 * rng.normal(size=flat.vertices.shape))


def tori() -> list[Mesh]:
    torus = generate.torus(grid=(48, 32), radius=5.0, tube=2.0)
    return [torus, torus.replace(vertices=torus.vertices[:, [0, 2, 1]] + [1.5, 0.0, 0.3])]


SCENES = {
    "tori": (lambda rng: tori(), 0.5),
    "knot": (lambda rng: [generate.trefoil_knot(3960)], 0.9),
    "crossing plates": (lambda rng: [crossing_plates(5.0, 24)], 0.1),
    "cloth": (lambda rng: [crumpled(rng)], 0.01),
    "soup": (lambda rng: [soup(rng.random((3000, 1, 3)) + 0.05 * rng.normal(size=(3000, 3, 3)))], 0.01),
}
SWITCHES = {
    "plain": {},
    "spheres": {"bounds": "spheres"},
    "levels": {"levels": True},
    "small cells": {"cell": 0.4},
    "primitive boxes": {"primitive_boxes": True},
    "between": {"within": False},
    "published": {"mode": "published", "cones": True},
}


@pytest.mark.feature("F-L-60")
@pytest.mark.parametrize("name", SCENES)
def test_pairs_that_are_tested_as_they_are_found_give_the_contacts_of_listed_ones_in_less_memory(name, rng, device):
    make, distance = SCENES[name]
    surfaces = Surfaces.of(make(rng), device)

    def ask(fused: bool):
        return detect(surfaces, distance=distance, settings=Settings(fused=fused), threads=1)

    listed, fused = ask(False), ask(True)
    assert len(fused.near) > 300
    assert np.array_equal(fused.near.pair_keys.numpy(), listed.near.pair_keys.numpy())
    for column in ("key", "gap", "point_a", "normal", "feature_a", "feature_b"):
        assert np.array_equal(getattr(fused.contacts, column), getattr(listed.contacts, column)), column
    assert "pairs" not in fused.seconds
    assert "pairs" not in vars(fused.stages)  # they are made when asked for
    assert fused.stages.pairs is not None
    assert np.array_equal(sorted_rows(fused.stages.pairs), sorted_rows(listed.stages.pairs))
    most = [peak_bytes(lambda way=way: ask(way), device) for way in (False, True)]
    assert most[0] - most[1] > 0.9 * 8 * len(fused.stages.pairs), "at least the list of pairs is saved"


def sorted_rows(pairs) -> np.ndarray:
    rows = pairs.numpy().reshape(-1, 2)
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("name", ["tori", "cloth"])
def test_whatever_is_switched_on_listing_the_pairs_changes_nothing_on_any_number_of_threads(name, switch, rng, device):
    make, distance = SCENES[name]
    surfaces, settings = Surfaces.of(make(rng), device), Settings(fused=True, **SWITCHES[switch])
    listed = detect(surfaces, distance=distance, settings=replace(settings, fused=False), count_losses=False)
    assert len(listed.near) > 100 or (name == "cloth" and not settings.within)
    for threads in (1, 2, 7):
        found = detect(surfaces, distance=distance, settings=settings, count_losses=False, threads=threads)
        assert np.array_equal(found.near.pair_keys.numpy(), listed.near.pair_keys.numpy())


@pytest.mark.parametrize("name", SMALL)
def test_tested_as_they_are_found_the_contacts_are_those_of_brute_force(name, device):
    meshes = SMALL[name]
    distance = reach(meshes)
    found = detect(meshes, distance=distance, settings=Settings(fused=True), device=device)
    assert_same_contacts(found.contacts, meshes, distance)


def test_sound_cones_and_exclusions_hold_where_pairs_are_not_listed(device):
    """A rippled sheet that is skipped for the most part, and the same contacts as by trees without any cone."""
    flat = sheet(25, 25)
    x, y, _ = flat.vertices.T
    mesh = flat.replace(vertices=np.stack([x, y, 0.6 * np.sin(0.5 * x) * np.cos(0.4 * y)], axis=1))
    mesh = Mesh.join([mesh, mesh.replace(vertices=mesh.vertices * [1.0, 1.0, 0.9] + [0.0, 0.0, 0.2])])
    exclude = Exclusion.at_rest(mesh, 2.5, device=device)
    settings = Settings(cones=True, cell=6.0, fused=True)
    found = detect(mesh, distance=0.6, settings=settings, exclude=exclude, device=device)
    assert found.counts["entries skipped"] > 0
    expected = proximity(mesh, distance=0.6, exclude=exclude, device=device)
    assert np.array_equal(found.contacts.key, expected.key)


def test_room_for_contacts_grows_when_they_come_and_is_forgotten_when_they_go():
    torus, other = tori()
    surfaces = Surfaces.of([torus, other], "cpu")
    room = []
    for step, distance in enumerate((0.01, 1.5, *[0.01] * 120)):
        found = detect(surfaces, distance=distance, settings=Settings(within=False), threads=2)
        room += [size for key, size in surfaces.layout.cache.items() if key[0] == "keys" and "in_cells" in key[1]]
        if step < 3:
            listed = detect(surfaces, distance=distance, settings=Settings(within=False, fused=False), threads=2)
            assert np.array_equal(found.near.pair_keys.numpy(), listed.near.pair_keys.numpy())
    assert room[1] > 20 * room[0]
    assert room[-1] < 0.1 * room[1]


def test_more_contacts_than_an_array_can_hold_are_refused(monkeypatch):
    monkeypatch.setattr(sorted_append, "_LARGEST", 2000)
    with pytest.raises(CapacityError, match="more than one array can hold"):
        detect(generate.trefoil_knot(720), distance=3.0, device="cpu")


@pytest.mark.parametrize("count", [1, 2, 3, 8, 100, 1000, 4181])
def test_scattered_blocks_are_all_visited_and_neighbours_are_far_apart(count):
    step = scattering(count, 16)
    visited = [scattered(i, step, count) for i in range(count)]
    assert sorted(visited) == list(range(count))
    if count >= 100:
        eighth = np.array(visited[: count // 8])
        assert np.histogram(eighth, 8, (0, count))[0].max() <= 0.25 * len(eighth)
