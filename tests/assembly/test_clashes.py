"""Clash tables against rational arithmetic on boxes, and against fits whose measures are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.boxes_in_assemblies import KINDS, drawn
from tangere.assembly import ClashKind, Part
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

CLEARANCE, SKIN = 1e-3, 5e-5


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: float = 0.0) -> np.ndarray:
    placed = np.eye(4)
    placed[:3, :3] = Rotation.from_rotvec([0.0, 0.0, turn]).as_matrix()
    placed[:3, 3] = x, y, z
    return placed


def box_between(low, high) -> tuple[Mesh, np.ndarray]:
    """A box in a frame of its own, and where it is."""
    low, high = np.array(low), np.array(high)
    return generate.box(high - low), at(*(0.5 * (low + high)))


def placed(mesh: Mesh, *poses: np.ndarray):
    return mesh.moving(tg.Rest(np.linalg.multi_dot([np.eye(4), *poses])))


def check_generated(kind: str, count: int, rng: np.random.Generator) -> None:
    """Draw pairs until the oracle has seen `count` of the kind; each is an assembly with its own turn."""
    seen = 0
    while seen < count:
        boxes = drawn(rng, kind, CLEARANCE, SKIN)
        turn = np.eye(4)
        turn[:3, :3], turn[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.uniform(-1.0, 1.0, 3)
        a, pose_a = box_between(boxes.low_a, boxes.high_a)
        b, pose_b = box_between(boxes.low_b, boxes.high_b)
        if kind == "duplicate":
            b = a
        assembly = tg.Assembly({"a": placed(a, turn, pose_a), "b": placed(b, turn, pose_b)})
        expected = boxes.kind(CLEARANCE, SKIN, assembly.touch)
        if expected is None or (expected != kind and seen + 1 > count):
            continue
        found = assembly.clashes(CLEARANCE, SKIN, depth=False, device="cpu")
        assert (str(found[0].kind) if len(found) else "free") == expected, boxes
        seen += expected == kind


@pytest.mark.parametrize("kind", KINDS)
def test_generated_boxes_clash_as_rational_arithmetic_says(kind, rng, effort):
    check_generated(kind, effort(40), rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_generated_boxes_of_each_kind_clash_as_rational_arithmetic_says(kind, rng):
    check_generated(kind, 500, rng)


def solid(manifold) -> Mesh:
    mesh = manifold.to_mesh64()
    return Mesh(np.array(mesh.vert_properties[:, :3], float), np.array(mesh.tri_verts, np.int32))


def bored_plate(radius: float, sides: int) -> Mesh:
    manifolds = pytest.importorskip("manifold3d", reason="needs the extra [solid]").Manifold
    hole = manifolds.cylinder(0.04, radius, radius, sides).translate([0.0, 0.0, -0.02])
    return solid(manifolds.cube([0.1, 0.1, 0.02], True) - hole)


@pytest.mark.parametrize(
    ("peg", "bore", "turn", "kind"),
    [
        ((32, 0.01), (32, 0.01), 0.0, "touching"),  # facet on facet
        ((24, 0.01), (48, 0.01), 0.0, "touching"),  # chords cross
        ((32, 0.01), (32, 0.01), 0.05, "touching"),
        ((32, 0.0098), (32, 0.01), 0.0, "near"),
        ((32, 0.0105), (32, 0.01), 0.0, "hard"),  # a press fit that is too tight by more than the facets' error
    ],
)
def test_fits_are_touching_near_or_hard_with_the_skin_of_their_facets(peg, bore, turn, kind):
    sides, radius = peg
    shaft = placed(generate.prism(sides, radius=radius, height=0.03), at(turn=turn))
    assembly = tg.Assembly({"plate": bored_plate(bore[1], bore[0]), "peg": shaft})
    assert assembly.skin() < 5e-4
    (clash,) = assembly.clashes(CLEARANCE, device="cpu")
    assert str(clash.kind) == kind
    if kind == "hard":
        assert clash.depth_lower <= 0.0005 <= clash.depth_upper * 1.02


def test_a_nested_part_a_copy_and_crossing_bars_are_told_with_depth_point_and_way_out():
    bars = generate.box([0.1, 0.01, 0.01]), generate.box([0.01, 0.1, 0.01])
    cube = generate.box([0.1, 0.1, 0.1])
    assembly = tg.Assembly(
        {
            "long": bars[0],
            "across": placed(bars[1], at(0.0, 0.0, 0.006)),
            "case": placed(cube, at(1.0)),
            "lost": placed(generate.box([0.02, 0.02, 0.02]), at(1.01)),
            "one": placed(cube, at(2.0)),
            "same": placed(cube, at(2.0)),
            "far": placed(cube, at(5.0)),
        }
    )
    found = assembly.clashes(device="cpu")
    assert [(str(row.kind), row.name_a, row.name_b) for row in found] == [
        ("duplicate", "one", "same"),
        ("inside", "case", "lost"),
        ("hard", "long", "across"),
    ]
    same, lost, bars = found
    assert np.linalg.norm(same.escape) == pytest.approx(0.1, rel=1e-3)
    assert lost.depth_lower <= 0.05 <= lost.depth_upper + 1e-9
    assert bars.depth_lower <= 0.004 <= bars.depth_upper
    assert bars.depth_lower >= 0.95 * bars.depth_upper
    assert np.allclose(np.abs(bars.normal), [0.0, 0.0, 1.0], atol=1e-6)
    assert np.linalg.norm(bars.escape) == pytest.approx(0.004, rel=1e-3)
    assert bars.escape[2] < 0.0  # the first goes down, away from the second
    assert np.abs(bars.point[:2]).max() <= 0.005 + 1e-9
    assert bool(found)
    assert found.counts == {"duplicate": 1, "inside": 1, "hard": 1, "touching": 0, "near": 0}
    assert found.of("hard", "inside") == (lost, bars)
    contacts = found.contacts()
    assert contacts.body_a.tolist() == [4, 2, 0]
    assert contacts.gap[2] == pytest.approx(-bars.depth_lower)
    assert json.loads(json.dumps(bars.as_data()))["kind"] == "hard"
    assert "hard" in repr(bars)
    assert "1 inside" in repr(found)


def test_flush_flats_touch_and_are_no_fault():
    cube = generate.box([0.1, 0.1, 0.1])
    found = tg.Assembly({"low": cube, "high": placed(cube, at(0.03, 0.02, 0.1))}).clashes(1e-3, device="cpu")
    assert [str(row.kind) for row in found] == ["touching"]
    assert not found
    assert np.allclose(found[0].normal, [0.0, 0.0, -1.0])
    assert found[0].point[2] == pytest.approx(0.05)


def test_near_parts_have_their_distance_and_the_clearance_decides():
    ball = generate.icosphere(subdivisions=3, radius=0.05)
    assembly = tg.Assembly({"left": ball, "right": placed(ball, at(0.1015))})
    true = tg.distance(ball, placed(ball, at(0.1015)), device="cpu")
    (near,) = assembly.clashes(2e-3, device="cpu")
    assert near.kind == ClashKind.NEAR
    assert near.distance_lower <= true.upper
    assert near.distance >= true.lower
    assert near.distance <= 1.002 * true.upper
    assert np.allclose(near.normal, true.normal, atol=1e-3)
    assert len(assembly.clashes(true.upper * (1.0 + 1e-9), device="cpu")) == 1
    assert len(assembly.clashes(true.lower * (1.0 - 1e-6), device="cpu")) == 0


def test_pairs_that_are_allowed_are_not_compared():
    cube = generate.box([0.1, 0.1, 0.1])
    assembly = tg.Assembly({"a": cube, "b": placed(cube, at(0.05)), "c": placed(cube, at(0.09))})
    assert len(assembly.clashes(depth=False, device="cpu")) == 3
    found = assembly.clashes(depth=False, allowed=[("b", "a"), (1, 2)], device="cpu")
    assert [(row.name_a, row.name_b) for row in found] == [("a", "c")]
    assert np.isnan(found[0].depth_lower)


def test_parts_without_an_inside_are_named_and_what_is_not_decided_is_noted():
    cube = generate.box([0.1, 0.1, 0.1])
    sheet = Mesh(cube.vertices, cube.faces[:2], name="sheet")
    assembly = tg.Assembly({"sheet": sheet, "other sheet": placed(sheet, at(0.02)), "cube": placed(cube, at(z=0.08))})
    found = assembly.clashes(device="cpu")
    assert found.open_parts == ("sheet", "other sheet")
    kinds = {(row.name_a, row.name_b): row for row in found}
    both = kinds["sheet", "other sheet"]
    assert both.kind == ClashKind.HARD
    assert "no inside" in both.note
    assert kinds["sheet", "cube"].kind == ClashKind.HARD  # the cube without its skin still meets it
    assert kinds["sheet", "cube"].note == ""
    assert np.isnan(kinds["sheet", "cube"].depth_upper)


def test_a_part_that_is_inside_out_holds_what_is_in_it_and_that_is_told():
    """As files of triangles often are: a bolt within a housing whose triangles all face inwards."""
    housing, bolt = generate.box([1.0, 1.0, 1.0]), generate.box([0.2, 0.2, 0.2])
    inverted = Mesh(housing.vertices, housing.faces[:, ::-1])
    right = tg.Assembly({"housing": housing, "bolt": bolt}).clashes(device="cpu")
    found = tg.Assembly({"housing": inverted, "bolt": bolt}).clashes(device="cpu")
    assert found.turned_parts == ("housing",)
    assert (found.open_parts, right.turned_parts) == ((), ())
    assert [row.kind for row in found] == [ClashKind.INSIDE]
    assert (found[0].depth_lower, found[0].depth_upper) == (right[0].depth_lower, right[0].depth_upper)
    beside = tg.Assembly({"housing": inverted, "bolt": placed(bolt, at(2.0))})
    assert len(beside.clashes(device="cpu")) == 0


def test_equal_meshes_are_one_shape_and_duplicates_in_one_place():
    cubes = {name: generate.box([0.1, 0.1, 0.1]) for name in "ab"}
    assembly = tg.Assembly(cubes)
    assert len(assembly.shapes) == 1
    (found,) = assembly.clashes(device="cpu")
    assert found.kind == ClashKind.DUPLICATE


def test_parts_thinner_than_the_skin_are_decided_by_their_depth():
    foil, cube = generate.box([0.1, 0.1, 2e-5]), generate.box([0.1, 0.1, 0.1])
    apart = {"foil": placed(foil, at(z=0.05 + 1e-5)), "cube": cube}
    (clash,) = tg.Assembly(apart).clashes(skin=1e-4, device="cpu")
    assert clash.kind == ClashKind.TOUCHING
    two = {"foil": foil, "other": placed(foil, at(0.01, z=1e-5))}
    (clash,) = tg.Assembly(two).clashes(skin=1e-4, device="cpu")
    assert clash.kind == ClashKind.TOUCHING


def test_a_table_has_the_same_bits_for_any_number_of_threads():
    ball = generate.icosphere(subdivisions=2, radius=0.06)
    parts = {f"ball {k}": placed(ball, at(0.1 * (k % 3), 0.1 * (k // 3))) for k in range(9)}
    tables = [tg.Assembly(parts).clashes(2e-3, device="cpu", threads=n) for n in (1, 3)]
    assert len(tables[0]) > 8
    for one, other in zip(*tables, strict=True):
        assert json.dumps(one.as_data()) == json.dumps(other.as_data())


def test_what_cannot_be_an_assembly_is_refused():
    cube = generate.box([0.1, 0.1, 0.1])
    with pytest.raises(InputError, match="no parts"):
        tg.Assembly({})
    with pytest.raises(InputError, match="two parts are called 'a'"):
        tg.Assembly([Part("a", "a", cube, np.eye(4)), Part("a", "b/a", cube, np.eye(4))])
    with pytest.raises(InputError, match="must be a Mesh at rest"):
        tg.Assembly({"a": cube.moving(tg.Twist(np.eye(4), [1, 0, 0], [0, 0, 0]))})
    assembly = tg.Assembly({"a": cube, "b": placed(cube, at(0.2))})
    with pytest.raises(InputError, match="clearance"):
        assembly.clashes(-1.0)
    with pytest.raises(InputError, match="skin must be at least"):
        assembly.clashes(skin=1e-12)
    with pytest.raises(InputError, match="of the name 'c'"):
        assembly.clashes(allowed=[("a", "c")])
    for pairs in ("ab", 3, None):
        with pytest.raises(InputError, match="allowed must be pairs of parts, not "):
            assembly.clashes(allowed=pairs)
    for pair in (("a",), ("a", "b", "a"), "ab", 0):
        with pytest.raises(InputError, match=r"allowed\[0\] must be two parts, by name or number, not "):
            assembly.clashes(allowed=[pair])
    with pytest.raises(InputError, match=r"allowed\[1\] names one part twice"):
        assembly.clashes(allowed=[("a", "b"), ("a", 0)])
    for parts in (None, 3, cube):
        with pytest.raises(InputError, match="parts must be meshes by name, or a Part each, not "):
            tg.Assembly(parts)
    for along in ("b", 3):
        with pytest.raises(InputError, match="along must be parts, by name or number, not "):
            assembly.removal("a", along=along)
    with pytest.raises(InputError, match="none of the number 7"):
        assembly.number_of(7)


def test_parts_a_million_metres_away_are_in_each_other_as_deep_as_here():
    """Poses are double precision: only those of files are not."""
    large, small = generate.box((2.0, 2.0, 2.0)), generate.box((1.0, 1.0, 1.0))
    parts = {"large": placed(large, at(1e6, 1e6, 0.0)), "small": placed(small, at(1e6, 1e6, 1.4))}
    (clash,) = tg.Assembly(parts).clashes(device="cpu")
    assert clash.kind is ClashKind.HARD
    assert clash.depth_lower <= 0.1 + 1e-6
    assert clash.depth_upper >= 0.1 - 1e-6
