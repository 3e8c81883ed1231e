"""The seven stages together: the same contacts whatever is switched on in sound mode, counted losses as published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from oracles.families.moving_meshes import grid as sheet
from oracles.families.moving_meshes import soup
from oracles.near_pairs import SCENES, assert_same_contacts, crossing_plates, near_pairs, reach
from tangere.broad_phase.triangles import Surfaces
from tangere.published.leonard_grid import detect, stages
from tangere.published.leonard_grid.grid import entries as grid_entries
from tangere.published.leonard_grid.grid import pairs as grid_pairs
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.contacts import contact_key
from tangere.query.proximity import Exclusion, proximity
from tangere.runtime import InputError, collect
from tangere.shape import generate
from tangere.shape.mesh import Mesh

SWITCHES = {
    "plain": Settings(),
    "spheres": Settings(bounds="spheres"),
    "all triangles": Settings(regions=False),
    "levels": Settings(levels=True),
    "primitive boxes": Settings(primitive_boxes=True),
    "small cells": Settings(cell=0.21),
    "26 faces": Settings(object_faces=26),
    "cones without exclusions": Settings(cones=True),
}


@pytest.mark.feature("F-L-14", "F-L-19", "F-L-32")
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("name", ["tori", "three bodies", "knot", "plates 2"])
def test_in_sound_mode_nothing_that_is_switched_on_changes_the_contacts(name, switch, fused, device):
    meshes = SCENES[name]
    distance = reach(meshes)
    found = detect(meshes, distance=distance, settings=replace(SWITCHES[switch], fused=fused), device=device)
    assert_same_contacts(found.contacts, meshes, distance)
    assert {"objects", "triangles", "grid", "entries", "sort", "runs", "features", "contacts"} <= set(found.seconds)
    assert ("pairs" in found.seconds) == (not fused)
    stages = found.stages
    assert stages.aabbs
    assert stages.grid
    assert stages.entries
    assert stages.runs
    assert stages.pairs is not None
    assert found.counts["pairs"] == len(stages.pairs)
    assert found.counts["contacts"] == len(found.contacts)


@pytest.mark.feature("F-L-20")
@pytest.mark.parametrize("bounds", ["boxes", "spheres"])
@pytest.mark.parametrize("name", ["tori", "three bodies", "tori side by side"])
def test_triangles_outside_of_the_regions_that_bodies_share_are_left_out_and_no_contact_is_lost(name, bounds, device):
    """Bodies with each other only: one that is compared with itself takes part as a whole."""
    torus = SCENES["tori"][0]
    beside = torus.replace(vertices=torus.vertices + [0.95 * np.ptp(torus.vertices[:, 0]), 0.0, 0.0])
    meshes = SCENES.get(name, [torus, beside])
    distance = reach(meshes)
    found = {
        regions: detect(
            meshes, distance=distance, settings=Settings(bounds=bounds, regions=regions, within=False), device=device
        )
        for regions in (True, False)
    }
    for way in found.values():
        assert_same_contacts(way.contacts, meshes, distance, within=False)
    assert np.array_equal(found[True].contacts.key, found[False].contacts.key)
    assert found[False].counts["triangles"] == sum(len(mesh.faces) for mesh in meshes)
    if name == "tori side by side":
        assert len(found[True].contacts) > 0
        assert found[True].counts["triangles"] < 0.6 * found[False].counts["triangles"]


@pytest.mark.parametrize("name", SCENES)
def test_features_that_are_tested_by_eights_are_those_that_brute_force_finds(name, monkeypatch):
    monkeypatch.setattr(stages, "MANY", 1)  # however few pairs there are
    meshes = SCENES[name]
    distance = reach(meshes)
    listed = Settings(fused=False)
    found = [
        detect(meshes, distance=distance, settings=listed, device="cpu", threads=threads).contacts for threads in (1, 3)
    ]
    assert_same_contacts(found[0], meshes, distance)
    assert np.array_equal(found[0].key, found[1].key)


def test_features_that_are_tested_by_eights_are_those_that_are_tested_one_by_one(rng, monkeypatch):
    sheet_of_many = sheet(40, 40)
    crumpled = [sheet_of_many.replace(vertices=rng.normal(size=sheet_of_many.vertices.shape) * s) for s in (1.0, 1e-9)]
    flat = [sheet_of_many, sheet_of_many.replace(vertices=sheet_of_many.vertices + [1e-3, 0.0, 0.02])]
    for meshes, distance in ((crumpled[:1], 0.02), (crumpled[1:], 2e-11), (flat, 0.03)):
        pair_keys = []
        for many in (1, 10**9):
            monkeypatch.setattr(stages, "MANY", many)
            listed = detect(meshes, distance=distance, settings=Settings(fused=False), device="cpu", threads=2)
            pair_keys.append(listed.near.pair_keys.numpy())
        assert len(pair_keys[0]) > 1000
        assert np.array_equal(*pair_keys)


def test_few_entries_are_sorted_as_many_are(monkeypatch):
    meshes = SCENES["tori"]
    distance = reach(meshes)
    rows = []
    for few in (0, 10**9):
        monkeypatch.setattr(grid_entries, "FEW", few)
        entries = detect(meshes, distance=distance, device="cpu").stages.entries
        assert entries is not None
        rows.append(np.stack([entries.keys.numpy(), entries.triangles.numpy()]))
    order = np.lexsort(rows[0][::-1])
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(order, np.arange(len(order)))


@pytest.mark.feature("F-L-65")
def test_one_grid_for_the_scene_finds_what_one_grid_per_pair_finds(monkeypatch):
    """Three bodies: one grid whose cells are searched in one launch, against six of each."""
    launches = []

    def counted(kernel, *arguments, **options):
        launches.append(kernel)
        return collect(kernel, *arguments, **options)

    monkeypatch.setattr(grid_pairs, "collect", counted)
    meshes = [*SCENES["tori"], SCENES["tori"][0].replace(vertices=SCENES["tori"][0].vertices * 0.8)]
    distance = reach(meshes)
    listed = Settings(fused=False)
    together = detect(meshes, distance=distance, settings=listed, device="cpu")
    assert (len(together.grids), len(launches)) == (1, 1)
    apart = detect(meshes, distance=distance, settings=listed, per_pair=True, device="cpu")
    assert (len(apart.grids), len(launches)) == (6, 1 + 6)
    assert len(together.contacts) > 100
    assert np.array_equal(together.contacts.key, apart.contacts.key)
    assert np.array_equal(together.contacts.gap, apart.contacts.gap)
    assert_same_contacts(together.contacts, meshes, distance)


def test_trees_and_grids_give_the_same_contacts():
    """Bit by bit, whichever pairs of triangles or features bring them up."""
    mesh = generate.trefoil_knot(3960)
    by_trees = proximity(mesh, distance=0.9, device="cpu")
    by_grid = detect(mesh, distance=0.9, device="cpu")
    assert len(by_trees) > 500
    assert np.array_equal(by_trees.key, by_grid.contacts.key)
    assert np.array_equal(by_trees.gap, by_grid.contacts.gap)
    assert by_grid.counts["pairs"] > 0


@pytest.mark.parametrize("degrees", [2.0, 5.0, 20.0])
def test_published_cones_lose_the_contacts_of_crossing_plates_and_the_losses_are_counted(degrees):
    plates = crossing_plates(degrees, 12)
    sound = detect(plates, distance=0.1, device="cpu")
    published = detect(plates, distance=0.1, settings=Settings(mode="published", cones=True), device="cpu")
    assert len(sound.contacts) > 20
    assert published.counts["contacts lost"] == len(np.setdiff1d(sound.contacts.key, published.contacts.key))
    assert published.counts["contacts lost"] > 0.9 * len(sound.contacts)
    assert published.counts["cells skipped"] > 0


def rippled(cells: int = 24) -> Mesh:
    """A smooth sheet, fine against the contact distance."""
    flat = sheet(cells + 1, cells + 1)
    x, y, _ = flat.vertices.T
    return flat.replace(vertices=np.stack([x, y, 0.6 * np.sin(0.5 * x) * np.cos(0.4 * y)], axis=1))


@pytest.mark.feature("F-L-26")
@pytest.mark.parametrize("name", ["plates 2", "plates 5", "plates 20", "rippled", "knot", "folded", "stretched"])
def test_sound_cones_lose_no_contact(name):
    """With an exclusion at rest; the contacts of brute force less the excluded ones, in cells large and small."""
    sheets = ("rippled", "folded", "stretched")
    rest = rippled(14) if name in sheets else generate.trefoil_knot(720)
    if name.startswith("plates"):
        rest = crossing_plates(float(name.split()[1]), 9)
    now = rest
    if name == "folded":
        x, y, z = rest.vertices.T
        angle = np.clip(x - 7.0, 0.0, np.pi)
        far = np.maximum(x - 7.0 - np.pi, 0.0)
        folded = [np.minimum(x, 7.0) + np.sin(angle) - far, y, z + 1.0 - np.cos(angle)]
        now = rest.replace(vertices=np.stack(folded, axis=1) * [1.0, 1.0, 0.4])
    if name == "stretched":
        now = rest.replace(vertices=rest.vertices * [0.7, 1.4, 1.0])
    edge = float(np.linalg.norm(rest.vertices[rest.edges[:, 0]] - rest.vertices[rest.edges[:, 1]], axis=1).mean())
    distance = 0.6 * edge
    exclude = Exclusion.at_rest(rest, 2.5 * edge, device="cpu")
    near = [pair for pair, apart in near_pairs([now], distance).items() if abs(apart - distance) > 1e-9]
    keys = contact_key(*(np.array([pair[k] for pair in near], np.int64) for k in (0, 1, 2, 4)))
    expected = np.sort(np.setdiff1d(keys, exclude.keys))
    skipped = 0
    for cell in (2.5 * edge, 6.0 * edge):
        with_cones, without = (
            detect(now, distance=distance, settings=Settings(cones=cones, cell=cell), exclude=exclude, device="cpu")
            for cones in (True, False)
        )
        assert np.array_equal(with_cones.contacts.key, without.contacts.key)
        assert np.array_equal(with_cones.contacts.key[np.abs(with_cones.contacts.gap - distance) > 1e-9], expected)
        skipped += without.counts["pairs"] - with_cones.counts["pairs"]
    if name in sheets:
        assert skipped > 0
    if name.startswith("plates") or name == "folded":
        assert len(expected) > 0


@pytest.mark.feature("F-L-26")
def test_the_published_knot_skips_about_as_many_cells_as_printed():
    """At rest 56 to 60 % of the cells and 32 to 35 % of the entries, by cones as in Léonard 2021, section 3.6.1."""
    knot = generate.trefoil_knot(3960)
    distance = 0.55 * knot.extent / extent_of_the_document(knot)
    found = detect(knot, distance=distance, settings=Settings(mode="published", cones=True), device="cpu")
    assert 0.4 < found.counts["cells skipped"] / found.counts["cells"] < 0.75
    assert 0.2 < found.counts["entries skipped"] / found.counts["entries"] < 0.5
    without = detect(knot, distance=distance, settings=Settings(mode="published"), device="cpu")
    assert 0 < found.tests.primitive_pairs < without.tests.primitive_pairs


def extent_of_the_document(knot: Mesh) -> float:
    """The extent of the document's knot, by our guess of its size (scale 3, tube 1.4)."""
    t = np.linspace(0.0, 2.0 * np.pi, 400)
    curve = 3.0 * np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    return float(np.linalg.norm(np.ptp(curve, axis=0) + 2.8))


