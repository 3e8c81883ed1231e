"""Contacts of moving meshes against brute force in integer arithmetic: none lost, late, invented or doubled."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from oracles.families.moving_meshes import FAMILIES, TWO_MESHES, scene, tetrahedron
from oracles.mesh_contacts import (
    corners_at,
    distances,
    ends,
    feature_pairs,
    first_time,
    moving_boxes_meet,
    names,
    sizes,
    touching,
)
from tangere.motion import Linear
from tangere.query.contacts import Contacts, Kind, Status
from tangere.query.first_contact import DeformingOptions, all_contacts, candidates, first_contact
from tangere.shape.mesh import Mesh

SEEDS = range(6)
SCENES = [(family, seed) for family in FAMILIES for seed in SEEDS]
#: The contract: at the time told, features are this near, relative to the query's size.
TOLERANCE = 1e-6

exactly_touching = cache(lambda family, seed: touching(*scene(family, seed)))
contacts_of = cache(lambda family, seed: all_contacts(*scene(family, seed), start="trusted", device="cpu"))


def nearness(a, b, contacts: Contacts) -> np.ndarray:
    """(n,) distance of the features at the time told, relative to their size over the step."""
    start, end = (corners_at(a, b, contacts, np.full(len(contacts), t)) for t in (0.0, 1.0))
    size = sizes(np.concatenate([start, end], axis=1))
    return distances(contacts.kind, corners_at(a, b, contacts)) / np.where(size > 0.0, size, 1.0)


@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_no_contact_is_lost_doubled_or_late_and_extra_ones_nearly_touch(family, seed):
    a, b = scene(family, seed)
    exact, contacts = exactly_touching(family, seed), contacts_of(family, seed)
    found = names(contacts)
    assert len(found) == len(set(found))
    assert exact.keys() <= set(found)
    for name, time in zip(found, contacts.time, strict=True):
        assert 0.0 <= time <= 1.0
        if name in exact:
            assert time <= exact[name].time_above
    assert (np.diff(contacts.time) >= 0.0).all()
    assert (nearness(a, b, contacts) <= TOLERANCE).all()


@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_the_first_contact_is_the_earliest_and_never_late(family, seed):
    a, b = scene(family, seed)
    below, above = first_time(exactly_touching(family, seed))
    hit, contacts = first_contact(a, b, start="trusted", device="cpu"), contacts_of(family, seed)
    assert hit.time <= above
    assert bool(hit) == bool(len(contacts))
    if not hit:
        assert (hit.time, hit.time_upper, hit.status, len(hit.contacts)) == (np.inf, np.inf, Status.FREE, 0)
        return
    assert hit.time == contacts.time[0]
    assert names(hit.contacts) == names(contacts)[:1]
    assert hit.time_upper >= max(below, hit.time)
    assert hit.time_upper == np.inf or above < np.inf
    assert hit.status in ((Status.START,) if hit.time == 0.0 else (Status.CONTACT, Status.UNRESOLVED))
    assert nearness(a, b, hit.contacts)[0] <= TOLERANCE


@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_the_exact_mode_finds_what_brute_force_finds_and_nothing_else(family, seed):
    a, b = scene(family, seed)
    exact = exactly_touching(family, seed)
    contacts = all_contacts(a, b, mode="exact", start="trusted", device="cpu")
    assert set(names(contacts)) == exact.keys()
    below, above = first_time(exact)
    hit = first_contact(a, b, mode="exact", start="trusted", device="cpu")
    assert bool(hit) == bool(exact)
    assert hit.time <= above
    assert hit.time_upper >= below
    assert hit.time_upper - hit.time <= 1e-6 or not hit


@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_tree_and_brute_force_broad_phase_agree_bit_for_bit(family, seed):
    a, b = scene(family, seed)
    tree, brute = (
        contacts_of(family, seed),
        all_contacts(a, b, start="trusted", options=DeformingOptions("brute"), device="cpu"),
    )
    for name, column in vars(tree).items():
        assert column.tobytes() == getattr(brute, name).tobytes(), name
    one, other = (
        first_contact(a, b, start="trusted", options=DeformingOptions(way), device="cpu") for way in ("tree", "brute")
    )
    assert (one.time, one.time_upper, one.status) == (other.time, other.time_upper, other.status)
    assert names(one.contacts) == names(other.contacts)


@pytest.mark.parametrize(("family", "seed"), SCENES)
@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_candidates_are_the_pairs_whose_moving_boxes_meet_each_once(family, seed, separation):
    a, b = scene(family, seed)
    start, end = ends(a, b)
    result = candidates(a, b, separation=separation, device="cpu")
    tables = {
        (Kind.EDGE_EDGE, 0): result.edge_edge,
        (Kind.VERTEX_FACE, 0): result.vertex_face,
        (Kind.VERTEX_FACE, 1): result.face_vertex[:, ::-1],
    }
    rounding = 1e-6 * (np.abs(start).max() + np.abs(end).max())
    for pairs in feature_pairs(a, b):
        found = [tuple(pair) for pair in tables.pop((pairs.kind, pairs.vertex_on)).tolist()]
        assert len(found) == len(set(found))
        for slack, holds in ((0.0, set.issuperset), (rounding, set.issubset)):
            meeting = pairs.rows(moving_boxes_meet(pairs, start, end, 0.5 * separation + slack)).numbers
            assert holds(set(found), {tuple(pair) for pair in meeting.tolist()})
    assert all(not len(table) for table in tables.values())


@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_points_weights_gap_and_normal_of_a_contact_agree(family, seed):
    a, b = scene(family, seed)
    contacts = contacts_of(family, seed)
    corners = corners_at(a, b, contacts)
    velocities = corners_at(a, b, contacts, np.ones(len(contacts))) - corners_at(a, b, contacts, 0.0 * contacts.time)
    first, second = points_on_features(contacts, corners)
    on_b = (contacts.vertex_on == 1)[:, None]
    scale = 1.0 + np.abs(corners).max(initial=0.0)
    assert np.abs(contacts.weights.min(axis=1, initial=0.0)).max(initial=0.0) <= 1e-12
    assert np.allclose(np.where(on_b, second, first), contacts.point_a, atol=1e-12 * scale)
    assert np.allclose(np.where(on_b, first, second), contacts.point_b, atol=1e-12 * scale)
    assert np.allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-12)
    apart = contacts.point_a - contacts.point_b
    assert np.allclose(contacts.gap, np.einsum("ni,ni->n", apart, contacts.normal), atol=1e-15 * scale)
    assert (np.linalg.norm(apart, axis=1) <= TOLERANCE * 10 * scale).all()
    # a comes towards b against the normal: pushing along it stops that, also where the vertex is on b.
    approach = np.subtract(*points_on_features(contacts, velocities))
    approach = np.einsum("ni,ni->n", np.where(on_b, -approach, approach), contacts.normal)
    assert (approach <= 1e-8 * (1.0 + np.abs(velocities).max(initial=0.0))).all()


def points_on_features(contacts: Contacts, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted corners (n, 4, 3) of the first and of the second feature."""
    weighted = contacts.weights[:, :, None] * corners
    face = (contacts.kind == Kind.VERTEX_FACE)[:, None]
    first = np.where(face, weighted[:, 0], weighted[:, 0] + weighted[:, 1])
    second = np.where(face, weighted[:, 1:].sum(axis=1), weighted[:, 2] + weighted[:, 3])
    return first, second


