"""The interval engine on meshes: complete, never late, the same answer with every setting that must not change it."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from oracles.families.rigid_scenes import KINDS, random_motion, random_poses
from tangere.motion import Chain, Linear, Rest, Twist
from tangere.published.redon_intervals import (
    IntervalFront,
    IntervalOptions,
    edge_edge_by_intervals,
    first_contacts_by_intervals,
    vertex_face_by_intervals,
)
from tangere.query.contacts import Kind, Status
from tangere.runtime import InputError, UnsupportedError

fcl = pytest.importorskip("fcl")

EPS = 1e-6


def shapes():
    return {
        "spheres": (tg.generate.icosphere(subdivisions=1), tg.generate.icosphere(subdivisions=1)),
        "tori": (tg.generate.torus(grid=(12, 8)), tg.generate.torus(grid=(10, 6))),
        "boxes": (tg.generate.box(), tg.generate.box()),
    }


def fcl_model(mesh):
    model = fcl.BVHModel()
    model.beginModel(len(mesh.vertices), len(mesh.faces))
    model.addSubModel(mesh.vertices, mesh.faces)
    model.endModel()
    return model


def collides(model_a, pose_a, model_b, pose_b) -> bool:
    bodies = [
        fcl.CollisionObject(model, fcl.Transform(pose[:3, :3], pose[:3, 3]))
        for model, pose in ((model_a, pose_a), (model_b, pose_b))
    ]
    return fcl.collide(*bodies, fcl.CollisionRequest(), fcl.CollisionResult()) > 0


def distance(model_a, pose_a, model_b, pose_b) -> float:
    bodies = [
        fcl.CollisionObject(model, fcl.Transform(pose[:3, :3], pose[:3, 3]))
        for model, pose in ((model_a, pose_a), (model_b, pose_b))
    ]
    return fcl.distance(*bodies, fcl.DistanceRequest(), fcl.DistanceResult())


def apart_at_start(a, motion_a, b, motion_b, models):
    """The motions that start apart."""
    poses = [np.atleast_3d(m.pose(0.0)).reshape(-1, 4, 4) for m in (motion_a, motion_b)]
    count = max(len(p) for p in poses)
    pairs = [(poses[0][min(i, len(poses[0]) - 1)], poses[1][min(i, len(poses[1]) - 1)]) for i in range(count)]
    return np.array([not collides(models[0], p, models[1], q) for p, q in pairs])


def check_never_late(a, motion_a, b, motion_b, found, samples=40):
    """No sampled collision before the answer, and the bodies are within tolerance at it."""
    models = fcl_model(a), fcl_model(b)
    valid = apart_at_start(a, motion_a, b, motion_b, models)
    hits = 0
    for i in np.flatnonzero(valid):
        until = min(found.time[i], 1.0)
        times = np.linspace(0.0, until, samples)
        one, other = (
            np.array([np.broadcast_to(m.pose(t), (len(valid), 4, 4))[i] for t in times]) for m in (motion_a, motion_b)
        )
        for k in range(samples - 1):
            assert not collides(models[0], one[k], models[1], other[k]), (i, times[k], found.time[i])
        if np.isfinite(found.time[i]):
            hits += 1
            assert distance(models[0], one[-1], models[1], other[-1]) <= 2 * EPS
    return hits


def brute_force(a, motion_a, b, motion_b, options) -> float:
    """Earliest of all pairs of features of two small meshes, one by one."""
    edges_a, edges_b = a.vertices[a.edges], b.vertices[b.edges]
    i, j = np.indices((len(edges_a), len(edges_b))).reshape(2, -1)
    pairs = np.concatenate([edges_a[i], edges_b[j]], axis=1)
    times = [edge_edge_by_intervals(pairs, motion_a, motion_b, options, device="cpu").time.min()]
    for (one, motion_one), (other, motion_other) in (((a, motion_a), (b, motion_b)), ((b, motion_b), (a, motion_a))):
        i, j = np.indices((len(one.vertices), len(other.faces))).reshape(2, -1)
        pairs = np.concatenate([one.vertices[i][:, None], other.vertices[other.faces[j]]], axis=1)
        times.append(vertex_face_by_intervals(pairs, motion_one, motion_other, options, device="cpu").time.min())
    return min(times)


@pytest.mark.feature("F-R-29")
@pytest.mark.parametrize("order", ["time", "plain"])
def test_the_search_finds_what_all_pairs_of_features_give(order, rng, effort, device):
    a, b = tg.generate.box(), tg.generate.icosphere(subdivisions=0)
    options = IntervalOptions(order=order, tolerance=EPS)
    times = []
    for _ in range(effort(8)):
        motion = random_motion("twist", rng, 1, 1.5)
        motion = Twist(motion.pose(0.0)[0], 2 * rng.normal(size=3), 2 * rng.normal(size=3))
        found = first_contacts_by_intervals(a.moving(motion), b, options, device=device)
        truth = brute_force(a, motion, b, Rest(), options)
        times.append(truth)
        # Where bisection ends depends on the interval it starts from: times agree to what is moved in the tolerance.
        assert (found.time[0] == truth) or abs(found.time[0] - truth) < 1e-5
    assert np.isfinite(times).sum() > 0


@pytest.mark.feature("F-R-22")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["spheres", "tori", "boxes"])
def test_no_collision_is_sampled_before_the_answer_with_any_kind_of_motion(name, kind, rng, effort, device):
    a, b = shapes()[name]
    count = effort(6, least=5)
    motion_a, start = random_motion(kind, rng, count, 2.0), random_poses(rng, count, 2.0)
    towards = motion_a.pose(0.5)[:, :3, 3] - start[:, :3, 3]
    motion_b = Twist(start, 1.5 * towards, 2 * rng.normal(size=(count, 3)))
    found = first_contacts_by_intervals(
        a.moving(motion_a), b.moving(motion_b), IntervalOptions(tolerance=EPS), device=device
    )
    hits = check_never_late(a, motion_a, b, motion_b, found)
    assert hits > 0


def test_one_body_at_rest_gives_the_same_time_on_either_side(rng, device):
    a, b = shapes()["tori"]
    motion = random_motion("twist", rng, 20, 1.5)
    one = first_contacts_by_intervals(a.moving(motion), b, IntervalOptions(tolerance=EPS), device=device)
    other = first_contacts_by_intervals(b, a.moving(motion), IntervalOptions(tolerance=EPS), device=device)
    np.testing.assert_array_equal(one.time, other.time)
    np.testing.assert_array_equal(one.triangles, other.triangles[:, ::-1])
    np.testing.assert_allclose(one.contacts.normal, -other.contacts.normal, atol=1e-9)
    np.testing.assert_array_equal(one.contacts.feature_a, other.contacts.feature_b)


SETTINGS = {
    "no pre-tests": {"final_test": False, "initial_test": False},
    "final test": {"initial_test": False},
    "initial test": {"final_test": False},
    "six axes": {"discrete_axes": 6, "continuous_axes": 6},
    "six discrete axes": {"discrete_axes": 6},
    "six continuous axes": {"continuous_axes": 6},
    "no halving": {"criterion": "never"},
    "literal criterion": {"criterion": "literal", "depth": 8},
    "without passing time": {"pass_time": False},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_search_do_not_change_the_time(setting, rng, device):
    a, b = shapes()["tori"]
    motion = Twist(random_poses(rng, 16, 1.5), 2 * rng.normal(size=(16, 3)), rng.normal(size=(16, 3)))
    plain = first_contacts_by_intervals(
        a.moving(motion), b, IntervalOptions(order="plain", tolerance=EPS), device=device
    )
    changed = first_contacts_by_intervals(
        a.moving(motion), b, IntervalOptions(order="plain", tolerance=EPS, **SETTINGS[setting]), device=device
    )
    assert np.isfinite(plain.time).sum() > 3
    np.testing.assert_allclose(changed.time, plain.time, atol=1e-5)


def test_passing_the_first_contact_time_saves_tests(rng, device):
    a, b = tg.generate.torus(grid=(24, 12), bumps=0.1), tg.generate.torus(grid=(24, 12), bumps=0.1)
    motion = Twist(random_poses(rng, 8, 2.0), 3 * rng.normal(size=(8, 3)), rng.normal(size=(8, 3)))
    on, off = (
        first_contacts_by_intervals(
            a.moving(motion), b, IntervalOptions(order="plain", tolerance=1e-4, pass_time=passing), device=device
        )
        for passing in (True, False)
    )
    np.testing.assert_allclose(on.time, off.time, atol=1e-3)
    elementary = [c.edge_edge + c.vertex_face + c.face_vertex for c in (on.counters, off.counters)]
    assert elementary[0] < 0.6 * elementary[1]
    assert on.counters.boxes < off.counters.boxes


def test_pre_tests_save_continuous_tests(rng, device):
    a, b = tg.generate.torus(grid=(24, 12)), tg.generate.torus(grid=(24, 12))
    motion = Twist(random_poses(rng, 16, 1.5), rng.normal(size=(16, 3)), rng.normal(size=(16, 3)))
    counts = {}
    for final in (False, True):
        for initial in (False, True):
            options = IntervalOptions.printed(final_test=final, initial_test=initial, tolerance=1e-4)
            counts[final, initial] = first_contacts_by_intervals(a.moving(motion), b, options, device=device).counters
    none, both = counts[False, False], counts[True, True]
    assert none.box_final == none.box_initial == 0
    assert both.box_final == both.boxes
    assert both.box_initial < both.box_final
    for some in (counts[True, False], counts[False, True]):
        assert both.box_continuous < some.box_continuous < none.box_continuous


def test_all_fifteen_axes_need_the_fewest_box_tests(rng, device):
    a, b = tg.generate.torus(grid=(24, 12)), tg.generate.torus(grid=(24, 12))
    motion = Twist(random_poses(rng, 16, 1.5), rng.normal(size=(16, 3)), rng.normal(size=(16, 3)))
    boxes = {}
    for discrete in (6, 15):
        for continuous in (6, 15):
            options = IntervalOptions.printed(discrete_axes=discrete, continuous_axes=continuous, tolerance=1e-4)
            boxes[discrete, continuous] = first_contacts_by_intervals(
                a.moving(motion), b, options, device=device
            ).counters.boxes
    assert boxes[15, 15] == min(boxes.values())


def test_order_of_time_needs_fewer_leaves_than_plain_order(rng, device):
    a, b = tg.generate.torus(grid=(24, 12), bumps=0.1), tg.generate.torus(grid=(24, 12), bumps=0.1)
    motion = Twist(random_poses(rng, 8, 2.0), 3 * rng.normal(size=(8, 3)), rng.normal(size=(8, 3)))
    by_time, plain = (
        first_contacts_by_intervals(a.moving(motion), b, IntervalOptions(order=order, tolerance=1e-4), device=device)
        for order in ("time", "plain")
    )
    np.testing.assert_allclose(by_time.time, plain.time, atol=1e-3)
    assert by_time.counters.edge_edge < plain.counters.edge_edge


@pytest.mark.feature("F-R-35")
def test_a_front_from_the_last_step_gives_the_same_times_with_fewer_box_tests(device):
    """A torus creeps through another in small steps; the table's memory and gain are reported."""
    mesh = tg.generate.torus(grid=(40, 20), bumps=0.1)
    start = np.eye(4)
    start[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    front, boxes = IntervalFront(), np.zeros(2, int)
    for step in range(12):
        start[:3, 3] = [1.0 + 0.01 * step, 0.0, 0.005 * step]
        moving = mesh.moving(Twist(start, [0.01, 0, 0.005], [0, 0.02, 0]))
        options = IntervalOptions(tolerance=EPS)
        plain = first_contacts_by_intervals(moving, mesh, options, device=device)
        kept = first_contacts_by_intervals(moving, mesh, options, front=front, device=device)
        np.testing.assert_allclose(kept.time, plain.time, atol=1e-6)
        boxes += [plain.counters.boxes, kept.counters.boxes]
    print(f"front of {len(front.pairs)} pairs, {front.nbytes} bytes; box tests {boxes[0]} without, {boxes[1]} with")
    assert 0 < front.nbytes == 8 * len(front.pairs)
    assert boxes[1] < boxes[0]


def test_a_batch_gives_what_its_queries_give_alone_and_threads_change_nothing(rng, device):
    a, b = shapes()["spheres"]
    poses, ways, turns = random_poses(rng, 8, 2.0), rng.normal(size=(8, 3)) * 3, rng.normal(size=(8, 3))
    together = first_contacts_by_intervals(a.moving(Twist(poses, ways, turns)), b, device=device)
    two = first_contacts_by_intervals(a.moving(Twist(poses, ways, turns)), b, device=device, threads=2)
    np.testing.assert_array_equal(two.time, together.time)
    for i in range(8):
        alone = first_contacts_by_intervals(a.moving(Twist(poses[i], ways[i], turns[i])), b, device=device)
        assert alone.time[0] == together.time[i]


def test_contacts_describe_what_touches(device):
    """A box falls on a larger one, corner first: vertex against face, normal up."""
    box = tg.generate.box()
    tilt = np.eye(4)
    axis = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)
    from scipy.spatial.transform import Rotation

    tilt[:3, :3] = Rotation.from_rotvec(axis * 0.6).as_matrix()
    tilt[2, 3] = 3.0
    scale = np.diag([8.0, 8.0, 1.0, 1.0])
    found = first_contacts_by_intervals(box.moving(Twist(tilt, [0, 0, -4], [0, 0, 0.3])), box.at(scale), device=device)
    contact = found.contacts
    assert found.status[0] == Status.CONTACT
    assert contact.kind[0] == Kind.VERTEX_FACE
    assert contact.vertex_on[0] == 0
    np.testing.assert_allclose(contact.normal[0], [0, 0, 1], atol=1e-6)
    assert 0 <= contact.gap[0] < 1e-4
    np.testing.assert_allclose(contact.point_a, contact.point_b, atol=1e-4)
    top = box.at(scale).bounds[1, 2]
    np.testing.assert_allclose(contact.point_b[0, 2], top, atol=1e-9)


