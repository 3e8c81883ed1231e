"""`tangere convert`: mesh files of several types become prepared parts with a tree and cones."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.bvh.obb import ObbTree
from tangere.bvh.prepared import PreparedPart
from tangere.bvh.recession import RecessionCones
from tangere.cli import main
from tangere.shape import generate
from tangere.shape.mesh import Mesh


@pytest.mark.feature("F-R-78")
@pytest.mark.parametrize("kind", ["obj", "stl", "ply"])
def test_mesh_files_become_parts_with_the_tree_and_cones_of_the_mesh(kind, tmp_path):
    source = tmp_path / f"ring.{kind}"
    generate.torus(grid=(24, 12)).save(source)
    result = CliRunner().invoke(main, ["convert", str(source), "--out", str(tmp_path / "parts"), "--density", "1000"])
    assert result.exit_code == 0, result.output
    part, mesh = PreparedPart.load(tmp_path / "parts" / "ring.npz"), Mesh.load(source)
    assert np.array_equal(part.mesh.vertices, mesh.vertices)
    assert np.array_equal(part.mesh.faces, mesh.faces)
    tree = ObbTree.of(mesh, "cpu")
    cones = RecessionCones.of(mesh, tree, device="cpu")
    assert np.array_equal(part.tree.records(), tree.records())
    assert np.array_equal(part.cones.first.numpy(), cones.first.numpy())
    assert np.array_equal(part.cones.vectors.numpy(), cones.vectors.numpy())
    assert part.mass.mass == pytest.approx(1000.0 * mesh.mass_properties().volume)


def run(*words: object):
    return CliRunner().invoke(main, ["convert", *map(str, words)])


@pytest.mark.parametrize("content", ["heights", "text", "folder"])
def test_what_is_no_prepared_part_is_never_overwritten(content, tmp_path):
    other = tmp_path / "x.npz"
    if content == "heights":
        np.savez(other, heights=np.zeros((3, 3)))
    elif content == "text":
        other.write_text("notes of a year")
    else:
        other.mkdir()
    before = other.read_bytes() if other.is_file() else None
    generate.box().save(tmp_path / "a.obj")
    generate.box().save(tmp_path / "x.obj")
    result = run(tmp_path / "a.obj", tmp_path / "x.obj")
    assert result.exit_code == 2
    assert "x.npz is there and would be overwritten" in result.output.replace("\n", "")
    assert not (tmp_path / "a.npz").exists()  # nothing is done by halves
    assert before is None or other.read_bytes() == before


def test_a_prepared_part_is_replaced_and_can_be_prepared_again(tmp_path):
    generate.box().save(tmp_path / "x.obj")
    assert run(tmp_path / "x.obj", "--density", 7800).exit_code == 0
    generate.torus(grid=(24, 12)).save(tmp_path / "x.obj")
    assert run(tmp_path / "x.obj", "--density", 7800).exit_code == 0
    ring = PreparedPart.load(tmp_path / "x.npz").mesh
    assert len(ring.faces) == 576
    again = run(tmp_path / "x.npz", "--cone-vectors", 3)
    assert again.exit_code == 0, again.output
    part = PreparedPart.load(tmp_path / "x.npz")
    assert np.array_equal(part.mesh.vertices, ring.vertices)
    assert part.cones.most == 3
    assert part.mass.mass == pytest.approx(7800.0 * ring.mass_properties().volume)
