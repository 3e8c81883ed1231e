"""What is near a needle in tissue: contacts against brute force, shades, pictures, recordings and files."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from needle.anatomies import membranes, vessels
from oracles.segment_distances import segment_to_segments, segment_to_triangles
from tangere.cells.generate import hex_grid, tet_grid
from tangere.needle import Bevel, KinematicSimulation, Membrane, Needle, Recorder, Recording, Simulation, Tissue, Vessel
from tangere.needle.drawing import SHADES, cut_cells, frame_of
from tangere.runtime import InputError
from tangere.shape.generate import sheet
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body


def small_tissue() -> Body:
    block = solid_block((5, 5, 4), size=(0.1, 0.1, 0.08), mirrored=True)
    block = TetMesh(block.vertices - [0.0, 0.0, 0.04], block.tets)
    return Body(block, youngs_modulus=1e4, poisson=0.45, damping=20.0, fixed=block.vertices[:, 2] < -0.08 + 1e-9)


def in_tissue(**options) -> Simulation:
    start = {"entry": [0.0013, 0.0007, 0.0], "direction": [0, 0, -1], "dt": 0.01, "device": "cpu"}
    needle = Needle(length=0.12, radius=0.5e-3, youngs_modulus=75e9, tip=Bevel(0.5))
    return Simulation(small_tissue(), needle, Tissue(), **start, **options)


def brute_force(simulation: Simulation) -> dict:
    """(piece, body, feature) and the gap of whatever is within the distance."""
    anatomy, nodes, points, found = simulation.anatomy, simulation.nodes, simulation.anatomy_points, {}
    radius = simulation.needle.radius
    for piece, (a, b) in enumerate(pairwise(nodes)):
        lines = segment_to_segments(a, b, *points[anatomy.segments].transpose(1, 0, 2))
        faces = segment_to_triangles(a, b, *points[anatomy.triangles].transpose(1, 0, 2))
        gaps = np.concatenate([lines, faces]) - anatomy.radius - radius
        for k in np.flatnonzero(gaps <= simulation.distance):
            found[piece, 1 + int(anatomy.owner[k]), int(anatomy.own_number[k])] = float(gaps[k])
    return found


@pytest.mark.feature("F-P-69")
def test_contacts_in_tissue_that_deforms_are_those_of_brute_force(rng):
    lines = [
        Vessel((v.points - [0.05, 0.05, 0.078]) * [1, 1, 0.9], radius=v.radius) for v in vessels(rng, 40, size=0.1)
    ]
    sheets = [
        mesh.replace(vertices=(mesh.vertices - [0.05, 0.05, 0.085]) * [1, 1, 0.8]) for mesh in membranes(rng, 2, 0.1)
    ]
    simulation = in_tissue(vessels=lines, membranes=sheets, distance=0.008)
    compared = 0
    for k in range(120):
        simulation.step(0.03)
        if k % 20 == 19:
            contacts, expected = simulation.contacts, brute_force(simulation)
            assert (np.diff(contacts.gap) >= 0).all()
            keys = zip(contacts.feature_a, contacts.body_b, contacts.feature_b, contacts.gap, strict=True)
            found = {(int(a), int(b), int(c)): float(gap) for a, b, c, gap in keys}
            for key in expected.keys() ^ found.keys():
                assert abs((expected | found)[key] - simulation.distance) < 1e-12
            for key in expected.keys() & found.keys():
                assert found[key] == pytest.approx(expected[key], abs=1e-9)
            compared += len(found)
    assert compared > 50
    # Vessels are carried along: those in front of the tip are pushed ahead of it.
    moved = np.linalg.norm(simulation.anatomy_points - simulation.anatomy.points, axis=1)
    assert moved.max() > 2e-4


@pytest.mark.feature("F-P-70")
def test_a_rod_bent_to_a_ring_is_near_itself_and_a_straight_one_is_not():
    simulation = in_tissue(distance=0.01)
    assert not (simulation.contacts.body_b == 0).any()
    angle = np.linspace(0.0, 2.1 * np.pi, 41)
    ring = 0.12 / (2.1 * np.pi) * np.stack([np.cos(angle), np.sin(angle), 0.03 * angle], axis=1)
    simulation._rod.x.numpy()[:] = ring
    own = simulation.contacts[simulation.contacts.body_b == 0]
    assert len(own)
    rows = list(zip(own.feature_a, own.feature_b, own.gap, strict=True))
    gaps = [segment_to_segments(ring[j], ring[j + 1], ring[i : i + 1], ring[i + 1 : i + 2])[0] for j, i, _ in rows]
    np.testing.assert_allclose(np.array(gaps) - 1e-3, [gap for *_, gap in rows], atol=1e-12)


@pytest.mark.feature("F-P-69")
def test_needle_and_vessels_are_redder_the_nearer_they_are():
    far, near = (
        Vessel([[0.03, -0.03, -0.02], [0.03, 0.03, -0.02]]),
        Vessel([[0.0035, -0.03, -0.03], [0.0035, 0.03, -0.03]]),
    )
    simulation = in_tissue(vessels=[far, near], distance=0.01)
    shades = []
    for _ in range(150):
        simulation.step(0.03)
        shades.append(frame_of(simulation, 0.0).shades["segments"])
    shades = np.array(shades)
    assert (shades[:, 0] == 0).all()
    assert shades[0, 1] == 0
    assert shades[-1, 1] >= SHADES - 2
    assert (np.diff(shades[: np.argmax(shades[:, 1]), 1].astype(int)) >= 0).all()
    things = {thing.name: np.array(thing.colour) for thing in simulation.scene().things}
    names = [name for name in things if name.startswith("vessels, near")]
    assert len(names) == 1
    assert things[names[0]][0] - things[names[0]][2] > 0.5 > things["vessels"][0] - things["vessels"][2]
    assert any(name.startswith("needle, near") for name in things)


@pytest.mark.parametrize("grid", [lambda: hex_grid(3, 3, 3, device="cpu"), lambda: tet_grid(2, 2, 2, device="cpu")])
def test_a_plane_cuts_cells_into_polygons_that_cover_it(grid):
    map = grid()
    size = map.positions.max()
    normal = np.array([0.1, 0.2, 1.0]) / np.linalg.norm([0.1, 0.2, 1.0])
    triangles, levels = cut_cells(map, np.full(3, 0.47 * size), normal)
    areas = 0.5 * np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)
    # The cut goes out at the sides only, where its projection along z is a square; cells are drawn 0.94 as large.
    assert areas.sum() == pytest.approx(0.94**2 * size**2 / normal[2], rel=1e-6)
    assert (levels == 0).all()
    np.testing.assert_allclose((triangles - 0.47 * size) @ normal, 0.0, atol=1e-12)


@pytest.fixture(scope="module")
def runs() -> dict[str, Recording]:
    """A needle of each kind, recorded."""
    corners = sheet(8, size=(0.04, 0.04))
    membrane = Membrane(corners.replace(vertices=corners.vertices - [0.0, 0.0, 0.02]), puncture=0.6)
    simulation = in_tissue(vessels=[[[0.004, -0.03, -0.03], [0.004, 0.03, -0.03]]], membranes=[membrane], distance=0.01)
    recorder = Recorder(simulation)
    recorder()
    for speed in [0.03] * 120 + [-0.03] * 60:
        simulation.step(speed)
        if simulation.soft.steps % 10 == 0:
            recorder()
    needle = Needle(length=1.0, radius=1e-3, tip=Bevel(curvature=10.0))
    start = {"entry": [0.05, 0.1, 0.1], "direction": [1.0, 0.0, 0.0], "level": 2}
    moving = KinematicSimulation(hex_grid(4, 4, 4, size=0.05, device="cpu"), needle, **start)
    other = Recorder(moving)
    for k in range(8):
        other(0.1 * k)
        moving.step(0.01)
    return {"physical": recorder.recording(), "kinematic": other.recording()}


@pytest.mark.parametrize("kind", ["physical", "kinematic"])
def test_a_run_is_saved_loaded_and_shown_as_it_was(runs, kind, tmp_path):
    recording = runs[kind]
    recording.save(tmp_path / "run.npz")
    again = Recording.load(tmp_path / "run.npz")
    assert repr(again) == repr(recording)
    scene, other = recording.scene(), again.scene()
    assert [thing.name for thing in scene.things] == [thing.name for thing in other.things]
    for time in (0.0, 0.37, 1.0):
        for a, b in zip(scene.things, other.things, strict=True):
            np.testing.assert_allclose(a.vertices(time), b.vertices(time), atol=1e-6)
    np.testing.assert_array_equal(recording.numbers("depth"), again.numbers("depth"))
    names = [thing.name for thing in scene.things]
    assert ("tissue" in names) == (kind == "physical")
    assert ("cells of level 2" in names) == (kind == "kinematic")


@pytest.mark.parametrize("ending", ["glb", "pvd", "gif"])
def test_a_run_is_written_for_other_programs(runs, ending, tmp_path):
    if ending == "gif":
        pytest.importorskip("PIL")
    path = tmp_path / f"run.{ending}"
    runs["physical"].save(path, frames=3, **({"size": (80, 60)} if ending == "gif" else {}))
    assert path.stat().st_size > 200


def test_force_against_travel_is_drawn_in_and_out(runs, tmp_path):
    pytest.importorskip("matplotlib")
    runs["physical"].plot(tmp_path / "force.png")
    assert (tmp_path / "force.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="a kinematic needle feels no force"):
        runs["kinematic"].plot(tmp_path / "none.png")


def test_simulations_show_themselves(runs):
    pytest.importorskip("PIL")
    assert in_tissue()._repr_png_()[:4] == b"\x89PNG"
    assert runs["kinematic"]._repr_png_()[:4] == b"\x89PNG"


def test_what_cannot_be_recorded_or_read_is_told_in_one_sentence(runs, tmp_path):
    with pytest.raises(InputError, match="Recorder: nothing has been kept yet"):
        Recorder(in_tissue()).recording()
    recorder = Recorder(in_tissue())
    recorder(1.0)
    with pytest.raises(InputError, match=r"time goes back, from 1 to 0\.5 s"):
        recorder(0.5)
    with pytest.raises(InputError, match="numbers: 'heat' is none of force, travel, depth"):
        runs["physical"].numbers("heat")
    runs["physical"].save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays = dict(file)
    for key, value, told in (
        ("3/nodes", arrays["3/nodes"][:, :2], "the arrays of frame 3 do not fit each other"),
        ("2/points", arrays["2/points"] * np.nan, "something in frame 2 is nowhere"),
        ("segments", arrays["segments"] + 99, "the segments name points that are not in frame 0"),
        ("times", arrays["times"][::-1], "the frames have no times that rise"),
        ("radius", arrays["radius"][:0], "segments and their radii do not fit"),
    ):
        np.savez(tmp_path / "bad.npz", **{**arrays, key: value})
        with pytest.raises(InputError, match=told):
            Recording.load(tmp_path / "bad.npz")


def test_vessels_outside_the_body_are_refused():
    with pytest.raises(InputError, match="vessels and membranes must be inside the body"):
        in_tissue(vessels=[[[0.0, 0.0, 0.5], [0.0, 0.0, 0.6]]])
    with pytest.raises(InputError, match="Vessel 'vessel': point 1 is not finite"):
        in_tissue(vessels=[[[0.0, 0.0, 0.0], [0.0, 0.0, np.nan]]])
    assert isinstance(in_tissue().surface, Mesh)
