"""The contact record tells what is in it, wherever it lies."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import warp as wp

from tangere.query.contacts import Contacts, Kind, contact_key
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
