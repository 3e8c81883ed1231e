"""The sample bounds the pass over everything; whatever it happens to hold, the answer stays the same.

The sample is made as small as it can be, so that it holds the only contact, none, a late one, or a tie.
"""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import FAMILIES, grid, scene, soup
from oracles.mesh_contacts import first_time, names, touching
from tangere.bvh.lbvh import linear_tree
from tangere.motion import Linear
from tangere.query.contacts import Status
from tangere.query.first_contact import DeformingOptions, first_contact
from tangere.query.first_contact.deforming import api as meshes
from tangere.shape.mesh import Mesh


@pytest.fixture
def searches(monkeypatch) -> list[tuple[bool, float, int]]:
    """Trees built from now on sample one unit; (sampled, until, found) of every search."""
    monkeypatch.setattr(linear_tree, "SAMPLE_LEAST", 1)
    monkeypatch.setattr(linear_tree, "SAMPLE_PART", 10**9)
    seen, search = [], meshes._search

    def spy(step, bodies, options, broad_phase, until, sampled):
        found = search(step, bodies, options, broad_phase, until, sampled)
        seen.append((sampled, until, len(found.time)))
        return found

    monkeypatch.setattr(meshes, "_search", spy)
    return seen


def row_of_triangles(count: int) -> Mesh:
    """Triangles far from each other along x, each lying in a plane of constant z."""
    triangle = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return soup(triangle + np.arange(count)[:, None, None] * [10.0, 0.0, 0.0])


def test_the_only_contact_is_kept_when_the_sample_holds_it(searches):
    """The pass certifies [0, t_c] and t_c is not after the contact: that very pair is rightly called free there."""
    floor = row_of_triangles(40)
    for k in range(40):
        drop = Mesh([[0.2, 0.2, 1.0], [0.2, 0.4, 2.0], [0.4, 0.2, 2.0]] + np.array([10.0 * k, 0.0, 0.0]), [[0, 1, 2]])
        fresh = Mesh(floor.vertices, floor.faces)
        searches.clear()
        hit = first_contact(fresh, drop.moving(Linear(drop.vertices - [0.0, 0.0, 1.7])), device="cpu")
        assert hit.status == Status.CONTACT
        assert hit.time == pytest.approx(1.0 / 1.7, abs=1e-9)
        assert hit.time <= 1.0 / 1.7
        assert searches[0][0]
        assert searches[0][2] == 1  # the spike is one cluster: all of it is sampled
        assert searches[1][1] < 0.6


def test_an_early_contact_outside_a_sample_with_a_late_one_is_found(searches):
    """Each triangle is hit, at its own time; the earliest moves from place to place."""
    floor, bounded = row_of_triangles(40), 0
    for k in range(40):
        times = np.full(40, 0.9)
        times[k] = 0.1
        spike = np.array([[0.2, 0.2, 1.0], [0.2, 0.4, 2.0], [0.4, 0.2, 2.0]])
        spikes = soup(spike + np.arange(40)[:, None, None] * [10.0, 0.0, 0.0])
        end = spikes.vertices - np.repeat(1.0 / times, 3)[:, None] * [0.0, 0.0, 1.0]
        searches.clear()
        hit = first_contact(Mesh(floor.vertices, floor.faces), spikes.moving(Linear(end)), device="cpu")
        assert hit.time == pytest.approx(0.1, abs=1e-9)
        assert hit.time <= 0.1
        bounded += searches[1][1] < 1.0
    assert bounded == 40


@pytest.mark.parametrize("family", FAMILIES)
def test_the_time_does_not_depend_on_the_sample(family, searches):
    for seed in range(4):
        a, b = scene(family, seed)
        hit = first_contact(a, b, start="trusted", device="cpu")
        brute = first_contact(a, b, start="trusted", options=DeformingOptions("brute"), device="cpu")
        assert hit.time == brute.time
        assert hit.status == brute.status
        assert hit.time <= first_time(touching(a, b))[1]


def test_of_contacts_at_one_time_the_same_is_told_whatever_was_sampled(searches):
    """A sheet comes down flat on another: everything touches at once, and ties go to the smallest features."""
    floor, sheet = grid(8, 8), grid(8, 8)
    above = sheet.vertices + [0.25, 0.25, 1.0]
    falling = Mesh(above, sheet.faces).moving(Linear(above - [0.0, 0.0, 2.0]))
    hit = first_contact(Mesh(floor.vertices, floor.faces), falling, device="cpu")
    brute = first_contact(floor, falling, options=DeformingOptions("brute"), device="cpu")
    assert (hit.time, hit.time_upper) == (brute.time, brute.time_upper)
    assert names(hit.contacts) == names(brute.contacts)
