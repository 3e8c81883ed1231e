"""Overlap at t = 0: found exactly where edges meet faces, told with a point of both, skipped when trusted."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import FAMILIES, grid, scene, tetrahedron
from oracles.mesh_contacts import edge_pierces_face, edges_of, overlaps, touching
from tangere.motion import Linear
from tangere.query.contacts import Contacts, Kind, Status
from tangere.query.first_contact import all_contacts, first_contact
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def told(contacts: Contacts) -> tuple[int, int, int]:
    """The overlap as the oracle names it."""
    return int(contacts.vertex_on[0]), int(contacts.feature_a[0]), int(contacts.feature_b[0])


def intersecting_pair(rng) -> tuple[Mesh, Mesh]:
    """Two small bodies at random places: some apart, some through each other, some one in the other."""
    size = rng.choice([0.2, 1.0])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    part = tetrahedron()
    other = Mesh(part.vertices @ turn * size + rng.normal(size=3) * rng.choice([0.1, 1.0]), part.faces, name="other")
    return part, other


@pytest.mark.feature("F-T-17")
def test_overlapping_bodies_are_a_start_and_separate_ones_are_not(rng, effort):
    seen = {True: 0, False: 0}
    for _ in range(effort(60)):
        a, b = intersecting_pair(rng)
        expected = overlaps(a, b)
        hit = first_contact(a, b, device="cpu")
        assert (hit.status == Status.START) == bool(expected)
        assert (hit.status == Status.FREE) == (not expected)
        seen[bool(expected)] += 1
        if expected:
            assert (hit.time, hit.time_upper) == (0.0, 0.0)
            assert told(hit.contacts) in expected
            check_point(a, b, hit.contacts)
    assert min(seen.values()) > 2


def check_point(a: Mesh, b: Mesh | None, contacts: Contacts) -> None:
    """The point lies on the edge and on the face that are told, and the normal is that of the face."""
    assert contacts.kind.tolist() == [Kind.OVERLAP]
    on, feature_a, feature_b = told(contacts)
    of_edge, of_face = (b, a) if on else (a, b or a)
    assert of_edge is not None
    p, q = of_edge.vertices[edges_of(of_edge)[feature_b if on else feature_a]]
    x, y, z = of_face.vertices[of_face.faces[feature_a if on else feature_b]]
    assert edge_pierces_face(np.stack([p, q]), np.stack([x, y, z]))
    point = contacts.point_a[0]
    assert np.array_equal(point, contacts.point_b[0])
    assert np.linalg.norm(p - point) + np.linalg.norm(q - point) == pytest.approx(np.linalg.norm(p - q), rel=1e-9)
    spread = sum(np.linalg.norm(np.cross(u - point, v - point)) for u, v in ((x, y), (y, z), (z, x)))
    assert spread == pytest.approx(np.linalg.norm(np.cross(y - x, z - x)), rel=1e-6, abs=1e-12)
    assert np.linalg.norm(contacts.normal[0]) == pytest.approx(1.0)
    assert contacts.gap[0] == 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_start_is_found_in_every_family_as_brute_force_finds_it(family):
    for seed in range(3):
        a, b = scene(family, seed)
        expected = overlaps(a, b)
        hit = first_contact(a, b, device="cpu")
        if expected:
            assert hit.status == Status.START
            assert told(hit.contacts) == min(expected)
        else:
            starting = any(contact.time_below == 0.0 for contact in touching(a, b).values())
            assert (hit.status == Status.START) == starting or (hit.status == Status.START and hit.time_upper == np.inf)


def test_a_body_inside_another_without_touching_it_does_not_overlap_it():
    shell = generate.icosphere(subdivisions=2)
    core = shell.replace(vertices=shell.vertices * 0.3)
    assert first_contact(shell, core, device="cpu").status == Status.FREE
    hit = first_contact(shell, core.moving(Linear(core.vertices + [1.0, 0.0, 0.0])), device="cpu")
    assert hit.status == Status.CONTACT
    assert 0.6 < hit.time <= 0.7


@pytest.mark.parametrize(
    ("corners", "what"),
    [
        ([[0.5, 0.25, 0.0], [0.5, 0.25, 1.0], [0.6, 0.25, 1.0]], "a vertex on the face"),
        ([[0.5, -1.0, 0.0], [0.5, 0.0, 0.0], [0.5, -1.0, 1.0]], "a vertex on an edge"),
        ([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 0.0, 1.0]], "two vertices at one place"),
        ([[0.5, -1.0, 0.0], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]], "an edge lying across the face"),
        ([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], "an edge in common"),
        ([[0.1, 0.1, 0.0], [0.3, 0.1, 0.0], [0.1, 0.3, 0.0]], "one within the other, in one plane"),
        ([[-1.0, -1.0, 0.0], [4.0, -1.0, 0.0], [-1.0, 4.0, 0.0]], "one around the other, in one plane"),
    ],
)
def test_touching_at_the_start_is_a_start(corners, what):
    face = Mesh([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0, 1, 2]], name="face")
    other = Mesh(corners, [[0, 1, 2]], name="other")
    for a, b in ((face, other), (other, face)):
        assert first_contact(a, b, device="cpu").status == Status.START, what
    both = Mesh.join([face, other])
    assert first_contact(both, device="cpu").status == Status.START, what


def test_almost_touching_at_the_start_is_not_a_start():
    face = Mesh([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0, 1, 2]], name="face")
    above = Mesh([[0.25, 0.25, 1e-13], [0.25, 0.25, 1.0], [0.3, 0.25, 1.0]], [[0, 1, 2]], name="above")
    away = above.moving(Linear(above.vertices + [0.0, 0.0, 1.0]))
    assert first_contact(face, above, mode="exact", device="cpu").status == Status.FREE
    assert first_contact(face, away, mode="exact", device="cpu").status == Status.FREE


def test_a_trusted_start_is_not_looked_at():
    """Through each other and going along: no features meet within the step, so only the check can tell."""
    part = tetrahedron()
    pin = Mesh([[0.1, 0.05, -3.0], [0.1, 0.05, 3.0], [0.11, 0.06, 3.0]], [[0, 1, 2]], name="pin")
    pair = (part.moving(Linear(part.vertices + 0.001)), pin.moving(Linear(pin.vertices + 0.001)))
    assert first_contact(*pair, device="cpu").status == Status.START
    assert first_contact(*pair, start="trusted", device="cpu").status == Status.FREE
    assert len(all_contacts(*pair, start="trusted", device="cpu")) == 0


def test_all_contacts_tell_an_overlap_once_and_first():
    part = tetrahedron()
    pin = Mesh([[0.1, 0.05, -3.0], [0.1, 0.05, 3.0], [0.11, 0.06, 3.0]], [[0, 1, 2]], name="pin")
    moving = pin.moving(Linear(pin.vertices + [3.0, 0.0, 0.0]))
    contacts = all_contacts(part, moving, device="cpu")
    trusted = all_contacts(part, moving, start="trusted", device="cpu")
    assert contacts.kind[0] == Kind.OVERLAP
    assert contacts.time[0] == 0.0
    assert (contacts.kind[1:] != Kind.OVERLAP).all()
    assert contacts[1:].key.tolist() == trusted.key.tolist()
    assert len(np.unique(contacts.key)) == len(contacts)


def test_neighbours_in_a_sheet_do_not_overlap_each_other():
    assert first_contact(grid(6, 6), device="cpu").status == Status.FREE
    assert first_contact(generate.icosphere(subdivisions=2), device="cpu").status == Status.FREE