@pytest.mark.feature("F-R-24")
def test_a_chain_of_six_links_meets_obstacles_when_samples_say_so(rng, effort, device):
    """Each link of a turning arm against a ball; the earliest of all is compared with dense samples, refined."""
    link, ball = tg.generate.box(size=(0.8, 0.1, 0.1)), tg.generate.icosphere(subdivisions=1, radius=0.3)
    joint = np.eye(4)
    joint[0, 3] = 1.0
    models = fcl_model(link), fcl_model(ball)
    hits = 0
    for _ in range(2):
        arm = Chain([Twist(np.eye(4) if k == 0 else joint, [0, 0, 0], 0.5 * rng.normal(size=3)) for k in range(6)])
        place = np.eye(4)
        place[:3, 3] = arm.link(4).pose(0.7)[:3, 3] + 0.2 * rng.normal(size=3)
        still = ball.moving(Rest(place))

        def touching(t, arm=arm, place=place):
            return any(collides(models[0], arm.link(k).pose(t), models[1], place) for k in range(6))

        if touching(0.0):
            continue
        times = [
            first_contacts_by_intervals(
                link.moving(arm.link(k)), still, IntervalOptions(tolerance=EPS), device=device
            ).time[0]
            for k in range(6)
        ]
        samples = np.linspace(0, 1, 101)
        first = next((k for k, t in enumerate(samples) if touching(t)), None)
        if first is None:
            assert (
                min(times) > 1.0
                or distance(models[0], arm.link(int(np.argmin(times))).pose(min(times)), models[1], place) < 2 * EPS
            )
            continue
        hits += 1
        lower, upper = samples[first - 1], samples[first]
        for _ in range(30):
            middle = 0.5 * (lower + upper)
            lower, upper = (lower, middle) if touching(middle) else (middle, upper)
        assert min(times) <= upper
        assert min(times) > upper - 1e-3
    assert hits > 0
    with pytest.raises(InputError, match="loop"):
        Chain([Twist(np.eye(4), [0, 0, 0], [0, 0, 1])] * 3, parents=[2, 0, 1])


