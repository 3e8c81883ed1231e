"""The six motions of two bumpy tori that every engine is measured on: answered right, small and in full."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import at
from oracles.rigid_distances import closest_approach, mesh_distances
from tangere.motion import Rest, Twist
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.shape import generate

TURNED = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()
#: The six motions of the bumpy tori: start, velocity, rotation vector.
SIX = {
    "translation": ([1.05, 0, 0], [0.4, 0, 0], [0, 0, 0]),
    "turn z": ([1.05, 0, 0], [0.3, 0, 0], [0, 0, 1.0]),
    "turn y": ([1.05, 0, 0], [0, 0.2, 0], [0, np.pi / 2, 0]),
    "approach": ([0, 5.0, 0], [0, -4.5, 0], [1.0, 2.0, 0.5]),
    "approach, 20 rad": ([0, 5.0, 0], [0, -4.5, 0], [3.0, 20.0, 1.5]),
    "far": ([0, 5.0, 0], [0, -1.0, 0], [1.0, 2.0, 0.5]),
}


def test_the_six_motions_of_the_bumpy_tori_are_answered_right():
    """Truth by refinement: clear at the time before, contact within the tolerance at the time."""
    torus = generate.bumpy_torus(24, 12)
    proved = 0
    for name, (position, velocity, rotation) in SIX.items():
        motion = Twist(at(position, TURNED), velocity, rotation)
        hit = rigid_first_contact(torus, torus.moving(motion), tolerance=1e-6, device="cpu")
        assert (hit.status == Status.FREE) == (name in ("turn y", "far"))
        nearest = closest_approach(torus, torus, Rest(), motion, min(hit.time, 1.0), samples=4, rounds=1)
        assert nearest >= 0.5e-6 * (1 - 1e-6)
        if hit:
            distance = mesh_distances(torus, torus, Rest().pose([hit.time]), motion.pose([hit.time]))[0]
            assert distance <= 1e-6
            assert hit.time < hit.time_upper
            proved += hit.time_upper < hit.time + 1e-4
    assert proved >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SIX)
def test_the_six_motions_of_the_full_tori_agree_with_a_peer(name):
    """69,696 triangles each: python-fcl sees them apart at every sampled time before the answer, and meet after it."""
    fcl = pytest.importorskip("fcl")
    torus = generate.bumpy_torus()
    position, velocity, rotation = SIX[name]
    motion = Twist(at(position, TURNED), velocity, rotation)
    hit = rigid_first_contact(torus, torus.moving(motion), tolerance=1e-6, device="cpu")
    model = fcl.BVHModel()
    model.beginModel(len(torus.vertices), len(torus.faces))
    model.addSubModel(torus.vertices, torus.faces)
    model.endModel()
    still = fcl.CollisionObject(model, fcl.Transform())

    def meet(t: float) -> bool:
        pose = motion.pose(t)
        other = fcl.CollisionObject(model, fcl.Transform(pose[:3, :3], pose[:3, 3]))
        return fcl.collide(still, other, fcl.CollisionRequest(), fcl.CollisionResult()) > 0

    until = min(hit.time, 1.0)
    times = np.unique(np.concatenate([np.linspace(0, until, 2000), until * (1 - 10.0 ** -np.arange(1.0, 13))]))
    assert not any(meet(t) for t in times)
    if hit:
        assert hit.time_upper - hit.time < 1e-5
        assert meet(hit.time_upper)
