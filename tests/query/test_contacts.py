"""The contact record tells what is in it, wherever it lies."""

from __future__ import annotations

from dataclasses import fields
from threading import Barrier, Thread
from time import sleep

import numpy as np
import pytest
import warp as wp

from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.contacts.record import DeferredContacts
from tangere.query.manifold import manifold
from tangere.shape.analytic import Cylinder
from tangere.shape.heightfield import Heightfield


def test_contacts_in_warp_arrays_are_told_without_being_fetched():
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, :3, 3] = [[4.0, 4.0, 0.49], [6.0, 4.0, 0.49]]
    ground = Heightfield(np.zeros((10, 10)))
    for_numpy = manifold(Cylinder(0.5, 1.0).at(poses), ground, device="cpu")
    for_warp = manifold(Cylinder(0.5, 1.0).at(wp.array(poses, dtype=wp.mat44d, device="cpu")), ground)
    assert repr(for_numpy).startswith("Contacts(8: 8 vertex-face")
    assert repr(for_warp) == "Contacts(8, on cpu)"


def test_a_record_is_built_from_what_a_query_knows():
    point, normal = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    bare = Contacts.of(point_a=point, normal=normal)
    assert {f.name: getattr(bare, f.name).dtype for f in fields(Contacts)} == {
        f.name: getattr(Contacts(), f.name).dtype for f in fields(Contacts)
    }
    assert all(len(getattr(bare, f.name)) == 2 for f in fields(Contacts))
    assert (bare.point_b == point).all()
    assert bare.point_b is not bare.point_a
    assert bare.gap.tolist() == bare.time.tolist() == [0.0, 0.0]
    assert (bare.body_a.tolist(), bare.body_b.tolist()) == ([0, 0], [1, 1])
    assert (bare.feature_a.tolist(), bare.kind.tolist(), bare.key.tolist()) == ([-1, -1], [Kind.NONE] * 2, [0, 0])
    full = Contacts.of(
        point_a=point,
        point_b=point - 0.5 * normal,
        normal=normal,
        time=0.25,
        kind=Kind.VERTEX_FACE,
        feature_a=np.array([7, 8]),
        feature_b=9,
        vertex_on=np.array([0, 1]),
        weights=np.nan,
        body_b=np.array([3, 4]),
    )
    assert full.gap.tolist() == [0.5, 0.5]
    assert full.time.tolist() == [0.25, 0.25]
    assert full.key[0] == contact_key(Kind.VERTEX_FACE, 0, 7, 9)
    assert full.key[1] == contact_key(Kind.VERTEX_FACE, 1, 9, 8)  # the vertex's number first
    assert full.weights.shape == (2, 4)
    assert len(Contacts.joined([bare, full])) == 4


def test_columns_that_are_made_when_read_are_made_once_for_all_threads():
    told, made, readers = [], [], Barrier(4)

    def make() -> Contacts:
        made.append(True)
        sleep(0.05)  # all threads are asking by now
        return Contacts.of(point_a=np.zeros((3, 3)), normal=np.zeros((3, 3)), gap=np.arange(3.0))

    deferred = DeferredContacts.by(make)

    def read() -> None:
        readers.wait()
        told.append((deferred.gap.tolist(), len(deferred), deferred.normal.shape))

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [([0.0, 1.0, 2.0], 3, (3, 3))] * 4
    assert len(made) == 1
    assert set(vars(deferred)) == {f.name for f in fields(Contacts)}


def test_columns_that_could_not_be_made_are_asked_for_again():
    tries = []

    def make() -> Contacts:
        tries.append(True)
        if len(tries) == 1:
            raise MemoryError
        return Contacts.of(point_a=np.zeros((2, 3)), normal=np.zeros((2, 3)), gap=np.ones(2))

    deferred = DeferredContacts.by(make)
    with pytest.raises(MemoryError):
        _ = deferred.gap
    assert deferred.gap.tolist() == [1.0, 1.0]
    with pytest.raises(AttributeError, match="no attribute 'gaps'"):
        _ = deferred.gaps
