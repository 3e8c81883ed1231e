"""One body asked alone, by launches that are kept: as in a batch, whatever was asked before."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.runtime import InputError

BODIES = {
    "sphere": tg.Sphere(0.3),
    "capsule": tg.Capsule(0.2, 0.5),
    "cylinder": tg.Cylinder(0.4, 0.3),
    "cone": tg.Cone(0.3, 0.6),
    "box": tg.Box([0.3, 0.2, 0.4]),
    "hull": tg.ConvexMesh(tg.generate.icosphere(subdivisions=1)),
}


def field(rng) -> tg.Heightfield:
    return tg.Heightfield(0.4 * rng.normal(size=(24, 30)), spacing=(0.4, 0.5), origin=(-6.0, -5.0, 0.0))


def thrown(count: int, rng) -> tg.Twist:
    start = np.tile(np.eye(4), (count, 1, 1))
    start[:, :3, :3] = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    start[:, :3, :3] *= np.linalg.det(start[:, :3, :3])[:, None, None]
    start[:, :3, 3] = rng.uniform([-4.0, -3.0, 0.5], [4.0, 3.0, 4.0], (count, 3))
    return tg.Twist(start, rng.normal(size=(count, 3)) - [0.0, 0.0, 3.0], rng.normal(size=(count, 3)))


@pytest.mark.parametrize("name", BODIES)
def test_one_alone_is_told_as_in_a_batch(name, rng, effort):
    grounds, body, count = [field(rng), field(rng)], BODIES[name], effort(40, 8)
    motions = thrown(count, rng)
    asks = [{}, {"separation": 0.1, "tolerance": 1e-4}, {"start": "trusted", "tolerance": 1e-7}]
    batches = [[tg.first_contact(body.moving(motions), on, device="cpu", **ask) for ask in asks] for on in grounds]
    for k in range(count):
        for on, answers in zip(grounds, batches, strict=True):
            for ask, batch in zip(asks, answers, strict=True):
                alone = tg.first_contact(body.moving(motions[k]), on, device="cpu", **ask)
                assert (alone.time, alone.time_upper) == (batch.time[k], batch.time_upper[k])
                assert alone.status == batch.status[k]
                if alone:
                    for part in ("point_a", "point_b", "normal"):
                        assert (getattr(alone.contacts, part)[0] == getattr(batch, part)[k]).all()


def test_what_was_told_stays_when_the_next_one_is_asked(rng):
    on, motions = field(rng), thrown(2, rng)
    first = tg.first_contact(BODIES["box"].moving(motions[0]), on, device="cpu")
    tg.first_contact(BODIES["box"].moving(motions[1]), on, device="cpu")
    again = tg.first_contact(BODIES["box"].moving(motions[0]), on, device="cpu")
    assert (first.contacts.point_b == again.contacts.point_b).all()


def test_one_that_is_too_far_is_refused(rng):
    away = np.eye(4)
    away[0, 3] = 1e80
    with pytest.raises(InputError, match="pose is not finite, or beyond"):
        tg.first_contact(BODIES["box"].at(away).moving(thrown(1, rng)[0]), field(rng), device="cpu")
    with pytest.raises(InputError, match="motion 0: its velocity"):
        tg.first_contact(
            BODIES["box"].moving(tg.Twist(np.eye(4), [1e80, 0.0, 0.0], np.zeros(3))), field(rng), device="cpu"
        )
