"""Normals where bodies in Linear motion meet at corners and along edges: the faces there tell which way to push."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import tetrahedron
from tangere.motion import Linear, Twist
from tangere.query.contacts import Contacts, Kind
from tangere.query.first_contact import all_contacts, edge_edge, first_contact
from tangere.shape import Moving, generate
from tangere.shape.mesh import Mesh

BOX = generate.box()
AXES = np.concatenate([np.eye(3), -np.eye(3)])


def box(centre=(0.0, 0.0, 0.0), size=(1.0, 1.0, 1.0)) -> Mesh:
    return BOX.replace(vertices=BOX.vertices * np.asarray(size) + centre)


def moved(mesh: Mesh, way) -> Moving:
    return mesh.moving(Linear(mesh.vertices + way))


def first_normal(a, b) -> np.ndarray:
    hit = first_contact(a, b, device="cpu")
    assert len(hit.contacts) == 1
    return hit.contacts.normal[0]


def normals_of_the_first_instant(a, b) -> np.ndarray:
    contacts = all_contacts(a, b, device="cpu")
    return contacts.normal[contacts.time <= contacts.time[0] + 1e-6]


@pytest.mark.parametrize("scale", 10.0 ** np.arange(-9, 7))
def test_aligned_boxes_push_each_other_back_at_every_size(scale):
    a, b = box(size=[scale] * 3), box([3 * scale, 0, 0], [scale] * 3)
    way = np.array([4 * scale, 0, 0])
    for one, other, sign in ((moved(a, way), b, -1), (b, moved(a, way), 1), (a, moved(b, -way), -1)):
        assert first_normal(one, other) == pytest.approx([sign, 0, 0], abs=1e-9)
        assert np.allclose(normals_of_the_first_instant(one, other), [sign, 0, 0], atol=1e-9)


# Corners at corners, a corner at an edge and edges along edges, corners within faces and edges that cross.
@pytest.mark.parametrize("way", AXES)
@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.5, 0.0), (0.25, -0.5), (0.0, -0.125)])
@pytest.mark.parametrize("drift", [(0.0, 0.0), (1.0, 0.0), (0.5, -0.25), (-1.5, 1.5)])
def test_faces_that_come_to_lie_on_each_other_push_across_themselves(way, shift, drift):
    sides = np.stack([np.roll(way, 1), np.roll(way, 2)])
    a = box()
    motion = 4 * way + drift @ sides
    # They lie on each other at t = 1/2, wherever the drift took them.
    b = box(3 * way + np.array(shift) @ sides + 0.5 * np.array(drift) @ sides)
    for one, other, sign in ((moved(a, motion), b, -1), (b, moved(a, motion), 1)):
        assert first_normal(one, other) == pytest.approx(sign * way, abs=1e-9)
        assert np.allclose(normals_of_the_first_instant(one, other), sign * way, atol=1e-9)
    rigid = first_contact(a.moving(Twist(np.eye(4), motion, [0.0, 0.0, 0.0])), b, device="cpu")
    assert first_normal(moved(a, motion), b) == pytest.approx(rigid.contacts.normal[0], abs=1e-6)


@pytest.mark.parametrize("place", [1e3, 1e6, -3e7])
def test_far_from_the_origin_rounding_does_not_tilt_the_normal(place):
    for drift in (0.0, 0.3):
        a = box([place, 0.7 * place, -0.3 * place])
        b = a.replace(vertices=a.vertices + [2.1, 0.1 + 0.5 * drift, 0.0])
        for normal in normals_of_the_first_instant(moved(a, [2.2, drift, 0.0]), b):
            assert normal == pytest.approx([-1, 0, 0], abs=1e-5)


def test_edges_that_meet_side_by_side_push_against_the_motion_without_its_part_along_them():
    a, b = box(), box([2.0, 2.0, 0.25])
    for way in ([2.0, 2.0, 0.0], [2.0, 2.0, 0.25]):
        normal = first_normal(moved(a, way), b)
        assert normal == pytest.approx([-np.sqrt(0.5), -np.sqrt(0.5), 0], abs=1e-6)


def test_two_corners_that_meet_push_straight_against_the_motion():
    a, b = box(), box([2.0, 2.0, 2.0])
    assert first_normal(moved(a, [2.0, 2.0, 2.0]), b) == pytest.approx([-(3**-0.5)] * 3, abs=1e-6)


def test_on_the_seam_of_a_floor_the_floor_pushes_whatever_the_way():
    floor = Mesh([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]], [[0, 1, 2], [0, 2, 3]], name="floor")
    part = tetrahedron().replace(vertices=[[0, 0, 1.0], [1, 0, 3], [-1, 1, 3], [-1, -1, 3]])
    for way in ([0.0, 0.0, -2.0], [0.5, 0.25, -2.0], [1.0, -1.0, -2.0]):
        place = part.replace(vertices=part.vertices - np.multiply(way, [0.5, 0.5, 0.0]))
        assert first_normal(moved(place, way), floor) == pytest.approx([0, 0, 1], abs=1e-9)
        assert first_normal(floor, moved(place, way)) == pytest.approx([0, 0, -1], abs=1e-9)


def test_a_box_that_slides_on_another_is_held_up_by_it():
    a, b = box([0, 0, 1.0]), box()
    contacts = all_contacts(moved(a, [0.125, 0, 0]), b, start="trusted", device="cpu")
    at_once = contacts.time == 0.0
    flush = at_once & (np.abs(contacts.point_a[:, 2] - 0.5) < 1e-12)
    assert flush.any()
    assert np.allclose(contacts.normal[flush], [0, 0, 1], atol=1e-9)


def test_a_dent_that_no_direction_leaves_still_pushes_against_the_approach():
    """A tip goes to the bottom of a pit."""
    rim = np.array([[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, -1, 1.0]])
    faces = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]
    pit = Mesh(np.concatenate([[[0, 0, 0]], rim]), faces, name="pit")
    tip = Mesh(np.concatenate([[[0, 0, 0]], rim * [0.2, 0.2, 1.0]]) + [0, 0, 1.0], faces, name="tip")
    hit = first_contact(moved(tip, [0.1, 0, -2.0]), pit.replace(vertices=pit.vertices + [0.05, 0, 0]), device="cpu")
    assert np.linalg.norm(hit.contacts.normal[0]) == pytest.approx(1.0, abs=1e-12)
    assert hit.contacts.normal[0] @ [0.1, 0, -2.0] < 0.0


def admissible(a: np.ndarray, b: np.ndarray, normal: np.ndarray) -> bool:
    """Whether the normal has all of a on its side of all of b."""
    return (a @ normal).min() >= (b @ normal).max() - 1e-5


def test_boxes_on_a_lattice_are_separated_by_every_normal_of_the_first_instant(effort, rng):
    met, rounds = 0, effort(100)
    for _ in range(rounds):
        towards = AXES[rng.integers(6)]
        a = box(rng.integers(-1, 2, 3) * 0.5, rng.integers(1, 4, 3))
        b = box(rng.integers(-1, 2, 3) * 0.5 + 5.0 * towards, rng.integers(1, 4, 3))
        ways = [rng.integers(-1, 2, 3) + 4.0 * towards, rng.integers(-2, 3, 3) - 2.0 * towards]
        one, other = (moved(mesh, way) for mesh, way in zip((a, b), ways, strict=True))
        hit, mirrored = first_contact(one, other, device="cpu"), first_contact(other, one, device="cpu")
        assert hit.time == pytest.approx(mirrored.time, abs=1e-9)
        if not hit or hit.time == 0.0:
            continue
        met += 1
        at = [mesh.vertices + hit.time * way for mesh, way in zip((a, b), ways, strict=True)]
        for normal in [*normals_of_the_first_instant(one, other), hit.contacts.normal[0]]:
            assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
            assert normal @ (ways[0] - ways[1]) <= 1e-9
            assert (at[0] @ normal).min() >= (at[1] @ normal).max() - 1e-5  # a is on its side of b
        assert mirrored.contacts.normal[0] == pytest.approx(-hit.contacts.normal[0], abs=1e-6)
    assert met > 0.4 * rounds


def test_corners_of_bodies_that_deform_are_separated_by_their_normals(effort, rng):
    """Corner against corner at t = 1/2, while the other corners go their own ways."""
    part, met, rounds = tetrahedron(), 0, effort(100)
    for _ in range(rounds):
        middle = [part.vertices - part.vertices[0] + rng.uniform(-0.3, 0.3, (4, 3)) for _ in range(2)]
        a, b = (corners - corners[0] for corners in (middle[0], -middle[1]))
        edges = unit(np.concatenate([-a[1:], b[1:]]))  # that a normal may not go along
        away = -unit(edges.sum(axis=0))
        if (edges @ away > -0.1).any():
            continue
        ways = [rng.uniform(-0.3, 0.3, (4, 3)) + sign * (away + rng.uniform(-0.3, 0.3, 3)) for sign in (-1, 1)]
        bodies = [
            part.replace(vertices=corners - 0.5 * way).moving(Linear(corners + 0.5 * way))
            for corners, way in zip((a, b), ways, strict=True)
        ]
        contacts = all_contacts(*bodies, device="cpu")
        rows = np.flatnonzero((np.abs(contacts.time - 0.5) < 1e-4) & (np.abs(contacts.point_a) < 1e-4).all(axis=1))
        met += len(rows) > 0
        for normal in contacts.normal[rows]:
            assert (edges @ normal <= 1e-4).all()
            assert normal @ (ways[0] - ways[1])[0] < 0.0
    assert met > 0.1 * rounds


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("way", [(0, 0, -2.0), (0.5, -0.25, -2.0)])
def test_two_edges_alone_that_meet_at_ends_push_against_the_motion(way):
    """A vertex against an edge or a vertex: the relative velocity without its part along the edge."""
    at = {
        Kind.VERTEX_VERTEX: ([[0, 0, 1], [3, 1, 2], [0, 0, 0], [0, 1, -1]], -np.array(way)),
        Kind.VERTEX_EDGE: ([[0, 0, 1], [3, 1, 2], [0, -1, 0], [0, 1, 0]], -np.array(way) * [1, 0, 1]),
    }
    for kind, (points, normal) in at.items():
        start = np.array([points], float)
        start[:, :2] -= np.multiply(way, [0.5, 0.5, 0.0])
        end = start.copy()
        end[:, :2] += way
        found = edge_edge(start, end, device="cpu")
        assert Kind(found.kind[0]) == kind
        assert found.normal[0] == pytest.approx(unit(normal), abs=1e-6)


def test_what_else_is_told_of_a_contact_stays():
    """Points, weights and gap are those of the pair; the gap is along the normal."""
    contacts: Contacts = all_contacts(moved(box(), [4.0, 1.0, 0.0]), box([3.0, 0.5, 0.0]), device="cpu")
    apart = contacts.point_a - contacts.point_b
    assert np.allclose(contacts.gap, np.einsum("ni,ni->n", apart, contacts.normal), atol=1e-15)
