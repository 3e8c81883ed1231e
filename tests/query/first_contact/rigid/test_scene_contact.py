"""The earliest contact of a scene of many moving bodies, against every pair asked about alone."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import shape
from tangere.broad_phase.bodies.body_pairs import linked_pairs
from tangere.motion import Chain, Rest, Screw, Twist
from tangere.published.redon_screws import CosineScrew
from tangere.query.contacts import Status
from tangere.query.first_contact import SceneOptions, first_contact
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.query.intersection import intersects
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import generate

TOLERANCE = 1e-6


def at(position, turn=(0.0, 0.0, 0.0)) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    pose[:3, 3] = position
    return pose


def traffic(rng, count: int, spread: float):
    """Bodies of several shapes on a grid, apart at first: one in four rests, the others fly and turn in many ways."""
    side = int(np.ceil(count ** (1 / 3)))
    bodies = []
    for k in range(count):
        position = 3.0 * np.array([k % side, k // side % side, k // side**2]) + 0.1 * rng.normal(size=3)
        mesh = shape(["block", "cone", "ball", "plate"][k % 4])
        start = at(position, rng.normal(size=3))
        if k % 4 == 0:
            bodies.append(mesh.at(start))
        elif k % 4 == 1:
            bodies.append(mesh.moving(Twist(start, spread * rng.normal(size=3), 2.0 * rng.normal(size=3))))
        else:
            end = at(position + spread * rng.normal(size=3), 0.5 * rng.normal(size=3))
            end[:3, :3] = end[:3, :3] @ start[:3, :3]
            motion = (Screw if k % 4 == 2 else CosineScrew)(start, end)
            bodies.append(mesh.moving(motion))
    return bodies


def alone(bodies, pairs=None):
    """(time, i, j) of the earliest contact, every pair by itself."""
    best = (np.inf, -1, -1)
    for i in range(len(bodies)):
        for j in range(i + 1, len(bodies)):
            if pairs is None or (i, j) in pairs:
                hit = rigid_first_contact(bodies[i], bodies[j], tolerance=TOLERANCE, device="cpu")
                best = min(best, (hit.time, i, j))
    return best


def moved(body, time: float):
    return body if not hasattr(body, "motion") else body.at(time)


@pytest.mark.parametrize("broad_phase", ["sweep", "tree"])
def test_the_earliest_contact_of_a_scene_is_that_of_all_pairs(rng, effort, broad_phase, device):
    touched = 0
    for spread in (0.2, 1.0, 3.0):
        for _ in range(effort(3, least=1)):
            bodies = traffic(rng, 14, spread)
            hit = first_contact(bodies, tolerance=TOLERANCE, options=SceneOptions(broad_phase), device=device)
            time, i, j = alone(bodies)
            touched += hit.status == Status.CONTACT
            if device == "cpu":
                assert hit.time == time
                assert not hit or (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (i, j)
            else:
                assert hit.time == pytest.approx(time, abs=1e-6)
    assert touched >= 2


@pytest.mark.feature("F-R-4")
def test_all_bodies_placed_at_the_time_of_contact_are_free_of_each_other(rng, effort):
    """Exact: no triangle of a body meets one of another at t_c, the two that touch and all bystanders included."""
    touched = 0
    for _ in range(effort(4, least=2)):
        bodies = traffic(rng, 14, 2.0)
        hit = first_contact(bodies, tolerance=TOLERANCE, device="cpu")
        two = [bodies[int(hit.contacts.body_a[0])], bodies[int(hit.contacts.body_b[0])]] if hit else []
        for chosen in (bodies, two):  # with bystanders, and without
            again = first_contact(chosen, tolerance=TOLERANCE, device="cpu")
            assert again.time == hit.time or not chosen
            placed = [moved(body, min(again.time, 1.0)) for body in chosen]
            for i in range(len(placed)):
                for j in range(i + 1, len(placed)):
                    assert not intersects(placed[i], placed[j], device="cpu")
        touched += hit.status == Status.CONTACT
    assert touched >= 1


def test_one_early_contact_spares_the_questions_about_later_ones(rng, monkeypatch):
    """Two hundred balls fall on a floor one after the other: most pairs are never asked about."""
    from tangere.query.first_contact.rigid import scene

    asked = []
    kept = scene.RigidQueryBatch.search_each
    monkeypatch.setattr(
        scene.RigidQueryBatch,
        "search_each",
        lambda batch, until=None: (asked.append(batch.count), kept(batch, until))[1],
    )
    ball, floor = shape("ball"), generate.plate(size=(60.0, 60.0, 0.1))
    spots = [(-28.0 + 4 * (k % 14), -28.0 + 4 * (k // 14)) for k in range(196)]
    heights = 1.0 + 4.0 * rng.permutation(196) / 196
    bodies = [
        ball.moving(Twist(at([x, y, z]), [0, 0, -5.0], [0, 0, 0])) for (x, y), z in zip(spots, heights, strict=True)
    ]
    hit = first_contact([floor, *bodies], tolerance=TOLERANCE, device="cpu")
    assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (0, 1 + int(np.argmin(heights)))
    assert sum(asked) < 60


def test_links_of_a_chain_touch_obstacles_and_each_other_but_not_their_neighbours():
    """An arm of three bars folds: the last bar comes back to the first one, past the joint between them."""
    bar = generate.box((1.0, 0.1, 0.1)).at(at([0.5, 0, 0]))
    joints = [Rest(), Twist(at([1.0, 0, 0.0]), [0, 0, 0], [0, 0, 2.6]), Twist(at([1.0, 0, 0]), [0, 0, 0], [0, 0, 2.6])]
    chain = Chain(joints)
    links = [bar.moving(chain.link(k)) for k in range(3)]
    folded = first_contact(links, allowed=linked_pairs(chain), tolerance=TOLERANCE, device="cpu")
    assert (folded.contacts.body_a[0], folded.contacts.body_b[0]) == (0, 2)
    alone = rigid_first_contact(links[0], links[2], tolerance=TOLERANCE, device="cpu")
    assert folded.time == alone.time
    # neighbours touch in their joint from the start, and are told if nobody says otherwise
    assert first_contact(links, tolerance=TOLERANCE, device="cpu").time == 0.0
    post = generate.box((0.1, 0.1, 1.0)).at(at([1.3, 0.9, 0.0]))
    hit = first_contact([*links, post], allowed=linked_pairs(chain), tolerance=TOLERANCE, device="cpu")
    assert hit.time < folded.time
    assert hit.contacts.body_b[0] == 3


def test_an_overlap_at_the_start_is_told_whatever_else_touches_then_in_any_order():
    """Boxes are aligned: that they overlap is seen by `intersects` alone, and not by edges that go through faces."""
    box = generate.box()
    rising = box.moving(Screw(at([0, 0, 0]), at([0, 0, 0.1])))
    near, over = box.at(at([1.0 + 5e-7, 0, 0])), box.at(at([-0.5, 0, 0]))
    for bodies, pair in (
        ([rising, near, over], (0, 2)),
        ([rising, over, near], (0, 1)),
        ([near, over, rising], (1, 2)),
    ):
        hit = first_contact(bodies, device="cpu")
        assert (hit.status, hit.time, hit.time_upper) == (Status.START, 0.0, 0.0)
        assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == pair
    assert first_contact([rising, near], device="cpu").status == Status.CONTACT
    tilted = box.at(at([-0.5, 0, 0], [0.3, 0.2, 0.1]))  # edges go through faces here
    hit = first_contact([rising, near, tilted], device="cpu")
    assert (hit.status, hit.contacts.body_b[0]) == (Status.START, 2)


def test_scenes_of_ever_new_parts_do_not_stay_in_memory():
    """The floor is the same in all of them and must not keep what was once asked with it."""
    from tangere.query.first_contact.rigid.bodies import KEPT_FORESTS

    floor, seen = generate.plate(size=(6.0, 6.0, 0.1)), []
    for k in range(3 * KEPT_FORESTS):
        part = generate.box((1.0, 1.0, 1.0 + 0.01 * k))
        seen.append(weakref.ref(part))
        falling = part.moving(Twist(at([0, 0, 2.0]), [0, 0, -4.0], [0, 0, 0]))
        assert first_contact([floor, falling], device="cpu")
    del part, falling
    gc.collect()
    assert sum(part() is not None for part in seen) <= KEPT_FORESTS
    assert len(floor.cache) < KEPT_FORESTS


def test_threads_that_ask_about_scenes_of_their_own_get_their_own_answers():
    """Whatever is raised in a thread counts as wrong: Python 3.11 could not read dtypes in several of them at once."""
    floor, wrong = generate.plate(size=(6.0, 6.0, 0.1)), []

    def ask(number: int) -> None:
        try:
            fall(number)
        except BaseException as error:
            wrong.append(error)

    def fall(number: int) -> None:
        for k in range(12):
            height = 1.0 + 0.1 * number + 0.01 * k
            part = generate.box((1.0, 1.0, height))
            falling = part.moving(Twist(at([0, 0, 3.0]), [0, 0, -4.0], [0, 0, 0]))
            hit = first_contact([floor, falling], device="cpu")
            if abs(hit.time - (3.0 - 0.05 - 0.5 * height) / 4.0) > 1e-5:
                wrong.append((number, k, hit))

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not wrong


def test_bodies_at_rest_are_not_compared_and_small_scenes_are_free():
    block = shape("block")
    assert not first_contact([], device="cpu")
    assert not first_contact([block], device="cpu")
    assert not first_contact([block, block], device="cpu")
    still = block.moving(Twist(np.eye(4), [0, 0, 0], [0, 0, 0]))
    assert not first_contact([block, still], device="cpu")


def test_bodies_that_make_no_scene_are_refused():
    block = shape("block")
    with pytest.raises(InputError, match="body 1 has 2 motions"):
        first_contact([block, block.moving(Rest(np.stack([np.eye(4)] * 2)))], device="cpu")
    with pytest.raises(InputError, match=r"allowed\[0\] is \[0, 5\] but there are 2 bodies"):
        first_contact([block, block], allowed=[[0, 5]], device="cpu")
    with pytest.raises(UnsupportedError, match="body 0 of the list must be a mesh"):
        first_contact([3, block], device="cpu")  # pyright: ignore
