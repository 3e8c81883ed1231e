"""Trajectories: what is recorded comes back bit by bit, and replays alike; anything else is refused with a reason."""

from __future__ import annotations

import csv
import pickle

import numpy as np
import pytest

from bench.replay import Trajectory, replay
from tangere.motion import Chain, Rest, Rigid, Screw, Twist
from tangere.published.redon_intervals import IntervalOptions, first_contacts_by_intervals
from tangere.published.redon_screws import CosineScrew, TanScrew
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose


def swings(rng: np.random.Generator, count: int = 12) -> Trajectory:
    """A torus that swings past, and into, another one."""
    torus = generate.bumpy_torus(32, 16)
    start = [pose((3.0 + 0.2 * rng.random(), 0.0, 0.0), axis=0, angle=1.57 * rng.random()) for _ in range(count)]
    velocity = rng.normal(size=(count, 3)) * 0.4 - [0.5, 0.0, 0.0]
    return Trajectory(torus, torus, Twist(np.stack(start), velocity, rng.normal(size=(count, 3))))


def test_a_trajectory_comes_back_bit_by_bit(tmp_path, rng):
    box, ball = generate.box(name="box"), generate.icosphere(subdivisions=1, name="ball")
    here, there = pose((3.0, 0.1, 0.2)), pose((1.0, 0.0, 0.3), axis=2, angle=1.0)
    kinds = [Rest(here), Twist(here, [1, 2, 3], [0, 0, 9.0]), Screw(here, there), TanScrew(here, there)]
    motion = Rigid.join([*kinds, CosineScrew(here, there), Screw(here, there).part(0.25, 0.5)])
    Trajectory(box, ball, motion).save(tmp_path / "t.npz")
    back = Trajectory.load(tmp_path / "t.npz")
    assert (back.part.name, back.fixed.name, len(back)) == ("box", "ball", 6)
    assert back.part.vertices.tobytes() == box.vertices.tobytes()
    assert back.fixed.faces.tobytes() == ball.faces.tobytes()
    for name in motion.records().dtype.names or ():
        assert back.motion.records()[name].tobytes() == motion.records()[name].tobytes()


def test_links_of_chains_are_recorded(tmp_path):
    arm = Chain([Twist(pose(), [0, 0, 0], [0, 0, 1.0]), Twist(pose((1.0, 0, 0)), [0, 0, 0], [0, 0, 2.0])])
    motion = Rigid.join([arm.link(1), arm.link(1)])
    Trajectory(generate.box(), generate.box(), motion).save(tmp_path / "arm.npz")
    back = Trajectory.load(tmp_path / "arm.npz").motion
    assert (back.links, len(back)) == (2, 2)
    assert back.pose(0.7).tobytes() == motion.pose(0.7).tobytes()


@pytest.mark.feature("F-R-79")
def test_replays_have_the_same_bits_from_run_to_run_from_the_file_and_for_any_number_of_threads(tmp_path, rng):
    trajectory = swings(rng)
    trajectory.save(tmp_path / "swings.npz")
    first = replay(trajectory, device="cpu", threads=1)
    assert 2 <= (first.status != Status.FREE).sum() < len(trajectory)
    again = replay(Trajectory.load(tmp_path / "swings.npz"), device="cpu", threads=1)
    assert first.same_answers(again)
    assert all(first.counts[name].tobytes() == again.counts[name].tobytes() for name in first.counts)
    for threads in (2, 7):
        assert first.same_answers(replay(trajectory, device="cpu", threads=threads))


@pytest.mark.feature("F-R-79")
def test_the_interval_engine_replays_alike_with_the_counters_of_the_thesis(rng, tmp_path):
    trajectory = swings(rng, 5)
    options = IntervalOptions(order="plain", recession="hierarchical", tolerance=1e-3)
    first, again = (replay(trajectory, options, device="cpu", threads=n) for n in (1, 2))
    assert first.same_answers(again)
    whole = first_contacts_by_intervals(
        trajectory.part.moving(trajectory.motion), trajectory.fixed, options, device="cpu", threads=1
    )
    assert first.time.tobytes() == whole.time.tobytes()
    for name in ("boxes", "edge_edge", "vertex_face", "face_vertex", "recession"):
        assert first.totals[name] == getattr(whole.counters, name) > 0
    first.write_csv(tmp_path / "counters.csv")
    with open(tmp_path / "counters.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == first.time.tolist()
    assert [int(row["edge_edge"]) for row in rows] == first.counts["edge_edge"].tolist()


def test_a_replay_says_what_each_action_says_alone(rng):
    trajectory = swings(rng, 6)
    played = replay(trajectory, separation=0.05, tolerance=1e-4, device="cpu")
    for step in range(6):
        body = trajectory.part.moving(trajectory.motion[step])
        alone = rigid_first_contact(body, trajectory.fixed, separation=0.05, tolerance=1e-4, device="cpu")
        assert (played.time[step], played.status[step]) == (alone.time, alone.status)
        if alone.status != Status.FREE:
            assert played.features[step].tolist() == [alone.contacts.feature_a[0], alone.contacts.feature_b[0]]
    some = replay(trajectory[np.array([4, 1])], separation=0.05, tolerance=1e-4, device="cpu")
    assert some.time.tolist() == played.time[[4, 1]].tolist()


def test_one_motion_is_no_trajectory():
    with pytest.raises(InputError, match="a row of rigid motions"):
        Trajectory(generate.box(), generate.box(), Rest())


def test_foreign_and_damaged_files_are_refused_with_a_reason(tmp_path, rng):
    path = tmp_path / "t.npz"
    swings(rng, 3).save(path)
    good = path.read_bytes()
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}

    def refused(reason: str, content: bytes | None = None, **changes) -> None:
        if content is not None:
            path.write_bytes(content)
        else:
            np.savez(path, **{key: value for key, value in (arrays | changes).items() if value is not None})
        with pytest.raises(InputError, match=reason):
            Trajectory.load(path)

    refused("damaged", good[: len(good) // 2])
    refused("damaged", b"")
    refused("damaged", pickle.dumps([1, 2, 3]))
    middle = bytearray(good)
    middle[len(good) // 2] ^= 0xFF
    refused("damaged", bytes(middle))
    refused("not a recorded trajectory", format="tangere.scene")
    refused("version 2", version=2)
    refused("lacks 'motion/axis'", **{"motion/axis": None})
    refused("lacks 'fixed/faces'", **{"fixed/faces": None})
    refused("origin is not finite", **{"motion/origin": np.full((3, 3), np.nan)})
    refused("angle is", **{"motion/angle": np.zeros(2)})
    refused("no known kind", **{"motion/kind": np.full(3, 9, np.int32)})
    refused("not orthogonal", **{"motion/rotation": np.ones((3, 3, 3))})
    refused("2 links", links=2)
    refused("damaged", **{"part/faces": np.array([[0, 1, 99_999]])})
    refused("damaged", format=np.array([object()], dtype=object))
    with pytest.raises(InputError, match="no such file"):
        Trajectory.load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="cannot be written"):
        swings(rng, 3).save(tmp_path / "nowhere" / "t.npz")
