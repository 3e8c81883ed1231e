"""Triangle meshes: topology, files, mass, and a mesh in motion."""

from tangere.shape.mesh.files import weld_vertices
from tangere.shape.mesh.mass import MassProperties
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.mesh.moving import Moving
from tangere.shape.mesh.readonly import read_only
from tangere.shape.mesh.topology import Adjacency, Topology

__all__ = [
    "Adjacency",
    "MassProperties",
    "Mesh",
    "Moving",
    "Topology",
    "read_only",
    "weld_vertices",
]
