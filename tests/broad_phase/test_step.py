"""A step: positions side by side, boxes around the motion, trees that are shared and made anew."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import ONE_MESH, grid, scene, tetrahedron
from oracles.helpers.box_codes import corners
from oracles.mesh_contacts import ends
from tangere.broad_phase.deforming import Step
from tangere.broad_phase.deforming.step import FITS_PER_ORDER
from tangere.motion import Linear
from tangere.runtime import InputError, UnsupportedError


def tables(step: Step):
    """Item and node boxes of every tree of a step, in user order where there is one."""
    for fitted in step.fitted(1.0):
        for tree, boxes in (
            (fitted.body.vertices, fitted.vertices),
            (fitted.body.edges, fitted.edges),
            (fitted.body.faces, fitted.faces),
        ):
            yield fitted, tree, corners(boxes.items), corners(boxes.nodes)


def test_vertices_of_two_bodies_lie_one_after_the_other():
    a, b = tetrahedron(), grid(3, 3)
    step = Step.of([a, b.moving(Linear(b.vertices + 1.0))], "cpu")
    assert [body.base for body in step.bodies] == [0, 4]
    assert np.array_equal(step.start.numpy(), np.concatenate([a.vertices, b.vertices]))
    assert np.array_equal(step.end.numpy(), np.concatenate([a.vertices, b.vertices + 1.0]))


@pytest.mark.parametrize("family", ONE_MESH)
def test_the_boxes_of_every_tree_hold_the_whole_motion(family):
    thing, _ = scene(family, 0)
    step = Step.of([thing], "cpu")
    path = np.stack(ends(thing))
    path = (path - step.frame.origin) * step.frame.scale
    for _, tree, items, nodes in tables(step):
        for when, points in enumerate(path[:, tree.items.numpy()]):
            assert (items[:, when, 0] <= points.min(axis=1)).all()
            assert (items[:, when, 1] >= points.max(axis=1)).all()
            assert (nodes[0, when, 0] <= items[:, when, 0].min(axis=0)).all()
            assert (nodes[0, when, 1] >= items[:, when, 1].max(axis=0)).all()


def test_however_many_queries_share_a_tree_its_boxes_are_fitted_to_the_tree_in_use():
    """The order is made anew now and then, even between two looks at one body: boxes must go with their tree."""
    sheet = grid(9, 9)
    for k in range(2 * FITS_PER_ORDER + 3):
        mesh = sheet.replace(vertices=sheet.vertices @ np.diag([1.0, 1.0 + k, 1.0]) + [0.0, 0.0, k % 3])
        step = Step.of([mesh], "cpu")
        step.bodies[0].edges.order.numpy()  # one more look
        points = (mesh.vertices - step.frame.origin) * step.frame.scale
        for _, tree, items, _ in tables(step):
            assert (items[:, 0, 0] <= points[tree.items.numpy()].min(axis=1)).all()
            assert (items[:, 0, 1] >= points[tree.items.numpy()].max(axis=1)).all()


def test_one_body_shows_one_tree_during_a_step():
    sheet = grid(5, 5)
    body = Step.of([sheet], "cpu").bodies[0]
    first = body.edges
    assert all(body.edges is first for _ in range(2 * FITS_PER_ORDER))


def test_meshes_made_by_replace_share_their_trees():
    sheet = grid(5, 5)
    one = Step.of([sheet], "cpu").bodies[0]
    other = Step.of([sheet.replace(vertices=sheet.vertices + 3.0)], "cpu").bodies[0]
    assert one.edges is other.edges


def test_after_many_steps_the_order_is_made_anew():
    sheet = grid(5, 5)
    trees = [id(Step.of([sheet], "cpu").bodies[0].edges) for _ in range(FITS_PER_ORDER + 2)]
    assert len(set(trees)) > 1


def test_a_place_that_is_not_finite_is_named():
    a, b = grid(2, 2), tetrahedron()
    end = b.vertices.copy()
    end[2, 1] = np.nan
    with pytest.raises(InputError, match=r"'tetrahedron': vertex 2"):
        Step.of([a, b.moving(Linear(end))], "cpu")


def test_what_cannot_move_so_is_refused_with_what_can():
    with pytest.raises(UnsupportedError, match="a Mesh at rest, a Mesh in Linear motion"):
        Step.of([3.0], "cpu")  # pyright: ignore[reportArgumentType]
