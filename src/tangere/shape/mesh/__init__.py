"""Triangle meshes: topology, files, report, mass."""

from tangere.shape.mesh.files import weld_vertices
from tangere.shape.mesh.mass import MassProperties
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.mesh.offset import Inset, chord_error, inset
from tangere.shape.mesh.topology import Adjacency, Topology
from tangere.shape.mesh.units import DOUBTFUL, doubted_units, named_unit, says_its_unit, warn_of_doubted_units

__all__ = [
    "DOUBTFUL",
    "Adjacency",
    "Inset",
    "MassProperties",
    "Mesh",
    "Topology",
    "chord_error",
    "doubted_units",
    "inset",
    "named_unit",
    "says_its_unit",
    "warn_of_doubted_units",
    "weld_vertices",
]
