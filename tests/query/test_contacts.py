"""The contact record tells what is in it, wherever it lies."""

from __future__ import annotations

import numpy as np
import warp as wp

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
