"""Recession cones: the lemmas, what the builders promise, and that nothing is culled that could touch first."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.optimize import linprog, nnls
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import RecessionCones, field_drift
from tangere.bvh.recession.cones import Branches
from tangere.bvh.recession.hull import enclosing_cones
from tangere.motion import Rest, RigidMotion, Screw, Twist
from tangere.published.redon_cubics.sphere_tree import SphereTree
from tangere.published.redon_recession import memory_model, receding_nodes, receding_triangles
from tangere.published.redon_screws import TanScrew
from tangere.runtime import SOUND, InputError, launch

wp.set_module_options(SOUND)


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def cluster(rng, count: int, spread: float) -> np.ndarray:
    """Directions round a random one."""
    return unit(unit(rng.normal(size=3)) + spread * rng.normal(size=(count, 3)))


def margin(normals: np.ndarray) -> float:
    """The largest s with m . n >= s for all normals and some m in the unit cube: positive iff they have an open
    half-space in common."""
    answer = linprog(
        [0, 0, 0, -1],
        np.column_stack([-normals, np.ones(len(normals))]),
        np.zeros(len(normals)),
        bounds=[(-1, 1)] * 3 + [(None, None)],
    )
    return float(answer.x[3])


def sets_below(branches: Branches) -> list[np.ndarray]:
    sets: list[np.ndarray] = [np.zeros(0, int)] * len(branches.right)
    for node in range(len(sets) - 1, -1, -1):
        own = branches.triangles[branches.first[node] : branches.first[node + 1]]
        right = branches.right[node]
        sets[node] = own if right <= 0 else np.concatenate([sets[node + 1], sets[right]])
    return sets


def pose(rng, away: float = 0.0) -> np.ndarray:
    p = np.eye(4)
    p[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    p[:3, 3] = away * unit(rng.normal(size=3))
    return p


# -- the lemmas -------------------------------------------------------------------------------------------------------


@pytest.mark.feature("F-R-41")
def test_lemmas_1_and_2_whatever_moves_against_the_enclosing_vectors_moves_against_every_normal(effort, rng):
    culled = 0
    for _ in range(effort(60)):
        normals = cluster(rng, rng.integers(1, 30), 0.4)
        _, (counts, vectors) = enclosing_cones(normals, np.array([0, len(normals)]), 5)
        if not counts[0]:
            continue
        assert all(nnls(vectors.T, n)[1] < 1e-9 for n in normals)  # lemma 2: every normal is a sum of them
        # lemma 1: of any convex set whose corners move so, all points do.
        corners = rng.normal(size=(8, 3)) - 2.0 * normals.mean(axis=0)
        receding = (corners @ vectors.T < -1e-9).all(axis=1)
        inside = rng.dirichlet(np.ones(receding.sum()), 50) @ corners[receding] if receding.any() else corners[:0]
        assert (inside @ normals.T < 0.0).all()
        culled += receding.any()
    assert culled > 0


# -- the builders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("spread", [0.0, 1e-14, 1e-6, 0.01, 0.3, 0.8])
def test_hull_cones_enclose_their_directions_with_no_more_vectors_than_allowed(most, spread, rng):
    sets = [cluster(rng, n, spread) for n in (1, 2, 3, 5, 40, 200)]
    sets.append(unit(np.stack([np.cos(t := np.linspace(-1, 1, 9)), np.sin(t), 0 * t], axis=1)))  # in one plane
    sets.append(np.repeat(cluster(rng, 3, spread), 4, axis=0))  # repeated
    first = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
    (extreme, rays), (counts, vectors) = enclosing_cones(np.concatenate(sets), first, most)
    assert (counts <= most).all()
    for k, normals in enumerate(sets):
        hull = rays[extreme[:k].sum() : extreme[: k + 1].sum()]
        cone = vectors[counts[:k].sum() : counts[: k + 1].sum()]
        for spanning in (hull, cone):
            assert not len(spanning) or max(nnls(spanning.T, n)[1] for n in normals) < 1e-11
        if margin(normals) < 1e-6:
            assert extreme[k] == 0
        if margin(normals) > 0.2:
            assert extreme[k] > 0
            assert most < 4 or counts[k] > 0
        assert counts[k] == extreme[k] or extreme[k] > most
    assert counts[0] == 1


def test_extreme_directions_are_few_and_all_needed(rng):
    square = unit(np.array([[1, 1, 2], [-1, 1, 2], [-1, -1, 2], [1, -1, 2]], float))
    inside = unit(square[rng.integers(0, 4, 300)] + 0.9 * square[rng.integers(0, 4, 300)] + square.mean(axis=0))
    (extreme, rays), _ = enclosing_cones(np.concatenate([inside, square]), np.array([0, 304]), 6)
    assert extreme[0] == 4
    assert sorted(map(tuple, np.round(rays, 9))) == sorted(map(tuple, np.round(square, 9)))


def check_cones(cones: RecessionCones, branches: Branches, normals: np.ndarray, most: int, tight: float) -> None:
    """Inclusion (4.8) for every node, and no more vectors than allowed."""
    first, vectors = cones.first.numpy(), cones.vectors.numpy()
    assert (cones.sizes <= most).all()
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1.0).max() < 1e-12
    for node, triangles in enumerate(sets_below(branches)):
        cone = vectors[first[node] : first[node + 1]]
        if len(cone):
            assert max(nnls(cone.T, n)[1] for n in np.unique(normals[triangles], axis=0)) < tight


@pytest.mark.feature("F-R-42")
@pytest.mark.parametrize("attach", ["top-down", "bottom-up"])
@pytest.mark.parametrize("builder", ["hull", "published"])
def test_every_node_of_a_tree_encloses_the_normals_below_it(attach, builder):
    mesh = tg.generate.torus(128, bumps=0.1)
    branches = Branches.of(ObbTree.build(mesh))
    for most in (3, 6):
        cones = RecessionCones.build(mesh, branches, most=most, attach=attach, builder=builder)
        check_cones(cones, branches, mesh.face_normals, most, 1e-10 if builder == "hull" else 1e-6)
        leaf = branches.right <= 0
        assert (cones.sizes[leaf] == 1).all()
        assert cones.sizes[0] == 0  # a closed surface faces everywhere
        assert (cones.sizes[~leaf] > 0).any()


def test_top_down_cones_cull_at_least_as_much_as_bottom_up_ones(rng):
    mesh = tg.generate.torus(2000, bumps=0.1)
    tree = ObbTree.build(mesh)
    culled = {}
    for attach in ("top-down", "bottom-up"):
        for most in (3, 6):
            cones = RecessionCones.build(mesh, tree, attach=attach, most=most)
            motions = [Twist(np.eye(4), v, [0.0, 0.0, 0.0]) for v in np.random.default_rng(1).normal(size=(20, 3))]
            culled[attach, most] = sum(int(receding_nodes(tree, cones, m).sum()) for m in motions)
    # Both take edges off greedily, so a node here or there may come out the other way.
    assert culled["top-down", 6] > 0.999 * culled["bottom-up", 6] > culled["bottom-up", 3] > 0
    assert culled["top-down", 6] > culled["top-down", 3] >= culled["bottom-up", 3]


@pytest.mark.feature("F-R-47")
def test_the_memory_is_what_the_formula_says():
    mesh = tg.generate.torus(1000)
    cones = RecessionCones.build(mesh, ObbTree.build(mesh))
    sizes = np.bincount(cones.sizes)
    by_hand = 24 * sum(size * count for size, count in enumerate(sizes)) + 4 * sizes.sum()
    assert memory_model(cones.sizes) == by_hand
    assert cones.memory == by_hand + 4  # and one entry that closes the list
    assert cones.first.numpy().nbytes + cones.vectors.numpy().nbytes == cones.memory
    assert memory_model(cones.sizes, cone=16) == by_hand + 16 * sizes[1:].sum()


def test_meshes_that_do_not_enclose_a_solid_never_recede():
    closed = tg.generate.torus(200)
    for mesh in (
        tg.Mesh(closed.vertices, closed.faces[1:]),  # open
        tg.Mesh(closed.vertices, closed.faces[:, ::-1]),  # inside out
        tg.Mesh(closed.vertices, np.concatenate([closed.faces[:1, ::-1], closed.faces[1:]])),  # one turned round
    ):
        cones = RecessionCones.build(mesh, ObbTree.build(mesh))
        assert not cones.sizes.any()


def test_a_triangle_without_area_keeps_every_node_above_it_from_receding():
    closed = tg.generate.torus(200)
    split = np.array([[closed.faces[0, 0], closed.faces[0, 0], closed.faces[0, 1]]])
    mesh = tg.Mesh(closed.vertices, np.concatenate([closed.faces, split]))
    assert mesh.topology.is_closed
    tree = ObbTree.build(mesh)
    branches = Branches.of(tree)
    cones = RecessionCones.build(mesh, tree)
    for node, triangles in enumerate(sets_below(branches)):
        if 200 in triangles:
            assert cones.sizes[node] == 0
    assert cones.sizes.any()


def test_bad_options_are_refused():
    mesh = tg.generate.torus(72)
    with pytest.raises(InputError, match="most must be 1 or more"):
        RecessionCones.build(mesh, ObbTree.build(mesh), most=0)
    with pytest.raises(InputError, match="sideways"):
        RecessionCones.build(mesh, ObbTree.build(mesh), attach="sideways")  # type: ignore[arg-type]


# -- culling ----------------------------------------------------------------------------------------------------------


def recession(mesh: tg.Mesh, motion, other, times, points: np.ndarray | None = None) -> np.ndarray:
    """(T, m, k) how fast points of each triangle, (m, k, 3), its corners as a rule, move along its normal, relative to
    the other body and in the world, from poses and twists."""
    points = mesh.vertices[mesh.faces] if points is None else points
    times = np.atleast_1d(times)
    poses, (angular, linear), (other_angular, other_linear) = (
        motion.pose(times),
        motion.twist(times),
        other.twist(times),
    )
    turn, shift = poses[:, None, None, :3, :3], poses[:, None, None, :3, 3]
    placed = (turn @ points[..., None])[..., 0] + shift
    velocity = (linear - other_linear)[:, None, None] + np.cross((angular - other_angular)[:, None, None], placed)
    normals = mesh.face_normals @ np.swapaxes(poses[:, :3, :3], 1, 2)
    return np.einsum("tmki,tmi->tmk", velocity, normals)


def receding(mesh: tg.Mesh, motion, other, times) -> np.ndarray:
    """(m,) which triangles move against their normals at all times, by the definition."""
    return (recession(mesh, motion, other, times) < 0.0).all(axis=(0, 2))


def test_the_elementary_test_is_the_definition_up_to_its_margin(rng):
    mesh = tg.generate.torus(300, bumps=0.1)
    for _ in range(5):
        motion, other = (Twist(pose(rng, 1.0), *rng.normal(size=(2, 3))) for _ in range(2))
        culled, true = receding_triangles(mesh, motion, other, time=0.4), receding(mesh, motion, other, 0.4)
        assert (culled <= true).all()
        assert (true & ~culled).sum() <= 1
        assert culled.any()


def flipped(mesh: tg.Mesh) -> tg.Mesh:
    return tg.Mesh(mesh.vertices, mesh.faces[:, ::-1])


BALL = tg.generate.icosphere(subdivisions=1)
#: Two closed bodies that start apart and how far: side by side, or one in the hollow of the other.
CLOSED = {
    "torus and ball": (tg.generate.torus(128, bumps=0.2), BALL, 3.0),
    "box and prism": (tg.generate.box((1.0, 0.6, 0.8)), tg.generate.prism(5, radius=0.6, height=1.0), 2.5),
    "hollow ball and box in it": (
        tg.Mesh.join(
            [tg.generate.icosphere(subdivisions=2, radius=2.2), flipped(tg.generate.icosphere(1, radius=2.0))]
        ),
        tg.generate.box((0.6, 0.6, 0.6)),
        0.3,
    ),
}


def steady_flights(rng, start: np.ndarray, way: np.ndarray, turn: np.ndarray):
    """Motions of two bodies whose relative velocities do not change, seen from either: what recedes once recedes on."""
    end = pose(rng, 0.0)
    end[:3, 3], end[:3, :3] = start[:3, 3] + way, Twist(np.eye(4), np.zeros(3), turn).pose(1.0)[:3, :3] @ start[:3, :3]
    yield tg.Screw(start, end), Rest()
    yield Twist(start, np.zeros(3), 2.0 * turn, pivot=rng.normal(size=3)), Rest()
    yield Twist(start, 0.6 * way, np.zeros(3)), Twist(np.eye(4), -0.4 * way, np.zeros(3))


@pytest.mark.feature("F-R-38")
@pytest.mark.parametrize("bodies", CLOSED)
def test_without_its_culled_triangles_a_body_has_the_same_first_contact(bodies, effort, rng):
    """Closed meshes, screws, turns and translations of one body or both: what the elementary test culls of both bodies
    is cut out of them, and they touch when they did before."""
    a, b, distance = CLOSED[bodies]
    hits = 0
    for _ in range(effort(12, 4)):
        away = rng.normal(size=3)
        start = pose(rng, 0.0)
        start[:3, 3] = away * distance / np.linalg.norm(away)
        way = -start[:3, 3] * 1.2 + (1.5 if distance < 1.0 else 0.4) * rng.normal(size=3)
        for motion, other in steady_flights(rng, start, way, rng.normal(size=3) * rng.choice([0.1, 0.6])):
            hit = tg.first_contact(a.moving(other), b.moving(motion), tolerance=1e-8, device="cpu")
            if hit.status == tg.Status.START:
                continue
            kept = []
            for mesh, mine, theirs in ((a, other, motion), (b, motion, other)):
                culled = receding_triangles(mesh, mine, theirs)
                assert (culled <= receding(mesh, mine, theirs, np.linspace(0.0, 1.0, 9))).all()
                kept.append(tg.Mesh(mesh.vertices, mesh.faces[~culled]) if not culled.all() else None)
            if None in kept:
                assert hit.status == tg.Status.FREE
                continue
            cut = tg.first_contact(kept[0].moving(other), kept[1].moving(motion), tolerance=1e-8, device="cpu")
            assert cut.status == hit.status
            assert cut.time == pytest.approx(hit.time, abs=1e-6)
            hits += hit.status == tg.Status.CONTACT and len(kept[1].faces) < len(b.faces)
    assert hits > 3


@pytest.mark.feature("F-R-39")
def test_a_culled_box_holds_only_receding_triangles(effort, rng):
    mesh = tg.generate.torus(800, bumps=0.1)
    tree = ObbTree.build(mesh)
    sets, cones = sets_below(Branches.of(tree)), RecessionCones.build(mesh, tree)
    large = 0
    for _ in range(effort(8, 3)):
        motion, other = (Twist(pose(rng, 1.0), *rng.normal(size=(2, 3)) * [[1.0], [0.3]]) for _ in range(2))
        true = receding(mesh, motion, other, 0.0)
        for node in np.flatnonzero(receding_nodes(tree, cones, motion, other)):
            assert true[sets[node]].all()
            large = max(large, len(sets[node]))
    assert large > 10
    assert cones.sizes.max() <= 6  # what a test costs does not grow with the triangles below


@pytest.mark.feature("F-R-40")
def test_what_a_culled_sphere_holds_of_its_triangles_recedes(effort, rng):
    """Triangles reach out of the small spheres of such a tree: points of them inside count."""
    mesh = tg.generate.torus(800, bumps=0.1)
    tree = SphereTree.of(mesh, 0.08)
    branches = Branches.of(tree)
    sets, cones, nodes = sets_below(branches), RecessionCones.build(mesh, tree), tree.nodes.numpy()
    assert set(sets[0]) == set(range(800))
    points = np.einsum("mki,kj->mji", mesh.vertices[mesh.faces], rng.dirichlet(np.ones(3), 30).T)
    culled = 0
    for _ in range(effort(6, 2)):
        motion, other = (Twist(pose(rng, 1.0), *rng.normal(size=(2, 3)) * [[1.0], [0.3]]) for _ in range(2))
        along = recession(mesh, motion, other, 0.0, points)[0]
        for node in np.flatnonzero(receding_nodes(tree, cones, motion, other)):
            held = np.linalg.norm(points[sets[node]] - nodes["centre"][node], axis=2) <= nodes["radius"][node]
            assert (along[sets[node]][held] < 0.0).all()
            culled += held.any()
    assert culled > 10


@pytest.mark.feature("F-R-45")
def test_what_is_culled_over_a_step_recedes_all_the_time(effort, rng):
    mesh = tg.generate.torus(300, bumps=0.1)
    tree = ObbTree.build(mesh)
    cones, sets = RecessionCones.build(mesh, tree), sets_below(Branches.of(tree))
    for k in range(effort(6, 2)):
        motion, other = (Twist(pose(rng, 1.0), rng.normal(size=3), 0.2 * rng.normal(size=3)) for _ in range(2))
        begin, end = 0.25, 0.25 + 10.0 ** -(k % 3)
        end = min(end, 1.0)
        reach = 8.0
        assert max(np.linalg.norm(motion.positions(mesh.vertices, t), axis=1).max() for t in (0, 0.5, 1)) < 5.0
        culled = receding_nodes(tree, cones, motion, other, begin=begin, end=end, reach=reach)
        below = np.unique(np.concatenate([sets[n] for n in np.flatnonzero(culled)] or [np.zeros(0, int)])).astype(int)
        assert receding(mesh, motion, other, np.linspace(begin, end, effort(1000, 20)))[below].all()
    assert culled.any()


@pytest.mark.feature("F-R-45")
def test_against_a_body_at_rest_a_screw_recedes_always_or_never(effort, rng):
    """The test at one instant is the test for the whole step: bit for bit the same nodes, and true at every time."""
    mesh = tg.generate.torus(300, bumps=0.1)
    tree = ObbTree.build(mesh)
    cones, sets = RecessionCones.build(mesh, tree), sets_below(Branches.of(tree))
    for _ in range(effort(4, 2)):
        screw = Screw(pose(rng, 1.0), pose(rng, 2.0))
        instant = receding_nodes(tree, cones, screw)
        assert np.array_equal(instant, receding_nodes(tree, cones, screw, end=1.0))
        assert instant.any()
        below = np.unique(np.concatenate([sets[n] for n in np.flatnonzero(instant)]))
        values = recession(mesh, screw, Rest(), np.linspace(0.0, 1.0, effort(1000, 20)))
        assert (values[:, below] < 0.0).all()
        assert np.ptp(values, axis=0).max() < 1e-12


@wp.kernel
def _drift(first: int, motions: wp.array2d[RigidMotion], reach: wp.float64, drift: wp.array[wp.float64]):
    i = first + wp.tid()
    drift[i] = field_drift(motions[i, 0], motions[i, 1], reach)


def test_the_field_never_changes_faster_than_its_bound_and_sometimes_nearly_as_fast(rng):
    """Only one of the bodies turning, one going straight, and both doing both: each term of the bound is needed."""
    kinds = [((0, 1), (1, 0)), ((1, 0), (0, 1)), ((1, 1), (0, 0)), ((0, 0), (1, 1)), ((1, 1), (1, 1)), ((0, 1), (0, 1))]
    points, times = rng.normal(size=(40, 3)), np.linspace(0.0, 1.0, 501)
    for parts in kinds:
        used = []
        for _ in range(10):
            bodies = [Twist(pose(rng), v * rng.normal(size=3), w * rng.normal(size=3)) for v, w in parts]
            records = np.array([[body.records()[0] for body in bodies]], RigidMotion.numpy_dtype())
            poses = bodies[0].pose(times)
            placed = points @ np.swapaxes(poses[:, :3, :3], 1, 2) + poses[:, None, :3, 3]
            field, reach = 0.0, 0.0
            for sign, body in zip((1.0, -1.0), bodies, strict=True):
                angular, linear = body.twist(times)
                field = field + sign * (linear[:, None] + np.cross(angular[:, None], placed))
                reach = max(reach, np.linalg.norm(placed - body.pose(times)[:, None, :3, 3], axis=2).max())
            seen = np.einsum("tji,tpj->tpi", poses[:, :3, :3], field)  # in the frame of the first body
            fastest = np.linalg.norm(np.diff(seen, axis=0), axis=2).max() / (times[1] - times[0])
            drift = wp.zeros(1, dtype=wp.float64, device="cpu")
            motions = wp.array(records, dtype=RigidMotion, device="cpu")
            launch(_drift, 1, [motions, float(reach)], [drift], device=wp.get_device("cpu"))
            bound = float(drift.numpy()[0])
            assert fastest <= bound * (1.0 + 1e-9) + 1e-9
            used.append(fastest / bound)
        assert max(used) > 0.25, parts


def test_motions_whose_rate_varies_are_culled_at_instants_only(rng):
    mesh = tg.generate.torus(300)
    tree = ObbTree.build(mesh)
    cones = RecessionCones.build(mesh, tree)
    motion = TanScrew(pose(rng, 1.0), pose(rng, 2.0))
    assert receding_nodes(tree, cones, motion).any()
    assert not receding_nodes(tree, cones, motion, end=1.0).any()