@pytest.mark.feature("F-L-79")
@pytest.mark.parametrize("mode", ["sound", "published"])
def test_the_cones_of_a_step_hold_the_normals_all_the_time(mode, rng, device):
    """Through the pipeline: loose triangles that turn a little, a lot, or over."""
    start = rng.normal(size=(3000, 3, 3)) + 3.0 * rng.normal(size=(3000, 1, 3))
    end = start + rng.normal(size=(3000, 3, 3)) * rng.choice([0.02, 0.2, 1.0], (3000, 1, 1))
    mesh, settings = soup(start), Settings(mode=mode, cones=True)
    goal = end.reshape(-1, 3)
    cones = detect(mesh, distance=1e-3, settings=settings, end=goal, count_losses=False, device=device).stages.cones
    assert cones is not None
    axis, angle = cones.axis.numpy(), cones.angle.numpy()
    narrow = angle < 0.5 * np.pi
    assert 500 < narrow.sum() < 2900
    assert (angle[~narrow] > 3.0).all()
    for t in np.linspace(0.0, 1.0, 41):
        x = (1.0 - t) * start + t * end
        normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        away = np.arccos(np.clip((normal * axis).sum(axis=1), -1.0, 1.0))
        assert (away[narrow] <= angle[narrow]).all()


