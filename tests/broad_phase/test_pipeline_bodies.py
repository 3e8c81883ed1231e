"""Pairs between chosen bodies only: passing over the others loses none that is asked for; large scenes are cut up."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.moving_meshes import soup
from tangere.broad_phase.triangles import Surfaces
from tangere.broad_phase.triangles.triangle_aabbs import TriangleAabbs
from tangere.published.leonard_grid.grid.cells import CHUNK, define_grid, region_of
from tangere.published.leonard_grid.grid.entries import cell_runs, grid_entries, sorted_entries
from tangere.published.leonard_grid.grid.octants import published_entries, published_grid
from tangere.published.leonard_grid.grid.pairs import cell_pairs
from tangere.published.leonard_grid.kdop import near_objects
from tangere.published.leonard_grid.pipeline import Settings, find_pairs
from tangere.runtime import using_threads
from tangere.shape import generate

#: Which of four bodies are compared with which.
JOBS = {
    "two with each other": [(0, 1)],
    "all with each other": [(a, b) for a in range(4) for b in range(a + 1, 4)],
    "some with themselves": [(0, 0), (0, 2), (1, 3), (2, 2), (2, 3)],
    "one with itself": [(2, 2)],
    "all": [(a, b) for a in range(4) for b in range(a, 4)],
}


def corners_of(codes: np.ndarray) -> np.ndarray:
    """Codes of boxes (n, 6) as lower and upper corners (n, 2, 3)."""
    bits = (np.abs(codes).astype(np.int32) << 1).view(np.float32).astype(np.float64)
    values = np.where(codes < 0, -bits, bits)
    return np.stack([values[:, :3], -values[:, 3:]], axis=1)


def table(pairs: wp.array | None) -> list[list[int]]:
    assert pairs is not None
    return sorted(pairs.numpy().reshape(-1, 2).tolist())


def four_bodies(rng: np.random.Generator, ratio: float) -> list:
    """Loose triangles of mixed sizes, all over the same place."""
    sizes = [ratio ** -rng.random((count, 1, 1)) for count in (60, 1, 90, 120)]
    return [soup(rng.random((len(s), 1, 3)) + 0.2 * s * rng.normal(size=(len(s), 3, 3))) for s in sizes]


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("levels", [False, True])
def test_bodies_are_paired_with_those_they_are_compared_with_and_no_others(jobs, levels, rng, device):
    surfaces = Surfaces.of(four_bodies(rng, 30.0), device)
    chosen = np.array(JOBS[jobs], np.int32)
    aabbs = TriangleAabbs.of(surfaces, 0.02, chosen)
    boxes, body = corners_of(aabbs.boxes.numpy()), aabbs.body.numpy()
    i, j = np.triu_indices(len(boxes), 1)
    meet = (boxes[i, 0] <= boxes[j, 1]).all(axis=1) & (boxes[j, 0] <= boxes[i, 1]).all(axis=1)
    asked = np.zeros((4, 4), bool)
    asked[chosen[:, 0], chosen[:, 1]] = asked[chosen[:, 1], chosen[:, 0]] = True
    expected = np.stack([i, j], axis=1)[meet & asked[body[i], body[j]]].tolist()
    largest = (boxes[:, 1] - boxes[:, 0]).max()
    for cell in (None, 0.1 * largest, largest, 4.0 * largest):
        grid = define_grid(aabbs, levels=levels, cell=cell)
        entries = sorted_entries(grid_entries(aabbs, grid))
        assert table(cell_pairs(aabbs, grid, entries, cell_runs(entries))) == expected, cell
    assert expected


@pytest.mark.parametrize("jobs", JOBS)
def test_the_published_rule_decides_each_pair_alike_whoever_else_is_compared(jobs, rng, device):
    surfaces = Surfaces.of(four_bodies(rng, 2.0), device)
    found = {}
    for name in (jobs, "all"):
        aabbs = TriangleAabbs.of(surfaces, 0.02, np.array(JOBS[name], np.int32))
        hull = near_objects(surfaces.meshes, 0.02).boxes
        region = np.stack([hull[:, 0].min(axis=0), hull[:, 1].max(axis=0)])
        frame = surfaces.frame
        grid = published_grid(aabbs, (region - frame.origin) * frame.scale, frame.scale)
        raw, rule = published_entries(aabbs, grid, surfaces.layout.faces)
        entries = sorted_entries(raw)
        found[name] = table(cell_pairs(aabbs, grid, entries, cell_runs(entries), rule=rule))
    body = surfaces.layout.body.numpy().tolist()
    assert found[jobs] == [pair for pair in found["all"] if (body[pair[0]], body[pair[1]]) in JOBS[jobs]]
    assert found[jobs]


def test_a_body_that_is_compared_with_itself_takes_part_as_a_whole_and_one_that_is_not_in_regions_only():
    torus = generate.torus(1600)
    beside = torus.replace(vertices=torus.vertices + [0.8 * np.ptp(torus.vertices[:, 0]), 0.0, 0.0])
    surfaces = Surfaces.of([torus, beside], "cpu")
    alone = find_pairs(surfaces, 0.05, Settings(within=False)).counts["triangles"]
    assert 0 < alone < len(torus.faces)
    assert find_pairs(surfaces, 0.05, Settings()).counts["triangles"] == 2 * len(torus.faces)


def test_cells_fit_the_mean_size_of_all_triangles_also_of_those_in_later_chunks(device):
    count = 2 * CHUNK + 17
    places = np.stack([np.arange(count) % 130, np.arange(count) // 130, np.zeros(count)], axis=1)
    triangles = places[:, None] + np.array([[0.0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]])
    triangles[-9:] = places[-9:, None] + np.array([[0.0, 0, 0], [2.0, 0, 0], [0, 2.0, 0]])
    surfaces = Surfaces.of([soup(triangles)], device)
    aabbs = TriangleAabbs.of(surfaces, 1e-6)
    boxes = corners_of(aabbs.boxes.numpy())
    sizes = (boxes[:, 1] - boxes[:, 0]).max(axis=1)
    specs = []
    for threads in (1, 3):
        with using_threads(threads):
            specs.append(region_of(define_grid(aabbs, levels=False)).copy())
    assert specs[0] == specs[1]
    assert specs[0]["largest"] == sizes.max()
    assert specs[0]["cell"] == pytest.approx(1.5 * sizes.mean(), rel=1e-12)
    assert np.array_equal(specs[0]["origin"], boxes[:, 0].min(axis=0))
