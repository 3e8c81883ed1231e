"""Spheres, boxes and cylinders of robots, of their cells and in their hands are what they are: formulas, not facets."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from robot.cells import coal_shape, place
from tangere.query.gradients import GradientStatus
from tangere.robot import AllowedPairs, TrajectoryChecker, Workcell

coal = pytest.importorskip("coal")

#: An arm in the plane z = 0: a box that turns, a rod of a cylinder and two balls on it, and a ball at the end.
ARM = """<robot name="planar">
  <link name="foot"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="upper">
    <collision><origin xyz="0.3 0 0"/><geometry><box size="0.4 0.06 0.08"/></geometry></collision></link>
  <link name="lower">
    <collision><origin xyz="0.25 0 0" rpy="0 1.5707963267948966 0"/>
      <geometry><cylinder radius="0.03" length="0.3"/></geometry></collision>
    <collision><origin xyz="0.12 0 0.02"/><geometry><sphere radius="0.045"/></geometry></collision></link>
  <link name="hand"><collision><geometry><sphere radius="0.06"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="foot"/><child link="upper"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 0.6 0.8"/>
    <origin xyz="0.55 0 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="wrist" type="prismatic"><parent link="lower"/><child link="hand"/><axis xyz="1 0 0"/>
    <origin xyz="0.5 0 0"/><limit lower="0" upper="0.1" effort="1" velocity="1"/></joint>
</robot>"""
NEIGHBOURS = [("foot", "upper"), ("upper", "lower"), ("lower", "hand")]
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    file = tmp_path_factory.mktemp("arm") / "planar.urdf"
    file.write_text(ARM)
    return tg.Robot.load(file)


class Peer:
    """The distance of two bodies of a cell at a configuration, by coal's own shapes."""

    def __init__(self, robot, world):
        self.cell, self.robot = Workcell({"": robot}, world=world), robot
        self.parts = [[coal_shape(part) for part in parts] for parts in self.cell.parts]
        groups = {name: k for k, names in enumerate(robot.groups) for name in names}
        first = [names[0] if k else None for k, names in enumerate(robot.groups)]
        self.frames = [robot.links.index(first[groups[name]]) if groups.get(name) else None for name in self.cell.names]

    def distance(self, a, b, q):
        poses = self.robot.poses(q)
        least = np.inf
        places = [np.eye(4) if f is None else poses[f] for f in (self.frames[a], self.frames[b])]
        for one, at_one in self.parts[a]:
            for two, at_two in self.parts[b]:
                where = [
                    coal.Transform3s(np.ascontiguousarray(pose[:3, :3]), pose[:3, 3].copy())
                    for pose in (places[0] @ at_one, places[1] @ at_two)
                ]
                result = coal.DistanceResult()
                least = min(least, coal.distance(one, where[0], two, where[1], coal.DistanceRequest(), result))
        return least


def cell():
    return {
        "pillar": tg.Box([0.04, 0.05, 0.3]).at(place(0.5, 0.55, 0.0)),
        "balls": tg.Sphere([0.05, 0.08]).at(np.stack([place(-0.5, 0.5, 0.1), place(-0.3, -0.8, 0.0)])),
        "wedge": tg.generate.prism(5, radius=0.06, height=0.5).at(place(0.2, -0.7, 0.0)),
    }


def trajectories(rng, robot, count, points=9):
    low, high = robot.limits.T
    ends = rng.uniform(low, high, (count, 2, len(low)))
    return ends[:, :1] + np.linspace(0.0, 1.0, points)[None, :, None] * (ends[:, 1:] - ends[:, :1])


def test_what_coal_finds_between_its_own_shapes_is_told_and_contacts_are_within_the_tolerance(arm, rng, effort):
    held = arm.attach("tool", tg.Capsule(0.02, 0.2), "hand", place(0.0, 0.1, 0.0), may_touch=["lower"])
    world = cell()
    peer = Peer(held, world)
    allowed = held.allowed([*NEIGHBOURS, ("lower", "tool")])
    checker = TrajectoryChecker(peer.cell, allowed, device="cpu")
    plans = trajectories(rng, held, effort(12))
    found = checker.check(plans, tolerance=TOLERANCE)
    times, share = found.times, (np.arange(6) + 0.5) / 6
    touched = clear = 0
    for i, plan in enumerate(plans):
        for k in range(len(plan) - 1):
            begin, end = found.segments.time[i, k], times[k + 1]
            if found.segments.status[i, k] != tg.Status.FREE:
                pair = found.segments.body_a[i, k], found.segments.body_b[i, k]
                part = (begin - times[k]) / (times[k + 1] - times[k])
                apart = peer.distance(*pair, plan[k] + part * (plan[k + 1] - plan[k]))
                assert apart <= 1.1 * TOLERANCE + 1e-6
                end, touched = begin, touched + 1
            # Before that nothing touches, by coal's own tolerance.
            for part in share[times[k] + share * (times[k + 1] - times[k]) < end]:
                q = plan[k] + part * (plan[k + 1] - plan[k])
                assert min(peer.distance(a, b, q) for a, b in checker.pairs) > -1e-6
                clear += 1
    assert touched > 3
    assert clear > 20


