"""Bad input to the mesh queries gets an error that helps; odd but legal input gets an answer."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.moving_meshes import grid, tetrahedron
from tangere.motion import Linear
from tangere.query.contacts import Status
from tangere.query.first_contact import all_contacts, candidates, first_contact
from tangere.runtime import InputError, UnsupportedError
from tangere.shape.mesh import Mesh

QUERIES = [first_contact, all_contacts, candidates]


class Spin:
    """A motion nobody has written a query for."""

    def positions(self, start, time):
        return start


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("thing", ["x", None, 3, np.zeros((4, 3)), [tetrahedron()]], ids=lambda x: type(x).__name__)
def test_what_is_not_a_mesh_is_refused_with_what_is_known(query, thing):
    if query is first_contact and isinstance(thing, list):  # of lists, any two are asked about
        return
    with pytest.raises(UnsupportedError, match=r"known: a Mesh at rest or a Mesh in Linear motion with"):
        query(thing)
    if thing is not None:
        with pytest.raises(UnsupportedError, match=r"known: a Mesh at rest"):
            query(tetrahedron(), thing)


@pytest.mark.parametrize("query", QUERIES)
def test_a_motion_nobody_supports_is_named(query):
    with pytest.raises(UnsupportedError, match="Mesh in Spin motion"):
        query(tetrahedron().moving(Spin()))


def test_a_motion_with_another_number_of_vertices_is_refused():
    with pytest.raises(InputError, match="has 4 vertices but the motion ends with 5"):
        tetrahedron().moving(Linear(np.zeros((5, 3))))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101])
@pytest.mark.parametrize("query", QUERIES)
def test_an_end_that_is_not_finite_is_refused_by_vertex(query, bad):
    end = tetrahedron().vertices.copy()
    end[2, 1] = bad
    with pytest.raises(InputError, match=r"'tetrahedron': vertex 2 "):
        query(grid(2, 2), tetrahedron().moving(Linear(end)), device="cpu")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "fast"),
        ("start", "ignored"),
        ("separation", -1.0),
        ("separation", np.nan),
        ("separation", "1"),
        ("tolerance", -1e-9),
        ("tolerance", np.inf),
        ("options", "grid"),
        ("device", "tpu"),
        ("threads", 0),
        ("threads", 1.5),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(option, value):
    for query in (first_contact, all_contacts):
        with pytest.raises(InputError, match=option):
            query(tetrahedron(), grid(2, 2), **{option: value})


@pytest.mark.skipif(wp.is_cuda_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("query", QUERIES)
def test_a_device_that_is_not_there_is_refused(query):
    with pytest.raises(InputError, match=r"'cuda' is not one of: cpu"):
        query(tetrahedron(), device="cuda")


def test_one_triangle_and_collapsed_meshes_are_legal():
    triangle = Mesh([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0, 1, 2]])
    point = Mesh(np.full((3, 3), 0.25) * [1, 1, 4], [[0, 1, 2]])
    assert first_contact(triangle, device="cpu").status == Status.FREE
    hit = first_contact(triangle, point.moving(Linear(point.vertices - [0.0, 0.0, 2.0])), device="cpu")
    assert hit.time == pytest.approx(0.5, abs=1e-9)
    assert hit.time <= 0.5
    assert first_contact(point, point.replace(vertices=point.vertices), device="cpu").status == Status.START


def test_end_positions_may_be_float32_lists_or_warp_arrays():
    part, plate = tetrahedron(), grid(3, 3)
    plate = plate.replace(vertices=plate.vertices * 4.0 - [4.0, 4.0, 3.0])
    end = part.vertices - [0.0, 0.0, 4.0]
    kinds = [end, end.astype(np.float32), end.tolist(), wp.array(end, dtype=wp.vec3d, device="cpu")]
    times = {first_contact(part.moving(Linear(x)), plate, device="cpu").time for x in kinds}
    assert len(times) == 1


def test_results_say_what_they_are():
    part = tetrahedron()
    falling = part.moving(Linear(part.vertices - [0.0, 0.0, 4.0]))
    plate = Mesh([[-9.0, -9.0, -3.0], [9.0, -9.0, -3.0], [0.0, 18.0, -3.0]], [[0, 1, 2]])
    assert repr(first_contact(part, device="cpu")) == "FirstContact(free)"
    hit = first_contact(falling, plate, device="cpu")
    assert repr(hit).startswith("FirstContact(contact at t=")
    shown = float(repr(hit).split("t=")[1].split(",")[0])
    assert 0.5 - 1e-6 < shown <= hit.time <= 0.5  # never shown later than it is
    assert repr(all_contacts(falling, plate, device="cpu")).startswith("Contacts(")
    assert repr(all_contacts(part, device="cpu")) == "Contacts(none)"
