"""Generators: exact budgets, closed and outward surfaces, analytic volumes, and help when a count cannot be had."""

from __future__ import annotations

import numpy as np
import pytest

from bench.shapes.pot import pot as loose_pot
from tangere.runtime import CapacityError, InputError
from tangere.shape import generate
from tangere.shape.generate.build.budget import factor_pair

#: name -> (generator, a few counts it can give)
BUDGETS = {
    "torus": (generate.torus, [18, 1600, 6400, 25600, 69696]),
    "trefoil knot": (generate.trefoil_knot, [3960, 15840]),
    "icosphere": (lambda n: generate.icosphere(triangles=n), [20, 80, 180, 980, 1280]),
    "bumpy sphere": (generate.bumpy_sphere, [3380, 5120]),
    "plate": (generate.plate, [12, 20, 32, 316, 396]),
    "prism": (lambda n: generate.prism(triangles=n), [8, 12, 20, 396]),
    "comb": (lambda n: generate.comb(triangles=n), [12, 28, 188]),
    "peg": (generate.peg, [12, 512, 5000]),
    "chamfered peg": (lambda n: generate.peg(n, chamfer=0.1), [18, 512, 5000]),
    "square peg": (lambda n: generate.peg(n, sides=4), [16, 24, 800]),
    "plate with hole": (generate.plate_with_hole, [32, 512, 4096, 16 * 97 * 2]),
    "plate with square hole": (lambda n: generate.plate_with_hole(n, sides=4), [32, 48, 160]),
    "long plate with hole": (lambda n: generate.plate_with_hole(n, size=(10, 2, 0.3), radius=0.95), [512]),
    "gear": (generate.gear, [384, 576, 16 * 12 * 20]),
    "gear of three teeth": (lambda n: generate.gear(n, teeth=3), [96, 960]),
    "solid pot": (lambda n: loose_pot(n, thickness=0.1, shared=True), [24, 2000, 4096]),
}
CLOSED = [(name, make, count) for name, (make, counts) in BUDGETS.items() for count in counts]


@pytest.mark.parametrize(("make", "count"), [c[1:] for c in CLOSED], ids=[f"{c[0]} {c[2]}" for c in CLOSED])
def test_closed_shapes_have_their_budget_and_face_outwards(make, count):
    mesh = make(count)
    report = mesh.report
    assert report.triangles == count
    assert (report.closed, report.oriented, report.manifold, report.components) == (True, True, True, 1)
    assert report.notes == ()
    assert mesh.mass_properties().volume > 0.0


