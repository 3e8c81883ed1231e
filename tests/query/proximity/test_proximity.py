"""Proximity finds exactly the near pairs of features, whatever the broad phase, number of threads and degeneracy."""

from __future__ import annotations

from gc import collect as collect_garbage
from typing import get_args
from weakref import ref

import numpy as np
import pytest

from oracles.families.moving_meshes import FAMILIES, grid, scene, tetrahedron
from oracles.near_pairs import SCENES, assert_same_contacts, names, reach
from tangere.broad_phase.triangles import BroadPhase
from tangere.motion import Linear
from tangere.query.contacts import Kind
from tangere.query.proximity import proximity
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import Moving, generate
from tangere.shape.mesh import Mesh

BROAD_PHASES = get_args(BroadPhase)


def at_start(family: str, seed: int) -> list[Mesh]:
    """The meshes of a scene of moving ones, where they begin."""
    things = [thing for thing in scene(family, seed) if thing is not None]
    return [thing.shape if isinstance(thing, Moving) else thing for thing in things]  # pyright: ignore[reportReturnType]


@pytest.mark.feature("F-L-12", "F-L-15", "F-L-28")
@pytest.mark.parametrize("broad_phase", BROAD_PHASES)
@pytest.mark.parametrize("name", SCENES)
def test_every_broad_phase_finds_exactly_the_near_pairs(name, broad_phase, device):
    meshes = SCENES[name]
    distance = reach(meshes)
    found = proximity(meshes, distance=distance, broad_phase=broad_phase, device=device)
    assert_same_contacts(found, meshes, distance)


@pytest.mark.parametrize("broad_phase", ["tree", "grid"])
@pytest.mark.parametrize("family", FAMILIES)
def test_awkward_meshes_lose_nothing(family, broad_phase):
    for seed in range(3):
        meshes = at_start(family, seed)
        for distance in (0.05, 0.7):
            if len(meshes) == 1:
                found = proximity(meshes[0], distance=distance, broad_phase=broad_phase, device="cpu")
                assert_same_contacts(found, meshes, distance)
            else:
                found = proximity(*meshes, distance=distance, broad_phase=broad_phase, device="cpu")
                assert_same_contacts(found, meshes, distance, within=False)


@pytest.mark.feature("F-L-56")
@pytest.mark.parametrize("broad_phase", BROAD_PHASES)
def test_contacts_are_the_same_bit_for_bit_for_any_number_of_threads_and_broad_phase(broad_phase):
    mesh = generate.trefoil_knot(3960)
    distance = 1.3 * reach([mesh])
    expected = proximity(mesh, distance=distance, device="cpu", threads=1)
    assert len(expected) > 1000
    for threads in (1, 2, 7):
        found = proximity(mesh, distance=distance, broad_phase=broad_phase, device="cpu", threads=threads)
        for column in ("key", "gap", "point_a", "point_b", "normal", "weights"):
            assert np.array_equal(getattr(found, column), getattr(expected, column)), column


@pytest.mark.feature("F-L-36")
def test_a_contact_tells_where_it_is_and_which_way_to_push():
    a, b = tetrahedron(), SCENES["tori"][0]
    b = b.replace(vertices=b.vertices * 0.5 + [1.2, 0.9, 0.8])
    found = proximity(a, b, distance=0.5, device="cpu")
    assert set(found.kind) == {Kind.VERTEX_FACE, Kind.EDGE_EDGE}
    assert set(found.vertex_on[found.kind == Kind.VERTEX_FACE]) == {0, 1}
    assert np.allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    assert np.allclose(((found.point_a - found.point_b) * found.normal).sum(axis=1), found.gap, atol=1e-12)
    assert np.allclose(found.point_a - found.point_b, found.gap[:, None] * found.normal, atol=1e-12)
    assert np.array_equal(found.body_a, np.zeros(len(found)))
    assert np.array_equal(found.body_b, np.ones(len(found)))
    for k in range(len(found)):
        assert np.allclose(weighted(found, k, [a, b]), [found.point_a[k], found.point_b[k]], atol=1e-12)
    assert np.array_equal(np.sort(found.key), found.key)
    assert len(np.unique(found.key)) == len(found)


