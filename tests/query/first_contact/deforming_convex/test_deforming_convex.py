"""Analytic bodies and meshes whose vertices go along lines: sampled, with triangles one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.convex_distances import Rows, conic_distance, rows_of
from oracles.convex_families import KINDS, bodies, poses, sizes
from oracles.rigid_distances import triangle_distances
from tangere.published.redon_screws import CosineScrew
from tangere.runtime import InputError, UnsupportedError
from tangere.shape.analytic import HULL

TOLERANCE = 1e-6
SHEET = tg.generate.icosphere(subdivisions=1)


def placed(*place: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = place
    return pose


def crumpled(rng, spread: float = 0.6) -> tg.shape.Moving:
    """A mesh of which every vertex goes its own way."""
    start = SHEET.vertices + rng.normal(size=SHEET.vertices.shape) * 0.1
    return SHEET.replace(vertices=start).moving(tg.Linear(start + rng.normal(size=start.shape) * spread))


def thrown(kind: str, count: int, rng) -> tg.shape.Moving:
    """Bodies that come from outside, spinning about a point off their centre."""
    side = bodies(kind, **{name: 0.4 * value for name, value in sizes(kind, count, rng).items()})
    start = poses(count, rng, 0.0)
    way = rng.normal(size=(count, 3))
    start[:, :3, 3] = 2.5 * way / np.linalg.norm(way, axis=1)[:, None]
    aim = -start[:, :3, 3] * rng.uniform(0.3, 1.4, (count, 1)) + rng.normal(size=(count, 3)) * 0.4
    return side.at(placed(0.1, 0.0, 0.2)).moving(tg.Twist(start, aim, rng.normal(size=(count, 3)) * 2.0))


def corners_at(mesh: tg.shape.Moving, time: float) -> np.ndarray:
    return ((1.0 - time) * mesh.start + time * mesh.end)[mesh.shape.faces]


def apart(body: tg.shape.Moving, row: int, mesh: tg.shape.Moving, time: float) -> float:
    """The distance of one body from the mesh at a time: from the surface as a mesh at rest."""
    still = SHEET.replace(vertices=(1.0 - time) * mesh.start + time * mesh.end)
    place = body.motion[row].pose(time)
    alone = body.shape[row if len(body.shape) > 1 else 0]
    return tg.distance(alone.at(place), still, device="cpu").upper


@pytest.mark.parametrize("kind", KINDS)
def test_none_is_late_and_none_is_missed(kind, rng, effort, device):
    count = effort(20)
    body, mesh = thrown(kind, count, rng), crumpled(rng)
    found = tg.first_contact(body, mesh, tolerance=TOLERANCE, device=device)
    swapped = tg.first_contact(mesh, body, tolerance=TOLERANCE, device=device)
    np.testing.assert_array_equal(swapped.time, found.time)
    np.testing.assert_array_equal(swapped.normal, -found.normal)
    assert (found.status != tg.Status.UNRESOLVED).all()
    assert (found.status == tg.Status.CONTACT).any()
    for k in range(count):
        free = found.status[k] == tg.Status.FREE
        end = 1.0 if free else float(found.time[k])
        for part in (*np.linspace(0.0, 1.0, 40, endpoint=False), 0.999, 0.99999):
            assert apart(body, k, mesh, end * part) > 0.0, "late or missed"
        if not free:
            assert apart(body, k, mesh, end) <= TOLERANCE + 1e-9
            if np.isfinite(found.time_upper[k]):
                assert apart(body, k, mesh, float(found.time_upper[k])) <= 1e-9
        one = tg.first_contact(body.shape[k if len(body.shape) > 1 else 0].moving(body.motion[k]), mesh, device=device,
                               tolerance=TOLERANCE)  # fmt: skip
        assert (one.time, one.status) == (found.time[k], found.status[k])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_none_of_thousands_is_late(kind, rng):
    for _ in range(20):
        body, mesh = thrown(kind, 100, rng), crumpled(rng)
        found = tg.first_contact(body, mesh, tolerance=TOLERANCE, device="cpu")
        assert (found.status != tg.Status.UNRESOLVED).all()
        end = np.where(found.status == tg.Status.FREE, 1.0, np.minimum(found.time, 1.0))
        for k in range(100):
            for part in (*np.linspace(0.0, 1.0, 24, endpoint=False), 0.9999, 0.999999):
                assert apart(body, k, mesh, end[k] * part) > 0.0
            assert found.status[k] == tg.Status.FREE or apart(body, k, mesh, end[k]) <= TOLERANCE + 1e-9


def test_balls_touch_when_all_triangles_say(rng, effort):
    """The distance of a centre from triangles, without the library's search."""
    count = effort(12, 3)
    mesh, radius = crumpled(rng), 0.2
    start = poses(count, rng, 0.0)
    start[:, :3, 3] = rng.normal(size=(count, 3)) * 2.0
    way = -start[:, :3, 3]
    found = tg.first_contact(
        tg.Sphere(radius).moving(tg.Twist(start, way, np.zeros(3))), mesh, tolerance=TOLERANCE, device="cpu"
    )

    def gap(k: int, time: float) -> float:
        triangles = corners_at(mesh, time)
        centre = np.broadcast_to(start[k, :3, 3] + time * way[k], triangles.shape)
        return float(triangle_distances(centre, triangles).min()) - radius

    for k in range(count):
        if found.status[k] == tg.Status.START:
            assert gap(k, 0.0) <= 0.0
            continue
        end = min(float(found.time[k]), 1.0)
        assert min(gap(k, end * part) for part in np.linspace(0.0, 0.9999, 60)) > 0.0
        if np.isfinite(found.time[k]):
            assert gap(k, end) <= TOLERANCE


