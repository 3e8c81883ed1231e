"""What is near at rest is no contact, and comes into contact when it should."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import grid as sheet
from oracles.families.moving_meshes import tetrahedron
from oracles.near_pairs import near_pairs
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.contacts import Kind
from tangere.query.proximity import Detector, Exclusion, proximity
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def mean_edge(mesh: Mesh) -> float:
    return float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())


@pytest.mark.feature("F-L-68")
@pytest.mark.parametrize("factor", [1.2, 2.0])
def test_with_a_contact_distance_above_the_edge_length_nothing_touches_at_rest(factor):
    for mesh in (generate.torus(400), sheet(9, 9), generate.icosphere(subdivisions=2)):
        distance = factor * mean_edge(mesh)
        assert len(proximity(mesh, distance=distance, device="cpu"))
        exclude = Exclusion.at_rest(mesh, 1.5 * distance, device="cpu")
        assert len(proximity(mesh, distance=distance, exclude=exclude, device="cpu")) == 0
        gaps = Exclusion.gaps(mesh, distance, device="cpu")
        assert len(proximity(mesh, distance=distance, exclude=gaps, device="cpu")) == 0


def test_the_walls_of_a_slit_are_near_at_rest_and_stay_in_contact():
    """Two sheets joined along one far edge only: near, but joined by a long way."""
    lower = sheet(13, 4)
    x, y, _ = lower.vertices.T
    number = np.arange(len(lower.vertices))
    upper = Mesh(np.stack([x, y, np.full_like(x, 0.3)], axis=1), lower.faces[:, ::-1])
    mesh = Mesh.join([lower, upper])
    hinge = number[x == 0.0]
    faces = mesh.faces.copy()
    far = hinge + len(number)
    faces[np.isin(faces, far)] -= len(number)
    slit = Mesh(mesh.vertices, faces)
    exclude = Exclusion.at_rest(slit, 1.2, device="cpu")
    found = proximity(slit, distance=0.5, exclude=exclude, device="cpu")
    assert len(found)
    beyond = found.point_a[:, 0] > 4.0
    assert beyond.sum() > 50
    flat = proximity(slit, distance=0.5, exclude=exclude, device="cpu")
    assert (np.abs(flat.point_a[:, 2] - flat.point_b[:, 2])[beyond] > 0.25).all()  # across the slit, not along it


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rings_leave_out_what_is_less_than_so_many_edges_apart(count):
    mesh = generate.torus(160)
    distance = 2.5 * mean_edge(mesh)
    found = proximity(mesh, distance=distance, exclude=Exclusion.rings(mesh, count), device="cpu")
    steps = np.full((len(mesh.vertices),) * 2, np.inf)
    steps[mesh.edges[:, 0], mesh.edges[:, 1]] = steps[mesh.edges[:, 1], mesh.edges[:, 0]] = 1.0
    np.fill_diagonal(steps, 0.0)
    for k in range(len(steps)):
        steps = np.minimum(steps, steps[:, k, None] + steps[None, k, :])
    expected = set()
    for kind, _, one, _, other in near_pairs([mesh], distance):
        a = [one] if kind == Kind.VERTEX_FACE else mesh.edges[one]
        b = mesh.faces[other] if kind == Kind.VERTEX_FACE else mesh.edges[other]
        if steps[np.ix_(a, b)].min() >= count:
            expected.add((kind, one, other))
    assert {
        (int(k), int(a), int(b)) for k, a, b in zip(found.kind, found.feature_a, found.feature_b, strict=True)
    } == expected


def test_a_gap_counts_when_it_gets_smaller_and_in_full_after_it_was_open():
    mesh = sheet(7, 7)
    gaps = Exclusion.gaps(mesh, 1.5, device="cpu")
    nearer = mesh.replace(vertices=mesh.vertices * [0.9, 1.0, 1.0])
    found = proximity(nearer, distance=1.5, exclude=gaps, device="cpu")
    assert len(found)
    rest = {(k, a, b): d for (k, _, a, _, b), d in near_pairs([mesh], 1.6).items()}
    for kind, a, b, gap in zip(found.kind, found.feature_a, found.feature_b, found.gap, strict=True):
        assert gap < rest.get((int(kind), int(a), int(b)), np.inf)
    opened = gaps.widened(mesh.replace(vertices=mesh.vertices * 3.0), 1.5, device="cpu")
    assert (opened.activation >= gaps.activation).all()
    assert np.allclose(opened.activation, 1.5)
    again = proximity(mesh, distance=1.5, exclude=opened, device="cpu")
    assert np.array_equal(again.key, proximity(mesh, distance=1.5, device="cpu").key)
    shut = gaps.widened(nearer, 1.5, device="cpu")
    assert np.array_equal(shut.activation, np.maximum(gaps.activation, shut.activation))


def test_exclusions_belong_to_their_own_mesh_also_among_others():
    a, b = generate.torus(160), generate.torus(160)
    b = b.replace(vertices=b.vertices + [0.0, 0.0, 0.4 * np.ptp(b.vertices[:, 2])])
    distance = 1.2 * mean_edge(a)
    exclude = Exclusion.at_rest(b, 1.5 * distance, device="cpu")
    everything = proximity([a, b], distance=distance, device="cpu")
    left = proximity([a, b], distance=distance, exclude=exclude, device="cpu")
    within_b = (everything.body_a == 1) & (everything.body_b == 1)
    assert 0 < within_b.sum() < len(everything)
    assert np.array_equal(left.key, everything.key[~within_b])
    both = [Exclusion.at_rest(a, 1.5 * distance, device="cpu"), exclude]
    between = everything.body_a != everything.body_b
    assert np.array_equal(proximity([a, b], distance=distance, exclude=both, device="cpu").key, everything.key[between])
    with pytest.raises(InputError, match="another topology"):
        proximity(tetrahedron(), distance=0.1, exclude=exclude, device="cpu")
    with pytest.raises(InputError, match="another topology"):
        exclude.widened(tetrahedron(), 0.1, device="cpu")


def instances() -> tuple[list[Mesh], list[Exclusion], float]:
    """Two sheets of one topology, side by side, of which only the first has come apart since it was at rest."""
    one, distance = generate.sheet(128, size=(1.0, 1.0)), 0.18
    two = one.replace(vertices=one.vertices + [5.0, 0.0, 0.0])
    gaps = [Exclusion.gaps(mesh, distance, device="cpu") for mesh in (one, two)]
    gaps[0] = gaps[0].widened(one.replace(vertices=one.vertices * 3.0), distance, device="cpu")
    return [one, two], gaps, distance


def counts_of_each(found) -> list[int]:
    assert (found.body_a == found.body_b).all()
    return np.bincount(found.body_a, minlength=2).tolist()


def test_an_exclusion_hides_nothing_of_another_body_with_the_same_topology(device):
    meshes, gaps, distance = instances()
    alone = proximity(meshes[0], distance=distance, exclude=gaps[0], device=device)
    assert len(alone) == len(near_pairs(meshes[:1], distance)) > 300
    rest = [mesh.vertices for mesh in meshes]
    for ways in (
        lambda e: proximity(meshes, distance=distance, exclude=e, device=device),
        lambda e: detect(meshes, distance=distance, exclude=e, device=device).contacts,
        lambda e: Detector(meshes, distance=distance, exclude=e, device=device).contacts(rest),
    ):
        assert counts_of_each(ways(gaps)) == [len(alone), 0]
        assert counts_of_each(ways([None, gaps[1]])) == [len(alone), 0]
        assert counts_of_each(ways([gaps[0], None])) == [len(alone)] * 2
        assert counts_of_each(ways([gaps[1], gaps[0]])) == [0, len(alone)]
        with pytest.raises(InputError, match="2 meshes have the topology of exclude"):
            ways(gaps[0])


@pytest.mark.parametrize("cones", [False, True])
def test_what_one_body_is_at_rest_says_nothing_of_another_with_the_same_topology(cones):
    """A sheet that rests flat and is folded, beside one that rests folded: as if they had topologies of their own."""
    flat = sheet(9, 9)
    x, y, _ = flat.vertices.T
    over = np.stack([np.where(x > 4.0, 8.0 - x, x), y, np.where(x > 4.0, 0.3, 0.0)], axis=1)
    rests, places = (flat.vertices, over + [20.0, 0.0, 0.0]), (over, over + [20.0, 0.0, 0.0])
    keys = []
    for meshes in ([flat, flat], [flat, Mesh(flat.vertices, flat.faces)]):
        resting = [mesh.replace(vertices=rest) for mesh, rest in zip(meshes, rests, strict=True)]
        exclude = [Exclusion.at_rest(mesh, 1.2, device="cpu") for mesh in resting]
        now = [mesh.replace(vertices=place) for mesh, place in zip(meshes, places, strict=True)]
        settings = Settings(cones=cones)
        keys.append(detect(now, distance=0.5, settings=settings, exclude=exclude, device="cpu").contacts)
    assert np.array_equal(keys[0].key, keys[1].key)
    of_each = np.bincount(keys[0].body_a, minlength=2)
    assert of_each[0] > 2 * of_each[1]


def test_several_exclusions_of_one_body_all_hold():
    mesh = generate.torus(160)
    distance = 2.0 * mean_edge(mesh)
    rings, gaps = Exclusion.rings(mesh, 2), Exclusion.gaps(mesh, distance, device="cpu")
    opened = gaps.widened(mesh.replace(vertices=mesh.vertices * 3.0), distance, device="cpu")
    by_rings = proximity(mesh, distance=distance, exclude=rings, device="cpu")
    assert len(by_rings) > 0
    for order in ([rings, opened], [opened, rings]):
        both = proximity(mesh, distance=distance, exclude=[order], device="cpu")
        assert np.array_equal(both.key, by_rings.key)  # what has come apart counts again, neighbours never
    assert len(proximity(mesh, distance=distance, exclude=[[opened, gaps]], device="cpu")) == 0


def test_exclusions_that_make_no_sense_are_refused():
    mesh = tetrahedron()
    for wrong, reason in (
        ("x", "exclude must be an Exclusion, or a list with one for each of 1 meshes, not str"),
        ([], "not 0 entries"),
        (["x"], r"exclude\[0\] must be an Exclusion, several or None, not str"),
        ([Exclusion.rings(sheet(3, 3), 1)], r"exclude\[0\] was made for a mesh with another topology"),
    ):
        with pytest.raises(InputError, match=reason):
            proximity(mesh, distance=0.1, exclude=wrong, device="cpu")
    with pytest.raises(InputError, match="rings must be a whole number"):
        Exclusion.rings(mesh, 1.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="rings must be at least 1"):
        Exclusion.rings(mesh, 0)
    with pytest.raises(InputError, match="distance must be"):
        Exclusion.rings(mesh, 1).widened(mesh, -1.0, device="cpu")


@pytest.mark.parametrize("make", [Exclusion.gaps, Exclusion.at_rest, Exclusion.rings])
def test_what_is_no_mesh_is_refused_by_name(make):
    with pytest.raises(InputError, match="mesh must be a Mesh"):
        make(None, 1)


def test_a_mesh_of_which_nothing_is_near_at_rest_excludes_nothing():
    mesh = generate.box((1.0, 1.0, 1.0))
    exclude = Exclusion.at_rest(mesh, 1e-3, device="cpu")
    assert len(exclude.keys) == len(exclude.activation) == 0
    assert len(proximity(mesh, distance=1e-3, exclude=exclude, device="cpu")) == 0