def weighted(contacts, k: int, meshes: list[Mesh]) -> list[np.ndarray]:
    """The two points of a contact by its weights."""
    a, b = (meshes[int(body)] for body in (contacts.body_a[k], contacts.body_b[k]))
    i, j, w = int(contacts.feature_a[k]), int(contacts.feature_b[k]), contacts.weights[k]
    if contacts.kind[k] == Kind.EDGE_EDGE:
        return [w[:2] @ a.vertices[a.edges[i]], w[2:] @ b.vertices[b.edges[j]]]
    if contacts.vertex_on[k] == 0:
        return [a.vertices[i], w[1:] @ b.vertices[b.faces[j]]]
    return [w[1:] @ a.vertices[a.faces[i]], b.vertices[j]]


def test_keys_are_the_same_when_things_move_on():
    a, b = SCENES["tori"]
    first = proximity(a, b, distance=0.3, device="cpu")
    nudged = b.replace(vertices=b.vertices + 1e-9)
    second = proximity(a, nudged, distance=0.3, device="cpu")
    assert len(np.intersect1d(first.key, second.key)) > 0.99 * len(first)
    assert (
        dict(zip(names(first), first.key, strict=True)).items()
        & dict(zip(names(second), second.key, strict=True)).items()
    )


def primitives(name: tuple[int, int, int, int, int]) -> list[tuple[int, int, int]]:
    """What a contact is one of: its vertex, or both its edges."""
    kind, body, one, partner, other = name
    return [(kind, body, one)] + ([(kind, partner, other)] if kind == Kind.EDGE_EDGE else [])


@pytest.mark.feature("F-L-37")
@pytest.mark.parametrize("name", ["knot", "tori", "three bodies", "mixed sizes", "plates 2"])
def test_of_several_contacts_of_a_vertex_or_edge_the_nearest_is_kept(name):
    """At most one of each; what is left out has a vertex or an edge that keeps another which is not farther."""
    meshes = SCENES[name]
    distance = reach(meshes) * 2.0
    everything = proximity(meshes, distance=distance, device="cpu")
    kept = proximity(meshes, distance=distance, nearest=True, device="cpu")
    gaps = dict(zip(names(everything), everything.gap, strict=True))
    keeps: dict[tuple[int, int, int], float] = {}
    for pair in names(kept):
        for primitive in primitives(pair):
            assert primitive not in keeps, "two contacts of one primitive"
            keeps[primitive] = gaps[pair]
    left_out = gaps.keys() - set(names(kept))
    assert len(left_out) > 100
    for pair in left_out:
        assert min(keeps.get(primitive, np.inf) for primitive in primitives(pair)) <= gaps[pair]
    for kind, body, vertex in {primitives(pair)[0] for pair in gaps if pair[0] == Kind.VERTEX_FACE}:
        least = min(gap for pair, gap in gaps.items() if pair[:3] == (kind, body, vertex))
        assert keeps[kind, body, vertex] == least


@pytest.mark.feature("F-L-37")
def test_the_nearest_contacts_are_the_same_whichever_mesh_comes_first(rng):
    """A long edge over many short ones: one contact for it, from either side."""
    a = Mesh([[0, 0, 0], [1, 0, 0], [0.5, -1, 0]], [[0, 1, 2]])
    b = generate.sheet(200, size=(1.0, 1.0))
    across = b.vertices[:, [1, 2, 0]] + [0.5, 0.01, 0.503]
    b = b.replace(vertices=across + 1e-3 * rng.random(across.shape))  # so that no two are equally near
    ways = [proximity(*pair, distance=0.1, nearest=True, device="cpu") for pair in ((a, b), (b, a))]
    assert [int((way.kind == Kind.EDGE_EDGE).sum()) for way in ways] == [3, 3]
    swapped = {(kind, 1 - k, one, 1 - m, other) for kind, k, one, m, other in names(ways[1])}
    ordered = {n if n[0] == Kind.VERTEX_FACE or n[1] == 0 else (n[0], *n[3:], *n[1:3]) for n in swapped}
    assert ordered == set(names(ways[0]))


