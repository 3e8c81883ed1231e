"""Detection while a body is cut: the contacts of a layout anew, for the work per triangle that it took before."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from oracles.helpers.cut_layout import check_contact_features
from oracles.helpers.cut_strokes import block as lattice_block
from tangere.shape import generate
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation, step
from tangere.soft.contact import nearest_faces
from tangere.soft.contact.detection import Detection
from tangere.soft.contact.normal_cones import NormalCones
from tangere.soft.cutting import cuts
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches


def plate_on_a_bed(cells: tuple[int, int, int]) -> Simulation:
    """A plate of irregular elements, one unit wide, that touches a bed with all of its lower side."""
    rng, solid = np.random.default_rng(0), solid_block(cells, size=tuple(map(float, cells)))
    places = solid.vertices.copy()
    inner = np.abs(places) < np.array(cells) / 2 - 0.1
    places[inner] += rng.uniform(-0.12, 0.12, inner.sum())
    held = np.abs(places[:, 0]) > cells[0] / 2 - 0.01
    plate = Body(TetMesh(places, solid.tets), cuttable=True, density=1.0, youngs_modulus=1e4, fixed=held)
    sheet = generate.sheet(2 * cells[0] * cells[1], size=(float(cells[0]), float(cells[1])))
    bed = sheet.replace(vertices=sheet.vertices + [0.07, 0.05, -0.5 * cells[2] - 0.4])
    bodies = [plate, Body(bed, fixed=True, name="bed")]
    return Simulation(bodies, gravity=(0.0, 0.0, 0.0), device="cpu", threads=1, sweeps=2)


def upright(y: float, cells: tuple[int, int, int]) -> np.ndarray:
    """A blade that stands upright on a curved way across the plate."""
    z = np.linspace(-0.7 * cells[2], 0.5 * cells[2] + 0.5, 7)
    return np.stack([0.37 + 3.0 * np.sin(6.0 * y / cells[1]) + 0 * z, y + 0 * z, z], axis=1)


def work_per_triangle(simulation: Simulation) -> float:
    """Clusters that vertices are held against, and faces that they meet there, of one detection."""
    detection = simulation._pipeline.detection
    detection.find_nearest()
    assert detection.work is not None
    return detection.work.numpy().sum() / sum(len(mesh.faces) for mesh in simulation.meshes())


@pytest.mark.long_in_debug
def test_where_bodies_touch_detection_takes_no_more_work_per_triangle_while_one_is_cut(monkeypatch) -> None:
    cells = (72, 36, 4)  # cut as far as walls are the part of the surface that they are half-way through 160 x 80
    simulation = plate_on_a_bed(cells)
    simulation.step()
    before, contacts = work_per_triangle(simulation), simulation._pipeline.detection.contact_points.count
    assert contacts > cells[0] * cells[1]
    during = []
    for start, end in itertools.pairwise(np.arange(-0.53 * cells[1], -0.28 * cells[1], 1.5)):
        simulation.cut(0, upright(start, cells), upright(end, cells))
        during.append(work_per_triangle(simulation))
        simulation.step()
    assert simulation._pipeline.detection.contact_points.count > contacts + 150  # walls touch each other
    assert max(during) < 1.05 * before
    monkeypatch.setattr(nearest_faces, "NEAR_WALL", 0.0)  # else walls look at all that is in reach
    assert work_per_triangle(simulation) > 1.05 * before


def opened_block(apart: float) -> Simulation:
    """A block that is cut half through; its walls are pulled apart by so much, more at one end."""
    vertices, tets = lattice_block()
    simulation = Simulation([Body(TetMesh(vertices, tets), cuttable=True)], gravity=(0, 0, 0), device="cpu", threads=1)
    extent = np.ptp(vertices, axis=0)
    z = np.linspace(-0.8, 0.8, 6) * extent[2]
    for start, end in itertools.pairwise(np.linspace(-0.7, 0.1, 7) * extent[1]):
        simulation.cut(0, *(np.stack([0.013 + 0.05 * y + 0.02 * z, y + 0 * z, z], axis=1) for y in (start, end)))
    places = simulation.positions
    beyond = places[:, 0] > 0.013 + 0.05 * places[:, 1] + 0.02 * places[:, 2]
    places[beyond, 0] += apart * simulation.distance * np.clip(-places[beyond, 1] / extent[1], 0.0, 1.0)
    simulation._pipeline.assembly.dofs.x.assign(_in_rows(simulation, places))
    return simulation


def _in_rows(simulation: Simulation, places: np.ndarray) -> np.ndarray:
    """Places of all dofs in arrays that have room for more."""
    assembly = simulation._pipeline.assembly
    x = assembly.dofs.x.numpy().copy()
    x[assembly.dof_rows] = places
    return x


@pytest.mark.parametrize("alone", [False, True], ids=["by patches", "each vertex alone"])
@pytest.mark.parametrize("apart", [0.0, 0.5, 2.0, 5.0])
def test_walls_that_look_nearby_first_find_what_they_find_by_looking_everywhere(apart, alone, monkeypatch) -> None:
    """A thread for each vertex is how a GPU searches."""
    monkeypatch.setattr(step, "Patches", partial(Patches, per_feature=alone))
    monkeypatch.setattr(cuts, "InPlaceUpdate", partial(InPlaceUpdate, apart=alone))
    pipeline = opened_block(apart)._pipeline
    pipeline.reset()
    detection = pipeline.detection
    detection.find_nearest()
    found = detection.partners.nearest.numpy().copy()
    monkeypatch.setattr(nearest_faces, "NEAR_WALL", 0.0)
    detection.find_nearest()
    assert (found >= 0).sum() > 20
    assert np.array_equal(found, detection.partners.nearest.numpy())


@pytest.mark.parametrize("apart", [0.0, 2.0])
def test_walls_find_what_a_thread_for_each_vertex_finds_in_a_layout_anew(apart) -> None:
    """The search of GPUs, in a layout that knows nothing of a tree that was updated."""
    pipeline = opened_block(apart)._pipeline
    pipeline.reset()
    assembly, detection = pipeline.assembly, pipeline.detection
    anew = AssembledBodies.of(assembly.bodies, assembly.device)
    rows = assembly.vertex_rows(0)
    anew.surface.traits.assign(assembly.surface.traits.numpy()[rows])
    there = type(detection.positions)(detection.positions.numpy()[rows], dtype=detection.positions.dtype, device="cpu")
    other = Detection(anew, Patches(anew, per_feature=True), there, pipeline.options.distance)
    other.find_nearest()
    detection.find_nearest()
    corners = assembly.surface.faces.numpy(), anew.surface.faces.numpy()
    number = np.full(len(assembly.surface.rest), -1)
    number[rows] = np.arange(len(rows))
    ours = detection.partners.nearest.numpy()[: 2 * len(number)].reshape(-1, 2)[rows]
    theirs = other.partners.nearest.numpy()[: 2 * len(rows)].reshape(-1, 2)
    assert np.array_equal(ours >= 0, theirs >= 0)
    assert (ours >= 0).sum() > 20
    same = np.sort(number[corners[0][ours]], axis=2) == np.sort(corners[1][theirs], axis=2)
    equally_near = (ours >= 0) & ~same.all(axis=2)
    assert equally_near.mean() < 0.02


def cut_plate() -> Simulation:
    """A plate on a bed, cut a little; the first rims of the cut touch the bed."""
    cells = (20, 10, 4)
    simulation = plate_on_a_bed(cells)
    simulation.run(steps=2)
    for start, end in itertools.pairwise(np.arange(-5.3, 2.0, 1.0)):
        simulation.cut(0, upright(start, cells), upright(end, cells))
        simulation.step()
    return simulation


@pytest.mark.parametrize("scene", [cut_plate, lambda: opened_block(0.5)], ids=["plate", "block"])
@pytest.mark.parametrize("alone", [False, True], ids=["by patches", "each vertex alone"])
def test_cones_of_clusters_leave_out_nothing_that_touches(scene, alone, monkeypatch) -> None:
    """At rims of a cut normals of vertices are between those of faces, and of none of those that a cluster has."""
    monkeypatch.setattr(step, "Patches", partial(Patches, per_feature=alone))
    monkeypatch.setattr(cuts, "InPlaceUpdate", partial(InPlaceUpdate, apart=alone))
    pipeline = scene()._pipeline
    pipeline.reset()
    detection = pipeline.detection
    detection.find_nearest()
    found = detection.partners.nearest.numpy().copy()
    plain = NormalCones.__call__

    def tell_nothing(cones: NormalCones) -> None:
        plain(cones)
        for array in (cones.clusters, cones.vertices, cones.patches):
            array.numpy()[:, 3] = -1.0

    monkeypatch.setattr(NormalCones, "__call__", tell_nothing)
    detection.find_nearest()
    assert (found >= 0).sum() > 20
    assert np.array_equal(found, detection.partners.nearest.numpy())


def test_contacts_name_the_features_that_touch_after_cuts_in_place(road) -> None:
    """Rows of what is new are in the order in which they were made, not in that of the body."""
    solid, small = solid_block((10, 5, 5), size=(0.2, 0.1, 0.1)), solid_block((2, 2, 2), size=(0.04, 0.04, 0.04))
    body = Body(solid, cuttable=True, fixed=solid.vertices[:, 2] < -0.0499)
    lump = Body(TetMesh(small.vertices + [0.05, 0.0, 0.0705], small.tets), name="lump")
    simulation = Simulation([body, lump], device="cpu", threads=1, dt=0.01)
    simulation.run(steps=12)
    named, layout = 0, simulation._pipeline.assembly
    for y in np.arange(9):
        lines = (np.array([[0.003, 0.01 * k - 0.07, z] for z in (-0.08, 0.08)]) for k in (y, y + 1))
        simulation.cut(0, *lines)
        simulation.step()
        named += check_contact_features(simulation)
    assert named > 100
    assert set(simulation.contacts.body_a.tolist()) | set(simulation.contacts.body_b.tolist()) == {0, 1}
    assert simulation._pipeline.assembly is layout
