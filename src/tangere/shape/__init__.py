"""What things are: triangle meshes, their topology and mass, meshes in motion, and generators of test shapes."""

from tangere.shape import generate
from tangere.shape.mass import MassProperties
from tangere.shape.mesh import Mesh
from tangere.shape.moving import Moving
from tangere.shape.report import Report
from tangere.shape.topology import Adjacency, Topology

__all__ = ["Adjacency", "MassProperties", "Mesh", "Moving", "Report", "Topology", "generate"]
