"""First contact of rigid meshes along paths and on the links of chains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.shapes.traps import comb_plates
from oracles.families.rigid_scenes import at, shape
from oracles.rigid_distances import closest_approach, mesh_distances
from tangere.motion import Chain, Path, Rest, Twist
from tangere.query.contacts import Status
from tangere.query.first_contact.rigid import first_contact_along_path, rigid_first_contact
from tangere.query.path_check import check_path
from tangere.runtime import InputError
from tangere.shape import generate

TURNED = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()


def test_a_path_is_followed_through_all_its_segments():
    ball, ring = generate.icosphere(triangles=320, radius=0.3), shape("ring")
    poses = np.stack([at([2.5, 0, 0]), at([0, 2.5, 0.0], TURNED), at([-2.5, 0, 0]), at([0, -2.5, 0]), at([0.5, 0, 0])])
    path = Path(poses)
    moving = ball.moving(path)
    hit = first_contact_along_path(ring, moving, tolerance=1e-6, device="cpu")
    assert hit.status == Status.CONTACT
    assert 0.75 < hit.time < 1.0
    still = Rest()
    assert closest_approach(ring, ball, still, path, hit.time) >= 0.5e-6 * (1 - 1e-6)
    assert mesh_distances(ring, ball, still.pose([hit.time]), path.pose([hit.time]))[0] <= 1e-6
    assert hit.contacts.time[0] == hit.time
    # the other way round, and both on paths with other poses in between
    assert first_contact_along_path(moving, ring, tolerance=1e-6, device="cpu").time == pytest.approx(
        hit.time, abs=1e-6
    )
    resting = ring.moving(Path(np.stack([np.eye(4)] * 4), [0.0, 0.3, 0.31, 1.0]))
    assert first_contact_along_path(resting, moving, tolerance=1e-6, device="cpu").time == pytest.approx(
        hit.time, abs=1e-6
    )
    assert not first_contact_along_path(ring, ball.moving(Path(poses[:-1])), device="cpu")


@pytest.mark.feature("F-R-24")
def test_the_links_of_a_six_link_chain_touch_obstacles_when_sampling_says_so(rng, effort):
    bar = generate.box((1.0, 0.1, 0.1)).at(at([0.5, 0, 0]))
    obstacle = generate.icosphere(triangles=80, radius=0.3)
    touched = 0
    for _ in range(effort(3, least=1)):
        joints = [Twist(np.eye(4), [0, 0, 0], rng.normal(size=3))]
        for _ in range(5):
            joint = at([1.0, 0, 0], Rotation.from_rotvec(0.3 * rng.normal(size=3)).as_matrix())
            joints.append(Twist(joint, [0, 0, 0], rng.normal(size=3)))
        chain = Chain(joints)
        place = Rest(at(rng.uniform(-3, 3, size=3)))
        for k in range(6):
            link = chain.link(k)
            hit = rigid_first_contact(obstacle.moving(place), bar.moving(link), tolerance=1e-5, device="cpu")
            nearest = closest_approach(obstacle, bar, place, link, min(hit.time, 1.0), 24, 4) if hit.time > 0 else 1.0
            assert nearest >= 0.5e-5 * (1 - 1e-6)
            if hit:
                touched += 1
                assert mesh_distances(obstacle, bar, place.pose([hit.time]), link.pose([hit.time]))[0] <= 1e-5
    assert touched > 0
    with pytest.raises(InputError, match="form a loop"):
        Chain(joints, [5, 0, 1, 2, 3, 4])


@pytest.mark.parametrize("name", ["peg", "combs"])
def test_parts_that_slide_flat_into_each_other_touch_by_the_time_that_is_called_certain(name):
    """Such landings have a time by which contact is certain: it is true by brute force, and shows in clearances."""
    task = generate.peg_hole(triangles=512) if name == "peg" else comb_plates(3)
    path = Path(task.touching_path)
    found = check_path(task.part, task.fixed, path, instants=2, device="cpu")
    assert found.time < found.time_upper < found.time + 1e-3
    at = path.pose(np.array([found.time, found.time_upper]))
    near, touching = mesh_distances(task.part, task.fixed, at, np.eye(4))
    assert touching == 0.0 < near <= 1e-6 * max(task.part.extent, task.fixed.extent) * (1.0 + 1e-9)
    assert found.time_upper in found.clearance.time
