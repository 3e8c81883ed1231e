"""Balls and arrows of contacts."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.drawn_scenes import contacts_at
from tangere.query.contacts import Contacts, Kind
from tangere.scene import marker_radius
from tangere.scene.markers import KIND_COLOURS, ball, contact_markers


def test_a_ball_is_round_and_closed():
    vertices, faces = ball(2.0)
    assert np.linalg.norm(vertices, axis=1) == pytest.approx(2.0)
    corners = vertices[faces]
    volume = np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6.0
    assert 0.8 < volume / (4.0 / 3.0 * np.pi * 8.0) < 1.0


def test_each_arrow_ends_on_the_line_through_its_point_along_its_normal(rng):
    points, normals = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    normals[:3] = np.eye(3)
    drawn = contact_markers(contacts_at(np.zeros(20), points, normals), 0.01)
    for own, point, normal in zip(drawn.vertices.reshape(20, -1, 3), points, normals, strict=True):
        heights = (own - point) @ normal
        tip = own[np.argmax(heights)]
        assert heights.max() == pytest.approx(0.085)
        assert tip == pytest.approx(point + 0.085 * normal)
        assert heights.min() == pytest.approx(-0.01)
    assert np.linalg.norm(drawn.normals, axis=1) == pytest.approx(1.0)


def test_colours_tell_the_kinds_apart():
    kinds = [Kind.VERTEX_FACE, Kind.EDGE_EDGE, Kind.OVERLAP]
    drawn = contact_markers(contacts_at([0, 0, 0], np.zeros((3, 3)), np.eye(3), kinds), 0.1)
    colours = drawn.colours.reshape(3, -1, 3)
    assert [tuple(own[0]) for own in colours] == [KIND_COLOURS[kind] for kind in kinds]
    assert len(set(KIND_COLOURS.values())) == len(Kind) == len(KIND_COLOURS)


def test_a_contact_without_a_normal_keeps_its_ball_and_no_contacts_give_no_triangles():
    drawn = contact_markers(contacts_at([0.0], [[1.0, 2.0, 3.0]], [[0.0, 0.0, 0.0]]), 0.1)
    assert np.isfinite(drawn.vertices).all()
    assert np.linalg.norm(drawn.vertices - (1.0, 2.0, 3.0), axis=1).min() <= 0.1 + 1e-12
    assert len(contact_markers(Contacts(), 0.1).faces) == 0


def test_many_contacts_are_marked_smaller():
    assert marker_radius(1, 2.0) == pytest.approx(2.0 * marker_radius(1, 1.0))
    assert marker_radius(10_000, 1.0) < 0.5 * marker_radius(10, 1.0)
