"""Eight at once on a CPU: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.bound import Lanes, MovingBox, vertex_boxes
from tangere.runtime import SOUND, choose_device, launch
from tangere.shape import generate
from tangere.soft import Body, scenes
from tangere.soft.assembly import Assembly
from tangere.soft.descent import STATE, begin_descent, next_cluster
from tangere.soft.in_lanes import meet
from tangere.soft.patches import Patches

wp.set_module_options(SOUND)


@wp.kernel
def _descend(
    first: int,
    nodes: wp.array[MovingBox],
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    scratch: wp.array2d[int],
    met: wp.array2d[wp.uint8],
    one_by_one: wp.array2d[wp.uint8],
    clusters: wp.array[int],
):
    i = first + wp.tid()
    begin_descent(nodes, i, rows, levels, i, scratch)
    other = next_cluster(nodes, i, rows, levels, i, scratch)
    while other >= 0:
        met[i, other] = met[i, other] + wp.uint8(1)
        other = next_cluster(nodes, i, rows, levels, i, scratch)
    for k in range(clusters.shape[0]):
        one_by_one[i, k] = wp.uint8(meet(nodes, i, clusters[k]))


@pytest.mark.parametrize("faces", [8, 60, 2400])
def test_a_descent_finds_every_cluster_that_meets_a_box_once(faces, rng):
    """Boxes as NumPy compares them; few faces make trees of one level."""
    mesh = generate.torus(faces) if faces > 8 else generate.box((1.0, 1.0, 1.0))
    assembly = Assembly.of([Body(mesh)], choose_device("cpu"))
    patches = Patches(assembly)
    moved = wp.array(mesh.vertices + 0.2 * rng.standard_normal(mesh.vertices.shape), dtype=wp.vec3d, device="cpu")
    fitted = patches.tree.fit(vertex_boxes(assembly.rest, moved, 1.0, 0.01, patches.frame))
    rows, levels = patches.descent(fitted)
    nodes, clusters = fitted.nodes.numpy(), patches.tree.clusters.numpy()
    met, alone = (wp.zeros((len(nodes), len(clusters)), dtype=wp.uint8, device="cpu") for _ in range(2))
    scratch = wp.empty((len(nodes), STATE), dtype=wp.int32, device="cpu")
    inputs = [fitted.nodes, rows, levels, scratch, met, alone, patches.tree.clusters]
    launch(_descend, len(nodes), inputs, device=choose_device("cpu"))
    a, b = nodes[:, None, :], nodes[clusters][None, :, :]
    lower, upper = [0, 1, 2], [3, 4, 5]
    apart = np.zeros(met.shape, bool)
    for one, other in ((lower, upper), (upper, lower)):
        begin, end = a[..., one] + b[..., other], a[..., np.add(one, 6)] + b[..., np.add(other, 6)]
        apart |= ((begin > 0) & (end > 0)).any(axis=2)
    assert faces < 2400 or 0.5 < apart.mean() < 1.0
    assert np.array_equal(met.numpy(), ~apart)
    assert np.array_equal(alone.numpy(), ~apart)


def test_certificates_compared_anew_know_a_distance_no_pair_is_nearer_than():
    """The least distance of edges of a patch and faces around it, by sampling both."""
    simulation = scenes.tori(3_200, stiffness=1e3, device="cpu")
    simulation.run(75)
    patches, lists = simulation._patches, simulation._patches.lists
    before = patches._certificates._once[3].numpy().copy()
    simulation._map_start(len(simulation._surface_start))
    x = simulation._surface_start.numpy().copy()
    simulation.step()
    after = patches._certificates._once[3].numpy()
    renewed = np.flatnonzero(before != after)
    assert len(renewed) > 3
    tree, edges = patches.tree, patches.edges.numpy()
    first, last, nodes = tree.first.numpy(), tree.last.numpy(), tree.clusters.numpy()
    parts = np.linspace(0.0, 1.0, 7)
    corners = np.array([(i, j, 6 - i - j) for i in range(7) for j in range(7 - i)]) / 6.0
    for p in renewed[:12]:
        around = lists.clusters.numpy()[slice(*lists.cluster_offsets.numpy()[p : p + 2])]
        places = np.concatenate([np.arange(first[n], last[n] + 1) for n in nodes[around]])
        faces = tree.items.numpy()[places]
        ours = edges[lists.patch_edges.numpy()[slice(*lists.edge_offsets.numpy()[p : p + 2])]]
        on_faces = np.einsum("sk,fkd->fsd", corners, x[faces])
        nearest = np.inf
        for v0, v1 in ours:
            others = ~((faces == v0) | (faces == v1)).any(axis=1)
            on_edge = (1.0 - parts)[:, None] * x[v0] + parts[:, None] * x[v1]
            away = np.linalg.norm(on_faces[others][:, :, None] - on_edge, axis=3)
            nearest = min(nearest, away.min())
        assert 0.7 * min(nearest, lists.reach) < after[p] <= nearest * (1.0 + 1e-9)
