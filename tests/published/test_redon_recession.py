"""Recession vectors as Redon's thesis builds them: projections on cones, cones that are all space, annealing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from bvh.test_recession import cluster, margin, unit
from tangere.published.redon_recession.cones import cone_projection, is_whole_space, minimal_subset, published_cones


@pytest.mark.feature("F-R-41")
def test_lemmas_3_and_4_normals_that_span_all_space_have_no_velocity_in_common(effort, rng):
    whole = 0
    for _ in range(effort(60)):
        normals = unit(rng.normal(size=(rng.integers(3, 9), 3)))
        spans = is_whole_space(normals)
        if abs(margin(normals)) > 1e-6:
            assert spans == (margin(normals) < 0.0) or not spans
        if spans:
            assert margin(normals) < 1e-7  # no open half-space holds them all: no velocity recedes from all
            velocities = rng.normal(size=(2000, 3))
            assert not (velocities @ normals.T < 0.0).all(axis=1).any()
            whole += 1
    assert whole > 0
    assert is_whole_space(np.concatenate([np.eye(3), -np.eye(3)]))
    assert not is_whole_space(np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0]]))  # a half-plane only


def test_projections_on_a_cone_satisfy_the_conditions_of_optimality(effort, rng):
    for _ in range(effort(100)):
        vectors, x = cluster(rng, rng.integers(1, 12), 0.6), rng.normal(size=3)
        w = cone_projection(vectors, x)
        assert (vectors @ (x - w) <= 1e-9).all()  # nothing in the cone is nearer
        assert abs(w @ (x - w)) <= 1e-9


def test_the_printed_construction_encloses_too_and_repeats_with_its_seed(effort, rng):
    for _ in range(effort(4, 2)):
        normals = cluster(rng, 30, 0.25)
        first = np.array([0, 30])
        (size, subset), (count, vectors) = published_cones(normals, first, 5, np.random.default_rng(7))
        assert np.array_equal(subset, minimal_subset(normals))
        assert size[0] == len(subset) > 5
        assert 0 < count[0] <= 5
        assert max(nnls(vectors.T, n)[1] for n in normals) < 1e-7
        again = published_cones(normals, first, 5, np.random.default_rng(7))[1][1]
        assert np.array_equal(vectors, again)
