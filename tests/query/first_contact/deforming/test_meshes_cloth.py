"""A public cloth of 92,230 triangles, against its exact root and against the IPC Toolkit."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.mesh_contacts import corners_at, edge_pierces_face, names
from tangere.motion import Linear
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import all_contacts, candidates, first_contact
from tangere.query.first_contact.primitives.narrow_phase.exact import decide
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: First contact of frame 92 going to frame 93, to the digits known beforehand.
FIRST_TIME = 7.492069e-06


@pytest.fixture(scope="module")
def cloth(data_folder) -> Moving:
    frames = [data_folder / "meshes" / f"cloth_ball{k}.ply" for k in (92, 93)]
    if not all(frame.exists() for frame in frames):
        pytest.skip("TANGERE_DATA has no cloth_ball92.ply and cloth_ball93.ply")
    start, end = (Mesh.load(frame, weld=False) for frame in frames)
    return start.moving(Linear(end.vertices))


@pytest.mark.release
def test_the_first_contact_of_the_cloth_is_its_exact_root(cloth):
    hit = first_contact(cloth, start="trusted", device="cpu")
    assert hit.status == Status.CONTACT
    assert hit.time == pytest.approx(FIRST_TIME, abs=1e-12)
    corners = [corners_at(cloth, None, hit.contacts, np.full(1, t))[0] for t in (0.0, 1.0)]
    exact = decide(Kind(names(hit.contacts)[0][0]), np.concatenate(corners))
    assert exact.hit
    assert hit.time <= exact.time_above
    assert hit.time == pytest.approx(exact.time_below, abs=1e-12)
    assert exact.time_below <= hit.time_upper <= exact.time_above + 1e-12


@pytest.mark.release
def test_the_cloth_overlaps_itself_at_the_start_where_an_edge_meets_a_face(cloth):
    hit = first_contact(cloth, device="cpu")
    assert (hit.status, hit.time) == (Status.START, 0.0)
    mesh, contact = cloth.shape, hit.contacts
    assert contact.kind.tolist() == [Kind.OVERLAP]
    edge, face = mesh.edges[contact.feature_a[0]], mesh.faces[contact.feature_b[0]]
    assert not set(edge) & set(face)
    assert edge_pierces_face(mesh.vertices[edge], mesh.vertices[face])


@pytest.mark.slow
def test_all_contacts_of_the_cloth_are_once_each_in_order_and_begin_with_the_first(cloth):
    contacts = all_contacts(cloth, start="trusted", device="cpu")
    first = first_contact(cloth, start="trusted", device="cpu")
    assert contacts.time[0] == first.time
    assert contacts.key[0] == first.contacts.key[0]
    assert len(np.unique(contacts.key)) == len(contacts)
    assert (np.diff(contacts.time) >= 0.0).all()
    chosen = contacts[np.random.default_rng(0).permutation(len(contacts))[:300]]
    start, end = (corners_at(cloth, None, chosen, np.full(len(chosen), t)) for t in (0.0, 1.0))
    for k, (kind, *_) in enumerate(names(chosen)):
        exact = decide(Kind(kind), np.concatenate([start[k], end[k]]))
        assert exact.hit
        assert chosen.time[k] <= exact.time_above
        assert chosen.time[k] == pytest.approx(exact.time_below, abs=1e-6)


@pytest.mark.slow
def test_the_candidates_of_the_cloth_are_those_of_the_ipc_toolkit_that_an_axis_does_not_keep_apart(cloth):
    """Its boxes are swept over the whole way. Both round outward, so each has pairs at rounding distance of its own."""
    ipctk = pytest.importorskip("ipctk")
    mesh = cloth.shape
    end = mesh.vertices + 0.1 * (np.asarray(cloth.motion.end) - mesh.vertices)
    theirs = ipctk.Candidates()
    theirs.build(
        ipctk.CollisionMesh(mesh.vertices, mesh.edges, mesh.faces), mesh.vertices, end, broad_phase=ipctk.LBVH()
    )
    ours = candidates(mesh.moving(Linear(end)), device="cpu")
    edges = {tuple(sorted((c.edge0_id, c.edge1_id))) for c in theirs.ee_candidates}
    faces = {(c.vertex_id, c.face_id) for c in theirs.fv_candidates}
    vertices = np.arange(len(mesh.vertices))[:, None]
    for mine, other, first, second in (
        (ours.edge_edge, edges, mesh.edges, mesh.edges),
        (ours.vertex_face, faces, vertices, mesh.faces),
    ):
        found = {tuple(sorted(pair)) if other is edges else tuple(pair) for pair in mine.tolist()}
        assert len(found) == len(mine)
        assert len(found - other) <= 1e-3 * len(other)
        spared = np.array(sorted(other - found))
        above, below = [], []
        for points in (mesh.vertices, end):
            one, two = points[first[spared[:, 0]]], points[second[spared[:, 1]]]
            above.append(one.min(axis=1) > two.max(axis=1))
            below.append(one.max(axis=1) < two.min(axis=1))
        assert (np.all(above, axis=0) | np.all(below, axis=0)).any(axis=1).all()


@pytest.mark.slow
def test_the_time_is_not_later_than_the_ipc_toolkit_allows(cloth):
    """Tight inclusion stops early, never late: with a small tolerance it comes close to our time from below."""
    ipctk = pytest.importorskip("ipctk")
    mesh = cloth.shape
    order = ipctk.CollisionMesh(mesh.vertices, mesh.edges, mesh.faces)
    end = np.asarray(cloth.motion.end)
    short = mesh.vertices + (end - mesh.vertices) * 1e-4
    narrow = ipctk.TightInclusionCCD(tolerance=1e-12, max_iterations=10_000_000)
    part = ipctk.compute_collision_free_stepsize(
        order, mesh.vertices, short, broad_phase=ipctk.LBVH(), narrow_phase_ccd=narrow
    )
    hit = first_contact(cloth, start="trusted", device="cpu")
    assert part * 1e-4 <= hit.time_upper
    assert part * 1e-4 >= 0.5 * hit.time