@pytest.mark.parametrize(("make", "count"), [c[1:] for c in CLOSED if c[2] < 1000 and "sphere" not in c[0]])
def test_a_point_just_outside_a_face_is_outside(make, count):
    """The winding number, summed as solid angles, tells inside (1) from outside (0) without any topology."""
    mesh = make(count)
    centroids = mesh.vertices[mesh.faces].mean(axis=1)
    step = 1e-4 * mesh.extent * mesh.face_normals

    def dot(p, q):
        return (p * q).sum(-1)

    for points, expected in ((centroids + step, 0.0), (centroids - step, 1.0)):
        a, b, c = np.moveaxis(mesh.vertices[mesh.faces][None] - points[:40, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
        angle = 2.0 * np.arctan2(
            dot(a, np.cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
        )
        assert np.allclose(angle.sum(axis=1) / (4.0 * np.pi), expected, atol=1e-6)


def ngon_area(sides, radius):
    return 0.5 * sides * radius**2 * np.sin(2.0 * np.pi / sides)


def test_flat_sided_shapes_have_their_exact_volume():
    def close(mesh):
        return pytest.approx(mesh.mass_properties().volume, rel=1e-12)

    assert close(generate.box((2, 3, 4))) == 24.0
    assert close(generate.plate(316, size=(2, 3, 0.01))) == 0.06
    assert close(generate.prism(7, radius=2.0, height=3.0)) == 3.0 * ngon_area(7, 2.0)
    assert close(generate.comb(5, pitch=0.3, gap=0.4, length_of_teeth=0.7, back=0.25, thickness=0.1)) == (
        0.1 * ((4 * 0.3 + 0.18) * 0.25 + 5 * 0.18 * 0.7)
    )
    assert close(generate.peg(2 * 10 * 6, sides=10, radius=0.5, height=2.0)) == 2.0 * ngon_area(10, 0.5)
    frustum = 0.1 / 3.0 * (ngon_area(8, 0.5) + ngon_area(8, 0.4) + ngon_area(8, np.sqrt(0.5 * 0.4)))
    assert close(generate.peg(2 * 8 * 6, sides=8, radius=0.5, height=2.0, chamfer=0.1)) == (
        1.9 * ngon_area(8, 0.5) + frustum
    )
    assert close(generate.plate_with_hole(4 * 12 * 5, sides=12, size=(3, 2, 0.4), radius=0.7)) == (
        0.4 * (6.0 - ngon_area(12, 0.7))
    )


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_gear_has_the_area_between_its_outline_and_its_bore(pieces):
    teeth, tip, root, bore = 9, 2.0, 1.6, 0.5
    mesh = generate.gear(
        16 * teeth * pieces * 2, teeth=teeth, radius=tip, tooth_depth=tip - root, bore=bore, thickness=0.7
    )
    pitch = 2.0 * np.pi / teeth
    outline = (
        0.5
        * teeth
        * (tip**2 * np.sin(0.3 * pitch) + 2.0 * tip * root * np.sin(0.15 * pitch) + root**2 * np.sin(0.4 * pitch))
    )
    volume = mesh.mass_properties().volume
    if pieces == 1:
        hole = 0.5 * teeth * bore**2 * (np.sin(0.3 * pitch) + 2.0 * np.sin(0.15 * pitch) + np.sin(0.4 * pitch))
        assert volume == pytest.approx(0.7 * (outline - hole), rel=1e-12)
    assert 0.7 * (outline - np.pi * bore**2) < volume < 0.7 * (outline - 0.95 * np.pi * bore**2)


@pytest.mark.parametrize(
    ("make", "volume"),
    [
        (lambda n: generate.torus(grid=(2 * n, n), radius=3.0, tube=1.0), 2.0 * np.pi**2 * 3.0),
        (lambda n: generate.icosphere(triangles=20 * n * n), 4.0 / 3.0 * np.pi),
        # Pappus: a tube that does not cross itself has the volume of its section times the length of its curve.
        (lambda n: generate.trefoil_knot(grid=(16 * n, n)), np.pi * 1.4**2 * 3.0 * 28.826290),
    ],
    ids=["torus", "icosphere", "trefoil knot"],
)
def test_round_shapes_tend_to_their_volume(make, volume):
    coarse, fine = (1.0 - make(n).mass_properties().volume / volume for n in (10, 40))
    assert 0.0 < fine < 0.01
    assert fine < coarse / 12.0  # second order: a sixteenth


def test_the_bumpy_torus_follows_its_formula():
    mesh = generate.torus(bumps=0.1, grid=(264, 132))
    assert len(mesh.faces) == 69_696
    for i, j in ((0, 0), (5, 7), (263, 131)):
        u, v = 2.0 * np.pi * i / 264, 2.0 * np.pi * j / 132
        tube = 0.35 * (1 + 0.1 * np.sin(7 * u + 1) * np.cos(5 * v + 2))
        expected = [(1 + tube * np.cos(v)) * np.cos(u), (1 + tube * np.cos(v)) * np.sin(u), tube * np.sin(v)]
        assert np.allclose(mesh.vertices[i * 132 + j], expected, atol=1e-15)


def test_the_tube_of_the_knot_is_round_everywhere_and_not_twisted():
    mesh = generate.trefoil_knot(grid=(198, 10))
    rings = mesh.vertices.reshape(198, 10, 3)
    centres = rings.mean(axis=1)
    assert np.allclose(np.linalg.norm(rings - centres[:, None], axis=2), 1.4, atol=1e-12)
    # A point and its successor on the next ring are no farther apart than the curve's step plus what the bend adds.
    step = np.linalg.norm(np.roll(centres, -1, axis=0) - centres, axis=1)
    along = np.linalg.norm(np.roll(rings, -1, axis=0) - rings, axis=2)
    assert (along.max(axis=1) < 1.6 * step + 0.15).all()


def test_vertices_of_a_sphere_lie_on_it_and_triangles_are_alike():
    mesh = generate.icosphere(triangles=20 * 15**2, radius=2.5)
    assert np.allclose(np.linalg.norm(mesh.vertices, axis=1), 2.5, rtol=1e-15)
    assert mesh.face_areas.max() < 2.5 * mesh.face_areas.min()


def test_a_seed_decides_the_bumps():
    one, again, other = (generate.bumpy_sphere(3380, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.vertices, again.vertices)
    assert not np.array_equal(one.vertices, other.vertices)
    radii = np.linalg.norm(generate.bumpy_sphere(3380, seed=3, bumps=0.2, lobes=0.0).vertices, axis=1)
    assert np.abs(radii - 1.0).max() == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize("count", [2000, 2001, 3000, 3001, 3999])
def test_the_pot_is_open_and_no_two_triangles_share_an_edge(count):
    mesh = loose_pot(count)
    assert len(mesh.faces) == count
    assert len(mesh.vertices) == len(mesh.edges) == 3 * count
    assert (mesh.topology.edge_face_count == 1).all()
    assert (mesh.face_areas > 0.0).all()


def test_a_pot_with_shared_vertices_is_three_open_sheets():
    report = loose_pot(3000, shared=True).report
    assert (report.closed, report.oriented, report.manifold, report.components) == (False, True, True, 3)


def test_a_sheet_is_flat_open_and_faces_up():
    mesh = generate.sheet(2 * 6 * 4, size=(3.0, 2.0))
    assert mesh.face_areas.sum() == pytest.approx(6.0)
    assert (mesh.face_normals == [0.0, 0.0, 1.0]).all()
    assert mesh.topology.open_edge_count == 2 * (6 + 4)


def test_a_square_peg_fits_its_square_hole_with_the_clearance_told():
    peg = generate.peg(16, sides=4, radius=0.5)
    plate = generate.plate_with_hole(32, sides=4, radius=0.51)
    hole = plate.vertices[np.abs(plate.vertices[:, 0]) < 0.9]
    clearance = np.abs(hole[:, 0]).min() - np.abs(peg.bounds[:, 0]).max()
    assert clearance == pytest.approx(0.01 * np.cos(np.pi / 4), rel=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: generate.torus(7), "torus: cannot have exactly 7 triangles; nearest possible: 18"),
        (lambda: generate.torus(38), "torus: cannot have exactly 38 triangles; nearest possible: 36 and 40"),
        (lambda: generate.trefoil_knot(3961), "trefoil knot: .* nearest possible: 3960 and 3962"),
        (lambda: generate.icosphere(triangles=1000), "icosphere: .* nearest possible: 980 and 1280"),
        (lambda: generate.bumpy_sphere(5000), "bumpy sphere: .* nearest possible: 4500 and 5120"),
        (lambda: generate.plate(14), "plate: .* nearest possible: 12 and 20"),
        (lambda: generate.sheet(3), "sheet: .* nearest possible: 2 and 4"),
        (lambda: generate.prism(triangles=9), "prism: .* nearest possible: 8 and 12"),
        (lambda: generate.comb(triangles=30), "comb: .* nearest possible: 28 and 44"),
        (lambda: generate.peg(13), "peg: .* nearest possible: 12 and 16"),
        (lambda: generate.peg(20, sides=4), "peg: .* nearest possible: 16 and 24"),
        (lambda: generate.plate_with_hole(40), "plate with hole: .* nearest possible: 32 and 48"),
        (lambda: generate.gear(400), "gear: .* nearest possible: 384 and 576"),
        (lambda: loose_pot(3, thickness=0.1), "pot: .* nearest possible: 24"),
        (lambda: loose_pot(1), "pot: cannot have exactly 1 triangles; nearest possible: [0-9]+$"),
    ],
)
def test_an_impossible_budget_is_answered_with_the_nearest(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: generate.torus(100.5), "torus: triangles must be a whole number of at least 1, not 100.5"),
        (lambda: generate.torus(512, grid=(16, 16)), "torus: give triangles or grid, not both"),
        (lambda: generate.torus(grid=(2, 16)), r"torus: grid\[0\] must be a whole number of at least 3, not 2"),
        (lambda: generate.torus(radius=1.0, tube=1.0), "torus: tube must be between 0 and 1, not 1.0"),
        (lambda: generate.torus(bumps=1.0), "torus: bumps must be at least 0 and below 1, not 1.0"),
        (lambda: generate.trefoil_knot(tube=1.9), "trefoil knot: tube must be between 0 and 1.82, not 1.9"),
        (lambda: generate.icosphere(2, triangles=80), "icosphere: give subdivisions or triangles, not both"),
        (lambda: generate.icosphere(radius=-1.0), "icosphere: radius must be positive and finite, not -1.0"),
        (lambda: generate.icosphere(radius="1"), "icosphere: radius must be a number, not '1'"),
        (lambda: generate.bumpy_sphere(bumps=None), "bumpy sphere: bumps must be a number, not None"),
        (lambda: generate.bumpy_sphere(seed=-1), "bumpy sphere: seed must be a whole number of at least 0, not -1"),
        (lambda: generate.robot_with_trailer(seed=-1), "robot_with_trailer: seed must be a whole number"),
        (lambda: generate.box((1, 0, 1)), r"box: size\[1\] must be positive and finite, not 0"),
        (lambda: generate.box(1), "box: size must be 3 lengths, not 1"),
        (lambda: generate.box(np.array(1.0)), "box: size must be 3 lengths"),
        (lambda: generate.box((1, 2)), r"box: size must be 3 lengths, not \(1, 2\)"),
        (lambda: generate.plate(size=(1, 2)), r"plate: size must be 3 lengths, not \(1, 2\)"),
        (lambda: generate.sheet(size=(1, 2, 3)), r"sheet: size must be 2 lengths, not \(1, 2, 3\)"),
        (lambda: generate.plate_with_hole(size=2), "plate with hole: size must be 3 lengths, not 2"),
        (lambda: generate.prism(2), "prism: sides must be a whole number of at least 3, not 2"),
        (lambda: generate.prism(3, triangles=8), "prism: give sides or triangles, not both"),
        (lambda: generate.comb(0), "comb: teeth must be a whole number of at least 1, not 0"),
        (lambda: generate.comb(3, triangles=8), "comb: give teeth or triangles, not both"),
        (lambda: generate.peg(chamfer=0.45), "peg: chamfer must be at least 0 and below 0.45, not 0.45"),
        (lambda: generate.plate_with_hole(radius=1.0), "plate with hole: radius must be between 0 and 1, not 1.0"),
        (lambda: generate.plate_with_hole(sides=6), "plate with hole: sides must be a multiple of 4, not 6"),
        (lambda: generate.gear(bore=0.79), "gear: bore must be between 0 and"),
        (lambda: loose_pot(thickness=-0.1), "pot: thickness must be at least 0 and below 1, not -0.1"),
    ],
)
def test_impossible_sizes_are_refused_in_words(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: generate.icosphere(30), f"icosphere: takes at least {20 * 4**30} triangles; a mesh has room for"),
        (lambda: generate.icosphere(10**9), "icosphere: takes at least"),
        (lambda: generate.icosphere(triangles=10**30), f"icosphere: takes at least {10**30} triangles"),
        (lambda: generate.torus(10**15), f"torus: takes at least {10**15} triangles"),
    ],
)
def test_shapes_that_no_mesh_has_room_for_are_refused_at_once(make, message):
    with pytest.raises(CapacityError, match=message):
        make()


def test_factor_pairs_come_nearest_to_the_aspect_asked_for():
    assert factor_pair(1980, 28.8263 * 3.0 / (2.0 * np.pi * 1.4), least=(3, 3)) == (132, 15)
    assert factor_pair(3200, 2.0, least=(3, 3)) == (80, 40)
    assert factor_pair(34848, 2.0) == (264, 132)
    assert factor_pair(7, 1.0, least=(2, 2)) is None
    assert factor_pair(0, 1.0) is None