@pytest.mark.feature("F-R-44")
def test_recession_culls_without_changing_times_and_stamps_save_tests(rng, device):
    """A torus slides over another and comes down: what looks away is culled, each box asked once."""
    mesh = tg.generate.torus(grid=(30, 16))
    start = np.tile(np.eye(4), (6, 1, 1))
    start[:, :3, 3] = [[0.3 * k - 0.8, 0.2, 0.75] for k in range(6)]
    moving = mesh.moving(Twist(start, np.tile([0.4, 0.1, -0.2], (6, 1)), np.zeros((6, 3))))
    settings = {"order": "plain", "tolerance": EPS}
    found = {
        (recession, stamps): first_contacts_by_intervals(
            moving, mesh, IntervalOptions(recession=recession, stamps=stamps, **settings), device=device
        )
        for recession, stamps in (("off", True), ("elementary", True), ("hierarchical", True), ("hierarchical", False))
    }
    plain = found["off", True]
    assert plain.counters.recession == 0
    assert np.isfinite(plain.time).any()
    for other in found.values():
        np.testing.assert_allclose(other.time, plain.time, atol=1e-5)
    elementary, hierarchical, unstamped = (found[key].counters for key in list(found)[1:])
    assert hierarchical.boxes < elementary.boxes <= plain.counters.boxes
    assert hierarchical.edge_edge < plain.counters.edge_edge
    print(f"recession tests {unstamped.recession} without stamps, {hierarchical.recession} with")
    assert unstamped.recession >= 3 * hierarchical.recession


