"""Meshes by file name: mesh formats, and parts prepared by `tangere convert`."""

from __future__ import annotations

from pathlib import Path

from tangere.shape.mesh import Mesh

__all__ = ["load_mesh"]


def load_mesh(path: Path) -> Mesh:
    """The mesh in a file; a prepared part (.npz) brings its trees along."""
    if path.suffix.lower() == ".npz":
        from tangere.bvh.prepared import PreparedPart

        return PreparedPart.load(path).mesh
    return Mesh.load(path)
