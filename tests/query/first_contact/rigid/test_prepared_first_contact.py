"""Prepared first contacts: the same as asked one by one, however many, wherever the arrays are; and really so near."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.families.rigid_scenes import SHAPES, at, shape
from oracles.rigid_distances import closest_approach, mesh_distances
from tangere.motion import Twist
from tangere.query.contacts import Contacts, Status
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.runtime import InputError, TangereError

NAMES = ("ball", "ring", "block", "cone", "plate", "ball", "block", "hoop")
COLUMNS = ("point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "weights", "kind", "vertex_on", "key")


class Flock:
    """Bodies that fly about each other, and all pairs of them."""

    def __init__(self, rng, spread: float = 2.0):
        shape("ball")
        self.meshes = [SHAPES[name] for name in NAMES]
        count = len(self.meshes)
        self.poses = np.tile(np.eye(4), (count, 1, 1))
        self.poses[:, :3, :3] = Rotation.random(count, random_state=int(rng.integers(2**31))).as_matrix()
        self.poses[:, :3, 3] = spread * rng.normal(size=(count, 3))
        self.displacement = rng.normal(size=(count, 3)) - 1.2 * self.poses[:, :3, 3]
        self.rotation = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-2, 0.7, (count, 1))
        self.rotation[0] = self.displacement[0] = self.displacement[3] = 0.0
        self.rotation[1] = 0.0
        self.pivot = 0.5 * rng.normal(size=(count, 3))
        self.pairs = np.stack(np.triu_indices(count, 1), 1)

    def motion(self, body: int) -> Twist:
        return Twist(self.poses[body], self.displacement[body], self.rotation[body], self.pivot[body])

    def moving(self, body: int):
        return self.meshes[body].moving(self.motion(body))

    def asked(self, prepared, pairs=None, **options):
        pairs = self.pairs if pairs is None else pairs
        return prepared.ask(pairs, self.poses, self.displacement, self.rotation, pivot=self.pivot, **options)


def test_a_batch_finds_what_single_questions_find(rng, effort, device):
    prepared, found = None, set()
    for _ in range(effort(3, least=1)):
        flock = Flock(rng)
        prepared = prepared or tg.PreparedFirstContact(flock.meshes, device=device)
        answer = flock.asked(prepared)
        record = answer.contacts
        hits = np.flatnonzero(answer.hit)
        assert record.query.tolist() == hits.tolist()
        for i, (a, b) in enumerate(flock.pairs):
            one = rigid_first_contact(flock.moving(a), flock.moving(b), device="cpu")
            assert answer.status[i] == one.status
            # A GPU searches by other boxes: both times keep the tolerance, which is a length, and need not be the same.
            assert answer.time[i] == pytest.approx(one.time, abs=1e-6 if device == "cpu" else 1e-5)
            assert answer.time[i] <= one.time_upper
            assert one.time <= answer.time_upper[i]
            found.add(Status(one.status))
            if one:
                row = record[record.query == i]
                assert (row.body_a[0], row.body_b[0]) == (a, b)
                assert row.time[0] == answer.time[i]
                if device == "cpu" or one.status == Status.CONTACT:  # what overlaps does so in many places
                    assert row.point_a[0] == pytest.approx(one.contacts.point_a[0], abs=1e-4)
                assert answer.time_upper[i] >= answer.time[i]
            else:
                assert answer.time_upper[i] == np.inf
    assert found >= {Status.FREE, Status.CONTACT, Status.START}


def test_nothing_is_nearer_before_the_time_and_at_it_the_distance_is_as_promised(rng, effort):
    """By brute force over all triangles; every pair has its own separation and tolerance."""
    touched = 0
    for _ in range(effort(3, least=1)):
        flock = Flock(rng)
        count = len(flock.pairs)
        separation = rng.choice([0.0, 1e-3, 0.05, 0.2], count)
        tolerance = 10.0 ** rng.uniform(-8, -3, count)
        answer = flock.asked(
            tg.PreparedFirstContact(flock.meshes, device="cpu"), separation=separation, tolerance=tolerance
        )
        for i, (a, b) in enumerate(flock.pairs):
            bodies = flock.meshes[a], flock.meshes[b]
            motions = flock.motion(a), flock.motion(b)
            if answer.status[i] == Status.START:
                assert mesh_distances(*bodies, *(m.pose([0.0]) for m in motions))[0] <= separation[i]
                continue
            near = closest_approach(*bodies, *motions, min(answer.time[i], 1.0), samples=24, rounds=6)
            assert near > separation[i] + 0.499 * tolerance[i]
            if answer.status[i] == Status.CONTACT:
                touched += 1
                apart = mesh_distances(*bodies, *(m.pose([answer.time[i]]) for m in motions))[0]
                assert apart <= separation[i] + tolerance[i] * (1.0 + 1e-6)
    assert touched > 5


def test_any_number_of_pairs_is_answered_as_if_alone(rng, device):
    flock = Flock(rng)
    prepared = tg.PreparedFirstContact(flock.meshes, device=device)
    whole = flock.asked(prepared)
    for count in (0, 1, 5, 16, 17, 3, len(flock.pairs)):
        answer = flock.asked(prepared, flock.pairs[:count])
        assert len(answer) == len(answer.time) == len(answer.status) == count
        assert np.array_equal(answer.time, whole.time[:count])
        assert np.array_equal(answer.status, whole.status[:count])
    many = np.tile(flock.pairs, (7, 1))
    assert np.array_equal(flock.asked(prepared, many).time, np.tile(whole.time, 7))
    assert len(flock.asked(prepared, []).contacts) == 0


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_answers_have_the_same_bits_for_any_number_of_threads(rng, threads):
    flock = Flock(rng)
    answers = [flock.asked(tg.PreparedFirstContact(flock.meshes, device="cpu", threads=n)) for n in (1, threads)]
    assert np.array_equal(answers[0].time, answers[1].time)
    for column in COLUMNS:
        one, other = (getattr(answer.contacts, column) for answer in answers)
        assert np.array_equal(one, other, equal_nan=column == "weights"), column


def test_what_comes_after_its_pair_s_limit_is_not_told(rng, device):
    flock = Flock(rng)
    prepared = tg.PreparedFirstContact(flock.meshes, device=device)
    whole = flock.asked(prepared)
    later = np.isfinite(whole.time) & (whole.time > 0.0)
    assert later.sum() > 3
    until = np.where(later, np.where(np.arange(len(later)) % 2, 0.9, 1.05) * whole.time, 1.0).clip(0.0, 1.0)
    answer = flock.asked(prepared, until=until)
    told = whole.time <= until
    assert np.array_equal(answer.time[told], whole.time[told])
    assert (answer.status[~told] == Status.FREE).all()
    assert np.isinf(answer.time[~told]).all()
    exact = flock.asked(prepared, until=np.where(later, whole.time, 1.0))
    assert np.array_equal(exact.time, whole.time)


def test_warp_arrays_go_in_and_come_out(rng, device):
    flock = Flock(rng)
    prepared = tg.PreparedFirstContact(flock.meshes, device=device)
    plain = flock.asked(prepared, separation=np.full(len(flock.pairs), 0.01), until=0.75)

    def given(data, dtype):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device)

    vectors = [given(data, wp.vec3d) for data in (flock.displacement, flock.rotation, flock.pivot)]
    turns, origins = given(flock.poses[:, :3, :3], wp.mat33d), given(flock.poses[:, :3, 3], wp.vec3d)
    limits = given(np.full(len(flock.pairs), 0.75), wp.float64)
    for pairs in (given(flock.pairs, wp.vec2i), given(flock.pairs.astype(np.int32), wp.int32)):
        for poses in ((turns, origins), given(flock.poses, wp.mat44d)):
            answer = prepared.ask(pairs, poses, vectors[0], vectors[1], pivot=vectors[2], separation=0.01, until=limits)
            assert all(isinstance(column, wp.array) for column in (answer.time, answer.status, answer.time_upper))
            assert np.array_equal(answer.time.numpy(), plain.time)
            assert np.array_equal(answer.status.numpy(), plain.status)
            assert np.array_equal(answer.time_upper.numpy(), plain.time_upper)
            hits = answer.hit
            assert np.array_equal(answer.columns.normal.numpy()[hits], plain.contacts.normal)
            assert np.isnan(answer.columns.point_a.numpy()[~hits]).all()
            assert (answer.columns.triangle_a.numpy()[~hits] == -1).all()
            assert np.array_equal(answer.columns.kind.numpy()[hits], plain.contacts.kind)


def test_an_answer_tells_its_details_after_others_were_asked(rng):
    flock = Flock(rng)
    prepared = tg.PreparedFirstContact(flock.meshes, device="cpu")
    kept, read = flock.asked(prepared), flock.asked(prepared).contacts
    other = Flock(rng)
    many = np.tile(other.pairs, (9, 1))  # so many that new arrays are made
    other.asked(prepared, many)
    for column in COLUMNS:
        one, other_column = getattr(kept.contacts, column), getattr(read, column)
        assert np.array_equal(one, other_column, equal_nan=column == "weights"), column


def test_a_pair_that_is_set_and_asked_alone_has_the_same_contact(rng, device):
    flock = Flock(rng)
    prepared = tg.PreparedFirstContact(flock.meshes, device=device)
    for body in range(len(flock.meshes)):
        prepared.set(body, flock.poses[body], flock.displacement[body], flock.rotation[body], flock.pivot[body])
    asked = flock.asked(tg.PreparedFirstContact(flock.meshes, device=device), separation=0.01, until=0.9)
    again = prepared.ask(flock.pairs, separation=0.01, until=0.9)  # as they were set
    assert np.array_equal(again.time, asked.time)
    for i, (a, b) in enumerate(flock.pairs):
        one = prepared.first_contact(a, b, separation=0.01, until=0.9)
        assert (one.time, one.time_upper, one.status) == (asked.time[i], asked.time_upper[i], asked.status[i])
        row = asked.contacts[asked.contacts.query == i]
        assert len(row) == len(one.contacts)
        for column in ("body_a", "body_b", *COLUMNS):
            expected = getattr(row, column)
            assert np.array_equal(getattr(one.contacts, column), expected, equal_nan=column == "weights"), column


def test_contacts_that_were_not_read_are_pickled_and_replaced_as_others(rng):
    ball = shape("ball")
    prepared = tg.PreparedFirstContact([ball, ball], device="cpu")
    prepared.set(1, at([3.0, 0.0, 0.0]), [-3.0, 0.0, 0.0])
    hits = [prepared.first_contact(0, 1) for _ in range(3)]
    assert hits[0].contacts.normal[0] == pytest.approx([-1.0, 0.0, 0.0], abs=0.3)
    kept = pickle.loads(pickle.dumps(hits[1].contacts))
    assert type(kept) is Contacts
    assert np.array_equal(kept.point_a, hits[0].contacts.point_a)
    assert len(hits[2].contacts) == 1
    assert "contact" in repr(hits[2])
    with pytest.raises(AttributeError, match="impulse"):
        hits[2].contacts.impulse  # noqa: B018


def test_the_start_is_decided_exactly_unless_it_is_trusted():
    block = shape("block")
    prepared = tg.PreparedFirstContact([block, block], device="cpu")
    prepared.set(1, at([0.0, 0.0, 0.5]), [0.3, 0.0, 0.0])  # face on face
    assert prepared.first_contact(0, 1).status == Status.START
    assert prepared.ask([(0, 1)]).status[0] == Status.START
    assert prepared.first_contact(0, 1, start="trusted").status == Status.CONTACT
    prepared.set(1, at([0.0, 0.0, 0.5 + 1e-9]), [0.3, 0.0, 0.0])
    assert prepared.first_contact(0, 1).status == Status.CONTACT
    assert prepared.ask([(0, 1)], separation=0.01).status[0] == Status.START


def test_rotations_of_single_precision_are_mended():
    ball, block = shape("ball"), shape("block")
    prepared = tg.PreparedFirstContact([ball, block], device="cpu")
    pose = at([2.0, 0.1, 0.0], Rotation.from_rotvec([0.3, 1.0, -0.7]).as_matrix().astype(np.float32))
    prepared.set(1, pose, [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    plain = rigid_first_contact(ball, block.moving(Twist(pose, [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0])), device="cpu")
    assert prepared.first_contact(0, 1).time == pytest.approx(plain.time, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [(0, 3)]}, r"pairs\[0\] is \(0, 3\) but there are 3 bodies"),
        ({"pairs": [(0, 1), (-1, 1)]}, r"pairs\[1\] is \(-1, 1\) but there are 3 bodies"),
        ({"pairs": [(0, 1), (2, 2)]}, r"pairs\[1\] is \(2, 2\): a body does not touch itself"),
        ({"pairs": [(0.0, 1.0)]}, "whole numbers"),
        ({"pairs": [(0, 1, 2)]}, r"\(n, 2\)"),
        ({"separation": -1.0}, "separation of pair 0 must be a length >= 0, not -1.0"),
        ({"separation": np.nan}, "separation of pair 0"),
        ({"separation": [0.1, 0.1]}, "separation must be a number, or one for each of 1 pairs"),
        ({"tolerance": -2.0}, "tolerance of pair 0 must be"),
        ({"tolerance": 1e-30}, "tolerance 1e-30 of pair 0 is below 1e-12"),
        ({"until": 1.5}, r"until of pair 0 must be a time in \[0, 1\], not 1.5"),
        ({"start": "leaving"}, "start must be"),
        ({"poses": np.eye(4)}, r"poses must have shape \(3, 4, 4\)"),
        ({"poses": np.tile(2.0 * np.eye(4), (3, 1, 1))}, r"poses\[0\] has a last row"),
        ({"poses": np.tile(np.diag([2.0, 1.0, 1.0, 1.0]), (3, 1, 1))}, "body 0 has a pose that is not rigid"),
        ({"poses": np.tile(np.diag([-1.0, 1.0, 1.0, 1.0]), (3, 1, 1))}, "body 0 has a pose .* it mirrors"),
        ({"displacement": [[0.0] * 3, [np.nan] * 3, [0.0] * 3]}, "body 1 has a displacement that is not finite"),
        ({"rotation": [[0.0] * 3, [0.0] * 3, [0.0, 1e200, 0.0]]}, "body 2 has a rotation vector that is not finite"),
        ({"pivot": np.zeros((2, 3))}, r"pivot must have shape \(3, 3\)"),
        ({"poses": None}, "go with poses"),
        ({"pairs": wp.zeros(3, dtype=wp.float64, device="cpu")}, r"\(n, 2\)"),
        ({"separation": wp.zeros(3, dtype=wp.float64, device="cpu")}, "separation must be 1 float64"),
        ({"displacement": wp.zeros(3, dtype=wp.vec3f, device="cpu")}, "displacement must be 3 vec3d"),
    ],
)  # fmt: skip
def test_bad_questions_say_what_is_wrong_and_leave_everything_as_it_was(change, message):
    ball = shape("ball")
    prepared = tg.PreparedFirstContact([ball] * 3, device="cpu")
    poses = np.stack([at([0.0, 0.0, 0.0]), at([3.0, 0.0, 0.0]), at([0.0, 9.0, 0.0])])
    question = {"pairs": [(0, 1)], "poses": poses, "displacement": [[0.0] * 3, [-3.0, 0, 0], [0.0] * 3]}
    question |= {"rotation": np.zeros((3, 3))}
    before = prepared.ask(**question).time
    with pytest.raises(InputError, match=message):
        prepared.ask(**(question | change))
    assert prepared.ask([(0, 1)]).time == before


def test_bad_bodies_are_refused():
    ball = shape("ball")
    with pytest.raises(InputError, match="at least one Mesh"):
        tg.PreparedFirstContact([])
    with pytest.raises(InputError, match=r"meshes\[1\] must be a Mesh"):
        tg.PreparedFirstContact([ball, "ball"], device="cpu")
    prepared = tg.PreparedFirstContact([ball, ball], device="cpu")
    with pytest.raises(InputError, match="body 2 is not one of 2"):
        prepared.set(2, np.eye(4))
    with pytest.raises(InputError, match="body 1: a pose is"):
        prepared.set(1, np.eye(3))
    with pytest.raises(InputError, match="body 1 has a pose that is not rigid"):
        prepared.set(1, np.zeros((4, 4)))
    with pytest.raises(TangereError, match="cannot be copied or pickled"):
        pickle.dumps(prepared)
