"""A detector gives, step after step, exactly the contacts that `proximity` finds in the meshes as they are then."""

from __future__ import annotations

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import warp as wp

from oracles.near_pairs import SCENES, assert_same_contacts, reach
from tangere.published.leonard_grid import detect
from tangere.query.proximity import Detector, Exclusion, proximity
from tangere.query.proximity.cpu.search_program import PATIENCE, Capacity
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

COLUMNS = ("key", "gap", "point_a", "point_b", "normal", "weights", "body_a", "body_b", "feature_a", "feature_b")


def moved(meshes: list[Mesh], rng: np.random.Generator, size: float) -> list[Mesh]:
    """The meshes with every vertex, and every mesh, a little elsewhere."""
    return [
        mesh.replace(vertices=mesh.vertices + size * (rng.normal(size=3) + 0.1 * rng.normal(size=mesh.vertices.shape)))
        for mesh in meshes
    ]


def assert_equal(found, expected) -> None:
    assert len(found) == len(expected)
    for column in COLUMNS:
        assert np.array_equal(getattr(found, column), getattr(expected, column)), column


@pytest.mark.parametrize("name", list(SCENES)[:6])
def test_every_step_of_a_detector_finds_the_near_pairs_of_that_step(name, rng, device):
    meshes = list(SCENES[name])
    distance = reach(meshes)
    detector = Detector(meshes, distance=distance, device=device)
    for _ in range(3):
        meshes = moved(meshes, rng, 0.3 * distance)
        found = detector.contacts([mesh.vertices for mesh in meshes])
        assert_same_contacts(found, meshes, distance)
        assert_equal(found, proximity(meshes, distance=distance, device=device))


def test_contacts_that_outgrow_their_room_are_all_found_and_so_are_none(device):
    ball = generate.icosphere(subdivisions=4)
    other = ball.replace(vertices=ball.vertices * [1.0, 1.0, 1.0])
    detector = Detector([ball, other], distance=0.1, within=False, device=device)
    for shift in (5.0, 0.02, 5.0, 2.05):
        there = other.vertices + [shift, 0.0, 0.0]
        found = detector.contacts(np.concatenate([ball.vertices, there]))
        assert_equal(found, proximity(ball, other.replace(vertices=there), distance=0.1, device=device))
        assert (len(found) == 0) == (shift == 5.0)
        assert (len(found) > 10_000) == (shift == 0.02)


@pytest.mark.parametrize("of", [1, [0, 3]])
def test_one_body_against_the_rest_is_all_that_has_it_in_it(of, device, rng):
    ball = generate.icosphere(subdivisions=2)
    bodies = [ball.replace(vertices=ball.vertices + [1.95 * k, 0.0, 0.0]) for k in range(4)]
    detector = Detector(bodies, distance=0.1, of=of, device=device)
    for _ in range(2):
        bodies = moved(bodies, rng, 0.01)
        found = detector.contacts([body.vertices for body in bodies])
        every = proximity(bodies, distance=0.1, device=device)
        kept = np.isin(every.body_a, of) | np.isin(every.body_b, of)
        assert 0 < kept.sum() < len(every)
        assert sorted(zip(found.key, found.body_a, found.body_b, found.gap, strict=True)) == sorted(
            zip(every.key[kept], every.body_a[kept], every.body_b[kept], every.gap[kept], strict=True)
        )
    with pytest.raises(InputError, match="of: there is no body 4; there are 4, counted from 0"):
        Detector(bodies, distance=0.1, of=4, device=device)


@pytest.mark.parametrize("threads", [1, 2, 6, 7, 16])
def test_any_number_of_threads_gives_the_same_bits(threads, rng):
    bodies = [generate.trefoil_knot(3960), generate.icosphere(subdivisions=4)]
    detectors = [Detector(bodies, distance=0.3, device="cpu", threads=n) for n in (1, threads)]
    for step in range(4):
        there = [bodies[0].vertices * [1.0, 1.0, 1.0 - 0.1 * step], bodies[1].vertices + rng.normal(size=3)]
        found = [detector.contacts(there) for detector in detectors]
        assert len(found[0]) > 1000
        assert_equal(found[1], found[0])