@pytest.mark.parametrize("scale", [1e-60, 1e-9, 1e9, 1e60])
@pytest.mark.parametrize("broad_phase", ["tree", "grid", "levels", "sweep"])
def test_scale_does_not_matter(scale, broad_phase):
    mesh = SCENES["knot"][0]
    distance = reach([mesh])
    usual = proximity(mesh, distance=distance, device="cpu")
    found = proximity(
        mesh.replace(vertices=mesh.vertices * scale), distance=distance * scale, broad_phase=broad_phase, device="cpu"
    )
    assert np.array_equal(found.key, usual.key)
    assert np.allclose(found.gap / scale, usual.gap, rtol=1e-9, atol=1e-12)


def test_bad_arguments_are_refused_with_a_reason():
    mesh = tetrahedron()
    for distance in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="distance must be a positive length"):
            proximity(mesh, distance=distance)
    with pytest.raises(InputError, match="tree, grid, levels, sweep, brute"):
        proximity(mesh, distance=0.1, broad_phase="magic")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="distance must be a positive length"):
        proximity(mesh, distance="a")  # pyright: ignore[reportArgumentType]
    moving = mesh.moving(Linear(mesh.vertices))
    for thing, kind in ((None, "NoneType"), (moving, "Mesh in Linear motion")):
        with pytest.raises(UnsupportedError, match=f"proximity of a {kind} with itself is not known; known: a Mesh at"):
            proximity(thing, distance=0.1)
    with pytest.raises(UnsupportedError, match="body 0 of b must be a mesh, an analytic body or ground, not None"):
        proximity(mesh, [None], distance=0.1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="distance must be a positive length"):
        proximity([], distance=0.0)
    assert len(proximity([], distance=0.1)) == 0  # nothing touches nothing, as in `first_contact`
    assert len(proximity([mesh], mesh, distance=0.1)) == len(proximity(mesh, mesh, distance=0.1))
    with pytest.raises(InputError, match="too large"):
        proximity(mesh.replace(vertices=mesh.vertices * 1e80), distance=0.1)
    for scale in (0.9e-75, 1e-80, 1e-200):
        with pytest.raises(InputError, match="too small"):
            proximity(mesh.replace(vertices=mesh.vertices * (scale / np.ptp(mesh.vertices))), distance=0.1)


def test_what_was_compared_once_is_forgotten_when_it_is_gone():
    """Another topology at every step, as when cutting: a floor does not keep those that lay on it."""
    floor, ball = grid(3, 3), generate.icosphere(subdivisions=1)
    gone = []
    for step in range(6):
        cut = Mesh(ball.vertices, ball.faces[: len(ball.faces) - step])
        gone.append(ref(cut.topology))
        assert proximity([floor, cut], distance=0.1, device="cpu") is not None
        assert proximity([cut, floor], distance=0.1, device="cpu") is not None
        del cut
    collect_garbage()
    assert [topology() for topology in gone] == [None] * 6
    kept = [key for key in floor.topology.cache if isinstance(key, tuple) and key[0] == "layout"]
    assert kept == []
    for _ in range(2):
        proximity([floor, ball], distance=0.1, device="cpu")
    kept = [key for key in floor.topology.cache if isinstance(key, tuple) and key[0] == "layout"]
    assert len(kept) == 1  # as long as both are in use it is made once


@pytest.mark.slow
@pytest.mark.parametrize("broad_phase", ["grid", "levels", "sweep"])
def test_the_contacts_of_a_public_cloth_are_the_same_for_every_broad_phase(broad_phase, data_folder):
    path = data_folder / "meshes" / "cloth_ball92.ply"
    if not path.exists():
        pytest.skip("TANGERE_DATA has no cloth_ball92.ply")
    cloth = Mesh.load(path, weld=False)
    edge = np.linalg.norm(cloth.vertices[cloth.edges[:, 0]] - cloth.vertices[cloth.edges[:, 1]], axis=1).mean()
    expected = proximity(cloth, distance=0.05 * edge, device="cpu")
    assert len(expected) == 46_886  # found by an independent prototype as well
    found = proximity(cloth, distance=0.05 * edge, broad_phase=broad_phase, device="cpu")
    assert np.array_equal(found.key, expected.key)
    assert np.array_equal(found.gap, expected.gap)
