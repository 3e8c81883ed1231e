"""What a round of the truncation must look at again, and certificates that remember: the same as asking everything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import warp as wp

from tangere.runtime import choose_device
from tangere.shape import generate
from tangere.soft import Body
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches


def patches_of(mesh, *, per_feature: bool = False) -> Patches:
    return Patches(AssembledBodies.of([Body(mesh, density=1.0)], choose_device("cpu")), per_feature=per_feature)


def placed(x: np.ndarray) -> wp.array:
    return wp.array(x, dtype=wp.vec3d, device="cpu")


@pytest.mark.parametrize("part", [0.0, 0.002, 0.05, 0.9])
def test_news_name_all_that_has_a_vertex_with_a_new_move(part, rng):
    """By NumPy, cluster by cluster and node by node; when much is new all is."""
    mesh = generate.torus(2400)
    patches = patches_of(mesh)
    tree, lists = patches.tree, patches.lists
    chosen = rng.random(len(mesh.vertices)) < part
    dirty = patches.changes.dirty_sets(wp.array(chosen.astype(np.uint8), dtype=wp.uint8, device="cpu"))
    at_face = chosen[tree.items.numpy()].any(axis=1)
    below = np.array([at_face[a : b + 1].any() for a, b in zip(tree.first.numpy(), tree.last.numpy(), strict=True)])
    changed = below[tree.clusters.numpy()]
    offsets, around = lists.cluster_offsets.numpy(), lists.clusters.numpy()
    asked = [p for p in range(lists.count) if changed[around[offsets[p] : offsets[p + 1]]].any()]
    if part > 0.5:
        assert len(dirty.patches) == lists.count
        assert (dirty.clusters.numpy() == 1).all()
        assert (dirty.nodes.numpy() == 1).all()
        assert (dirty.child_masks.numpy() == 255).all()
        return
    assert np.array_equal(np.sort(dirty.patches.numpy()), asked)
    assert np.array_equal(dirty.clusters.numpy(), changed)
    assert np.array_equal(dirty.nodes.numpy(), below)
    masks, levels = dirty.child_masks.numpy(), patches._bvh8_static.levels.numpy()
    for begin, end in pairwise(levels):
        children = (masks[begin:end, None] >> np.arange(8) & 1).astype(bool).ravel()
        assert np.array_equal(children[: len(changed)], changed)
        assert not children[len(changed) :].any()
        changed = masks[begin:end] != 0


def test_what_was_added_and_taken_back_is_not_remembered():
    """A cut puts vertices into clusters that had none of them; one that is undone leaves nothing to be found."""
    mesh = generate.torus(2400)
    patches, vertex = patches_of(mesh), 7
    tracker, corners = patches.changes, patches.tree.corners.numpy().reshape(-1, 24)
    chosen = np.zeros(len(mesh.vertices), np.uint8)
    chosen[vertex] = 1
    changed = wp.array(chosen, dtype=wp.uint8, device="cpu")
    own = set(np.flatnonzero(tracker.dirty_sets(changed).clusters.numpy()))
    others = [cluster for cluster in range(len(tracker.all.clusters)) if cluster not in own][:3]
    for cluster in others:
        before = corners[cluster, 0]
        corners[cluster, 0] = vertex
        tracker.added.append(np.array([cluster]))
        assert set(np.flatnonzero(tracker.dirty_sets(changed).clusters.numpy())) == own | {cluster}
        tracker.added.pop()
        corners[cluster, 0] = before
    assert set(np.flatnonzero(tracker.dirty_sets(changed).clusters.numpy())) == own


def test_certificates_that_remember_are_those_found_by_asking_anew(rng):
    """Steps that go on where the last one ended, jumps, and rounds that change a few ends; one by one knows no past."""
    mesh = generate.torus(2400)
    remembering, one_by_one = patches_of(mesh), patches_of(mesh, per_feature=True)
    remembering.certificates._kept.wait.fill_(1000)  # compared with how it was at rest, as the other is
    end, differing, certified, asked = mesh.vertices, 0, 0, 0
    for step in range(8):
        start = end if step != 4 else end + 0.02 * rng.standard_normal(end.shape)
        end = start + 0.02 * (1 + step) * np.sin(2.0 * start + step) + 0.004 * rng.standard_normal(end.shape)
        for changed in (None, rng.random(len(end)) < 0.02):
            if changed is not None:
                end = np.where(changed[:, None], 0.5 * (start + end), end)
                changed = wp.array(changed.astype(np.uint8), dtype=wp.uint8, device="cpu")
            found = remembering.fit_moving(placed(start), placed(end), 1e-3, changed).certified.numpy()
            expected = one_by_one.fit_moving(placed(start), placed(end), 1e-3).certified.numpy()
            differing += int((found != expected).sum())  # sums in another order may tip one over
            certified, asked = certified + int(expected.sum()), asked + len(expected)
    assert differing <= 1
    assert 0.1 * asked < certified < 0.95 * asked
