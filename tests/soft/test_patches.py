"""The certificate of a patch: what it says is apart is apart, and smooth motions have it."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
import warp as wp

from tangere.query.first_contact import edge_edge, vertex_face
from tangere.runtime import choose_device
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches


def patches_of(mesh) -> Patches:
    return Patches(AssembledBodies.of([Body(mesh, density=1.0)], choose_device("cpu")))


def certified(patches: Patches, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    x0, x1 = (wp.array(x, dtype=wp.vec3d, device="cpu") for x in (start, end))
    return patches.fit_moving(x0, x1, 0.0).certified.numpy() == 1


def smooth(x: np.ndarray, rng: np.random.Generator, size: float) -> np.ndarray:
    """A turn of about 5 degrees, a stretch, a shift and some waves of a size."""
    turn = np.linalg.qr(np.eye(3) + 0.05 * rng.standard_normal((3, 3)))[0]
    turn *= np.sign(np.diag(turn))
    waves = sum(
        np.sin(x @ rng.standard_normal(3) * 2.0 + rng.uniform(0, 6))[:, None] * rng.standard_normal(3) for _ in range(4)
    )
    return (x * rng.uniform(0.9, 1.1, 3) + size * waves) @ turn.T + rng.standard_normal(3)


@pytest.mark.parametrize("mesh", [generate.sheet(450, size=(3.0, 3.0)), generate.torus(600)], ids=["sheet", "torus"])
def test_in_a_certified_patch_no_edge_meets_a_face_around_it(mesh, rng, effort):
    """Against exact queries of every edge of the patch and every face around it that share no vertex."""
    patches = patches_of(mesh)
    lists, tree = patches.lists, patches.tree
    edges, faces = patches.edges.numpy(), tree.items.numpy()
    edge_offsets, patch_edges = lists.edge_offsets.numpy(), lists.patch_edges.numpy()
    offsets, clusters = lists.cluster_offsets.numpy(), lists.clusters.numpy()
    nodes = tree.clusters.numpy()
    spans = np.stack([tree.first.numpy()[nodes], tree.last.numpy()[nodes] + 1], axis=1)
    seen, refused = 0, 0
    for size in (0.002, 0.02, 0.1, 0.5):
        start = smooth(mesh.vertices, rng, size)
        end = smooth(start, rng, size)
        for part in (0.0, 0.5, 1.0):  # on the way there patches are compared with ever newer states
            on_the_way = mesh.vertices * (1.0 - part) + start * part
            certified(patches, on_the_way, on_the_way)
        good = certified(patches, start, end)
        refused += int((~good).sum())
        for patch in np.flatnonzero(good)[: effort(3, least=1)]:
            mine = edges[patch_edges[edge_offsets[patch] : edge_offsets[patch + 1]]]
            around = np.concatenate([faces[slice(*spans[c])] for c in clusters[offsets[patch] : offsets[patch + 1]]])
            one, other = (a.ravel() for a in np.meshgrid(np.arange(len(mine)), np.arange(len(around)), indexing="ij"))
            apart = ~(mine[one][:, :, None] == around[other][:, None, :]).any(axis=(1, 2))
            edge, face = mine[one[apart]], around[other[apart]]
            corners = [np.column_stack([edge[:, k], face]) for k in range(2)]
            sides = [np.column_stack([edge, face[:, [k, (k + 1) % 3]]]) for k in range(3)]
            for ask, quads in ((vertex_face, np.concatenate(corners)), (edge_edge, np.concatenate(sides))):
                assert np.isinf(ask(start[quads], end[quads], mode="exact", device="cpu").time).all()
                seen += len(quads)
    assert seen > 1000
    assert refused > 0  # rough motions are not waved through


@pytest.mark.parametrize("per_feature", [False, True], ids=["simd", "per feature"])
@pytest.mark.parametrize("growing", [False, True])
def test_clearances_are_least_distances_at_rest(rng, growing, per_feature):
    """Of every edge of a patch and every face around it that share no vertex, by exact queries of points and edges."""
    flat = generate.sheet(220, size=(2.0, 2.0))
    sheet = flat.replace(vertices=flat.vertices + 0.02 * rng.standard_normal(flat.vertices.shape))
    bodies = [Body(solid_block((4, 3, 2)), cuttable=True), Body(sheet)]
    assembly = AssembledBodies.of(bodies, choose_device("cpu"), growing=growing)
    patches = Patches(assembly, per_feature=per_feature)
    lists, tree, x = patches.lists, patches.tree, assembly.rest_mesh.vertices
    offsets, around = lists.cluster_offsets.numpy(), lists.clusters.numpy()
    first, last, nodes, items = (a.numpy() for a in (tree.first, tree.last, tree.clusters, tree.items))
    edge_offsets, edges = lists.edge_offsets.numpy(), patches.edges.numpy()[lists.patch_edges.numpy()]
    clearance, known = lists.at_rest.clearance.numpy(), 0
    for p in np.flatnonzero(clearance > 0.0):
        rows = [np.arange(first[n], last[n] + 1) for n in nodes[around[offsets[p] : offsets[p + 1]]]]
        faces, own = items[np.concatenate(rows)], edges[edge_offsets[p] : edge_offsets[p + 1]]
        e, f = (grid.ravel() for grid in np.meshgrid(np.arange(len(own)), np.arange(len(faces)), indexing="ij"))
        apart = ~(own[e][:, :, None] == faces[f][:, None, :]).any(axis=(1, 2))
        least = distances(x[own[e[apart]]], x[faces[f[apart]]]).min(initial=lists.reach)
        assert clearance[p] <= least
        assert clearance[p] == pytest.approx(least, rel=1e-8)
        known += 1
    assert known >= 10


def distances(edges: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Of edges (n, 2, 3) that meet no face (n, 3, 3) of the same row: the least over their ends and all edges."""
    ends = [trimesh.triangles.closest_point(faces, edges[:, k]) - edges[:, k] for k in range(2)]
    found = [np.linalg.norm(way, axis=1) for way in ends]
    for k in range(3):
        found.append(segment_distances(edges, faces[:, [k, (k + 1) % 3]]))
    return np.min(found, axis=0)


