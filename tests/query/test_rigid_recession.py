"""Recession culling within the search for first contact: the same contacts, less work, and no overlap hidden by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rigid_families import at, shape
from tangere.motion import Screw, Twist
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid import Counters, rigid_first_contact, rigid_first_contacts
from tangere.runtime import InputError
from tangere.shape import generate


def test_recession_culling_finds_the_same_contacts_with_less_work(rng, effort):
    """Closed bodies that start apart, small turns: the same times up to the tolerance."""
    culled = without = 0
    ball, ring = generate.icosphere(triangles=1280), generate.torus(grid=(40, 20), tube=0.3)
    for _ in range(effort(20, least=4)):
        away = rng.normal(size=3)
        away *= 2.6 / np.linalg.norm(away)
        turn = rng.choice([0.0, 0.2]) * rng.normal(size=3)
        start = at(away, Rotation.from_rotvec(rng.normal(size=3)).as_matrix())
        end = at(0.2 * rng.normal(size=3), Rotation.from_rotvec(turn).as_matrix() @ start[:3, :3])
        for motion in (Screw(start, end), Twist(start, end[:3, 3] - away, turn)):
            counts = [Counters(), Counters()]
            plain, fast = (
                rigid_first_contact(
                    ball,
                    ring.moving(motion),
                    tolerance=1e-7,
                    recession=on,
                    counters=counts[on],
                    threads=1,
                    device="cpu",
                )
                for on in (False, True)
            )
            assert plain.status == fast.status
            assert plain.time == fast.time or fast.time == pytest.approx(plain.time, abs=1e-6)
            assert counts[0].receding == 0
            culled += counts[1].receding
            without += counts[0].box_tests - counts[1].box_tests
    assert culled > 0
    assert without > 0


def test_recession_culling_leaves_open_meshes_alone(rng):
    pot, needle = shape("pot"), shape("needle")
    counters = Counters()
    moving = needle.moving(Twist(at([3.0, 0, 0.5]), [-6.0, 0, 0], [0, 0, 0]))
    hit = rigid_first_contact(pot, moving, recession=True, counters=counters, device="cpu")
    assert hit.time == rigid_first_contact(pot, moving, device="cpu").time
    assert counters.receding == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_an_overlap_at_the_start_is_not_hidden_by_culling(threads):
    """Balls in each other that part: every triangle recedes, but they overlap, and that is the answer."""
    ball = generate.icosphere(triangles=320)
    parting = ball.moving(Twist(at([1.2, 0.1, 0.2]), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    plain = rigid_first_contact(ball, parting, device="cpu", threads=threads)
    culled = rigid_first_contact(ball, parting, recession=True, device="cpu", threads=threads)
    assert plain.status == culled.status == Status.START
    assert culled.time == 0.0
    assert culled.contacts.key[0] == plain.contacts.key[0]
    # who vouches for the start gets what the cones say
    trusted = rigid_first_contact(ball, parting, recession=True, start="trusted", device="cpu", threads=threads)
    assert trusted.status == Status.FREE


def test_each_start_of_a_batch_is_checked(rng, device):
    """Twins side by side: they overlap (mirrored ones edge on edge, which pierces nothing), touch later, or never."""
    ball = generate.icosphere(triangles=80)
    starts = np.tile(np.eye(4), (40, 1, 1))
    starts[:, 0, 3] = np.linspace(1.0, 3.0, 40)
    starts[::2, :3, :3] = Rotation.from_rotvec([0.1, 0.2, 0.3]).as_matrix()
    parting = ball.moving(Twist(starts, rng.uniform(-1.5, 1.5, (40, 1)) * [1.0, 0.0, 0.0], np.zeros(3)))
    plain, culled = (rigid_first_contacts(ball, parting, recession=on, device=device) for on in (False, True))
    assert (culled.status == plain.status).all()
    assert (plain.status == Status.START).sum() >= 5
    assert (plain.status == Status.CONTACT).sum() >= 5
    np.testing.assert_allclose(culled.time, plain.time, rtol=0.0, atol=1e-5)


def test_a_start_that_is_neither_checked_nor_trusted_is_refused():
    with pytest.raises(InputError, match="start must be 'checked' or 'trusted', not 'maybe'"):
        rigid_first_contact(shape("ball"), shape("ball"), start="maybe", device="cpu")  # pyright: ignore
