"""Spheres under tangent screws: the quartic and its shortcuts against sampled distances; paths against the motion."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.screw_frames import Screws
from tangere.published.redon_cubics.path import ScrewPath, path_point, point_at, screw_paths, times
from tangere.published.redon_cubics.spheres import sphere_quartic, sphere_verdict
from tangere.runtime import launch


@wp.kernel
def _verdicts(
    first: int,
    centres: wp.array2d[wp.vec3d],
    radii: wp.array[wp.float64],
    ends: wp.array[wp.float64],
    paths: wp.array[ScrewPath],
    prefilter: bool,
    verdicts: wp.array[wp.int32],
    quartics: wp.array2d[wp.float64],
):
    i = first + wp.tid()
    path = paths[i]
    a = path_point(path, centres[i, 0])
    verdicts[i] = sphere_verdict(path, a, centres[i, 1], radii[i], ends[i], prefilter)
    # The quartic against the distance itself, at s = end.
    q = sphere_quartic(path, a, centres[i, 1], radii[i])
    s = ends[i]
    value = (((q.cubic[0] * s + q.cubic[1]) * s + q.cubic[2]) * s + q.cubic[3]) * s + q.constant
    apart = centres[i, 1] - point_at(path, a, s)
    quartics[i, 0] = value
    quartics[i, 1] = wp.dot(apart, apart) - radii[i] * radii[i]


def verdicts(screws, a, b, radii, ends, prefilter):
    cpu, count = wp.get_device("cpu"), len(a)
    out = wp.zeros(count, dtype=wp.int32, device=cpu), wp.zeros((count, 2), dtype=wp.float64, device=cpu)
    centres = np.stack([screws.to_body(a[:, None])[:, 0], b], axis=1)
    paths = wp.array(screw_paths(screws.motion.records()), dtype=ScrewPath, device=cpu)
    given = [
        wp.array(centres, dtype=wp.vec3d, device=cpu),
        wp.array(radii, dtype=wp.float64, device=cpu),
        wp.array(ends, dtype=wp.float64, device=cpu),
    ]
    launch(_verdicts, count, [*given, paths, prefilter], out, device=cpu)
    return out[0].numpy(), out[1].numpy()


def nearest(screws, a, b, ends):
    """Smallest distance for s up to `ends`: 400 samples, then the neighbourhood of the best ones again and again."""
    tangent = np.tan(0.5 * screws.angle)
    low, high = np.zeros(len(a)), ends.copy()
    best, sampled = np.full(len(a), np.inf), None
    for _ in range(6):
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 401)
        distance = np.stack(
            [
                np.linalg.norm(screws.moved(a[:, None], 2 * np.arctan(tangent * s) / screws.angle)[:, 0] - b, axis=1)
                for s in grid.T
            ],
            axis=1,
        )
        k = distance.argmin(axis=1)
        best = np.minimum(best, distance.min(axis=1))
        sampled = best.copy() if sampled is None else sampled
        low, high = (grid[np.arange(len(a)), np.clip(k + step, 0, 400)] for step in (-1, 1))
    return best, sampled


@pytest.mark.feature("F-R-11")
@pytest.mark.parametrize("slide", [0.0, 0.3])
def test_spheres_overlap_exactly_where_sampled_distances_say_so(rng, effort, slide):
    count = effort(3000)
    screws = Screws(rng, count, angle=(0.01, 2.5), slide=slide)
    a, b = rng.normal(size=(count, 3)), rng.normal(size=(count, 3))
    radii, ends = rng.uniform(0.05, 1.0, size=count), rng.choice([1.0, 1.0, 0.4], size=count)
    refined, sampled = nearest(screws, a, b, ends)
    grazing = rng.random(count) < 0.3
    radii = np.where(grazing, refined * (1.0 + rng.choice([-1e-6, 1e-6], size=count)), radii)
    verdict, quartic = verdicts(screws, a, b, radii, ends, True)
    overlap = verdict % 2 == 1
    assert overlap[sampled <= radii].all()  # no false negative, without exception
    assert not overlap[refined > radii * (1.0 + 1e-9)].any()  # and no false positive
    assert 0.1 < overlap.mean() < 0.9
    assert np.allclose(quartic[:, 0], quartic[:, 1] * (1.0 + (np.tan(0.5 * screws.angle) * ends) ** 2), atol=1e-10)
    plain, _ = verdicts(screws, a, b, radii, ends, False)
    assert np.array_equal(plain % 2, verdict % 2)
    assert (plain >= 6).all()


@pytest.mark.feature("F-R-14")
def test_prefilters_decide_most_spheres_and_change_no_answer(rng):
    count = 4000
    screws = Screws(rng, count, slide=0.3)
    screws.slide[: count // 2] = 0.0
    a, b = rng.normal(size=(count, 3)), rng.normal(size=(count, 3))
    radii = rng.uniform(0.05, 0.6, size=count)
    verdict, _ = verdicts(screws, a, b, radii, np.ones(count), True)
    plain, _ = verdicts(screws, a, b, radii, np.ones(count), False)
    assert np.array_equal(plain % 2, verdict % 2)
    rejected, start, end = (int((verdict == way).sum()) for way in (0, 1, 3))
    assert min(rejected, start, end) > 10
    assert (verdict >= 6).mean() < 0.4  # the quartic is the exception
    assert (verdict[: count // 2] < 6).all()  # pure turns never need it


def test_paths_and_times_are_those_of_the_motion(rng):
    screws = Screws(rng, 50, angle=(0.0, 2.9))
    points = rng.normal(size=(50, 1, 3))
    records = screws.motion.records()
    for s in (0.0, 0.25, 1.0):
        t = times(s, records["angle"])
        expected = screws.moved(points, t)[:, 0]
        pose = np.stack([screws.motion.pose(float(at))[i] for i, at in enumerate(t)])
        given = screws.to_body(points)[:, 0]
        assert np.allclose(np.einsum("nij,nj->ni", pose[:, :3, :3], given) + pose[:, :3, 3], expected, atol=1e-12)
