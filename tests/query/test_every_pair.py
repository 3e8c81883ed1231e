"""Every pair of things in every question: each is answered, by a formula that anybody knows, or refused with the list.

All things are as high as each other, 0.5 above and below their middle, and stand over each other on one axis, so their
distance is the height between them, whatever they are and however they turn about the axis.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

import tangere as tg
from tangere.query import dispatch
from tangere.query.dispatch import TABLE, engine_for, kind_of, registered, supported
from tangere.runtime import UnsupportedError

HEIGHT, FALL = 1.5, 4.0  #: of a over b, from middle to middle; how far it falls in a step
GAP = HEIGHT - 1.0
#: When a, falling, touches b.
TIME = GAP / FALL
BOX = tg.generate.box([1.0, 1.0, 1.0])
FLAT = tg.Heightfield(np.full((9, 9), 0.5), 1.0, origin=(-4.0, -4.0, 0.0))


def placed(z: float) -> np.ndarray:
    pose = np.eye(4)
    pose[2, 3] = z
    return pose


TILES = tg.TiledHeightfield(FLAT.heights, 1.0, origin=(-4.0, -4.0, 0.0))

SHAPES = {
    "sphere": tg.Sphere(0.5),
    "capsule": tg.Capsule(0.25, 0.5),
    "box": tg.Box([0.5, 0.5, 0.5]),
    "cylinder": tg.Cylinder(0.5, 1.0),
    "cone": tg.Cone(0.5, 1.0),
    "hull": tg.ConvexMesh(BOX),
    "mesh": BOX,
}


def motions(z: float, way: float) -> dict:
    """From a height, straight on by a way, as every motion there is."""
    turned = placed(z + way)
    turned[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    lift = tg.Twist(placed(z), [0.0, 0.0, way], [0.0, 0.0, 0.0])
    return {
        "twist": tg.Twist(placed(z), [0.0, 0.0, way], [0.0, 0.0, 2.0]),
        "screw": tg.Screw(placed(z), turned),
        "path": tg.Path(np.stack([placed(z), placed(z + 0.5 * way), placed(z + way)])),
        "chain": tg.Chain([lift, tg.Twist(np.eye(4), [0, 0, 0], [0, 0, 2.0])]).link(1),
    }


def deforming(z: float, way: float):
    """The box, which becomes narrower on its way."""
    up = BOX.vertices + (0.0, 0.0, z)
    return BOX.replace(vertices=up).moving(tg.Linear(up * (0.7, 0.7, 1.0) + (0.0, 0.0, way)))


def falling() -> dict:
    """Every shape in every motion, from `HEIGHT` on down."""
    things = {
        f"{name} by {how}": shape.moving(motion)
        for name, shape in SHAPES.items()
        for how, motion in motions(HEIGHT, -FALL).items()
    }
    return things | {"mesh by linear": deforming(HEIGHT, -FALL)}


def standing() -> dict:
    """Every shape at rest around the origin, or nearly: in a motion that leads nowhere."""
    things = dict(SHAPES)
    for name, how in (("mesh", "twist"), ("mesh", "path"), ("cylinder", "path"), ("box", "chain")):
        things[f"{name} by {how}"] = SHAPES[name].moving(motions(0.0, 0.0)[how])
    return things | {"mesh by linear": deforming(0.0, 0.0), "ground": FLAT, "tiles": TILES}


A, B = falling(), standing()
GROUND = ("ground", "tiles")
TURNS = [(a, b) for a, b in product(A, B) if a.split()[0] in ("mesh", "box", "cone") or b in SHAPES or b in GROUND]


@pytest.mark.parametrize(("a", "b"), TURNS, ids=lambda name: name.replace(" ", "-"))
def test_first_contact_is_when_the_height_between_them_is_used_up(a, b):
    if b == "mesh by linear" and a == "mesh by linear":
        pytest.skip("two meshes in Linear motion have their own tests")
    sides = [(A[a], B[b], 1.0)]
    if b not in GROUND:
        sides.append((B[b], A[a], -1.0))
    for one, other, sign in sides:
        hit = tg.first_contact(one, other, tolerance=1e-6, device="cpu")
        assert hit.status == tg.Status.CONTACT, (a, b)
        assert TIME - 3e-6 / FALL <= hit.time <= TIME + 1e-12, (a, b)
        assert hit.time_upper >= TIME - 1e-9
        assert hit.contacts.normal[0, 2] * sign > 0.0


@pytest.mark.parametrize(("a", "b"), list(product(A, B)), ids=lambda name: name.replace(" ", "-"))
def test_distance_intersects_and_contacts_are_those_of_the_height(a, b):
    one, other = A[a], B[b]
    for time, height in ((0.0, GAP), (0.0625, GAP - 0.25), (0.25, None)):
        expected = 0.0 if height is None else height
        found = tg.distance(one, other, time=time, device="cpu")
        assert found.lower - 1e-8 <= expected <= found.upper + 1e-8
        assert tg.intersects(one, other, time=time, device="cpu") == (height is None)
        for distance in (expected + 0.1, 0.5 * expected):
            if distance == 0.0:
                continue
            near = tg.proximity(one, other, distance=distance, time=time, device="cpu")
            assert (len(near) > 0) == (distance > expected)
            if len(near) and height is not None:
                assert near.gap.min() == pytest.approx(expected, abs=1e-8)
                assert (near.normal[:, 2] > 0.0)[near.gap <= expected + 1e-9].all()
    if b not in GROUND:
        swapped = tg.distance(other, one, time=0.0, device="cpu")
        assert swapped.upper == pytest.approx(GAP, abs=1e-8)
        near = tg.proximity(other, one, distance=GAP + 0.1, device="cpu")
        assert near.gap.min() == pytest.approx(GAP, abs=1e-8)
        assert near.normal[near.gap.argmin(), 2] < 0.0


@pytest.mark.parametrize("b", ["sphere", "cone", "hull", "mesh", "mesh by path", "ground"])
@pytest.mark.parametrize("a", ["sphere", "cylinder", "hull", "mesh"])
def test_the_least_clearance_is_that_of_the_lowest_instant(a, b):
    passing = SHAPES[a].moving(tg.Twist(placed(3.0), [0.0, 0.0, -1.6], [0.0, 0.0, 2.0]))
    found = tg.least_clearance(passing, B[b], accuracy=0.05, device="cpu")
    assert found.lower <= 0.4 <= found.upper + 1e-9
    assert found.upper <= 0.4 / 0.95 + 1e-9
    assert found.lower >= 0.95 * found.upper - 1e-9
    assert found.time == pytest.approx(1.0, abs=0.05)
    hitting = SHAPES[a].moving(tg.Twist(placed(3.0), [0.0, 0.0, -2.5], [0.0, 0.0, 2.0]))
    assert tg.least_clearance(hitting, B[b], device="cpu").lower == 0.0
    far = tg.least_clearance(passing, B[b], cap=0.1, device="cpu")
    assert (far.lower, far.upper) == (pytest.approx(0.09), np.inf)


def test_batches_have_the_answers_of_their_rows():
    drop = tg.Twist(np.stack([placed(HEIGHT), placed(HEIGHT + 1.0)]), [0.0, 0.0, -FALL], [0.0, 0.0, 1.0])
    for (name, shape), (other, b) in product(SHAPES.items(), B.items()):
        if name == "mesh" and other in ("mesh by linear", "mesh by path"):
            continue  # of these one motion is asked about at a time
        many = tg.first_contact(shape.moving(drop), b, device="cpu")
        np.testing.assert_allclose(many.time, [TIME, (GAP + 1.0) / FALL], atol=3e-6, err_msg=f"{name} {other}")
        if not (name == "mesh" and other.endswith("linear")):
            apart = tg.distance(shape.moving(drop), b, device="cpu")
            np.testing.assert_allclose(apart.upper, [GAP, GAP + 1.0], atol=1e-8)
        if name != "mesh":
            near = tg.proximity(shape.moving(drop), b, distance=GAP + 1.1, device="cpu", nearest=True)
            np.testing.assert_array_equal(near.query, [0, 1])
            clear = tg.least_clearance(shape.moving(drop), b, device="cpu") if "linear" not in other else None
            assert clear is None or (clear.lower == 0.0).all()


@pytest.mark.parametrize("b", ["sphere", "cone", "hull", "mesh", "mesh by path", "ground", "tiles"])
@pytest.mark.parametrize("a", ["sphere", "cylinder", "hull", "mesh"])
def test_many_instants_are_answered_one_by_one(a, b):
    """In every question at an instant: at the start they are apart, then nearer, then they overlap."""
    one, other, times = A[f"{a} by twist"], B[b], np.array([0.0, 0.0625, 0.25])
    sides = [(one, other)] if b in GROUND else [(one, other), (other, one)]
    for first, second in sides:
        assert tg.intersects(first, second, time=times, device="cpu").tolist() == [False, False, True]
        assert tg.intersects(first, second, time=times[2:], device="cpu").tolist() == [True]
        near = tg.proximity(first, second, distance=GAP - 0.1, time=times, device="cpu")
        assert set(near.query.tolist()) == {1, 2}
        assert near.gap[near.query == 1].min() == pytest.approx(GAP - 0.25, abs=1e-8)
        alone = tg.proximity(first, second, distance=GAP - 0.1, time=times[1], device="cpu")
        assert (near.query == 1).sum() == len(alone)
    if a == "mesh" and b == "mesh":
        small = tg.generate.box([0.1, 0.1, 0.1]).moving(tg.Twist(placed(0.0), [0.0, 0.0, 9.0], [0, 0, 0]))
        assert tg.intersects(small, BOX, time=[0.0, 0.055, 1.0], device="cpu").tolist() == [False, True, False]
        solid = tg.intersects(small, BOX, time=[0.0, 0.055, 1.0], solid=True, device="cpu")
        assert solid.tolist() == [True, True, False]


@pytest.mark.parametrize("ground", [FLAT, TILES], ids=["heightfield", "tiles"])
@pytest.mark.parametrize("name", list(SHAPES))
def test_what_is_below_the_ground_is_in_it_however_deep_and_in_lists(name, ground):
    """The surface is at 0.5: near it or 1e6 below it, a body that has no point above is inside, and begins so."""
    for height in (-0.05, -1.0, -40.0, -1e6):
        pose = placed(height)
        pose[:2, 3] = 0.2, 0.3
        body = SHAPES[name].moving(tg.Twist(pose, [0.0, 0.0, 1e-3], [0.0, 0.0, 0.1]))
        assert tg.distance(body, ground, device="cpu").upper == 0.0
        assert tg.intersects(body, ground, device="cpu")
        near = tg.proximity(body, ground, distance=0.2, device="cpu")
        assert near.kind.tolist() == [tg.Kind.INSIDE]
        assert near.gap.tolist() == [0.0]
        listed = tg.proximity([ground, body], distance=0.2, device="cpu")
        assert listed.kind.tolist() == [tg.Kind.INSIDE]
        assert (listed.body_a.tolist(), listed.body_b.tolist()) == ([0], [1])
        for hit in (
            tg.first_contact(body, ground, tolerance=1e-3, device="cpu"),
            tg.first_contact([ground, body], tolerance=1e-3, device="cpu"),
            tg.first_contact([body], [ground, SHAPES["box"].at(placed(1e3))], tolerance=1e-3, device="cpu"),
        ):
            assert (hit.status, hit.time) == (tg.Status.START, 0.0)
    above = SHAPES[name].moving(tg.Twist(placed(1.1), [0.0, 0.0, 1e-3], [0.0, 0.0, 0.1]))
    assert tg.first_contact([ground, above], device="cpu").status == tg.Status.FREE
    assert tg.proximity([ground, above], distance=0.2, device="cpu").gap.min() == pytest.approx(0.1, abs=1e-8)


def test_lists_of_all_kinds_find_the_pair_that_touches_first():
    things = [SHAPES[name].moving(tg.Rest(shift)) for name, shift in zip(SHAPES, shifts(10.0), strict=True)]
    things += [FLAT_FAR, deforming(30.0, -1.0)]
    for name, shift in zip(SHAPES, shifts(10.0), strict=True):
        for how, motion in motions(0.0, 0.0).items():
            raised = shift.copy()
            raised[2, 3] += HEIGHT
            fall = tg.Twist(raised, [0.0, 0.0, -FALL], [0.0, 0.0, 1.0])
            ball = tg.Sphere(0.5).moving(fall)
            hit = tg.first_contact([*things, ball], device="cpu")
            assert hit.status == tg.Status.CONTACT
            assert hit.time == pytest.approx(TIME, abs=3e-6)
            assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (list(SHAPES).index(name), len(things))
            assert hit.contacts.normal[0, 2] < 0.0
            across = tg.first_contact([ball, SHAPES["box"].moving(motion)], things, device="cpu")
            assert across.status == tg.Status.CONTACT or how
            assert (across.contacts.body_a[0], across.contacts.body_b[0]) == (0, list(SHAPES).index(name))
            break


def shifts(apart: float) -> list[np.ndarray]:
    poses = []
    for k in range(len(SHAPES)):
        poses.append(placed(0.0))
        poses[-1][0, 3] = apart * (k + 1)
    return poses


FLAT_FAR = tg.Heightfield(np.full((5, 5), -50.0), 50.0, origin=(-100.0, -100.0, 0.0))


def test_a_list_falls_on_its_ground():
    mixed = [tg.Sphere(0.5).moving(motions(HEIGHT, -FALL)["path"]), FLAT, BOX.moving(tg.Rest(placed(9.0)))]
    hit = tg.first_contact(mixed, device="cpu")
    assert hit.time == pytest.approx(TIME, abs=3e-6)
    assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (0, 1)
    back = tg.first_contact([FLAT, mixed[0]], device="cpu")
    assert back.time == hit.time
    assert back.contacts.normal[0, 2] < 0.0 < hit.contacts.normal[0, 2]
    cloth = tg.first_contact([deforming(HEIGHT, -FALL), FLAT, tg.Sphere(0.5).at(placed(20.0))], device="cpu")
    assert cloth.time == pytest.approx(TIME, abs=3e-6)
    assert tg.first_contact([FLAT, tg.Sphere(0.5).at(placed(0.0))], device="cpu").status == tg.Status.FREE  # at rest
    near = tg.proximity(mixed, distance=GAP + 0.1, device="cpu", nearest=True)
    assert [(int(i), int(j)) for i, j in zip(near.body_a, near.body_b, strict=True)] == [(0, 1)]
    assert near.gap[0] == pytest.approx(GAP, abs=1e-8)


#: Of every kind of the table the smallest thing.
KINDS = {
    dispatch.MESH: BOX,
    dispatch.DEFORMING: deforming(HEIGHT, -FALL),
    dispatch.RIGID: A["mesh by twist"],
    dispatch.ALONG_PATH: A["mesh by path"],
    dispatch.CYLINDER: SHAPES["cylinder"],
    dispatch.BODY: SHAPES["cone"],
    dispatch.MOVING_BODY: A["sphere by screw"],
    dispatch.TERRAIN: FLAT,
    dispatch.BODIES: [BOX, SHAPES["cone"]],
    dispatch.TERRAINS: [FLAT, FLAT],
    dispatch.POINTS: np.zeros((2, 3)),
}
#: What questions need besides two things.
NEEDED = {"proximity": {"distance": 0.1}}


@pytest.mark.parametrize("question", sorted({row.question for row in TABLE}))
def test_what_is_called_does_what_the_table_says_for_every_two_kinds(question):
    """The table and the functions agree: what it has is answered, what it lacks raises with the list of what it has."""
    ask = getattr(tg, question)
    for (a, one), (b, other) in product(KINDS.items(), [*KINDS.items(), (None, None)]):
        assert kind_of(one) == a
        fits = [row for row in supported(question) if a in row.a and b in row.b]
        extra = dict(NEEDED.get(question, {}))
        if b == dispatch.TERRAINS and question == "manifold" and a != dispatch.BODIES:
            extra["world"] = np.zeros(1, np.int32)
        if question == "largest_step" and fits and b is not None:
            continue  # which begins with a gap; `test_every_row_of_the_table_answers` has one
        things = (one,) if other is None else (one, other)
        if fits:
            assert engine_for(question, one, other) == fits[0].engine
            assert ask(*things, device="cpu", **extra) is not None
            continue
        if other is None and question in ("intersecting_pairs", "least_clearance", "signed_distance", "touches"):
            continue  # they take two things
        if question == "signed_distance" and a == dispatch.BODIES:
            continue  # a list of numbers is what it takes for points
        with pytest.raises(UnsupportedError) as refusal:
            ask(*things, device="cpu", **extra)
        assert (
            "known" in str(refusal.value)
            or "ask with the" in str(refusal.value)
            or "first_contact(" in str(refusal.value)
        )


def test_every_engine_of_the_table_is_registered_or_is_what_people_call():
    own = {"meshes", *(row.question for row in TABLE)}
    for row in TABLE:
        assert row.engine in registered(row.question) or row.engine in own, row
    for question in {row.question for row in TABLE}:
        assert set(registered(question)) <= {row.engine for row in supported(question)}


def test_ground_and_ground_is_refused_with_what_works():
    questions = tg.first_contact, tg.distance, tg.intersects, tg.manifold, tg.least_clearance
    for ask in (*questions, partial(tg.proximity, distance=1.0)):
        with pytest.raises(UnsupportedError, match=r"of ground and ground is not known: .* known: a .*Heightfield"):
            ask(FLAT, FLAT)