def test_at_the_contact_conic_programmes_find_the_same_distance(rng):
    for kind in KINDS:
        body, mesh = thrown(kind, 6, rng), crumpled(rng)
        found = tg.first_contact(body, mesh, tolerance=1e-3, device="cpu")
        for k in np.flatnonzero(found.status == tg.Status.CONTACT)[:2]:
            time = float(found.time[k])
            alone = body.shape[k if len(body.shape) > 1 else 0]
            place = rows_of(alone, (body.motion[k].pose(time) @ np.asarray(alone.poses)[0])[None])
            least = np.inf
            for corners in corners_at(mesh, time):
                if np.linalg.norm(corners - found.point_b[k], axis=1).min() < 0.8:
                    triangle = Rows(HULL, np.zeros(1), np.ones((1, 3)), corners, np.eye(4)[None])
                    least = min(least, conic_distance(place, triangle)[1])
            assert 0.0 < least <= 1e-3 + 1e-9


def test_a_sheet_that_is_blown_over_a_post_tells_where(device):
    sheet = tg.generate.sheet(200)
    up = sheet.moving(tg.Linear(sheet.vertices + [0.0, 0.0, 1.0]))
    for post, top in ((tg.Sphere(0.25), 0.25), (tg.Cylinder(0.1, 0.5), 0.25), (tg.Cone(0.3, 0.5), 0.25)):
        hit = tg.first_contact(up, post.at(placed(0.05, 0.02, 1.0)), device=device)
        assert hit.status == tg.Status.CONTACT
        assert 1.0 - top - 1e-5 <= hit.time <= 1.0 - top
        assert 1.0 - top <= hit.time_upper <= 1.0 - top + 1e-5
        np.testing.assert_allclose(hit.contacts.normal[0], [0.0, 0.0, -1.0], atol=1e-6)
        assert hit.contacts.feature_b[0] == -1
        assert 0 <= hit.contacts.feature_a[0] < len(sheet.faces)
    assert tg.first_contact(up, tg.Sphere(0.25).at(placed(0.0, 0.0, 2.0)), device=device).status == tg.Status.FREE
    near = tg.first_contact(up, tg.Sphere(0.25).at(placed(0.0, 0.0, 2.0)), separation=0.8, device=device)
    assert near.time == pytest.approx(0.95, abs=1e-5)


def test_what_begins_in_contact_or_inside_says_so(device):
    still = SHEET.moving(tg.Linear(SHEET.vertices))
    assert tg.first_contact(tg.Sphere(3.0), still, device=device).status == tg.Status.START  # the surface is inside it
    assert tg.first_contact(tg.Sphere(0.1), still, device=device).status == tg.Status.FREE  # it is inside the surface
    assert tg.first_contact(tg.Box([1.0, 0.1, 0.1]), still, device=device).status == tg.Status.START
    shrinking = SHEET.moving(tg.Linear(SHEET.vertices * 0.1))
    hit = tg.first_contact(tg.Sphere(0.5), shrinking, device=device)
    assert hit.status == tg.Status.CONTACT
    assert 0.4 < hit.time < 0.56


def test_paths_are_followed_through_meshes_that_deform():
    sheet = tg.generate.sheet(200)
    up = sheet.moving(tg.Linear(sheet.vertices + [0.0, 0.0, 1.0]))
    path = tg.Path(np.stack([placed(0.0, 0.0, 3.0), placed(0.0, 0.0, 2.0), placed(0.1, 0.0, 1.2)]))
    for part in (tg.Sphere(0.25), tg.Cylinder(0.2, 0.5), tg.generate.box([0.5, 0.5, 0.5])):
        half = 0.25 if not isinstance(part, tg.Mesh) else float(part.bounds[1, 2])
        # In the second half it comes down by 0.8 while the sheet comes up by 0.5.
        expected = 0.5 + 0.5 * (2.0 - half - 0.5) / 1.3
        for hit in (tg.first_contact(part.moving(path), up, device="cpu"),
                    tg.first_contact(up, part.moving(path), device="cpu")):  # fmt: skip
            assert hit.status == tg.Status.CONTACT
            assert expected - 1e-5 <= hit.time <= expected + 1e-12


def test_bad_questions_are_told_in_one_sentence():
    still = SHEET.moving(tg.Linear(SHEET.vertices))
    with pytest.raises(InputError, match="tolerance 1e-20 is below"):
        tg.first_contact(tg.Sphere(1.0).at(placed(9.0)), still, tolerance=1e-20, device="cpu")
    with pytest.raises(InputError, match="takes no options"):
        tg.first_contact(tg.Sphere(1.0), still, options=tg.RigidOptions(), device="cpu")
    with pytest.raises(InputError, match="knows the mode 'sound'"):
        tg.first_contact(tg.Sphere(1.0), still, mode="exact", device="cpu")
    turned = placed(1.0)
    turned[:3, :3] = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    with pytest.raises(UnsupportedError, match="another clock"):
        tg.first_contact(tg.Sphere(1.0).moving(CosineScrew(placed(5.0), turned)), still, device="cpu")
