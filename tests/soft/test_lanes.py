"""Eight at once on a CPU: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.bvh.lbvh import Lanes, MovingBox, vertex_boxes
from tangere.bvh.wide import MovingWideBvh, begin_descent, cone_rows, next_cluster
from tangere.runtime import SOUND, choose_device, launch
from tangere.shape import generate
from tangere.soft import Body, scenes
from tangere.soft.contact.cpu.simd_candidates import SCRATCH_ROW, simd_boxes_meet
from tangere.soft.contact.normal_cones import NormalCones, _cones
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches

wp.set_module_options(SOUND)


@wp.kernel
def _descend(
    first: int,
    nodes: wp.array[MovingBox],
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    barred: wp.array[wp.vec2i],
    cones: wp.array[wp.vec4d],
    cone_rows: wp.array2d[wp.float64],
    dirty: wp.array[wp.uint8],
    scratch: wp.array2d[int],
    met: wp.array2d[wp.uint8],
    one_by_one: wp.array2d[wp.uint8],
    clusters: wp.array[int],
):
    i = first + wp.tid()
    cone = cones[i % cones.shape[0]]
    begin_descent(nodes, i, rows, levels, 0, barred.shape[0], barred, cone, cone_rows, 0, dirty, i, scratch)
    other = next_cluster(nodes, i, rows, levels, 0, barred.shape[0], barred, cone, cone_rows, 0, dirty, i, scratch)
    while other >= 0:
        met[i, other] = met[i, other] + wp.uint8(1)
        other = next_cluster(nodes, i, rows, levels, 0, barred.shape[0], barred, cone, cone_rows, 0, dirty, i, scratch)
    for k in range(clusters.shape[0]):
        one_by_one[i, k] = wp.uint8(simd_boxes_meet(nodes, i, nodes, clusters[k]))


@pytest.mark.parametrize("faces", [8, 60, 2400])
def test_a_descent_finds_every_cluster_that_meets_a_box_once_but_for_those_left_out(faces, rng):
    """Boxes and cones as NumPy compares them; few faces make trees of one level."""
    mesh = generate.torus(faces) if faces > 8 else generate.box((1.0, 1.0, 1.0))
    assembly = AssembledBodies.of([Body(mesh, density=1.0)], choose_device("cpu"))
    patches = Patches(assembly)
    moved = wp.array(mesh.vertices + 0.2 * rng.standard_normal(mesh.vertices.shape), dtype=wp.vec3d, device="cpu")
    fitted = patches.tree.fit(vertex_boxes(assembly.surface.rest, moved, 1.0, 0.01, patches.frame))
    eights = MovingWideBvh(patches.tree)
    eights.fit(fitted.nodes, eights.changed)
    nodes, clusters = fitted.nodes.numpy(), patches.tree.clusters.numpy()
    met, alone = (wp.zeros((len(nodes), len(clusters)), dtype=wp.uint8, device="cpu") for _ in range(2))
    scratch = wp.empty((len(nodes), SCRATCH_ROW), dtype=wp.int32, device="cpu")
    masks = rng.integers(1, 256, -(-len(clusters) // 8)) * (rng.random(-(-len(clusters) // 8)) < 0.5)
    barred = np.stack([np.flatnonzero(masks), masks[masks > 0]], axis=1)
    axes = rng.standard_normal((len(clusters), 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    widths = rng.uniform(0.0, 2.0, len(clusters))  # more than a right angle tells nothing
    cones = wp.array(np.column_stack([axes, np.cos(widths)]), dtype=wp.vec4d, device="cpu")
    barred = wp.array(barred, dtype=wp.vec2i, device="cpu")
    inputs = [fitted.nodes, eights.rows, eights.levels, barred, cones, cone_rows(cones), eights.changed]
    inputs += [scratch, met, alone, patches.tree.clusters]
    launch(_descend, len(nodes), inputs, device=choose_device("cpu"))
    a, b = nodes[:, None, :], nodes[clusters][None, :, :]
    lower, upper = [0, 1, 2], [3, 4, 5]
    apart = np.zeros(met.shape, bool)
    for one, other in ((lower, upper), (upper, lower)):
        begin, end = a[..., one] + b[..., other], a[..., np.add(one, 6)] + b[..., np.add(other, 6)]
        apart |= ((begin > 0) & (end > 0)).any(axis=2)
    assert faces < 2400 or 0.5 < apart.mean() < 1.0
    out = (masks[np.arange(len(clusters)) // 8] >> np.arange(len(clusters)) % 8 & 1).astype(bool)
    mine = np.arange(len(nodes)) % len(clusters)
    between = np.arccos(np.clip(axes[mine] @ axes.T, -1.0, 1.0))
    along = between + widths[mine][:, None] + widths < 0.5 * np.pi
    assert faces < 2400 or (along.mean() > 0.02 and 0.1 < out.mean() < 0.9)
    assert np.array_equal(met.numpy(), ~apart & ~out & ~along)
    assert np.array_equal(alone.numpy(), ~apart)


def test_certificates_compared_anew_know_a_distance_no_pair_is_nearer_than():
    """The least distance of edges of a patch and faces around it, by sampling both."""
    simulation = scenes.tori(3_200, youngs_modulus=1e3, device="cpu")
    simulation.run(steps=75)
    patches, lists = simulation._pipeline.patches, simulation._pipeline.patches.lists
    reference = patches.certificates._reference
    once, apart = reference.rest, reference.clearance
    before = apart.numpy().copy()
    simulation.step()
    after = apart.numpy()
    renewed = np.flatnonzero((before != after) & (patches.certificates.certified.numpy() == 1))
    assert len(renewed) > 3
    x = np.full((len(simulation._pipeline.assembly.surface.rest), 3), np.nan)
    tree, edges = patches.tree, patches.edges.numpy()
    first, last, nodes = tree.first.numpy(), tree.last.numpy(), tree.clusters.numpy()
    parts = np.linspace(0.0, 1.0, 7)
    corners = np.array([(i, j, 6 - i - j) for i in range(7) for j in range(7 - i)]) / 6.0
    for p in renewed[:12]:
        around = lists.clusters.numpy()[slice(*lists.cluster_offsets.numpy()[p : p + 2])]
        places = np.concatenate([np.arange(first[n], last[n] + 1) for n in nodes[around]])
        faces = tree.items.numpy()[places]
        own = slice(*reference.offsets.numpy()[p : p + 2])
        x[reference.vertices.numpy()[own]] = once.numpy()[own]
        ours = edges[lists.patch_edges.numpy()[slice(*lists.edge_offsets.numpy()[p : p + 2])]]
        on_faces = np.einsum("sk,fkd->fsd", corners, x[faces])
        nearest = np.inf
        for v0, v1 in ours:
            others = ~((faces == v0) | (faces == v1)).any(axis=1)
            on_edge = (1.0 - parts)[:, None] * x[v0] + parts[:, None] * x[v1]
            away = np.linalg.norm(on_faces[others][:, :, None] - on_edge, axis=3)
            nearest = min(nearest, away.min())
        assert 0.7 * min(nearest, lists.reach) < after[p] <= nearest * (1.0 + 1e-9)


def test_cones_of_eight_faces_at_once_have_the_bits_of_one_by_one(rng):
    """Faces with and without area, of closed and of open surfaces."""
    closed, sheet = generate.torus(600), generate.sheet(98)
    assembly = AssembledBodies.of([Body(closed, density=1.0), Body(sheet, density=1.0)], choose_device("cpu"))
    patches = Patches(assembly)
    tree = patches.tree
    places = assembly.surface.rest.numpy() + 0.1 * rng.standard_normal(assembly.surface.rest.shape + (3,))
    places[closed.faces[::7]] = places[0]
    positions = wp.array(places, dtype=wp.vec3d, device="cpu")
    cones = NormalCones(assembly, tree, patches.lists, positions)
    cones()
    found = cones.clusters.numpy()
    one_by_one = wp.empty(len(found), dtype=wp.vec4d, device="cpu")
    inputs = [tree.clusters, tree.first, tree.last, tree.items, positions, assembly.surface.traits]
    launch(_cones, len(found), inputs, [one_by_one], device=choose_device("cpu"))
    assert np.array_equal(found, one_by_one.numpy())
    assert 0 < (found[:, 3] == -1.0).sum() < len(found)