def test_open_meshes_are_never_culled(device):
    sheet, ball = tg.generate.sheet(200), tg.generate.icosphere(subdivisions=2)
    under = np.eye(4)
    under[2, 3] = -2.0  # below the sheet, against its normals
    moving = ball.moving(Twist(under, [0, 0, 2], [0, 0, 0]))
    plain = first_contacts_by_intervals(moving, sheet, device=device)
    culled = first_contacts_by_intervals(moving, sheet, IntervalOptions(recession="hierarchical"), device=device)
    assert plain.status[0] == Status.CONTACT
    np.testing.assert_allclose(culled.time, plain.time, atol=1e-5)


def test_bad_input_is_named(device):
    box = tg.generate.box()
    poses = np.tile(np.eye(4), (3, 1, 1))
    with pytest.raises(InputError, match="b has 2 motions, the other has 3"):
        first_contacts_by_intervals(box.moving(Rest(poses)), box.moving(Rest(poses[:2])), device=device)
    with pytest.raises(InputError, match="one query at a time"):
        first_contacts_by_intervals(box.moving(Rest(poses)), box, front=IntervalFront(), device=device)
    with pytest.raises(UnsupportedError, match="Linear"):
        first_contacts_by_intervals(box.moving(Linear(box.vertices)), box, device=device)
    for wrong in ({"k": -1.0}, {"depth": 99}, {"tolerance": 0.0}, {"order": "random"}, {"time_tolerance": np.nan}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            IntervalOptions(**wrong)