def test_room_for_a_crowd_is_given_back_after_a_while_and_made_again():
    capacity = Capacity(100)
    assert capacity.holds(100, 250)
    assert not capacity.holds(101, 250)
    assert capacity.room >= 250
    for _ in range(PATIENCE):
        assert capacity.room >= 250
        assert capacity.holds(0, 0)
    assert capacity.room == 100
    ball = generate.icosphere(subdivisions=4)
    detector = Detector([ball, ball], distance=0.1, within=False, device="cpu", threads=2)
    apart, crowded = ([ball.vertices, ball.vertices + [shift, 0.0, 0.0]] for shift in (5.0, 0.001))
    many = len(detector.find(crowded))
    assert many > 100_000
    for _ in range(2 * PATIENCE):
        assert len(detector.find(apart)) == 0
    assert len(detector.find(crowded)) == many


def test_contacts_do_not_change_with_the_positions_that_were_given(device):
    ball = generate.icosphere(subdivisions=2)
    detector = Detector([ball, ball], distance=0.05, within=False, device=device)
    there = np.concatenate([ball.vertices, ball.vertices + [1.99, 0.0, 0.0]])
    given = wp.array(there, dtype=wp.vec3d, device=device)
    near = detector.find(given)
    given.zero_()
    assert_equal(near.contacts, Detector([ball, ball], distance=0.05, within=False, device=device).contacts(there))
    assert len(near)


def test_only_what_is_asked_for_is_compared(device):
    knot = generate.trefoil_knot(3960)
    distance = 1.3 * reach([knot])
    beside = knot.replace(vertices=knot.vertices + [0.2, 0.0, 0.0])
    kinds = {
        (within, between): Detector([knot, beside], distance=distance, within=within, between=between, device=device)
        for within, between in ((True, True), (True, False), (False, True))
    }
    found = {asked: detector.contacts([knot.vertices, beside.vertices]) for asked, detector in kinds.items()}
    same = found[True, False].body_a == found[True, False].body_b
    assert same.all()
    assert (found[False, True].body_a != found[False, True].body_b).all()
    assert len(found[True, True]) == len(found[True, False]) + len(found[False, True])


def test_positions_and_contacts_stay_on_the_device_and_exclusions_hold(device):
    sheet = generate.sheet(800, size=(1.0, 1.0))
    distance = 0.08  # above the length of an edge: at rest neighbours are near
    resting = Exclusion.gaps(sheet, distance, device=device)
    detector = Detector(sheet, distance=distance, exclude=resting, device=device)
    rest = wp.array(sheet.vertices, dtype=wp.vec3d, device=device)
    assert len(detector.find(rest)) == 0
    folded = sheet.vertices.copy()
    beyond = folded[:, 0] > folded[:, 0].mean()
    folded[beyond, 0] = 2.0 * folded[:, 0].mean() - folded[beyond, 0]
    folded[beyond, 2] += 0.05
    near = detector.find(wp.array(folded, dtype=wp.vec3d, device=device))
    assert near.gap.device == rest.device
    assert int(near.number.numpy()[0]) == len(near) > 100
    expected = proximity(sheet.replace(vertices=folded), distance=distance, exclude=resting, device=device)
    assert_equal(near.contacts, expected)


def test_ordering_trees_anew_changes_no_contact(rng, device):
    mesh = generate.trefoil_knot(3960)
    detector = Detector(mesh, distance=0.4, device=device)
    crumpled = mesh.vertices * [1.0, 1.0, 0.4]
    before = detector.contacts(crumpled)
    detector.reorder()
    assert_equal(detector.contacts(crumpled), before)


def test_positions_that_make_no_sense_are_refused_with_a_reason(device):
    ball = generate.icosphere(subdivisions=1)
    detector = Detector([ball, ball], distance=0.1, device=device)
    with pytest.raises(InputError, match="84 points, not 42"):
        detector.find(ball.vertices)
    with pytest.raises(InputError, match="shape"):
        detector.find(np.zeros((84, 2)))
    bad = ball.vertices.copy()
    bad[7, 1] = np.nan
    with pytest.raises(InputError, match="vertex 7 is not finite"):
        detector.find([ball.vertices, bad])
    with pytest.raises(InputError, match="vertex 41 is not finite or above"):
        detector.find(
            wp.array(np.concatenate([ball.vertices[:-1], [[1e300, 0.0, 0.0]], bad]), dtype=wp.vec3d, device=device)
        )
    assert len(detector.find([ball.vertices, ball.vertices])) > 0
    with pytest.raises(InputError, match="distance"):
        Detector(ball, distance=-1.0, device=device)
    with pytest.raises(InputError, match="threads"):
        Detector(ball, distance=0.1, device=device, threads=0)


