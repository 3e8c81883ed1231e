"""First contact of moving analytic bodies: sampled, with distances that prove themselves."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.convex_distances import certificate, rows_of
from oracles.convex_families import DEGENERATE, PAIRS, bodies, family, poses, sizes
from tangere.published.redon_screws import CosineScrew
from tangere.runtime import InputError, UnsupportedError

TOLERANCE = 1e-6


def placed(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def thrown(kind: str, count: int, rng, spread: float = 1.2):
    """n bodies of a kind, off the centre of what moves, thrown and spinning."""
    side = bodies(kind, **sizes(kind, count, rng))
    side = side.at(poses(1, rng, 0.3)[0])
    start = poses(count, rng, spread)
    way = -start[:, :3, 3] * rng.uniform(0.5, 1.5, (count, 1)) + rng.normal(size=(count, 3)) * 0.3
    return side.moving(tg.Twist(start, way, rng.normal(size=(count, 3)) * 2.0))


def proved(a, b, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the distances at times, from points and normals whose certificates are checked."""
    found = tg.distance(a, b, time=times, device="cpu")
    rows = [rows_of(side.shape, side.motion.pose(times) @ np.asarray(side.shape.poses), len(times)) for side in (a, b)]
    proof = certificate(*rows, found.point_a, found.point_b, found.normal, (a.shape.hull.planes, b.shape.hull.planes))
    assert (proof.outside <= 1e-12).all()
    return proof.lower, np.where(found.kind == tg.Kind.OVERLAP, 0.0, proof.upper)


def judge(a, b, found, separation: float = 0.0, samples: int = 24) -> None:
    """None late, none missed; near at the time; in touch by the upper time."""
    free, start = found.status == tg.Status.FREE, found.status == tg.Status.START
    end = np.where(free, 1.0, np.minimum(found.time, 1.0))
    for part in (*np.linspace(0.0, 1.0, samples, endpoint=False), 0.9999, 0.999999):
        _, upper = proved(a, b, end * part)
        assert not (upper <= separation)[~start].any(), "late or missed"
    lower, upper = proved(a, b, np.where(free, 0.0, end))
    assert (lower[~free] <= separation + TOLERANCE).all()
    assert (upper[start] <= separation + 1e-12).all()
    known = np.isfinite(found.time_upper)
    lower, _ = proved(a, b, np.where(known, np.minimum(found.time_upper, 1.0), 0.0))
    assert (lower[known] <= separation + 1e-12).all()
    assert (found.time_upper >= found.time)[~free].all()
    apart = ~free & ~start
    gap = np.einsum("ni,ni->n", found.point_a - found.point_b, found.normal)[apart]
    assert (gap <= separation + TOLERANCE).all()
    assert (gap >= separation - 1e-14).all()  # rounding of the points


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_none_is_late_and_none_is_missed(kinds, rng, effort, device):
    count = effort(200)
    a, b = (thrown(kind, count, rng) for kind in kinds)
    found = tg.first_contact(a, b, tolerance=TOLERANCE, device=device)
    assert (found.status != tg.Status.UNRESOLVED).all()
    assert {tg.Status.FREE, tg.Status.CONTACT} <= set(found.status.tolist())
    judge(a, b, found)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_none_of_a_hundred_thousand_is_late(kinds, rng):
    a, b = (thrown(kind, 100_000, rng) for kind in kinds)
    found = tg.first_contact(a, b, tolerance=TOLERANCE, device="cpu")
    assert (found.status == tg.Status.UNRESOLVED).sum() <= 2
    judge(a, b, found)


