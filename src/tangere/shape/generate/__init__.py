"""Procedural test shapes with exact triangle budgets, in metres.

Each function gives a `Mesh` with exactly the number of triangles asked for, or raises an error that names the nearest
numbers it can give. All are closed and oriented outwards except `sheet` and `pot`. Same arguments, same bits.
"""

from tangere.shape.generate.extruded import comb, prism
from tangere.shape.generate.knot import trefoil_knot
from tangere.shape.generate.peg import peg
from tangere.shape.generate.pierced import gear, plate_with_hole
from tangere.shape.generate.plate import box, plate, sheet
from tangere.shape.generate.pot import pot
from tangere.shape.generate.sphere import bumpy_sphere, icosphere
from tangere.shape.generate.torus import torus

__all__ = [
    "box",
    "bumpy_sphere",
    "comb",
    "gear",
    "icosphere",
    "peg",
    "plate",
    "plate_with_hole",
    "pot",
    "prism",
    "sheet",
    "torus",
    "trefoil_knot",
]
