"""What things are: triangle meshes, analytic bodies and ground, in motion or at rest, and generators of test shapes."""

from tangere.shape import generate
from tangere.shape.analytic import Analytic, Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield
from tangere.shape.mass import MassProperties
from tangere.shape.mesh import Mesh
from tangere.shape.moving import Moving
from tangere.shape.report import Report
from tangere.shape.terrain_edits import edit_tiles
from tangere.shape.terrain_tiles import TiledHeightfield, TileFolder, write_tiles
from tangere.shape.topology import Adjacency, Topology

__all__ = [
    "Adjacency",
    "Analytic",
    "Box",
    "Capsule",
    "Cone",
    "ConvexMesh",
    "Cylinder",
    "Heightfield",
    "MassProperties",
    "Mesh",
    "Moving",
    "Report",
    "Sphere",
    "TileFolder",
    "TiledHeightfield",
    "Topology",
    "edit_tiles",
    "generate",
    "write_tiles",
]
