"""Solids of STEP files as meshes; the files are written here, line by line, as the standard has them."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.runtime import InputError, MissingExtraError
from tangere.shape.mesh import Mesh, files

#: A wedge, in millimetres.
CORNERS = [[0.0, 0.0, 0.0], [30.0, 0.0, 0.0], [0.0, 20.0, 0.0], [0.0, 0.0, 10.0]]
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
HEADER = (
    "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('','',(''),(''),'','','');\n"
    "FILE_SCHEMA(('AUTOMOTIVE_DESIGN'));\nENDSEC;\nDATA;\n"
)


def step_text(corners, faces, unit: str, *, coloured: bool = False) -> str:
    """A STEP file (AP214) with one solid of plane faces, if asked for each in a colour of its own."""
    lines: list[str] = []

    def add(entity: str) -> str:
        lines.append(f"#{len(lines) + 1}={entity};")
        return f"#{len(lines)}"

    def triple(kind: str, values) -> str:
        return add(f"{kind}('',({','.join(f'{x:.9E}' for x in values)}))")

    def placement(point, z, x) -> str:
        parts = triple("CARTESIAN_POINT", point), triple("DIRECTION", z), triple("DIRECTION", x)
        return add(f"AXIS2_PLACEMENT_3D('',{','.join(parts)})")

    context = add("APPLICATION_CONTEXT('automotive_design')")
    mechanical = add(f"PRODUCT_CONTEXT('',{context},'mechanical')")
    product = add(f"PRODUCT('part','part','',({mechanical}))")
    design = add(f"PRODUCT_DEFINITION_CONTEXT('part definition',{context},'design')")
    formation = add(f"PRODUCT_DEFINITION_FORMATION('','',{product})")
    definition = add(f"PRODUCT_DEFINITION('design','',{formation},{design})")
    shape = add(f"PRODUCT_DEFINITION_SHAPE('','',{definition})")
    length = add(f"(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT({unit},.METRE.))")
    angle = add("(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.))")
    solid = add("(NAMED_UNIT(*)SI_UNIT($,.STERADIAN.)SOLID_ANGLE_UNIT())")
    space = add(
        f"(GEOMETRIC_REPRESENTATION_CONTEXT(3)GLOBAL_UNIT_ASSIGNED_CONTEXT(({length},{angle},{solid}))"
        "REPRESENTATION_CONTEXT('',''))"
    )
    points = [triple("CARTESIAN_POINT", corner) for corner in corners]
    sides = []
    for face in faces:
        a, b, c = (np.array(corners[k]) for k in face[:3])
        across = np.cross(b - a, c - a)
        plane = add(f"PLANE('',{placement(a, across / np.linalg.norm(across), (b - a) / np.linalg.norm(b - a))})")
        loop = add(f"POLY_LOOP('',({','.join(points[k] for k in face)}))")
        bound = add(f"FACE_OUTER_BOUND('',{loop},.T.)")
        sides.append(add(f"FACE_SURFACE('',({bound}),{plane},.T.)"))
    shell = add(f"CLOSED_SHELL('',({','.join(sides)}))")
    brep = add(f"FACETED_BREP('part',{shell})")
    origin = placement([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    body = add(f"FACETED_BREP_SHAPE_REPRESENTATION('',({origin},{brep}),{space})")
    add(f"SHAPE_DEFINITION_REPRESENTATION({shape},{body})")
    styled = []
    for k, side in enumerate(sides if coloured else []):
        colour = add(f"COLOUR_RGB('',{0.2 * k:.1f},0.5,0.5)")
        fill = add(f"FILL_AREA_STYLE_COLOUR('',{colour})")
        filled = add(f"FILL_AREA_STYLE('',({fill}))")
        area = add(f"SURFACE_STYLE_FILL_AREA({filled})")
        style = add(f"SURFACE_SIDE_STYLE('',({area}))")
        usage = add(f"SURFACE_STYLE_USAGE(.BOTH.,{style})")
        given = add(f"PRESENTATION_STYLE_ASSIGNMENT(({usage}))")
        styled.append(add(f"STYLED_ITEM('',({given}),{side})"))
    if styled:
        add(f"MECHANICAL_DESIGN_GEOMETRIC_PRESENTATION_REPRESENTATION('',({','.join(styled)}),{space})")
    return HEADER + "\n".join(lines) + "\nENDSEC;\nEND-ISO-10303-21;\n"


@pytest.mark.parametrize(("suffix", "unit", "metre"), [("step", ".MILLI.", 1e-3), ("stp", "$", 1.0)])
def test_a_step_file_becomes_a_closed_mesh_in_metres(tmp_path, suffix, unit, metre):
    pytest.importorskip("cascadio", reason="reading STEP needs the extra [cad]")
    (tmp_path / f"wedge.{suffix}").write_text(step_text(CORNERS, FACES, unit))
    mesh = Mesh.load(tmp_path / f"wedge.{suffix}")
    assert mesh.topology.is_closed
    assert np.allclose(mesh.bounds, np.array([[0, 0, 0], [30, 20, 10]]) * metre, rtol=1e-6)
    assert mesh.mass_properties().volume == pytest.approx(1000.0 * metre**3, rel=1e-5)


def test_a_solid_whose_faces_have_colours_of_their_own_is_one_closed_mesh(tmp_path):
    pytest.importorskip("cascadio", reason="reading STEP needs the extra [cad]")
    (tmp_path / "wedge.step").write_text(step_text(CORNERS, FACES, ".MILLI.", coloured=True))
    mesh = Mesh.load(tmp_path / "wedge.step")
    assert mesh.topology.is_closed
    assert mesh.mass_properties().volume == pytest.approx(1e-6, rel=1e-5)


def test_a_step_file_that_is_none_is_refused(tmp_path):
    pytest.importorskip("cascadio", reason="reading STEP needs the extra [cad]")
    (tmp_path / "empty.step").write_text("this is no STEP file")
    reason = r"Mesh 'empty.step': cannot be read as a mesh \(there is no solid in it that cascadio can read\)"
    with pytest.raises(InputError, match=reason):
        Mesh.load(tmp_path / "empty.step")


def test_without_the_extra_a_step_file_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    (tmp_path / "wedge.step").write_text(step_text(CORNERS, FACES, "$"))
    with pytest.raises(MissingExtraError, match=r"'cascadio': pip install 'tangere\[cad\]'"):
        Mesh.load(tmp_path / "wedge.step")