def test_a_ball_meets_a_ball_when_the_law_of_cosines_says(arm):
    # The hand's centre goes round at 1.05 m; the other ball stands on the same circle.
    q = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    ball = tg.Sphere(0.07).at(place(1.05, 0.0, 0.0))
    found = arm.check(q, {"ball": ball}, NEIGHBOURS, tolerance=1e-9, device="cpu")
    wanted = 1.0 - 2.0 * np.arcsin(0.13 / 2.0 / 1.05)
    assert found.pair == ("hand", "ball")
    assert found.time == pytest.approx(wanted / 2.0, abs=1e-8)
    assert np.linalg.norm(found.contact.point_a[0] - [1.05, 0.0, 0.0]) == pytest.approx(0.07, abs=1e-8)
    # A mesh of the same ball would be met 1 mm earlier: so near nothing touches.
    by = tg.Sphere(0.0699).at(place(1.05, 0.0, 0.13))
    assert not arm.check(q, {"ball": by}, NEIGHBOURS, device="cpu")


def test_clearance_is_below_every_sampled_distance_and_near_the_least(arm, rng, effort):
    hand = tg.Sphere(0.06).at(place(0.5, 0.0, 0.1))
    ball = tg.Robot(
        "ball",
        ("foot", "hand"),
        (-1, 0),
        (arm.joints[0], arm.joints[1]),
        (None, tg.shape.robot.mesh_holding(hand)),
        parts=((), (hand,)),
    )
    world = {name: thing for name, thing in cell().items() if name != "pillar"} | {
        "block": tg.Box([0.1, 0.1, 0.1]).at(place(0.75, 0.35, 0.0))
    }
    peer = Peer(ball, world)
    plans = trajectories(rng, ball, effort(6), 7)
    found = ball.check(plans, world, [], clearance=0.4, accuracy=0.2, device="cpu")
    share = np.linspace(0.0, 1.0, 41)
    near = 0
    pairs = peer.cell.pairs(AllowedPairs())
    for i, plan in enumerate(plans):
        for k in range(len(plan) - 1):
            low, high = found.segments.clearance_lower[i, k], found.segments.clearance_upper[i, k]
            seen = min(
                peer.distance(a, b, plan[k] + part * (plan[k + 1] - plan[k])) for part in share for a, b in pairs
            )
            assert low <= max(seen, 0.0) + 1e-6
            if np.isfinite(high):
                assert high <= max(seen, 0.0) * 1.25 + 1e-4
                assert low >= 0.8 * high - 1e-5
                near += 1
            else:
                assert seen > 0.8 * 0.4
    assert near > 3


def test_bodies_are_solid_and_a_cell_may_have_many_of_one_kind(arm):
    q = np.zeros((1, 3))
    around = arm.check(q, {"block": tg.Box([3.0, 3.0, 3.0])}, NEIGHBOURS, device="cpu")
    assert around.status == tg.Status.START
    assert around.pair == ("foot", "block") or around.pair[1] == "block"
    balls = tg.Sphere(0.05).at(np.stack([place(3.0), place(1.05, 0.05), place(5.0)]))
    assert arm.check(q, {"balls": balls}, NEIGHBOURS, device="cpu").pair == ("hand", "balls")
    assert not arm.check(q, {"balls": balls[[0, 2]]}, NEIGHBOURS, device="cpu")


def test_frames_threads_and_moving_bodies_do_not_change_what_is_told(arm, rng):
    plans, world = trajectories(rng, arm, 3), cell()
    moved = tg.Twist(place(0.5, -0.2, 0.0), (0.0, 0.9, 0.0), (0.0, 0.0, 2.0))
    world["cart"] = tg.Box([0.05, 0.1, 0.2]).moving(moved)
    allowed = arm.allowed(NEIGHBOURS)
    checks = [
        TrajectoryChecker(Workcell({"": arm}, world=world), allowed, device="cpu", threads=n, reduced=r).check(plans)
        for n, r in ((1, True), (2, True), (1, False))
    ]
    assert (checks[0].time == checks[1].time).all()
    assert (checks[0].segments.status == checks[1].segments.status).all()
    assert (checks[0].status == checks[2].status).all()
    finite = np.isfinite(checks[0].time)
    assert np.abs(checks[0].time - checks[2].time)[finite].max(initial=0.0) < 1e-4


def test_links_that_are_a_thousandth_of_their_radius_apart_are_proved_never_to_touch():
    ball = tg.Sphere(0.1)
    hold = tg.shape.robot.mesh_holding(ball)
    corner = hold.vertices[np.linalg.norm(hold.vertices, axis=1).argmax()]
    along = corner / np.linalg.norm(corner)  # where what holds a ball is largest
    joints = [
        tg.shape.robot.Joint("foot", "fixed", np.eye(4), along, ""),
        tg.shape.robot.Joint("turn", "turning", np.eye(4), along, "turn", limits=(-1.0, 1.0)),
    ]
    other = place(*(0.2001 * along))
    robot = tg.Robot(
        "balls", ("low", "high"), (-1, 0), tuple(joints), (hold, hold.at(other)), parts=((ball,), (ball.at(other),))
    )
    assert robot.touching(50, prove=True, device="cpu")["low", "high"].verdict == "never"
    meshes = tg.Robot("meshes", robot.links, robot.parents, robot.joints, robot.shapes)
    assert meshes.touching(50, prove=True, device="cpu")["low", "high"].verdict == "always"


