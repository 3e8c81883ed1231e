"""A simulation that was cut in place beside the same bodies laid out anew: what has to be the same."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from scipy.sparse import csr_matrix

from tangere.query.contacts import Kind
from tangere.shape.mesh import Mesh
from tangere.soft import Simulation
from tangere.soft.model.assembled_bodies import AssembledBodies, sharp_edges
from tangere.soft.safe_step.hinges import hinged_edges
from tangere.soft.solver.cpu.dof_lanes import dof_lanes
from tangere.soft.step import StepPipeline


def matrix(assembly: AssembledBodies) -> csr_matrix:
    """The couplings of all dofs."""
    material, count = assembly.material, len(assembly.dofs.x)
    ranges = material.neighbour_ranges.numpy()
    rows = np.repeat(np.arange(count), ranges[:, 1] - ranges[:, 0])
    entries = np.concatenate([np.arange(*span) for span in ranges])
    return csr_matrix((material.weights.numpy()[entries], (rows, material.neighbours.numpy()[entries])), (count, count))


def elements(assembly: AssembledBodies, dof: int, number: np.ndarray) -> np.ndarray:
    """Of one dof, in order: the other corners as dofs are counted without room, and the laws."""
    span = slice(*assembly.material.element_ranges.numpy()[dof])
    opposite = assembly.material.opposite.numpy()[span]
    opposite = np.where(opposite >= 0, number[opposite], -1)  # a triangle has two others
    rows = np.column_stack([opposite, assembly.material.laws.numpy()[span]])
    return rows[np.lexsort(rows[:, :3].T)]


def check_same_as_laid_out_anew(simulation: Simulation) -> None:
    pipeline = simulation._pipeline
    assembly = pipeline.assembly
    anew = AssembledBodies.of(assembly.bodies, assembly.device)
    dofs = assembly.dof_rows
    dofs = np.arange(len(assembly.dofs.x))[dofs]
    number = np.full(len(assembly.dofs.x), -1)
    number[dofs] = np.arange(len(dofs))
    assert len(dofs) == len(anew.dofs.x)
    for name in ("free", "body", "damping"):
        assert np.array_equal(getattr(assembly.dofs, name).numpy()[dofs], getattr(anew.dofs, name).numpy())
    mass = anew.dofs.mass.numpy()
    assert np.allclose(assembly.dofs.mass.numpy()[dofs], mass, rtol=1e-12, atol=0.0)
    assert np.allclose(pipeline.inertia.numpy()[dofs], mass / pipeline.dt**2, rtol=1e-12, atol=0.0)
    assert not assembly.dofs.mass.numpy()[number < 0].any()
    wanted = matrix(anew)
    scale = abs(wanted).max()
    assert abs(matrix(assembly)[dofs][:, dofs] - wanted).max() < 1e-12 * scale
    diagonal = assembly.material.diagonal.numpy()[dofs]
    assert np.allclose(diagonal, anew.material.diagonal.numpy(), rtol=1e-11, atol=1e-12 * scale)
    same = np.arange(len(dofs))
    for dof in range(0, len(dofs), 7):
        assert np.allclose(elements(assembly, dofs[dof], number), elements(anew, dof, same), rtol=1e-11)
    check_lanes(assembly, dofs)
    check_surface(pipeline, anew, number)


def check_lanes(assembly: AssembledBodies, dofs: np.ndarray) -> None:
    """Every dof that moves has one colour, that of no neighbour, and the lanes that its lists say."""
    lanes, material = dof_lanes(assembly), assembly.material
    table, groups = lanes.table.numpy(), lanes.dofs.numpy()
    colour = np.full(len(assembly.dofs.x), -1)
    for name, (begin, end) in enumerate(lanes.colours.numpy()):
        ours = np.unique(groups[begin:end])
        assert (colour[ours] == -1).all()
        colour[ours] = name
        for group in range(begin, end):
            near, nears, part, parts, solid = table[group]
            assert solid == (material.opposite.numpy()[material.element_ranges.numpy()[groups[group, 0], 0], 2] >= 0)
            for lane, dof in enumerate(groups[group]):
                span = slice(*material.neighbour_ranges.numpy()[dof])
                size = span.stop - span.start
                ours = (
                    lanes.neighbours.numpy()[near : near + nears, lane],
                    lanes.weights.numpy()[near : near + nears, lane],
                )
                assert np.array_equal(ours[0][:size], material.neighbours.numpy()[span])
                assert np.array_equal(ours[1][:size], material.weights.numpy()[span])
                assert not ours[1][size:].any()
                span = slice(*material.element_ranges.numpy()[dof])
                size = span.stop - span.start
                corners = lanes.corners.numpy()[3 * part : 3 * (part + parts), lane].reshape(-1, 3)
                laws = lanes.laws.numpy()[3 * part : 3 * (part + parts), lane].reshape(-1, 3)
                wanted = material.opposite.numpy()[span]
                assert np.array_equal(corners[:size], np.where(wanted < 0, dof, wanted))  # a triangle has two others
                assert np.array_equal(laws[:size, 1:], material.laws.numpy()[span][:, 1:])
                assert not laws[size:].any()
    free = assembly.dofs.free.numpy() == 1
    assert np.array_equal(np.flatnonzero(colour >= 0), np.sort(dofs[free[dofs]]))
    if assembly.swept is not None:
        order, spans = assembly.swept
        swept = np.concatenate(
            [
                np.stack([order.numpy()[begin:end], np.full(end - begin, name)], axis=1)
                for name, (begin, end) in enumerate(spans)
            ]
        )
        swept = swept[swept[:, 0] >= 0]
        assert np.array_equal(np.sort(swept[:, 0]), np.sort(dofs[free[dofs]]))
        assert np.array_equal(colour[swept[:, 0]], swept[:, 1])
    links = matrix(assembly).tocoo()
    assert ((colour[links.row] != colour[links.col]) | (colour[links.row] < 0)).all()


def check_surface(pipeline: StepPipeline, anew: AssembledBodies, dof_number: np.ndarray) -> None:
    assembly, patches, surface = pipeline.assembly, pipeline.patches, pipeline.assembly.surface
    bodies = range(len(assembly.current))
    rows = np.concatenate([assembly.vertex_rows(number) for number in bodies])
    number = np.full(len(surface.rest), -1)
    number[rows] = np.arange(len(rows))
    count = len(anew.dofs.x)

    def carried(arrays, at: np.ndarray, names: np.ndarray) -> csr_matrix:
        weights, carriers = arrays.weights.numpy()[at], names[arrays.carriers.numpy()[at]]
        return csr_matrix((weights.ravel(), (np.repeat(np.arange(len(at)), 4), carriers.ravel())), (len(at), count))

    every = np.arange(len(rows))
    apart = carried(surface, rows, dof_number) - carried(anew.surface, every, np.arange(count))
    extent = assembly.rest_mesh.extent
    assert abs(apart).max() < 1e-9
    assert np.abs(surface.rest.numpy()[rows] - anew.surface.rest.numpy()).max() < 1e-12 * extent
    for name in ("contact_mass", "contact_area"):
        wanted = getattr(anew.surface, name).numpy()
        assert np.allclose(getattr(surface, name).numpy()[rows], wanted, rtol=1e-9, atol=1e-12 * wanted.max())
    assert np.array_equal(surface.body.numpy()[rows], anew.surface.body.numpy())
    assert np.array_equal(surface.traits.numpy()[rows], anew.surface.traits.numpy())
    assert np.array_equal(pipeline.initial_contacts.given_traits.numpy()[rows], anew.surface.traits.numpy())
    faces = np.concatenate([assembly.face_rows(body) for body in bodies])
    corners = surface.faces.numpy()[faces]
    assert np.array_equal(number[corners], anew.rest_mesh.faces) or same_triangles(
        number[corners], anew.rest_mesh.faces
    )
    # triangles at vertices
    ranges, at = surface.face_ranges.numpy(), surface.faces_at.numpy()
    listed = Counter((v, f) for v in rows for f in at[slice(*ranges[v])])
    assert listed == Counter((v, f) for f, face in zip(faces, corners, strict=True) for v in face)
    check_tree(patches, faces, corners)
    check_features(patches, anew, faces, corners, number)
    check_hinged(patches, anew.rest_mesh, number)
    sharp, whole = pipeline.detection.sharp, anew.rest_mesh
    wanted = {tuple(sorted(rows[ends])) for ends in whole.edges[sharp_edges(whole)]}
    ends = sharp.ends.numpy()[: sharp.count]
    ends = ends[ends[:, 0] != ends[:, 1]]
    assert len(ends) == len(wanted)
    assert {tuple(sorted(pair)) for pair in ends} == wanted
    tree = sharp.tree
    assert tree is not None
    nodes = tree.clusters.numpy()
    places = np.concatenate([np.arange(*span) for span in zip(tree.first.numpy()[nodes], tree.last.numpy()[nodes] + 1)])
    assert {tuple(sorted(pair)) for pair in tree.items.numpy()[places]} == wanted
    assert np.array_equal(tree.items.numpy()[places], sharp.ends.numpy()[tree.order.numpy()[places]])


def check_hinged(patches, whole: Mesh, number: np.ndarray) -> None:
    """Pairs of edges that no edge and face tell of are those of the mesh, each listed once."""
    hinged, edges = patches.hinged, patches.edges.numpy()
    pairs = hinged.pairs.numpy()
    assert (pairs[hinged.count :, 0] == -1).all()
    second = hinged.second.numpy()[: hinged.count][pairs[: hinged.count, 0] >= 0]
    first = edges[pairs[pairs[:, 0] >= 0, 0]]
    assert (second[:, 1] == second[:, 2]).all()

    def named(one: np.ndarray, other: np.ndarray) -> list[frozenset]:
        return [frozenset((frozenset(a), frozenset(b))) for a, b in zip(one.tolist(), other.tolist(), strict=True)]

    found = named(number[first], number[second[:, :2]])
    wanted = hinged_edges(whole.topology)
    assert len(set(found)) == len(found)
    assert set(found) == set(named(whole.edges[wanted[:, 0]], whole.edges[wanted[:, 1]]))


def same_triangles(one: np.ndarray, other: np.ndarray) -> bool:
    """Up to where each begins."""

    def turned(faces: np.ndarray) -> np.ndarray:
        first = faces.argmin(axis=1)
        return np.take_along_axis(faces, (first[:, None] + [0, 1, 2]) % 3, axis=1)

    return np.array_equal(turned(one), turned(other))


def check_tree(patches, faces: np.ndarray, corners: np.ndarray) -> None:
    """Every face is at one place, and lanes and boxes of clusters are of what is there."""
    tree = patches.tree
    nodes, first, last = tree.clusters.numpy(), tree.first.numpy(), tree.last.numpy()
    lanes = tree.corners.numpy().reshape(-1, 3, 8)
    found = {}
    for cluster, node in enumerate(nodes):
        size = last[node] - first[node] + 1
        for lane in range(8):
            if lane < size:
                place = first[node] + lane
                found[int(tree.order.numpy()[place])] = tuple(tree.items.numpy()[place])
            if patches.per_feature:  # nobody asks for lanes
                continue
            if lane < size:
                assert tuple(lanes[cluster, :, lane]) == tuple(tree.items.numpy()[place])
            else:
                assert (lanes[cluster, :, lane] == -1).all()
    assert found == {int(f): tuple(face) for f, face in zip(faces, corners, strict=True)}


def check_features(patches, anew: AssembledBodies, faces, corners, number) -> None:
    """Each edge, ear and vertex is listed once, by a cluster that has it; certificates know all vertices around."""
    tree, lists, edges = patches.tree, patches.lists, patches.edges.numpy()
    nodes, first, last = tree.clusters.numpy(), tree.first.numpy(), tree.last.numpy()
    items = tree.items.numpy()
    found_edges, found_vertices = Counter(), Counter()
    for cluster, node in enumerate(nodes):
        ours = items[first[node] : last[node] + 1]
        sides = {tuple(sorted(pair)) for face in ours for pair in itertools.combinations(face, 2)}
        for e in lists.edges.features.numpy()[slice(*lists.edges.ranges.numpy()[cluster])]:
            pair = tuple(sorted(edges[e]))
            found_edges[pair] += 1
            assert pair in sides or (pair[0] == pair[1] and pair[0] in ours)
        for v in lists.vertices.features.numpy()[slice(*lists.vertices.ranges.numpy()[cluster])]:
            found_vertices[v] += 1
            assert v in ours
    wanted = Counter(tuple(sorted(pair)) for face in corners for pair in itertools.combinations(face, 2))
    degree = Counter(v for pair in wanted for v in pair)
    ears = Counter({(v, v): 1 for v, n in degree.items() if n <= 3})
    assert found_edges == Counter(dict.fromkeys(wanted, 1)) + ears
    assert found_vertices == Counter(dict.fromkeys(degree, 1))
    clusters, offsets, reference = lists.clusters.numpy(), lists.cluster_offsets.numpy(), lists.at_rest
    for patch in np.flatnonzero(reference.clearance.numpy() > 0.0):
        around = clusters[offsets[patch] : offsets[patch + 1]]
        there = np.unique(np.concatenate([items[first[n] : last[n] + 1].ravel() for n in nodes[around]]))
        known = reference.vertices.numpy()[slice(*reference.offsets.numpy()[patch : patch + 2])]
        assert np.isin(there, known).all()


def check_contact_features(simulation: Simulation) -> int:
    """The features that contacts name have the points of the contacts; how many contacts there are."""
    pipeline, contacts = simulation._pipeline, simulation.contacts
    began = pipeline.surface_start.numpy()
    rows = [pipeline.assembly.vertex_rows(number) for number in range(len(simulation))]
    meshes = [body.surface.replace(vertices=began[own]) for body, own in zip(simulation.bodies, rows, strict=True)]
    for k in range(len(contacts)):
        for side in "ab":
            mesh, feature = meshes[getattr(contacts, f"body_{side}")[k]], getattr(contacts, f"feature_{side}")[k]
            point, kind = getattr(contacts, f"point_{side}")[k], contacts.kind[k]
            if kind == Kind.EDGE_EDGE:
                corners = mesh.vertices[mesh.edges[feature]]
            else:
                corners = mesh.vertices[[feature]] if side == "a" else mesh.vertices[mesh.faces[feature]]
            apart = (corners - point).T
            weights = np.linalg.lstsq(np.vstack([apart, 0.1 * np.ones(len(corners))]), [0, 0, 0, 0.1], rcond=None)[0]
            assert weights.min() > -1e-7
            assert np.abs(apart @ weights).max() < 1e-9
    return len(contacts)


def contacts_of(pipeline: StepPipeline, digits: int = 9) -> set:
    """What touches: kinds, bodies and where; of faces that are equally near either may be named.

    Of two edges that have found each other the one with the lesser number comes first: here, either, but of two bodies
    that of the lesser one.
    """
    pipeline.reset()
    pipeline.detection.find_nearest()
    found = pipeline.detection.contacts(pipeline.rows.arrays.normal)
    one, other = found.point_a.round(digits) + 0.0, found.point_b.round(digits) + 0.0
    bodies = np.stack([found.body_a, found.body_b])
    swapped = (bodies[0] > bodies[1]) | ((bodies[0] == bodies[1]) & (one[:, 0] > other[:, 0]))
    swapped &= found.kind == int(Kind.EDGE_EDGE)
    one[swapped], other[swapped] = other[swapped], one[swapped]
    bodies[:, swapped] = bodies[::-1, swapped]
    places = np.concatenate([one, other], axis=1)
    columns = found.kind, *bodies, *places.T
    return set(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