def test_keys_name_pairs_one_to_one_in_every_scene_and_step():
    key_of, name_of = {}, {}
    for family, seed in SCENES:
        contacts = contacts_of(family, seed)
        for name, key in zip(names(contacts), contacts.key.tolist(), strict=True):
            assert key_of.setdefault(name, key) == key
            assert name_of.setdefault(key, name) == name
            assert key > 0
    assert len(key_of) > 500


@pytest.mark.parametrize("family", TWO_MESHES)
def test_bodies_are_numbered_as_they_were_given(family):
    contacts = Contacts.joined([contacts_of(family, seed) for seed in SEEDS])
    assert len(contacts)
    assert (contacts.body_a == 0).all()
    assert (contacts.body_b == 1).all()
    assert set(contacts.kind) <= {Kind.VERTEX_FACE, Kind.EDGE_EDGE}


def test_a_vertex_of_b_that_comes_down_on_a_pushes_a_down():
    floor = Mesh([[-2.0, -2.0, 0.0], [4.0, -2.0, 0.0], [-2.0, 4.0, 0.0]], [[0, 1, 2]], name="floor")
    part = Mesh([[0.1, 0.2, 1.0], [1.0, 0.0, 3.0], [0.0, 1.0, 3.0]], [[0, 1, 2]], name="part")
    falling = part.moving(Linear(part.vertices - [0.0, 0.0, 2.0]))
    hit = first_contact(floor, falling, device="cpu")
    assert (hit.status, names(hit.contacts)) == (Status.CONTACT, [(Kind.VERTEX_FACE, 1, 0, 0)])
    assert hit.time == pytest.approx(0.5, abs=1e-12)
    assert hit.contacts.normal[0] == pytest.approx([0.0, 0.0, -1.0])
    assert hit.contacts.point_b[0] == pytest.approx([0.1, 0.2, 0.0], abs=1e-9)
    other = first_contact(falling, floor, device="cpu")
    assert names(other.contacts) == [(Kind.VERTEX_FACE, 0, 0, 0)]
    assert other.contacts.normal[0] == pytest.approx([0.0, 0.0, 1.0])


def test_two_edges_that_cross_push_each_other_apart():
    under = Mesh([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.3, -1.0]], [[0, 1, 2]], name="under")
    over = Mesh([[0.0, -1.0, 1.0], [0.0, 1.0, 1.0], [0.3, 0.0, 2.0]], [[0, 1, 2]], name="over")
    hit = first_contact(over.moving(Linear(over.vertices - [0.0, 0.0, 4.0])), under, device="cpu")
    assert names(hit.contacts) == [(Kind.EDGE_EDGE, 0, 0, 0)]
    assert hit.time == pytest.approx(0.25, abs=1e-12)
    assert hit.contacts.normal[0] == pytest.approx([0.0, 0.0, 1.0])
    assert hit.contacts.weights[0] == pytest.approx([0.5] * 4)


def test_parts_that_pass_each_other_are_free():
    part = tetrahedron()
    other = part.replace(vertices=part.vertices + [0.0, 0.0, 2.5])
    assert not first_contact(part.moving(Linear(part.vertices + [5.0, 0.0, 0.0])), other, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_more_scenes_agree_with_brute_force(family, effort):
    for seed in range(100, 100 + effort(60)):
        a, b = scene(family, seed)
        exact, contacts = touching(a, b), all_contacts(a, b, start="trusted", device="cpu")
        found = dict(zip(names(contacts), contacts.time, strict=True))
        assert len(found) == len(contacts)
        assert exact.keys() <= found.keys()
        assert all(found[name] <= contact.time_above for name, contact in exact.items())
        assert (nearness(a, b, contacts) <= TOLERANCE).all()
        assert first_contact(a, b, start="trusted", device="cpu").time == min(found.values(), default=np.inf)
        assert set(names(all_contacts(a, b, mode="exact", start="trusted", device="cpu"))) == exact.keys()
