"""Answers show themselves in notebooks as small tables."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tangere as tg


def at(*shift):
    pose = np.eye(4)
    pose[:3, 3] = shift
    return pose


def facts(shown):
    """The rows of the table in a notebook."""
    return dict(re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", shown._repr_html_()))


@pytest.fixture(scope="module")
def falling():
    ball = tg.generate.icosphere(1)
    return tg.first_contact(ball.moving(tg.Twist(at(-3.0, 0, 0), (4.0, 0, 0), (0, 0, 0))), ball, device="cpu")


def test_a_first_contact_says_when_where_and_what(falling):
    rows = facts(falling)
    assert rows["status"] == "contact"
    assert float(rows["time"]) == pytest.approx(falling.time, rel=1e-8)
    assert {"features", "point", "normal", "gap", "certain by"} <= set(rows)


def test_a_free_step_says_only_that_it_is_free():
    ball = tg.generate.icosphere(1)
    free = tg.first_contact(ball.moving(tg.Twist(at(-9.0, 0, 0), (1.0, 0, 0), (0, 0, 0))), ball, device="cpu")
    assert facts(free) == {"status": "free"}


def test_contacts_show_the_earliest(falling):
    assert facts(falling.contacts)["bodies"] == "0 and 1"
    assert "none" in tg.Contacts()._repr_html_()
    assert facts(tg.Contacts()) == {}


def test_a_batch_counts_what_it_found():
    x0, x1 = np.random.default_rng(0).random((2, 200, 4, 3))
    found = tg.query.vertex_face(x0, x1, device="cpu")
    rows = facts(found)
    assert int(rows["contact"]) == int((found.status == tg.Status.CONTACT).sum()) > 0
    assert rows["earliest"].endswith(f"query {int(np.argmin(found.time))}")


@pytest.mark.parametrize("many", [False, True])
def test_distances_and_clearances_show_the_nearest(many):
    ball = tg.generate.icosphere(1)
    poses = np.stack([at(5.0, 0, 0), at(4.0, 0, 0)]) if many else at(4.0, 0, 0)
    apart = tg.distance(ball, ball.moving(tg.Rest(poses)), device="cpu")
    assert facts(apart)["distance"].startswith(("2 to 2 m", "1.99999"))
    assert facts(apart).get("queries") == ("2" if many else None)
    motion = tg.Twist(poses, np.broadcast_to((-1.0, 0, 0), (2, 3) if many else 3), np.zeros((2, 3) if many else 3))
    near = tg.least_clearance(ball.moving(motion), ball, device="cpu")
    assert float(facts(near)["distance"].split()[2]) == pytest.approx(1.0, abs=0.2)


def test_a_path_says_its_verdict_and_its_clearance():
    path = tg.Path(np.stack([at(-3.0, 0, 0), at(-1.5, 0, 0), at(1.0, 0, 0)]))
    rows = facts(tg.check_path(tg.generate.box(), tg.generate.box(), path, device="cpu"))
    assert rows["segments that touch"] == "1 of 2"
    assert rows["clearance"].startswith("0 to 0 m")
    assert "features" in rows