def test_distances_and_their_gradients_are_those_of_the_bodies(arm, rng):
    world = {"ball": tg.Sphere(0.07).at(place(0.4, 0.9, 0.1)), "block": tg.Box([0.1, 0.2, 0.1]).at(place(-0.6, 0.2))}
    q = rng.uniform(arm.limits[:, 0], arm.limits[:, 1], (4, 3))
    near = arm.distances(q, world, NEIGHBOURS, device="cpu")
    peer = Peer(arm, world)
    names = peer.cell.names
    step = 1e-6
    moved = [
        [arm.distances(q + sign * step * axis, world, NEIGHBOURS, device="cpu").upper for sign in (1.0, -1.0)]
        for axis in np.eye(3)
    ]
    slopes = np.stack([(up - down) / (2.0 * step) for up, down in moved], axis=-1)
    for k, pair in enumerate(near.pairs):
        for i in range(len(q)):
            wanted = peer.distance(*(names.index(name) for name in pair), q[i])
            assert near.upper[i, k] == pytest.approx(max(wanted, 0.0), abs=2e-6)
            if near.status[i, k] == GradientStatus.SMOOTH:
                assert near.gradient[i, k] == pytest.approx(slopes[i, k], abs=1e-5)
    assert (near.status == GradientStatus.SMOOTH).mean() > 0.6


def test_slopes_of_contacts_and_clearances_with_a_ball(arm):
    world = {"ball": tg.Sphere(0.07).at(place(1.05, 0.02, 0.03))}
    q = np.array([[-1.0, 0.1, 0.02], [-0.4, 0.05, 0.01], [0.6, -0.05, 0.03]])
    options = {"tolerance": 1e-10, "device": "cpu"}

    def asked(points):
        return arm.check(points, world, NEIGHBOURS, **options)

    found = asked(q)
    slope = arm.time_gradient(found, q, world, device="cpu")
    assert slope.status == GradientStatus.SMOOTH
    for k, joint in ((1, 0), (2, 0), (2, 1)):
        step = np.zeros_like(q)
        step[k, joint] = 1e-6
        change = (asked(q + step).time - asked(q - step).time) / 2e-6
        assert slope.configurations[k, joint] == pytest.approx(change, abs=2e-4 * (1.0 + abs(change)))


def test_faces_that_lie_on_each_other_are_a_tie():
    boxes = tg.Box([0.5, 0.5, 0.5]), tg.Box([0.5, 0.5, 0.5]).at(place(0.2, 0.1, 1.5))
    near = tg.distance(*boxes, device="cpu")
    assert tg.gradients.distance(near, *boxes, device="cpu").status == GradientStatus.TIE
    balls = tg.Sphere(0.5), tg.Sphere(0.3).at(place(0.2, 0.1, 1.5))
    slope = tg.gradients.distance(tg.distance(*balls, device="cpu"), *balls, device="cpu")
    assert slope.status == GradientStatus.SMOOTH
    away = -np.array([0.2, 0.1, 1.5]) / np.linalg.norm([0.2, 0.1, 1.5])
    assert slope.a.point == pytest.approx(away, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cone", "cylinder", "capsule", "hull"])
def test_bodies_of_every_kind_are_met_as_they_are_alone(arm, kind, rng):
    body = {
        "cone": lambda: tg.Cone(0.1, 0.3),
        "cylinder": lambda: tg.Cylinder(0.1, 0.3),
        "capsule": lambda: tg.Capsule(0.1, 0.3),
        "hull": lambda: tg.ConvexMesh(tg.generate.prism(6, radius=0.1, height=0.3)),
    }[kind]().at(place(0.7, 0.5, 0.05))
    plans = trajectories(rng, arm, 6)
    found = arm.check(plans, {"body": body}, [*NEIGHBOURS, ("upper", "hand"), ("foot", "lower"), ("foot", "hand")])
    for i, plan in enumerate(plans):
        best = np.inf
        for k in range(len(plan) - 1):
            chain = arm.chain(plan[k], plan[k + 1])
            for link in range(len(arm.links)):
                for part in arm.parts_of(link):
                    alone = tg.first_contact(part.moving(chain.link(link)), body, device="cpu")
                    if alone:
                        best = min(best, (k + alone.time) / (len(plan) - 1))
            if best < np.inf:
                break
        assert found.time[i] == pytest.approx(best, abs=1e-4)


@pytest.mark.cuda
def test_the_gpu_agrees_with_the_cpu(arm, rng):
    plans, world = trajectories(rng, arm, 8), cell()
    found = [arm.check(plans, world, NEIGHBOURS, clearance=0.1, device=device) for device in ("cpu", "cuda")]
    assert (found[0].status == found[1].status).all()
    assert found[0].time == pytest.approx(found[1].time, abs=1e-6)
