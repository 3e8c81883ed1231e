"""Lists of bodies of every kind in the questions at one instant: what they answer is what single calls answer.

The oracle is the single call about each pair, bit for bit, and where a formula is known that formula.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tangere as tg
from tangere.query.distance.body_lists import NearestBodies
from tangere.query.distance.result import Distance
from tangere.runtime import InputError, UnsupportedError

BOX = tg.generate.box([1.0, 1.0, 1.0])
TIME = 0.5


def at(x: float, y: float, z: float, turn: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    pose[:3, 3] = x, y, z
    return pose


def passing(pose: np.ndarray) -> tg.Twist:
    """A motion that is at a pose, nearly, when half of the step is over."""
    start = pose.copy()
    start[2, 3] -= 1.0
    return tg.Twist(start, [0.0, 0.0, 2.0], [0.0, 0.0, 0.0])


GROUND = tg.Heightfield(np.zeros((13, 13)), 1.0, origin=(-6.0, -6.0, -0.5))
TILES = tg.TiledHeightfield(np.full((5, 5), 0.25), 1.0, origin=(20.0, -2.0, -0.5))
RAISED = BOX.vertices + (0.2, 2.2, 0.1)


@cache
def things() -> list:
    """Each kind at rest and in motion, a little apart from each other and over the ground; some touch."""
    path = tg.Path(np.stack([at(-2.2, 2.2, 1.0), at(-2.2, 2.2, 0.125), at(-2.2, 2.2, 2.0)]))
    chain = tg.Chain([passing(at(0.0, -2.3, 0.05)), tg.Twist(np.eye(4), [0, 0, 0], [0, 0, 0.2])]).link(1)
    return [
        tg.Sphere(0.5).at(at(0.0, 0.0, 0.02)),
        tg.Sphere(0.25).moving(passing(at(0.6, 0.4, 0.1))),
        tg.Capsule(0.25, 0.5).at(at(1.2, 0.0, 0.1, 0.3)),
        tg.Box([0.5, 0.4, 0.5]).at(at(-1.05, 0.1, 0.0, 0.1)),
        tg.Box([0.3, 0.3, 0.3]).moving(chain),
        tg.Cylinder(0.5, 1.0).at(at(0.1, 1.2, 0.004)),
        tg.Cylinder(0.4, 0.8).moving(passing(at(1.3, 1.2, 0.1))),
        tg.Cone(0.5, 1.0).at(at(2.2, 0.1, 0.2)),
        tg.ConvexMesh(BOX).at(at(-1.2, -1.2, 0.3, 0.4)),
        BOX.at(at(2.5, 2.5, 0.003)),
        BOX.moving(passing(at(-2.2, -0.2, 0.01))),
        BOX.moving(path),
        BOX.replace(vertices=RAISED).moving(tg.Linear(RAISED + (0.0, 0.0, 0.2))),
        GROUND,
        TILES,
        tg.Sphere(0.5).at(at(22.0, 0.0, 0.251)),
    ]


def is_ground(thing: object) -> bool:
    return thing is GROUND or thing is TILES


def single(question, a, b, **options):
    """The single call about a pair, ground second; and whether the sides were changed."""
    swapped = is_ground(a)
    one, other = (b, a) if swapped else (a, b)
    return question(one, other, time=TIME, device="cpu", **options), swapped


def pairs_of(bodies: list) -> list[tuple[int, int]]:
    return [
        (i, j) for i, j in combinations(range(len(bodies)), 2) if not (is_ground(bodies[i]) and is_ground(bodies[j]))
    ]


def same(a, b) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


def test_the_distance_of_two_in_a_list_is_that_of_the_single_call_for_every_pair_of_kinds():
    bodies = things()
    for i, j in pairs_of(bodies):
        alone, swapped = single(tg.distance, bodies[i], bodies[j])
        for listed in (
            tg.distance([bodies[i], bodies[j]], time=TIME, device="cpu"),
            tg.distance([bodies[i]], [bodies[j]], time=TIME, device="cpu") if not is_ground(bodies[i]) else None,
            tg.distance(bodies[i], [bodies[j]], time=TIME, device="cpu") if not is_ground(bodies[i]) else None,
        ):
            if listed is None:
                continue
            assert isinstance(listed, NearestBodies)
            for field in fields(Distance):
                told, expected = getattr(listed, field.name), getattr(alone, field.name)
                if swapped and field.name[-2:] in ("_a", "_b"):
                    expected = getattr(alone, field.name[:-1] + {"a": "b", "b": "a"}[field.name[-1]])
                if swapped and field.name == "normal":
                    expected = -expected
                assert same(told, expected), (i, j, field.name)


def test_the_nearest_of_a_list_is_the_least_of_all_single_calls():
    bodies = things()
    known = {pair: single(tg.distance, *(bodies[k] for k in pair))[0] for pair in pairs_of(bodies)}
    least = min(known, key=lambda pair: (known[pair].upper, pair))
    found = tg.distance(bodies, time=TIME, device="cpu")
    assert (found.upper, (found.body_a, found.body_b)) == (known[least].upper, least)
    meeting = sorted(pair for pair, told in known.items() if told.upper == 0.0)
    assert len(meeting) > 2
    # Without those that meet, and without the nearest of the others, again and again.
    allowed = list(meeting)
    for _ in range(25):
        left = {pair: told for pair, told in known.items() if pair not in allowed}
        least = min(left, key=lambda pair: (left[pair].upper, pair))
        found = tg.distance(bodies, allowed=allowed, time=TIME, device="cpu")
        assert (found.upper, (found.body_a, found.body_b)) == (left[least].upper, least)
        assert found.lower <= min(told.lower for told in left.values()) <= found.upper
        allowed.append(least)


def test_which_bodies_of_a_list_meet_is_told_as_by_single_calls():
    bodies = things()
    expected = [pair for pair in pairs_of(bodies) if single(tg.intersects, *(bodies[k] for k in pair))[0]]
    found = tg.intersects(bodies, time=TIME, device="cpu")
    assert list(zip(found.body_a.tolist(), found.body_b.tolist(), strict=True)) == expected
    assert found
    assert len(found) == len(expected) > 2
    none = tg.intersects(bodies, allowed=expected, time=TIME, device="cpu")
    assert not none
    assert repr(none) == "MeetingBodies(none)"
    halves = bodies[:8], bodies[8:13] + bodies[15:]
    across = tg.intersects(*halves, time=TIME, device="cpu")
    known = [
        (i, j) for (i, a), (j, b) in product(*map(enumerate, halves)) if tg.intersects(a, b, time=TIME, device="cpu")
    ]
    assert list(zip(across.body_a.tolist(), across.body_b.tolist(), strict=True)) == known


COLUMNS = "point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "kind", "vertex_on", "key", "weights"
TURNED = {"point_a": "point_b", "point_b": "point_a", "feature_a": "feature_b", "feature_b": "feature_a"}


@pytest.mark.parametrize("question", [tg.proximity, tg.manifold], ids=["proximity", "manifold"])
def test_the_contacts_of_a_list_are_those_of_single_calls_for_every_pair_of_kinds(question):
    bodies, asked = things(), {"distance": 0.3}
    if (
        question is tg.manifold
    ):  # which has no way out of surfaces that pass through each other, and no normal of Linear
        bodies = [body for body in bodies if not getattr(getattr(body, "motion", None), "start", None) is not None]
    known = {}
    for i, j in pairs_of(bodies):
        try:
            known[i, j] = single(question, bodies[i], bodies[j], **asked)
        except UnsupportedError:
            known[i, j] = None
    allowed = [pair for pair, told in known.items() if told is None]
    found = question(bodies, allowed=allowed, time=TIME, device="cpu", **asked)
    assert (found.query == 0).all()
    numbers = list(zip(found.body_a.tolist(), found.body_b.tolist(), strict=True))
    assert numbers == sorted(numbers)
    assert set(numbers) == {pair for pair, told in known.items() if told is not None and len(told[0])}
    assert len(set(numbers)) > 15
    for pair, told in known.items():
        if told is None:
            continue
        alone, swapped = told
        rows = [k for k, number in enumerate(numbers) if number == pair]
        assert len(rows) == len(alone)
        for name in COLUMNS:
            expected = getattr(alone, TURNED.get(name, name) if swapped else name)
            if swapped and name in ("normal", "vertex_on"):
                expected = -expected if name == "normal" else 1 - expected
            assert same(getattr(found, name)[rows], expected), (pair, name)
    for pair in allowed:
        with pytest.raises(UnsupportedError, match=f"bodies {pair[0]} and {pair[1]}: "):
            question(bodies, allowed=[other for other in allowed if other != pair], time=TIME, device="cpu", **asked)


def test_two_lists_have_the_contacts_of_one_of_each():
    bodies = things()
    first, second = bodies[:6], bodies[6:9] + bodies[13:14]
    near = tg.proximity(first, second, distance=0.4, time=TIME, device="cpu")
    rest = tg.manifold(first, second, distance=0.4, time=TIME, device="cpu")
    for found, question in ((near, tg.proximity), (rest, tg.manifold)):
        numbers = list(zip(found.body_a.tolist(), found.body_b.tolist(), strict=True))
        for (i, a), (j, b) in product(enumerate(first), enumerate(second)):
            alone = question(a, b, distance=0.4, time=TIME, device="cpu")
            rows = [k for k, number in enumerate(numbers) if number == (i, j)]
            assert same(found.gap[rows], alone.gap)
            assert same(found.point_a[rows], alone.point_a)
    mixed = tg.manifold(first, GROUND, time=TIME, device="cpu")
    assert set(mixed.body_b.tolist()) == {0}
    turned = tg.manifold([GROUND, *first], time=TIME, device="cpu")
    on_ground = turned[turned.body_a == 0]
    order = np.lexsort((mixed.key, mixed.body_a))
    assert same(on_ground.gap[np.lexsort((on_ground.key, on_ground.body_b))], mixed.gap[order])
    assert (on_ground.normal[:, 2] < 0.0).all()


@given(order=st.permutations(range(9)), ground=st.integers(0, 8))
@settings(max_examples=15, deadline=None)
def test_the_order_of_a_list_changes_numbers_only(order, ground):
    names = [0, 1, 2, 3, 5, 7, 8, 9, 13]
    bodies = [things()[k] for k in names]
    turned = [bodies[k] for k in order]
    place = {k: number for number, k in enumerate(order)}

    def renamed(pairs):
        return sorted(tuple(sorted((place[i], place[j]))) for i, j in pairs)

    asked = {"time": TIME, "device": "cpu"}
    one, other = tg.intersects(bodies, **asked), tg.intersects(turned, **asked)
    assert renamed(zip(one.body_a.tolist(), one.body_b.tolist(), strict=True)) == sorted(
        zip(other.body_a.tolist(), other.body_b.tolist(), strict=True)
    )
    meeting = [*zip(one.body_a.tolist(), one.body_b.tolist(), strict=True)]
    nearest = tg.distance(bodies, allowed=meeting, **asked)
    again = tg.distance(turned, allowed=renamed(meeting), **asked)
    assert nearest.upper == pytest.approx(again.upper, abs=1e-8)
    assert renamed([(nearest.body_a, nearest.body_b)]) == [(again.body_a, again.body_b)]
    near = [tg.proximity(each, distance=0.2, **asked) for each in (bodies, turned)]
    pairs = [sorted(zip(found.body_a.tolist(), found.body_b.tolist(), strict=True)) for found in near]
    assert renamed(pairs[0]) == pairs[1]


def test_many_balls_have_the_distances_of_their_centres(rng):
    """The oracle is the formula, for one list and for two, some hundred of either."""
    centres, radii = rng.uniform(-10.0, 10.0, (300, 3)), rng.uniform(0.05, 0.3, 300)
    balls = [tg.Sphere(radius).at(at(*centre)) for centre, radius in zip(centres, radii, strict=True)]
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2) - radii[:, None] - radii
    upper = np.triu(np.ones_like(gaps, bool), 1)
    meet = np.argwhere((gaps <= 0.0) & upper)
    found = tg.intersects(balls, device="cpu")
    np.testing.assert_array_equal(np.stack([found.body_a, found.body_b], axis=1), meet)
    left = np.where(upper & (gaps > 0.0), gaps, np.inf)
    nearest = tg.distance(balls, allowed=meet, device="cpu")
    assert (nearest.body_a, nearest.body_b) == np.unravel_index(left.argmin(), left.shape)
    assert nearest.upper == pytest.approx(left.min(), abs=1e-8)
    near = tg.proximity(balls, distance=0.5, device="cpu")
    np.testing.assert_array_equal(np.stack([near.body_a, near.body_b], axis=1), np.argwhere(upper & (gaps < 0.5)))
    across = tg.distance(balls[:100], balls[100:], device="cpu")
    block = np.maximum(gaps[:100, 100:], 0.0)
    assert across.upper == pytest.approx(block.min(), abs=1e-8)
    rest = tg.manifold(balls, distance=0.1, device="cpu")
    np.testing.assert_array_equal(np.stack([rest.body_a, rest.body_b], axis=1), np.argwhere(upper & (gaps <= 0.1)))
    np.testing.assert_allclose(rest.gap, gaps[rest.body_a, rest.body_b], atol=1e-9)


def test_solid_meshes_in_lists_are_solid():
    small, ball = tg.generate.box([0.2, 0.2, 0.2]), tg.Sphere(0.1)
    inside, far = ball.at(at(0.1, 0.0, 0.0)), BOX.at(at(5.0, 0.0, 0.0))
    found = tg.intersects([BOX, small, inside, far], allowed=[(1, 2)], device="cpu")
    assert not found
    found = tg.intersects([BOX, small, inside, far], allowed=[(1, 2)], solid=True, device="cpu")
    assert (found.body_a.tolist(), found.body_b.tolist()) == ([0, 0], [1, 2])
    assert tg.distance([small, BOX, far], solid=True, device="cpu").upper == 0.0
    assert tg.distance([small, BOX, far], device="cpu").upper == pytest.approx(0.4)


QUESTIONS = {
    "distance": tg.distance,
    "intersects": tg.intersects,
    "manifold": tg.manifold,
    "proximity": lambda *lists, **options: tg.proximity(*lists, distance=0.1, **options),
}


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_lists_without_two_bodies_are_answered_as_first_contact_does(question):
    ask, ball = QUESTIONS[question], tg.Sphere(0.5)
    assert tg.first_contact([], device="cpu").status == tg.Status.FREE
    for lists in (([],), ([], []), ([ball],), ([], [ball]), ([ball], []), (ball, [])):
        assert tg.first_contact(*lists, device="cpu").status == tg.Status.FREE
        found = ask(*lists, device="cpu")
        if question == "distance":
            assert (found.upper, found.lower, found.body_a, found.body_b) == (np.inf, np.inf, -1, -1)
            assert "none" in repr(found)
        else:
            assert len(found) == 0
    both = [GROUND, TILES, tg.Sphere(0.5).at(at(50.0, 0.0, 0.0))]
    assert question == "distance" or len(ask(both, device="cpu")) == 0  # two grounds are no pair


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_lists_that_cannot_be_asked_about_are_refused_in_one_sentence(question):
    ask, ball, poses = QUESTIONS[question], tg.Sphere(0.5), np.stack([np.eye(4)] * 2)
    for lists, why in (
        (([ball, None],), "body 1 of the list must be a mesh, an analytic body or ground, not None"),
        (([ball], ["ball"]), "body 0 of b must be a mesh, an analytic body or ground, not 'ball'"),
        (([ball, 3.0],), "body 1 of the list"),
        (([ball, [ball]],), "body 1 of the list"),
        (([ball, GROUND], [TILES]), "ground and ground is not known|grounds? .* not known"),
        (
            ([ball, tg.Sphere(0.5).at(np.stack([np.eye(4)] * 2))],),
            "body 1 of the list is 2 bodies: list them one by one",
        ),
        (([ball, BOX.moving(tg.Rest(poses))],), "body 1 of the list has 2 motions"),
    ):
        with pytest.raises((InputError, UnsupportedError), match=why) as refusal:
            ask(*lists, device="cpu")
        assert "\n" not in str(refusal.value)
    balls = [ball, tg.Sphere(0.5).at(at(3.0, 0.0, 0.0))]
    for options, why in (
        ({"time": np.nan}, r"time must be in \[0, 1\]"),
        ({"time": [0.0, 1.0]}, "a list is asked about at one time"),
        ({"allowed": [(0, 5)]}, r"allowed\[0\] is \[0, 5\] but there are 2 bodies"),
        ({"allowed": [("arm", 0)]}, "which no body has"),
    ):
        with pytest.raises(InputError, match=why):
            ask(balls, device="cpu", **options)
    with pytest.raises(InputError, match="allowed says which bodies"):
        ask(balls, balls, allowed=[(0, 1)], device="cpu")
    with pytest.raises(InputError, match="allowed says which bodies of a list may touch"):
        ask(ball, ball, allowed=[(0, 1)], device="cpu")
    if question == "manifold":
        with pytest.raises(InputError, match="a list of bodies takes no mode and no world"):
            tg.manifold([ball], [ball], world=[0], device="cpu")
    if question in ("manifold", "proximity"):
        for wrong in (-1.0, np.nan):
            with pytest.raises(InputError, match="distance"):
                {"manifold": tg.manifold, "proximity": tg.proximity}[question](balls, distance=wrong, device="cpu")