@pytest.mark.parametrize("mode", ["sound", "published"])
def test_cells_that_will_not_face_one_way_throughout_the_step_are_not_skipped(mode):
    """A sheet that stays as it is is skipped, one that rolls up during the step is not; nothing is lost either way."""
    rest = rippled()
    x, y, z = rest.vertices.T
    rolled = np.stack([2.0 * np.sin(2.0 * x), y, z + 2.0 * np.cos(2.0 * x)], axis=1)
    exclude = Exclusion.at_rest(rest, 2.5, device="cpu")
    expected = detect(rest, distance=0.6, exclude=exclude, device="cpu").contacts
    skipped = []
    for end in (None, rest.vertices, rolled):
        settings = Settings(mode=mode, cones=True, cell=None if mode == "published" else 6.0)
        found = detect(rest, distance=0.6, settings=settings, exclude=exclude, end=end, device="cpu")
        if mode == "sound":
            assert np.array_equal(found.contacts.key, expected.key)
        skipped.append(found.counts["entries skipped"])
    assert skipped[0] == skipped[1] > 0
    assert skipped[2] < 0.5 * skipped[0]


def test_ends_of_steps_that_make_no_sense_are_refused():
    mesh, cones = rippled(3), Settings(cones=True)
    bad = mesh.vertices.copy()
    bad[4, 1] = np.nan
    for end, settings, reason in (
        (mesh.vertices, Settings(), "switch them on"),
        (mesh.vertices[1:], cones, "16 points, not 15"),
        (bad, cones, "row 4 is not finite"),
    ):
        with pytest.raises(InputError, match=reason):
            detect(mesh, distance=0.1, settings=settings, end=end, device="cpu")
    with pytest.raises(InputError, match="settings must be Settings, not dict"):
        detect(mesh, distance=0.1, settings={"cones": True}, device="cpu")  # pyright: ignore[reportArgumentType]


