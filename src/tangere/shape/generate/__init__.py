"""Procedural test shapes with exact triangle budgets, in metres.

Each function gives a `Mesh` with exactly the number of triangles asked for, or raises an error that names the nearest
numbers it can give. All are closed and oriented outwards except `sheet`. Same arguments, same bits.
Functions that give a `PartInPlace` put a part into its surroundings, with a free way out and one that touches.
`terrain` holds the grounds (`terrain.dunes()`, `terrain.kerbs()` …); functions that give a `TerrainScene` put cylinders
on one.
"""

from tangere.shape.generate.build.assembly import PartInPlace
from tangere.shape.generate.car_body import body_frame, door_on_body
from tangere.shape.generate.door import door_cavity, door_panel, lifter_motor, window_lifter
from tangere.shape.generate.extruded import comb, prism
from tangere.shape.generate.knot import trefoil_knot
from tangere.shape.generate.peg import peg, peg_hole
from tangere.shape.generate.pierced import gear, plate_with_hole
from tangere.shape.generate.plate import box, plate, sheet
from tangere.shape.generate.pylon import bent_bracket, pylon_bay, pylon_frame
from tangere.shape.generate.sphere import bumpy_sphere, icosphere
from tangere.shape.generate.terrain_scenes import (
    TerrainScene,
    barrel_on_slope,
    barrels,
    lowered_wheels,
    robot_with_trailer,
)
from tangere.shape.generate.torus import bumpy_torus, torus
from tangere.shape.generate.wheel import steering_wheel

__all__ = [
    "PartInPlace",
    "TerrainScene",
    "barrel_on_slope",
    "barrels",
    "bent_bracket",
    "body_frame",
    "box",
    "bumpy_sphere",
    "bumpy_torus",
    "comb",
    "door_cavity",
    "door_on_body",
    "door_panel",
    "gear",
    "icosphere",
    "lifter_motor",
    "lowered_wheels",
    "peg",
    "peg_hole",
    "plate",
    "plate_with_hole",
    "prism",
    "pylon_bay",
    "pylon_frame",
    "robot_with_trailer",
    "sheet",
    "steering_wheel",
    "torus",
    "trefoil_knot",
    "window_lifter",
]
