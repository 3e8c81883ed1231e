"""Sharp edges stay sharp and round bodies round; the oracle is the angle between the triangles themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.scene.creases import split_creases, vertex_normals
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def shaded(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Normals at the corners of triangles, (m, 3, 3), and of the triangles themselves, (m, 3)."""
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    creased = split_creases(vertices, faces)
    assert (creased.source[creased.faces] == faces).all()  # the same triangles
    corners = vertices[faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = vertex_normals(vertices[creased.source], creased.faces)
    return normals[creased.faces], flat / np.linalg.norm(flat, axis=1, keepdims=True)


def prism(sides: int) -> Mesh:
    """A closed prism about the third axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    low, high = (np.column_stack([ring, np.full(sides, z)]) for z in (0.0, 1.0))
    a = np.arange(sides)
    b, n = (a + 1) % sides, sides
    around = [np.stack([a, b, b + n], 1), np.stack([a, b + n, a + n], 1)]
    ends = [np.stack([np.full(n, 2 * n), b, a], 1), np.stack([np.full(n, 2 * n + 1), a + n, b + n], 1)]
    return Mesh(np.concatenate([low, high, [[0, 0, 0], [0, 0, 1]]]), np.concatenate(around + ends))


def test_a_box_is_flat_up_to_its_edges():
    corners, flat = shaded(generate.box((1.0, 2.0, 3.0)))
    assert corners == pytest.approx(np.repeat(flat[:, None], 3, axis=1))


def test_a_ball_stays_one_smooth_surface():
    for triangles in (80, 320, 1280):
        ball = generate.icosphere(triangles=triangles)
        assert len(split_creases(ball.vertices, ball.faces).source) == len(ball.vertices)
        corners, _ = shaded(ball)
        outward = np.asarray(ball.vertices)[np.asarray(ball.faces)]
        outward = outward / np.linalg.norm(outward, axis=2, keepdims=True)
        assert np.einsum("fci,fci->fc", corners, outward).min() > 0.99


@pytest.mark.parametrize("sides", [12, 24])
def test_a_turned_part_is_round_about_its_axis_and_sharp_at_its_ends(sides):
    corners, flat = shaded(prism(sides))
    side = np.abs(flat[:, 2]) < 0.5
    outward = np.asarray(prism(sides).vertices)[np.asarray(prism(sides).faces)][side] * (1.0, 1.0, 0.0)
    assert np.einsum("fci,fci->fc", corners[side], outward).min() > 0.99
    assert corners[~side] == pytest.approx(np.repeat(flat[~side][:, None], 3, axis=1))


def test_an_edge_is_sharp_from_thirty_degrees_on():
    for turn, sharp in ((25.0, False), (35.0, True)):
        rise = np.tan(np.radians(turn))
        roof = Mesh([[0, 0, 0], [0, 1, 0], [-1, 0, 0], [1, 0, rise]], [[0, 1, 2], [1, 0, 3]])
        assert (len(split_creases(roof.vertices, roof.faces).source) == 6) == sharp


def test_triangles_that_are_turned_over_and_those_without_area_do_no_harm():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    turned = split_creases(square, np.array([[0, 1, 2], [0, 3, 2]]))
    normals = vertex_normals(square[turned.source], turned.faces)
    assert np.abs(normals[:, 2]) == pytest.approx(1.0)  # not the sum of both sides, which is nothing
    needle = split_creases(square, np.array([[0, 1, 2], [0, 2, 2], [0, 2, 3]]))
    assert np.isfinite(vertex_normals(square[needle.source], needle.faces)).all()
    assert len(split_creases(square, np.empty((0, 3), np.int32)).source) == 4
