"""`tangere convert`: mesh files of several types become prepared parts with a tree and cones."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.bound.obb_tree import ObbTree
from tangere.bound.prepared import load_part
from tangere.bound.recession import RecessionCones
from tangere.cli import main
from tangere.shape import Mesh, generate


@pytest.mark.feature("F-R-78")
@pytest.mark.parametrize("kind", ["obj", "stl", "ply"])
def test_mesh_files_become_parts_with_the_tree_and_cones_of_the_mesh(kind, tmp_path):
    source = tmp_path / f"ring.{kind}"
    generate.torus(grid=(24, 12)).save(source)
    result = CliRunner().invoke(main, ["convert", str(source), "--out", str(tmp_path / "parts"), "--density", "1000"])
    assert result.exit_code == 0, result.output
    part, mesh = load_part(tmp_path / "parts" / "ring.npz"), Mesh.load(source)
    assert np.array_equal(part.mesh.vertices, mesh.vertices)
    assert np.array_equal(part.mesh.faces, mesh.faces)
    tree = ObbTree.of(mesh, "cpu")
    cones = RecessionCones.of(mesh, tree, device="cpu")
    assert np.array_equal(part.tree.records(), tree.records())
    assert np.array_equal(part.cones.first.numpy(), cones.first.numpy())
    assert np.array_equal(part.cones.vectors.numpy(), cones.vectors.numpy())
    assert part.mass.mass == pytest.approx(1000.0 * mesh.mass_properties().volume)
