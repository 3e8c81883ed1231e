"""Parts that are mounted in contact come out the ways they can, and a lid on the way is found where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

UP, DOWN, ASIDE = [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: float = 0.0) -> np.ndarray:
    placed = np.eye(4)
    placed[:3, :3] = Rotation.from_rotvec([0.0, 0.0, turn]).as_matrix()
    placed[:3, 3] = x, y, z
    return placed


def solid(manifold) -> Mesh:
    mesh = manifold.to_mesh64()
    return Mesh(np.array(mesh.vert_properties[:, :3], float), np.array(mesh.tri_verts, np.int32))


def mounted(case: str) -> dict:
    """A part that touches where it is mounted: its base is 20 mm high, the part reaches `top`."""
    solids = pytest.importorskip("manifold3d", reason="needs the extra [solid]").Manifold

    def cylinder(radius: float, height: float, sides: int, z: float = 0.0):
        return solids.cylinder(height, radius, radius, sides).translate([0.0, 0.0, z])

    def block(*size: float, z: float):
        return solids.cube(list(size), True).translate([0.0, 0.0, z])

    def plate(sides: int):
        return block(0.1, 0.1, 0.02, z=0.01) - cylinder(0.01, 0.06, sides, -0.02)

    pairs = {
        "box on table": (block(0.04, 0.04, 0.02, z=0.03), block(0.2, 0.2, 0.02, z=0.01)),
        "peg, facet on facet": (cylinder(0.01, 0.04, 32), plate(32)),
        "peg, chords cross": (cylinder(0.01, 0.04, 24), plate(48)),
        "peg, turned": (cylinder(0.01, 0.04, 32).rotate([0.0, 0.0, 3.0]), plate(32)),
        "bolt": (cylinder(0.015, 0.02, 32, 0.02) + cylinder(0.0098, 0.031, 32, -0.01), plate(32)),
    }
    part, base = pairs[case]
    return {"part": solid(part), "base": solid(base)}


CASES = ["box on table", "peg, facet on facet", "peg, chords cross", "peg, turned", "bolt"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("lid", [False, True])
def test_mounted_parts_come_out_but_for_the_skin_and_meet_a_lid_where_it_is(case, lid):
    parts = mounted(case)
    if lid:  # 20 mm above the part
        parts["lid"] = generate.box([0.1, 0.1, 0.005]).at(at(z=0.0625))
    assembly = tg.Assembly(parts)
    found = assembly.removal("part", [UP, ASIDE, DOWN], device="cpu")
    up, aside, down = found
    lifted = parts["part"].moving(tg.Twist(at(), [0, 0, 0.1], [0, 0, 0]))
    assert tg.first_contact(lifted, parts["base"], device="cpu").status == tg.Status.START
    assert up.free != lid
    if lid:
        assert up.blocker == "lid"
        assert 0.02 - 1e-7 <= up.distance <= 0.02 + found.skin.deepest
        assert up.normal @ DOWN > 0.99
    assert aside.free == (case == "box on table")
    assert down.free == case.startswith("peg")
    if not down.free:
        assert down.blocker == "base"
        assert 0.0 <= down.distance <= 2.0 * found.skin.deepest
    assert "free but for" in repr(found)
    assert len(found.free) == sum(row.free for row in found)


def test_what_is_deeper_than_the_skin_or_inside_is_held_at_once():
    cube, case = generate.box([0.02, 0.02, 0.02]), generate.box([0.1, 0.1, 0.1])
    deep = tg.Assembly({"part": cube.at(at(0.055)), "case": case}).removal("part", [ASIDE], device="cpu")
    assert (deep[0].free, deep[0].distance, deep[0].blocker) == (False, 0.0, "case")
    inside = tg.Assembly({"part": cube, "case": case}).removal("part", 6, device="cpu")
    assert [(row.free, row.distance, row.blocker) for row in inside] == [(False, 0.0, "case")] * 6
    around = tg.Assembly({"part": case, "lost": cube}).removal("part", 6, device="cpu")
    assert not any(row.free for row in around)


def test_parts_on_the_way_are_listed_by_distance_and_parts_that_go_along_do_not_block():
    cube = generate.box([0.1, 0.1, 0.1])
    parts = {name: cube.moving(tg.Rest(at(x))) for name, x in (("a", 0.0), ("c", 0.5), ("b", 0.3), ("aside", -3.0))}
    assembly = tg.Assembly(parts)
    (row,) = assembly.removal("a", [ASIDE], device="cpu")
    assert row.blockers == ("b", "c")
    assert row.distance == pytest.approx(0.2, abs=1e-4)
    (row,) = assembly.removal("a", [ASIDE], along=["b"], device="cpu")
    assert row.blockers == ("c",)
    assert row.distance == pytest.approx(0.1, abs=1e-4)
    (row,) = assembly.removal("a", [ASIDE], along=["b", "c"], device="cpu")
    assert row.free
    assert len(assembly.removal("a", 26, device="cpu")) == 26


def test_a_group_goes_by_the_name_of_its_assembly():
    cube = generate.box([0.1, 0.1, 0.1])
    part = tg.assembly.Part
    assembly = tg.Assembly(
        [part("base", "m/base", cube, at()), part("p", "m/pair/p", cube, at(0.1)), part("q", "m/pair/q", cube, at(0.2))]
    )
    assert not assembly.removal("p", [ASIDE], device="cpu")[0].free
    found = assembly.removal("pair", [ASIDE, [-1.0, 0.0, 0.0]], device="cpu")
    assert found.part == "pair"
    assert [row.free for row in found] == [True, False]


def test_directions_that_are_none_and_open_parts_are_refused():
    cube = generate.box([0.1, 0.1, 0.1])
    assembly = tg.Assembly({"a": cube, "b": cube.at(at(0.3)), "open": Mesh(cube.vertices, cube.faces[1:]).at(at(0.6))})
    for wrong in (7, [[0.0, 0.0, 0.0]], [1.0, 0.0, 0.0]):
        with pytest.raises(InputError, match="directions"):
            assembly.removal("a", wrong)
    with pytest.raises(InputError, match="no inside"):
        assembly.removal("open")
    assert not assembly.removal("a", [ASIDE], device="cpu")[0].free
