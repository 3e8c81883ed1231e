"""The search by cubics and sphere trees: all pairs of features by brute force, and what each saving saves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.shapes.pot import pot as loose_pot
from bench.shapes.traps import comb_plates, thin_plate
from oracles.mesh_contacts import overlaps
from tangere.motion import Linear, Rest, Screw, Twist
from tangere.published.redon_cubics import (
    Switches,
    edge_edge_times,
    face_vertex_times,
    first_contact_by_cubics,
    search,
    vertex_face_times,
)
from tangere.published.redon_screws import TanScrew
from tangere.query.contacts import Kind, Status
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh


def placed(at=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0)):
    result = np.eye(4)
    result[:3, :3] = Rotation.from_rotvec(rotation).as_matrix()
    result[:3, 3] = at
    return result


def brute_force(a: Mesh, motion: TanScrew, b: Mesh) -> float:
    """The least time over all pairs of features."""

    def ask(times, moving, resting):
        i, j = (x.ravel() for x in np.meshgrid(np.arange(len(moving)), np.arange(len(resting)), indexing="ij"))
        return times(np.concatenate([moving[i], resting[j]], axis=1), motion, device="cpu").min()

    def vertices(mesh):
        return mesh.vertices[np.unique(mesh.faces)][:, None]

    faces_then_vertices = lambda points, motion, device: face_vertex_times(  # noqa: E731
        points[:, [3, 0, 1, 2]], motion, device=device
    )
    return min(
        ask(edge_edge_times, a.vertices[a.edges], b.vertices[b.edges]),
        ask(vertex_face_times, vertices(a), b.vertices[b.faces]),
        ask(faces_then_vertices, a.vertices[a.faces], vertices(b)),
    )


SMALL = {
    "boxes": (generate.box((1.0, 0.8, 0.6)), generate.box((0.5, 1.5, 0.7))),
    "sphere and comb": (generate.bumpy_sphere(80, radius=0.6), generate.comb(3)),
    "open pot of loose triangles and box": (loose_pot(120, radius=0.5), generate.box()),
    "thin plate and prism": (generate.plate(12, size=(1, 1, 1e-3)), generate.prism(5, radius=0.4)),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_search_finds_the_first_contact_of_all_pairs(rng, name):
    a, b = SMALL[name]
    hits = 0
    for turn in (0.0, 1e-7, 0.3, 1.0, 2.5):
        direction = rng.normal(size=3)
        start = placed(3.0 * direction / np.linalg.norm(direction), rng.normal(size=3))
        end = placed(rng.normal(size=3) * 0.2)
        axis = rng.normal(size=3)
        end[:3, :3] = Rotation.from_rotvec(turn * axis / np.linalg.norm(axis)).as_matrix() @ start[:3, :3]
        motion = TanScrew(start, end)
        expected = brute_force(a, motion, b)
        for radius in (0.05, 0.4):
            found = first_contact_by_cubics(a.moving(motion), b, switches=Switches(leaf_radius=radius))
            assert found.time == pytest.approx(expected, abs=1e-12)
        hits += np.isfinite(expected)
    assert hits >= 3


def test_exact_overlap_tests_find_nothing_before_the_contact_and_something_after_it(rng):
    """Sampled poses and exact edge-face tests know neither cubics nor spheres."""
    a, b = generate.bumpy_sphere(80, seed=3), generate.comb(3)
    for _ in range(3):
        direction = rng.normal(size=3)
        start = placed(4.0 * direction / np.linalg.norm(direction) + [0.3, 0.6, 0.0], rng.normal(size=3))
        end = placed((0.3, 0.6, 0.0), rng.normal(size=3) * 0.4) @ placed(rotation=start[:3, 0] * 0.3)
        end[:3, :3] = end[:3, :3] @ start[:3, :3]
        motion = TanScrew(start, end)
        time = first_contact_by_cubics(a.moving(motion), b, switches=Switches(leaf_radius=0.1)).time
        assert 0.0 < time < 1.0
        before = np.append(time * rng.random(10), time * (1.0 - 1e-9))
        assert not any(overlaps(a.at(motion.pose(float(t))), b) for t in before)
        assert overlaps(a.at(motion.pose(time + 1e-4)), b)


def contact_case():
    assembly = comb_plates(6)
    return assembly.part.moving(TanScrew(np.eye(4), pose((0.05, 0.4, 0.0), axis=2, angle=0.1))), assembly.fixed


def free_case():
    assembly = comb_plates(6)
    return assembly.part.moving(TanScrew(np.eye(4), pose((0.0, 0.8, 0.0)))), assembly.fixed


def rough_case():
    a, b = generate.bumpy_sphere(980, seed=1), generate.bumpy_sphere(980, seed=2)
    return a.moving(TanScrew(placed((3.5, 0.3, 0.1)), placed((0.5, 0.0, 0.0), (0.0, 0.6, 0.2)))), b


CASES = {"combs touch": contact_case, "combs part": free_case, "rough spheres": rough_case}


def run(case, **switches):
    return search(*CASES[case](), switches=Switches(leaf_radius=0.05, **switches))


@pytest.mark.parametrize("case", CASES)
def test_no_switch_changes_the_time_by_a_bit(case):
    everything = run(case).contact
    names = ["label_table", "pair_tables", "vertex_cache", "prefilters", "pass_time"]
    for name in names:
        assert run(case, **{name: False}).contact.time == everything.time
    assert run(case, **dict.fromkeys(names, False)).contact.time == everything.time


@pytest.mark.feature("F-R-16")
def test_labels_and_tables_save_tests_in_the_proportions_of_the_thesis():
    """Table 2.1: the label table saves sphere tests, the tables of pairs save elementary tests, both save most."""
    none, labels, pairs, both = (
        run("combs touch", label_table=label, pair_tables=pair)
        for label, pair in ((False, False), (True, False), (False, True), (True, True))
    )
    assert len({run.contact.time for run in (none, labels, pairs, both)}) == 1
    none, labels, pairs, both = (run.counts for run in (none, labels, pairs, both))
    assert labels.spheres <= 0.85 * none.spheres
    assert both.tests <= 0.82 * none.tests
    assert pairs.spheres == none.spheres
    assert both.spheres == labels.spheres
    for kind in ("edge_edge", "vertex_face", "face_vertex"):
        counts = [getattr(count, kind) for count in (none, labels, pairs, both)]
        assert counts[0] > counts[1] > counts[2] == counts[3] > 0
    assert none.labels_skipped == none.pairs_skipped == pairs.labels_skipped == labels.pairs_skipped == 0
    assert none.leaf_pairs == pairs.leaf_pairs > labels.leaf_pairs == both.leaf_pairs > 0
    assert labels.labels_skipped == both.labels_skipped > 0
    elementary = [count.edge_edge + count.vertex_face + count.face_vertex for count in (none, pairs)]
    assert pairs.pairs_skipped >= elementary[0] - elementary[1] > 0


@pytest.mark.feature("F-R-13")
@pytest.mark.parametrize("case", ["combs touch", "rough spheres"])
def test_the_vertex_cache_gives_the_same_contact_with_fewer_transforms(case):
    cached, plain = run(case), run(case, vertex_cache=False)
    assert cached.contact.time == plain.contact.time
    assert cached.contact.contacts.key.tolist() == plain.contact.contacts.key.tolist()
    assert cached.counts.transforms * 5 < plain.counts.transforms
    moving, _ = CASES[case]()
    assert cached.counts.transforms <= len(moving.shape.vertices)


def test_the_cache_of_one_search_is_not_taken_for_that_of_another():
    """The same body twice, with different motions: stamps tell old paths from new ones, nothing is cleared."""
    a, b = generate.box(), generate.box()
    times = []
    for distance in (2.0, 4.0):
        motion = TanScrew(placed((distance, 0.1, 0.2)), placed((0.0, 0.1, 0.2)))
        times.append(first_contact_by_cubics(a.moving(motion), b).time)
    assert times == pytest.approx([0.5, 0.75])


@pytest.mark.feature("F-R-14")
def test_prefilters_decide_most_sphere_tests_of_a_search():
    for case in CASES:
        counts = run(case).counts
        assert counts.rejected_by_path > 0
        assert counts.accepted_at_ends > 0
        assert counts.rejected_by_path + counts.accepted_at_ends + counts.quadratics + counts.quartics == counts.spheres
        assert counts.quartics < 0.5 * counts.spheres
        assert run(case, prefilters=False).counts.quartics == counts.spheres


def test_passing_the_earliest_time_saves_tests():
    assert run("rough spheres").counts.tests < run("rough spheres", pass_time=False).counts.tests


@pytest.mark.feature("F-R-17")
def test_a_thin_plate_is_not_missed_at_ten_thousand_widths_a_step(rng, effort):
    plate, obstacle = thin_plate(1008), thin_plate(1008)
    for _ in range(effort(10)):
        way = rng.normal(size=3) * [0.1, 0.1, 0.0] + [0.0, 0.0, 5.0]
        turn = rng.normal(size=3) * 0.3
        across = TanScrew(placed(way, rng.normal(size=3) * 0.2), placed(-way, turn))
        found = first_contact_by_cubics(plate.moving(across), obstacle, switches=Switches(leaf_radius=0.1))
        assert found.status == Status.CONTACT
        assert 0.3 < found.time < 0.7


def test_the_contact_says_where_and_which_way():
    a, b = generate.box((1, 1, 1)), generate.box((2, 2, 1))
    tilted = placed((0.1, 0.2, 3.0), (0.4, 0.3, 0.0))
    lower = tilted.copy()
    lower[2, 3] = 0.0
    found = first_contact_by_cubics(a.moving(TanScrew(tilted, lower)), b)
    lowest = (a.vertices @ tilted[:3, :3].T + tilted[:3, 3])[:, 2]
    contacts = found.contacts
    assert found.time == pytest.approx((lowest.min() - 0.5) / 3.0)
    assert (contacts.kind[0], contacts.vertex_on[0]) == (Kind.VERTEX_FACE, 0)
    assert contacts.feature_a[0] == lowest.argmin()
    assert contacts.normal[0] == pytest.approx([0, 0, 1], abs=1e-9)
    assert contacts.point_a[0, 2] == pytest.approx(0.5)
    assert contacts.gap[0] == pytest.approx(0.0, abs=1e-9)

    upside_down = first_contact_by_cubics(b.moving(TanScrew(np.eye(4), pose((0.0, 0.0, 3.0)))), a.at(tilted))
    assert (upside_down.contacts.kind[0], upside_down.contacts.vertex_on[0]) == (Kind.VERTEX_FACE, 1)
    assert upside_down.contacts.feature_b[0] == lowest.argmin()
    assert upside_down.contacts.normal[0] == pytest.approx([0, 0, -1], abs=1e-9)


def test_two_moving_bodies_meet_as_their_relative_motion_says():
    a, b = generate.box(), generate.box()
    left = Screw(placed((-3.0, 0.1, 0.2)), placed((0.0, 0.1, 0.2)))
    right = Screw(placed((3.0, 0.0, 0.0)), placed((0.0, 0.0, 0.0)))
    found = first_contact_by_cubics(a.moving(left), b.moving(right))
    assert found.time == pytest.approx(5.0 / 6.0)
    assert found.contacts.point_a[0, 0] == pytest.approx(0.0, abs=1e-9)
    assert first_contact_by_cubics(a.moving(left), b.moving(Rest(placed((5.0, 0.0, 0.0))))).status == Status.FREE


def test_long_turns_are_cut_into_tangent_screws_that_stay_near_the_motion():
    """A bar turned by several revolutions per step hits a peg at the angle geometry says, for turns about its end."""
    bar, peg = generate.box((2.0, 0.1, 0.1)), generate.box((0.1, 0.1, 0.4)).at(placed((0.0, 0.8, 0.0)))
    spin = Twist(placed(), np.zeros(3), np.array([0.0, 0.0, 5.0]))
    # The bar's side y' = 0.05 meets the peg's corner at (0.05, 0.75) first, at the angle at which its distance fits.
    corner = np.array([0.05, 0.75])
    angle = np.arctan2(corner[1], corner[0]) - np.arcsin(0.05 / np.linalg.norm(corner))
    found = first_contact_by_cubics(bar.moving(spin), peg)
    assert found.time == pytest.approx(angle / 5.0, abs=1e-9)
    finer = first_contact_by_cubics(bar.moving(spin), peg, switches=Switches(largest_turn=0.2))
    assert finer.time == pytest.approx(found.time, abs=1e-9)


def test_touching_at_the_start_is_told():
    a, b = generate.box(), generate.box()
    found = first_contact_by_cubics(a.moving(TanScrew(placed((1.0, 0.1, 0.1)), placed((3.0, 0.1, 0.1)))), b)
    assert (found.time, found.status) == (0.0, Status.START)


def test_a_full_table_is_replaced_by_a_larger_one():
    """More pairs than the first table holds: the answer is that without tables."""
    a, b = generate.bumpy_sphere(980, seed=1), generate.bumpy_sphere(980, seed=2)
    motion = TanScrew(placed((4.0, 0.0, 0.0)), placed((1.5, 0.0, 0.0), (0.3, 0.0, 0.0)))
    coarse = {"leaf_radius": 0.5, "pass_time": False}
    full = search(a.moving(motion), b, switches=Switches(**coarse))
    tests = full.counts.edge_edge + full.counts.vertex_face + full.counts.face_vertex
    assert tests > 1 << 14
    plain = search(a.moving(motion), b, switches=Switches(**coarse, pair_tables=False, label_table=False))
    assert full.contact.time == plain.contact.time < 1.0


def test_what_does_not_move_rigidly_is_refused():
    mesh = generate.box()
    with pytest.raises(InputError, match="takes one rigid motion"):
        first_contact_by_cubics(mesh.moving(Linear(mesh.vertices + 1.0)), mesh)
    with pytest.raises(InputError, match="takes one rigid motion"):
        first_contact_by_cubics(mesh.moving(TanScrew(np.stack([np.eye(4)] * 2), np.eye(4))), mesh)
    with pytest.raises(InputError, match="leaf_radius"):
        Switches(leaf_radius=0.0)
    with pytest.raises(InputError, match="largest_turn"):
        Switches(largest_turn=4.0)