@pytest.mark.parametrize("depth", [1e-7, 1e-8])
def test_what_overlaps_by_little_at_the_start_says_so(depth):
    """Less than the distance is first asked to."""
    for kinds in PAIRS:
        a, b = (bodies(kind, **sizes(kind, 1, np.random.default_rng(7))) for kind in kinds)
        away = placed(9.0, 3.0, 5.0)
        apart = tg.distance(a, b.at(away), device="cpu")
        away[:3, 3] += apart.normal * (apart.upper + depth)
        leaving = b.at(away).moving(tg.Twist(np.eye(4), -apart.normal, [0.0, 0.0, 0.0]))
        assert tg.first_contact(a, leaving, tolerance=1e-6, device="cpu").status == tg.Status.START, kinds


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_degenerate_pairs_that_move_towards_each_other_are_not_late(name, kinds, rng, effort):
    """Parallel faces and edges, needles, flat boxes, concentric ones, sizes of 1e-6 to 1e6; some touch at the start."""
    count = effort(24, 6)
    (a, place_a), (b, place_b) = family(name, *kinds, count, rng)
    size = rows_of(a, place_a).size + rows_of(b, place_b).size
    apart = tg.distance(a.at(place_a), b.at(place_b), device="cpu")
    start = place_b.copy()
    start[::2, :3, 3] += (apart.normal * apart.upper[:, None])[::2]  # which touch
    way = apart.normal * (apart.upper + size * rng.uniform(-0.5, 0.5, count))[:, None]
    way[::2] = apart.normal[::2] * (size * rng.choice([-1.0, 1.0], count))[::2, None]
    turn = np.where(rng.random((count, 1)) < 0.5, 0.0, rng.normal(size=(count, 3)))
    moving = b.moving(tg.Twist(start, way, turn))
    found = tg.first_contact(a.at(place_a), moving, device="cpu")
    free, begun = found.status == tg.Status.FREE, found.time == 0.0
    end = np.where(free, 1.0, np.minimum(found.time, 1.0))
    rounding = 1e-9 * size
    for part in (*np.linspace(0.0, 1.0, 12, endpoint=False), 0.9999):
        near = tg.distance(a.at(place_a), moving, time=end * part, device="cpu")
        assert not ((near.upper <= 0.0) & ~begun).any(), "late or missed"
    near = tg.distance(a.at(place_a), moving, time=end, device="cpu")
    tolerance = 1e-6 * (2.0 * size + np.linalg.norm(way, axis=1) + np.linalg.norm(turn, axis=1) * size)
    assert (near.lower <= tolerance + rounding)[~free].all()


def test_a_separation_counts_as_contact(rng, effort):
    a, b = thrown("box", effort(100), rng), thrown("cylinder", effort(100), rng)
    judge(a, b, tg.first_contact(a, b, separation=0.1, tolerance=TOLERANCE, device="cpu"), 0.1)


def test_a_ball_that_falls_on_a_box_touches_when_anybody_would_say():
    ball = tg.Sphere(0.5).moving(tg.Twist(placed(0.2, 0.1, 3.0), [0.0, 0.0, -2.0], [5.0, 3.0, 1.0]))
    box = tg.Box([1.0, 1.0, 1.0])
    for a, b, sign in ((ball, box, 1.0), (box, ball, -1.0)):
        hit = tg.first_contact(a, b, device="cpu")
        assert hit.status == tg.Status.CONTACT
        assert 0.75 - 1e-5 <= hit.time <= 0.75
        assert 0.75 <= hit.time_upper <= 0.75 + 1e-5
        np.testing.assert_allclose(hit.contacts.normal[0], [0.0, 0.0, sign], atol=1e-9)
        np.testing.assert_allclose(hit.contacts.point_b[0], [0.2, 0.1, 1.0], atol=1e-4)
        assert len(hit.contacts) == 1
        assert "contact at t=0.74999" in repr(hit)