def segment_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between segments (n, 2, 3): where the lines are nearest if that is within both, else from an end."""

    def from_ends(points: np.ndarray, segments: np.ndarray) -> np.ndarray:
        along = segments[:, 1] - segments[:, 0]
        length = np.maximum(np.einsum("ij,ij->i", along, along), 1e-300)
        part = np.clip(np.einsum("ij,ij->i", points - segments[:, 0], along) / length, 0.0, 1.0)
        return np.linalg.norm(segments[:, 0] + part[:, None] * along - points, axis=1)

    found = np.min([from_ends(a[:, k], b) for a, b in ((one, other), (other, one)) for k in range(2)], axis=0)
    u, v, w = one[:, 1] - one[:, 0], other[:, 1] - other[:, 0], one[:, 0] - other[:, 0]
    uu, vv, uv, uw, vw = (np.einsum("ij,ij->i", a, b) for a, b in ((u, u), (v, v), (u, v), (u, w), (v, w)))
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = (uv * vw - vv * uw) / (uu * vv - uv * uv), (uu * vw - uv * uw) / (uu * vv - uv * uv)
        inside = (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
        between = np.linalg.norm(w + s[:, None] * u - t[:, None] * v, axis=1)
    return np.where(inside, np.minimum(found, between), found)


def test_rigid_motions_are_certified_and_nearly_all_stretches(rng):
    mesh = generate.torus(2400)
    patches = patches_of(mesh)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.linalg.det(turn)
    moved = mesh.vertices @ turn.T + [5.0, 6.0, 7.0]
    assert certified(patches, moved, moved).all()
    assert certified(patches, moved, moved * [1.1, 0.95, 1.05] + 20.0).mean() > 0.9


def test_a_fold_is_not_certified():
    mesh = generate.sheet(450, size=(3.0, 3.0))
    folded = mesh.vertices.copy()
    beyond = folded[:, 0] > 0.05
    folded[beyond, 0] = 0.1 - folded[beyond, 0]
    folded[beyond, 2] += 0.01
    good = certified(patches_of(mesh), mesh.vertices, folded)
    assert not good.all()
    assert good.any()  # far from the crease nothing has happened but a half turn


def test_a_surface_far_from_rest_is_certified_from_where_it_is():
    """Rolled up, a quarter of a turn to a patch: nothing like the flat sheet it was at rest."""
    mesh = generate.sheet(800, size=(2.0, 2.0))
    angle = mesh.vertices[:, 0] / 0.33
    radius = 0.33 + 0.03 * angle
    rolled = np.stack([radius * np.cos(angle), mesh.vertices[:, 1], radius * np.sin(angle)], axis=1)
    patient = patches_of(mesh)
    patient.certificates._kept.wait.fill_(1000)
    assert certified(patient, rolled, rolled + 0.3).mean() < 0.5
    assert certified(patches_of(mesh), rolled, rolled + 0.3).mean() > 0.9


def test_there_are_places_in_trees_for_all_that_cuts_may_add() -> None:
    """However large the body is: the first stroke through a plate of 55,000 triangles used up 512 clusters."""
    for cells in ((4, 2, 2), (20, 10, 4), (90, 90, 1)):
        solid = solid_block(cells)
        assembly = AssembledBodies.of([Body(solid, cuttable=True)], choose_device("cpu"), growing=True)
        patches = Patches(assembly)
        tree = patches.tree
        nodes = tree.clusters.numpy()
        empty = int((tree.last.numpy()[nodes] < tree.first.numpy()[nodes]).sum())
        assert 8 * empty >= len(assembly.surface.faces) - len(solid.surface.faces) > 0