def test_topology_may_change_from_step_to_step():
    """Triangles come and go between two calls; nothing is kept that would know of the old ones."""
    mesh = generate.trefoil_knot(720)
    distance = 1.5
    for keep in (slice(None), slice(0, 500), slice(100, 720), slice(None)):
        step = Mesh(mesh.vertices, mesh.faces[keep])
        assert np.array_equal(
            detect(step, distance=distance, device="cpu").contacts.key,
            proximity(step, distance=distance, broad_phase="brute", device="cpu").key,
        )


def test_positions_that_live_on_the_device_need_no_new_mesh(device):
    """As a solver has them: the topology stays, the positions are given, nothing is copied."""
    meshes = SCENES["tori"]
    surfaces = Surfaces.of(meshes, device)
    distance = reach(meshes)
    moved = [mesh.replace(vertices=mesh.vertices * 0.8 + 0.1) for mesh in meshes]
    positions = wp.array(np.concatenate([mesh.vertices for mesh in moved]), dtype=wp.vec3d, device=device)
    elsewhere = surfaces.replaced(positions)
    assert elsewhere.positions.ptr == positions.ptr
    found = detect(elsewhere, distance=distance)
    assert_same_contacts(found.contacts, moved, distance)
    with pytest.raises(InputError, match="published mode needs bounds"):
        detect(elsewhere, distance=distance, settings=Settings(mode="published"))
    with pytest.raises(InputError, match="positions must be"):
        surfaces.replaced(positions[1:])


def test_distances_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="distance must be"):
        detect(SCENES["knot"], distance=-1.0)