def test_what_overlaps_or_touches_at_the_start_says_so():
    box = tg.Box([1.0, 1.0, 1.0])
    inside = tg.Sphere(0.2).moving(tg.Twist(placed(0.1), [9.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    leaving = tg.Box([1.0, 1.0, 1.0]).moving(tg.Twist(placed(2.0), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    near = tg.Box([1.0, 1.0, 1.0]).moving(tg.Twist(placed(2.0 + 1e-7), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    for start in ("checked", "trusted"):
        hit = tg.first_contact(inside, box, start=start, device="cpu")
        assert (hit.status, hit.time, hit.time_upper) == (tg.Status.START, 0.0, 0.0)
        assert hit.contacts.kind[0] == tg.Kind.OVERLAP
        assert tg.first_contact(leaving, box, start=start, device="cpu").status == tg.Status.START
        hit = tg.first_contact(near, box, start=start, device="cpu")
        assert (hit.status, hit.time) == (tg.Status.CONTACT, 0.0)
    assert tg.first_contact(near, box, separation=0.1, device="cpu").status == tg.Status.START


def test_bodies_at_rest_are_free_or_in_contact_at_the_start():
    assert not tg.first_contact(tg.Sphere(1.0), tg.Cone(1.0, 1.0).at(placed(5.0)), device="cpu")
    assert tg.first_contact(tg.Sphere(1.0), tg.Cone(1.0, 1.0).at(placed(1.0)), device="cpu").status == tg.Status.START


def test_a_spinning_wheel_takes_few_steps_and_is_not_late():
    """A million turns about its own axis leave a cylinder's outline where it is."""
    pose = placed(0.0, 0.0, 3.0)
    for body in (tg.Cylinder(0.5, 0.3), tg.Cone(0.5, 0.3), tg.Capsule(0.5, 0.3), tg.Sphere(0.5)):
        wheel = body.moving(tg.Twist(pose, [0.0, 0.0, -2.0], [0.0, 0.0, 1e4]))
        hit = tg.first_contact(wheel, tg.Box([1.0, 1.0, 1.0]), device="cpu")
        height = {"Sphere": 0.5, "Capsule": 0.65}.get(type(body).__name__, 0.15)
        assert hit.time == pytest.approx((2.0 - height) / 2.0, abs=1e-3)


def test_paths_and_chains_and_screws_are_followed():
    box, wall = tg.Box([0.2, 0.2, 0.2]), tg.Cylinder(0.5, 4.0).at(placed(2.0))
    corner = np.stack([placed(0.0, -3.0), placed(0.0, 0.0), placed(3.0, 0.0)])
    hit = tg.first_contact(box.moving(tg.Path(corner)), wall, device="cpu")
    assert hit.time == pytest.approx(0.5 + 0.5 * 1.3 / 3.0, abs=1e-5)
    assert hit.time <= 0.5 + 0.5 * 1.3 / 3.0
    both = tg.first_contact(
        box.moving(tg.Path(corner)), tg.Sphere(0.2).moving(tg.Path(corner[::-1], times=[0.0, 0.3, 1.0])), device="cpu"
    )
    assert both.status == tg.Status.CONTACT
    many = tg.first_contact(
        box.at(np.stack([placed(0.0), placed(0.0, 5.0)])).moving(tg.Path(corner)), wall, device="cpu"
    )
    assert many.time[0] == hit.time
    assert many.status.tolist() == [tg.Status.CONTACT, tg.Status.FREE]
    arm = tg.Chain([tg.Twist(np.eye(4), [0, 0, 0], [0, 0, 1.5]), tg.Twist(placed(1.0), [0, 0, 0], [0, 0, 1.5])])
    post = tg.Capsule(0.1, 2.0).at(placed(0.0, 1.4))
    hit = tg.first_contact(tg.Sphere(0.1).at(placed(0.6)).moving(arm.link(1)), post, device="cpu")
    times = np.linspace(0.0, 1.0, 20001)
    ways = arm.link(1).pose(times) @ placed(0.6)
    gaps = np.hypot(ways[:, 0, 3], ways[:, 1, 3] - 1.4) - 0.2
    assert hit.time == pytest.approx(times[np.argmax(gaps <= 0.0)], abs=2e-4)
    screw = tg.Screw(placed(-3.0), placed(0.0))
    assert tg.first_contact(box.moving(screw), tg.Sphere(0.5), device="cpu").time == pytest.approx(2.3 / 3.0, abs=1e-5)
    turned = placed(0.0)
    turned[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    slow = box.at(placed(0.5)).moving(CosineScrew(placed(-3.0), turned))
    for ask in (slow, box.at(np.stack([placed(0.5)] * 2)).moving(slow.motion)):
        hit = tg.first_contact(ask, tg.Sphere(0.5).moving(tg.Twist(np.eye(4), [0, 0.1, 0], [0, 0, 0])), device="cpu")
        first = np.atleast_1d(hit.time)[0]
        others = tg.Sphere(0.5).moving(tg.Twist(np.eye(4), [0, 0.1, 0], [0, 0, 0]))
        times = np.linspace(0.0, first, 200)
        assert (tg.distance(slow, others, time=times, device="cpu").lower > 0.0).all()
        assert tg.distance(slow, others, time=float(first), device="cpu").upper < 1e-5


def test_batches_pair_off_and_rows_are_the_same_bits_as_single_pairs(rng):
    a, b = thrown("capsule", 6, rng), tg.Box([0.5, 0.4, 0.3])
    many = tg.first_contact(a, b, device="cpu")
    for k in range(6):
        one = tg.first_contact(a.shape[k if len(a.shape) > 1 else 0].moving(a.motion[k]), b, device="cpu")
        assert (one.time, one.time_upper, one.status) == (many.time[k], many.time_upper[k], many.status[k])
    assert len(tg.first_contact(b.moving(a.motion[:0]), b, device="cpu")) == 0
    with pytest.raises(InputError, match="pair off"):
        tg.first_contact(thrown("box", 3, rng), thrown("box", 2, rng), device="cpu")


def test_bad_questions_are_told_in_one_sentence():
    a, b = tg.Sphere(1.0).moving(tg.Twist(placed(5.0), [-4.0, 0.0, 0.0], [0.0, 0.0, 0.0])), tg.Box([1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="tolerance 1e-20 is below 1e-12 of the size of pair 0"):
        tg.first_contact(a, b, tolerance=1e-20, device="cpu")
    with pytest.raises(InputError, match="takes no options"):
        tg.first_contact(a, b, options=tg.RigidOptions(), device="cpu")
    with pytest.raises(InputError, match="knows the mode 'sound'"):
        tg.first_contact(a, b, mode="exact", device="cpu")
    with pytest.raises(InputError, match="start must be"):
        tg.first_contact(a, b, start="somehow", device="cpu")
    with pytest.raises(UnsupportedError, match="ask with the moving analytic body first"):
        tg.first_contact(tg.Heightfield(np.zeros((4, 4))), a, device="cpu")
