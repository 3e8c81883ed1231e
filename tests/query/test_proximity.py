"""Proximity finds exactly the near pairs of features, whatever the broad phase, number of threads and degeneracy."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from mesh_families import FAMILIES, scene, tetrahedron
from proximity_oracle import SCENES, assert_same_contacts, names, reach
from tangere.partition.broad_phase import BroadPhase
from tangere.query.contacts import Kind
from tangere.query.proximity import proximity
from tangere.runtime import InputError
from tangere.shape import Mesh, Moving, generate

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


@pytest.mark.feature("F-L-37")
def test_of_several_contacts_of_a_vertex_or_first_edge_the_nearest_is_kept():
    mesh = SCENES["knot"][0]
    everything = proximity(mesh, distance=reach([mesh]) * 2.0, device="cpu")
    kept = proximity(mesh, distance=reach([mesh]) * 2.0, nearest=True, device="cpu")
    least: dict[tuple[int, int], float] = {}
    for kind, feature, gap in zip(everything.kind, everything.feature_a, everything.gap, strict=True):
        least[int(kind), int(feature)] = min(gap, least.get((int(kind), int(feature)), np.inf))
    told = {(int(k), int(f)): g for k, f, g in zip(kept.kind, kept.feature_a, kept.gap, strict=True)}
    assert len(told) == len(kept) < len(everything)
    assert told == least


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
    with pytest.raises(InputError, match="at least one mesh"):
        proximity([], distance=0.1)
    with pytest.raises(InputError, match="single mesh"):
        proximity([mesh], mesh, distance=0.1)
    with pytest.raises(InputError, match="too large"):
        proximity(mesh.replace(vertices=mesh.vertices * 1e80), distance=0.1)
    with pytest.raises(InputError, match="too small"):
        proximity(mesh.replace(vertices=mesh.vertices * 1e-80), distance=0.1)


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
