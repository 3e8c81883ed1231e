"""Industrial parts: exact budgets, closed and outward surfaces, and assemblies whose paths are what they claim to be.

Paths are checked by the query for linearly moving vertices on short pieces of the screws between the poses, with a
separation that covers the difference between an arc and its chord.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tangere as tg
from bench.shapes.pipe import bent_pipe, nozzle, pipe_nozzle
from bench.shapes.traps import comb_plates, thin_plate, two_hoops
from tangere.motion import Linear
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.generate.build.blocks import add, block_solid, cut, cut_holes, rounded
from tangere.shape.generate.build.pieces import divided, rod
from tangere.shape.mesh import Mesh

#: generator, the counts the spec asks for, closed pieces
PARTS = {
    "door panel": (generate.door_panel, [3530, 16_000], 1),
    "door cavity": (generate.door_cavity, [12_000], 1),
    "lifter motor": (generate.lifter_motor, [8000], 4),
    "body frame": (generate.body_frame, [29_000], 26),
    "pylon frame": (generate.pylon_frame, [78_000], 61),
    "bent bracket": (generate.bent_bracket, [376, 2000], 1),
    "steering wheel": (generate.steering_wheel, [11_000], 5),
    "bent pipe": (bent_pipe, [4000, 5000], 1),
    "nozzle": (nozzle, [4000], 1),
    "thin plate": (thin_plate, [1008, 2000, 4000], 1),
}
CASES = [
    pytest.param(make, count, pieces, id=f"{name} {count}")
    for name, (make, counts, pieces) in PARTS.items()
    for count in counts
]
#: assembly, triangles of both parts together
ASSEMBLIES = {
    "window lifter": (generate.window_lifter, 20_000),
    "pylon bay": (generate.pylon_bay, 80_000),
    "door on body": (generate.door_on_body, 45_000),
    "pipe in nozzle": (pipe_nozzle, 8000),
    "round peg": (generate.peg_hole, 2048),
    "square peg": (lambda: generate.peg_hole(0.002, sides=4, triangles=512), 512),
    "many-sided peg": (lambda: generate.peg_hole(0.002, sides=64, triangles=20_480), 20_480),
    "combs": (comb_plates, 184),
    "hoops": (two_hoops, 2400),
}


@pytest.mark.parametrize(("make", "count", "pieces"), CASES)
def test_parts_have_their_budget_and_are_closed_and_face_outwards(make, count, pieces):
    mesh = make(count)
    report = mesh.report
    assert (report.triangles, report.components) == (count, pieces)
    assert (report.closed, report.oriented, report.manifold, report.notes) == (True, True, True, ())
    for piece in shells(mesh):
        assert signed_volume(piece) > 0.0


@pytest.mark.parametrize("name", [name for name in PARTS if name != "thin plate"])
def test_a_count_that_cannot_be_had_is_answered_with_the_nearest(name):
    make = PARTS[name][0]
    with pytest.raises(InputError, match=f"{name}: cannot have exactly 100001 triangles; nearest possible: 100000"):
        make(100_001)
    with pytest.raises(InputError, match="nearest possible") as least:
        make(2)
    fewest = int(str(least.value).split()[-1])
    assert f"{fewest:,}" in (make.__doc__ or "")
    assert make(fewest).report.triangles == fewest


@pytest.mark.parametrize("make", [generate.door_panel, generate.lifter_motor, generate.bent_bracket])
def test_the_same_arguments_give_the_same_bits(make):
    first, second = make(), make()
    assert np.array_equal(first.vertices, second.vertices)
    assert np.array_equal(first.faces, second.faces)


def test_the_bumpy_torus_is_the_one_of_the_rigid_benchmarks():
    mesh = generate.bumpy_torus()
    u, v = (x.ravel() for x in np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in (264, 132)), indexing="ij"))
    tube = 0.35 * (1.0 + 0.1 * np.sin(7 * u + 1) * np.cos(5 * v + 2))
    out = 1.0 + tube * np.cos(v)
    assert np.allclose(mesh.vertices, np.stack([out * np.cos(u), out * np.sin(u), tube * np.sin(v)], 1), atol=1e-15)
    assert len(mesh.faces) == 69_696
    assert mesh.report.notes == ()


def test_the_logo_stands_out_and_the_groove_goes_in_by_what_was_asked_for():
    wheel = generate.steering_wheel(logo=0.003, groove=0.001)
    x, y, z = wheel.vertices.T
    hub = np.hypot(x, y) < 0.06
    assert z[hub].max() == pytest.approx(0.013, abs=1e-12)
    assert z[hub & (np.hypot(x, y) < 0.05 * 0.065 + 1e-9)].max() == pytest.approx(0.013)  # the bar crosses the middle
    assert z[hub & (z > 0.0075)].min() == pytest.approx(0.01)  # the spokes end below
    rim = np.abs(np.hypot(x, y) - 0.18) < 1e-9
    assert z[rim & (z < -0.01)].max() == pytest.approx(-0.015, abs=1e-12)


@pytest.mark.parametrize("clearance", [0.0016, 0.004, 0.02])
def test_the_door_keeps_the_clearance_it_was_promised(clearance):
    assembly = generate.door_on_body(3530, 18_204, clearance=clearance)
    assert touches_at_rest(assembly.part, assembly.fixed, separation=clearance * 0.999) is False
    assert touches_at_rest(assembly.part, assembly.fixed, separation=clearance * 1.25 + 1e-3) is True


@pytest.mark.long_in_debug
@pytest.mark.parametrize("name", ASSEMBLIES)
def test_an_assembly_has_a_path_that_is_free_and_one_that_touches(name):
    make, triangles = ASSEMBLIES[name]
    assembly = make()
    assert len(assembly.part.faces) + len(assembly.fixed.faces) == triangles
    assert np.array_equal(assembly.free_path[0], assembly.touching_path[0])
    assert np.array_equal(assembly.start, assembly.free_path[0])
    for path in (assembly.free_path, assembly.touching_path):
        turns = path[:, :3, :3]
        assert np.allclose(turns @ turns.transpose(0, 2, 1), np.eye(3), atol=1e-14)
        assert np.allclose(np.linalg.det(turns), 1.0)
    assert not touches_at_rest(assembly.part.at(assembly.start), assembly.fixed)
    assert path_touches(assembly.part, assembly.fixed, assembly.touching_path)
    assert not path_touches(assembly.part, assembly.fixed, assembly.free_path)


@pytest.mark.long_in_debug
def test_the_bent_bracket_cannot_be_taken_out_without_turning_it(rng):
    assembly = generate.pylon_bay(41_920)
    part = assembly.part.at(assembly.start)
    directions = np.concatenate([rng.normal(size=(10, 3)), np.eye(3), -np.eye(3)])
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        way = part.moving(Linear(part.vertices + 0.8 * direction))
        assert tg.first_contact(way, assembly.fixed, start="trusted").time < 1.0


def test_blocks_leave_the_volume_they_should():
    centres = np.array([[0.3, 0.3], [0.7, 0.6]])
    boxes = [
        add((0, 0, 0), (1, 1, 0.2)),
        *cut_holes(2, centres, 0.1, 0.0, 0.2),
        cut((0.45, 0.4, 0.1), (0.5, 0.45, 0.2)),
    ]
    square = Mesh(*block_solid(boxes))
    assert square.mass_properties().volume == pytest.approx(0.2 - 2 * 0.04 * 0.2 - 0.05 * 0.05 * 0.1, rel=1e-12)
    vertices, faces = divided("block", (square.vertices, square.faces), 40_000)
    assert signed_volume((vertices, faces)) == pytest.approx(square.mass_properties().volume, rel=1e-12)
    rounded_off = signed_volume((rounded(vertices, 2, centres, 0.1), faces))
    assert rounded_off == pytest.approx(0.2 - 2 * np.pi * 0.01 * 0.2 - 0.05 * 0.05 * 0.1, rel=1e-3)


def test_dividing_halves_the_longest_edges_first():
    long_bar = rod(np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]), 0.5, 6)
    vertices, faces = divided("bar", long_bar, 600)
    ends = vertices[faces]
    sizes = np.linalg.norm(ends - np.roll(ends, 1, axis=1), axis=2)
    assert len(faces) == 600
    assert sizes.max() < 9.0 / 7.0  # three halvings, where the bar is about 3 m round
    assert signed_volume((vertices, faces)) == pytest.approx(signed_volume(long_bar), rel=1e-12)


def shells(mesh: Mesh) -> list[tuple[np.ndarray, np.ndarray]]:
    """The connected pieces, by spreading the least vertex number through the triangles."""
    label = np.arange(len(mesh.vertices))
    while True:
        least = label[mesh.faces].min(axis=1)
        spread = label.copy()
        for k in range(3):
            np.minimum.at(spread, mesh.faces[:, k], least)
        spread = spread[spread]
        if np.array_equal(spread, label):
            return [(mesh.vertices, mesh.faces[label[mesh.faces[:, 0]] == piece]) for piece in np.unique(label)]
        label = spread


def signed_volume(piece: tuple[np.ndarray, np.ndarray]) -> float:
    a, b, c = np.moveaxis(piece[0][piece[1]], 1, 0)
    return float(np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0)


def touches_at_rest(part: Mesh, fixed: Mesh, separation: float = 0.0) -> bool:
    return bool(tg.first_contact(part, fixed, separation=separation).time <= 1.0)


def path_touches(part: Mesh, fixed: Mesh, path: np.ndarray) -> bool:
    """Whether the part comes within the error of a chord of what stands round it."""
    reach = np.linalg.norm(part.vertices, axis=1).max()
    for here, there in pairwise(path):
        cosine = 0.5 * (np.trace(here[:3, :3].T @ there[:3, :3]) - 1.0)
        slack = 0.15 * reach * np.arccos(np.clip(cosine, -1.0, 1.0)) ** 2
        start = part.at(here)
        step = start.moving(Linear(part.at(there).vertices))
        if tg.first_contact(step, fixed, separation=slack, start="trusted").time <= 1.0:
            return True
    return False


def test_a_crowned_door_is_the_same_door_bent_in_a_second_direction():
    plain, crowned = tg.generate.door_panel(), tg.generate.door_panel(crown=0.05)
    assert np.array_equal(plain.faces, crowned.faces)
    offset = crowned.vertices - plain.vertices
    assert not offset[:, [0, 2]].any()
    along = plain.vertices[:, 0] / 1.1
    assert offset[:, 1] == pytest.approx(
        -0.2 * along * (1.0 - along), abs=1e-12
    )  # 5 cm in the middle, nothing at the ends
    with pytest.raises(InputError, match="crown"):
        tg.generate.door_panel(crown=-0.1)