def test_a_large_body_without_any_position_is_refused_at_once():
    sheet = generate.sheet(20_000)
    detector = Detector(sheet, distance=0.01, device="cpu")
    detector.find(sheet.vertices)
    begin = time.process_time()
    with pytest.raises(InputError, match="vertex 0 is not finite"):
        detector.find(np.full_like(sheet.vertices, np.nan))
    assert time.process_time() - begin < 5.0  # every feature against every other would take 40 s


def pricked(n: int) -> tuple[Mesh, Mesh]:
    """As many triangles far apart, and above the middle of each one that points down at it: n contacts."""
    at = np.stack([10.0 * np.arange(n), np.zeros(n), np.zeros(n)], axis=1)[:, None]
    faces = np.arange(3 * n).reshape(-1, 3)
    below = at + np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.5, 0.0]])
    above = at + np.array([[0.0, 0.0, 0.01], [0.0, 0.3, 3.0], [0.3, 0.0, 3.0]])
    return Mesh(below.reshape(-1, 3), faces), Mesh(above.reshape(-1, 3), faces)


@pytest.mark.parametrize("count", [255, 256, 1023, 1024, 1025, 2048])
def test_contacts_in_main_memory_outlive_the_next_call_whatever_their_number(count):
    below, above = pricked(count)
    detector = Detector([below, above], distance=0.02, within=False, device="cpu")
    found = detector.contacts([below.vertices, above.vertices])
    detector.contacts([below.vertices, above.vertices + [0.0, 0.0, 0.005]])
    assert len(found) == count
    np.testing.assert_allclose(found.gap, 0.01, rtol=1e-9)


def test_threads_that_share_a_detector_each_get_their_own_contacts():
    below, above = pricked(300)
    detector = Detector([below, above], distance=0.02, within=False, device="cpu")
    lifts = np.tile([0.0, 0.002, 0.004, 0.006], 25)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(detector.contacts, [below.vertices, above.vertices + [0.0, 0.0, z]]) for z in lifts]
    for each, lift in zip(asked, lifts, strict=True):
        np.testing.assert_allclose(each.result().gap, 0.01 + lift, rtol=1e-9)


def test_trees_can_be_ordered_before_anything_was_looked_for_and_rows_of_points_are_refused():
    below, above = pricked(20)
    detector = Detector([below, above], distance=0.02, within=False, device="cpu")
    detector.reorder()
    assert len(detector.contacts([below.vertices, above.vertices])) == 20
    rows = wp.zeros((120, 2), dtype=wp.vec3d, device="cpu")
    with pytest.raises(InputError):
        detector.find(rows)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_holds_arrays_of_a_device_says_what_to_do_instead_of_copying_it(copied, device):
    ball = generate.icosphere(subdivisions=1)
    detector = Detector(ball, distance=0.1, device=device)
    near, found = detector.find(ball.vertices), detect(ball, distance=0.1, device=device)
    for held, advice in ((detector, "make another one"), (near, "take its contacts"), (found, "take its contacts")):
        with pytest.raises(TypeError, match=f"a {type(held).__name__} cannot be copied or pickled: {advice}"):
            copied(held)
    copied(found.contacts)


def test_a_detector_and_a_detection_tell_kinds_and_numbers_in_a_line():
    below, above = pricked(300)
    detector = Detector([below, above], distance=0.02, within=False, device="cpu")
    assert repr(detector.find([below.vertices, above.vertices])) == "ContactBuffer(300: 300 vertex-face; on cpu)"
    assert repr(detector.find([below.vertices, above.vertices + 1.0])) == "ContactBuffer(none, on cpu)"
    assert repr(detect([below, above], distance=0.02, device="cpu")).startswith(
        "Detection(300: 300 vertex-face; on cpu, in "
    )
