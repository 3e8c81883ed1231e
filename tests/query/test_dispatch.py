"""The table of questions: every row answers, what it does not have is refused, and it loads no engine."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tangere as tg
from tangere.query import dispatch
from tangere.query.dispatch import TABLE, answer, engine_for, kind_of, refuse_unsupported, registered, supported
from tangere.runtime import InputError, UnsupportedError
from tools import pairs


def shifted(x: float, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[0, 3], pose[2, 3] = x, z
    return pose


BOX = tg.generate.box()
GROUND = tg.Heightfield(np.zeros((4, 4)))
#: The smallest thing of each kind; those that move go towards the origin by 3.
THINGS = {
    dispatch.MESH: BOX,
    dispatch.DEFORMING: BOX.at(shifted(3.0)).moving(tg.Linear(BOX.vertices)),
    dispatch.RIGID: BOX.moving(tg.Twist(shifted(3.0), [-3.0, 0.0, 0.0], [0.0, 0.0, 0.5])),
    dispatch.ALONG_PATH: BOX.moving(tg.Path(np.stack([shifted(3.0), shifted(1.5), shifted(0.0)]))),
    dispatch.CYLINDER: tg.Cylinder(0.5, 1.0).at(shifted(1.5, 0.49)),
    dispatch.BODY: tg.Sphere(0.5).at(shifted(1.5, 0.49)),
    dispatch.MOVING_BODY: tg.Sphere(0.5).moving(tg.Twist(shifted(1.5, 3.0), [0.0, 0.0, -3.0], [0.0, 0.0, 0.0])),
    dispatch.TERRAIN: GROUND,
    dispatch.BODIES: [BOX, BOX.at(shifted(3.0)), BOX.at(shifted(6.0))],
    dispatch.TERRAINS: [GROUND, GROUND],
    dispatch.POINTS: np.zeros((2, 3)),
}
NEEDED = {"proximity": {"distance": 0.1}}
FIRST_CONTACT = {"mode": "sound", "start": "checked", "separation": 0.0, "tolerance": None, "options": None}
FIRST_CONTACT |= {"device": "cpu", "threads": None}

MESHES = (dispatch.MESH, dispatch.DEFORMING, dispatch.RIGID, dispatch.ALONG_PATH)
PAIRS = [(row, a, b) for row in TABLE for a in row.a for b in row.b]


def test_the_kind_of_each_thing_is_that_of_the_table():
    assert {kind: kind_of(thing) for kind, thing in THINGS.items()} == {kind: kind for kind in THINGS}
    assert {kind for row in TABLE for kind in (*row.a, *row.b)} - {None} == set(THINGS)


@pytest.mark.parametrize(("row", "a", "b"), PAIRS, ids=lambda x: x.question if isinstance(x, tuple) else str(x))
def test_every_row_of_the_table_answers(row, a, b):
    options = (
        dict(FIRST_CONTACT) if row.question == "first_contact" else {"device": "cpu", **NEEDED.get(row.question, {})}
    )
    if b == dispatch.TERRAINS and row.question == "manifold" and a != dispatch.BODIES:
        options["world"] = np.zeros(1, np.int32)
    one, other = THINGS[a], None if b is None else THINGS[b]
    if row.question == "manifold" and kind_of(one) in MESHES:  # surfaces that pass through each other have none
        one = BOX.at(shifted(-9.0, 9.0))
    if row.question == "largest_step" and a == b:  # it begins with a gap
        other = {dispatch.RIGID: BOX.moving(tg.Rest(shifted(9.0)))}.get(b, BOX.at(shifted(9.0)))
    public = getattr(tg, row.question)
    arguments = (one,) if other is None else (one, other)
    found = public(*arguments, **{key: value for key, value in options.items() if value is not None})
    assert found is not None
    if row.engine in registered(row.question) and row.question == "first_contact":
        assert type(answer(row.question, one, other, **options)) is type(found)


def test_supported_lists_the_rows_of_one_question_or_of_all():
    assert supported() == TABLE
    assert {row.question for row in supported("manifold")} == {"manifold"}
    assert len(supported("first_contact")) > 5


def test_the_page_of_the_table_is_up_to_date():
    assert pairs.PAGE.read_text(encoding="utf-8") == pairs.page(), "run `python -m tools.pairs`"


@pytest.mark.parametrize("question", sorted({row.question for row in TABLE}))
def test_a_pair_that_is_not_in_the_table_is_refused_in_one_sentence_with_those_that_are(question):
    known = {(a, b) for row in supported(question) for a in row.a for b in row.b}
    for a, one in THINGS.items():
        for b, other in [*THINGS.items(), (None, None)]:
            if (a, b) in known:
                assert engine_for(question, one, other) in {row.engine for row in supported(question)}
                continue
            with pytest.raises(UnsupportedError) as refusal:
                engine_for(question, one, other)
            assert "\n" not in str(refusal.value)
            advice = ("ask with the", "not in rigid motion; first_contact")
            assert any(part in str(refusal.value) for part in advice) or all(
                row.a[0] in str(refusal.value) for row in supported(question)
            )


def test_a_refusal_names_both_things_and_what_the_question_is_known_for():
    with pytest.raises(
        UnsupportedError, match="manifold of a Mesh at rest and a list of Heightfields is not known; known: a Cylinder"
    ):
        refuse_unsupported("manifold", BOX, [GROUND])
    with pytest.raises(
        UnsupportedError, match="largest step of a Mesh at rest and a Heightfield is not known; known: a Mesh"
    ):
        refuse_unsupported("largest_step", BOX, GROUND)


def test_the_options_of_another_engine_are_refused():
    moving, falling = THINGS[dispatch.RIGID], THINGS[dispatch.DEFORMING]
    body, ground = THINGS[dispatch.MOVING_BODY], THINGS[dispatch.TERRAIN]
    for pair, options in (
        ((moving, BOX), tg.DeformingOptions()),
        ((falling, BOX), tg.RigidOptions()),
        (([moving, BOX],), tg.RigidOptions()),
        ((falling, moving), tg.RigidOptions()),
        ((body, ground), tg.RigidOptions()),
    ):
        with pytest.raises(InputError, match=r"takes (\w+ as|no) options, not"):
            tg.first_contact(*pair, options=options, device="cpu")
    with pytest.raises(InputError, match="list may touch"):
        tg.first_contact(moving, BOX, allowed=[(0, 1)], device="cpu")
    for wrong in (
        lambda: tg.DeformingOptions("grid"),
        lambda: tg.RigidOptions(contacts="some"),
        lambda: tg.RigidOptions(recession="yes"),
        lambda: tg.SceneOptions("brute"),
    ):
        with pytest.raises(InputError, match="must be"):
            wrong()


def test_bodies_that_may_touch_are_named_by_number_or_by_name():
    names = "base", "arm", "wall"
    base, arm, wall = (tg.Mesh(BOX.vertices, BOX.faces, name=name) for name in names)
    swing = arm.moving(tg.Twist(shifted(0.9), [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    scene = [base, swing, wall.moving(tg.Rest(shifted(4.0)))]
    assert tg.first_contact(scene, device="cpu").status == tg.Status.START
    for allowed in ([(0, 1)], [("arm", "base")], [["base", 1]], np.array([[1, 0]]), {("base", "arm")}):
        hit = tg.first_contact(scene, allowed=allowed, device="cpu")
        assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (1, 2)
        assert hit.time == pytest.approx(2.1 / 4.0, abs=1e-5)
    assert not tg.first_contact(scene, allowed=[("arm", "base"), ("wall", "arm")], device="cpu")
    with pytest.raises(InputError, match=r"allowed\[1\] names 'leg', which no body has"):
        tg.first_contact(scene, allowed=[(0, 1), ("arm", "leg")], device="cpu")
    with pytest.raises(InputError, match=r"allowed\[0\] names 'arm', which 2 bodies have"):
        tg.first_contact([*scene, arm], allowed=[("arm", "base")], device="cpu")


def test_the_table_loads_no_engine():
    code = "import sys, tangere.query.dispatch; print([m for m in sys.modules if m.startswith('tangere.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for engine in ("rigid", "mixed", "heightfield", "manifold", "proximity", "signed_distance", "shape.heightfield"):
        assert f".{engine}." not in loaded, engine


def test_vertices_in_the_place_of_a_body_are_refused_with_the_cure():
    ball = tg.generate.icosphere(1)
    for ask in (tg.first_contact, tg.distance):
        with pytest.raises(UnsupportedError, match=r"of shape \(42, 3\) is not known.*tg\.Linear\(array\)"):
            ask(ball, ball.vertices)
