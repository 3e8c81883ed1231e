"""Ready scenes: the tori and the knot of the thesis, a cloth and a solid that drop, a blade that cuts; any stiffness.

After Léonard 2021, section 4.1, with sizes of our own: two tori of radius 5 and tube 2, the lower one upright with its
base held, the upper one falling on it and sliding off; a trefoil knot with its base held that collapses on itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.runtime import InputError, positive
from tangere.shape import generate
from tangere.shape.tets import TetMesh, solid_block, solid_knot, solid_torus
from tangere.soft.blade import Blade
from tangere.soft.body import Body
from tangere.soft.cut_engine import KERF_PART, kerf_of
from tangere.soft.simulation import Simulation
from tangere.soft.step import StepPipeline
from tangere.soft.validation import mean_edge

#: Of the solids [kg/m^3]. The thesis names none; how they move depends on Young's modulus over it.
DENSITY = 1.0
#: Vertices round the axis and round the tube of each torus, by the triangles of the scene.
_TORI = {3_200: (40, 20), 12_800: (80, 40), 51_200: (160, 80), 204_800: (320, 160)}


def tori(
    triangles: int = 3_200, *, youngs_modulus: float = 1e4, tets: tuple[int, int] = (24, 4), **options: Any
) -> Simulation:
    """Two tori, the upper one falls on the lower one, which stands upright.

    Args:
        triangles: of both surfaces together: 3,200, 12,800 and 51,200 as in the document, or 204,800.
        youngs_modulus: Young's modulus [Pa]; at 100 a torus cannot carry its own weight.
        tets: segments and cubes across of the solids that carry the surfaces, see `solid_torus`.
        options: of the `Simulation`; the contact distance is 0.15 m unless given.
    """
    if triangles not in _TORI:
        raise InputError(f"the tori have {', '.join(map(str, _TORI))} triangles, not {triangles!r}")
    surface = generate.torus(grid=_TORI[triangles], radius=5.0, tube=2.0)
    solid = solid_torus(tets)
    upright = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    cos, sin = np.cos(0.3), np.sin(0.3)
    tilted = np.array([[cos, 0, sin, 1.5], [0, 1, 0, 0.6], [-sin, 0, cos, 11.7], [0, 0, 0, 1]])

    def torus(pose: np.ndarray, name: str, **held: Any) -> Body:
        look = {"surface": surface.at(pose), "youngs_modulus": youngs_modulus, "density": DENSITY, "name": name}
        return Body(solid.at(pose), **look, **held)

    base = solid.at(upright).vertices[:, 2] < -5.5
    bodies = [torus(upright, "lower torus", fixed=base), torus(tilted, "upper torus")]
    return Simulation(bodies, **{"distance": 0.15, **options})


def knot(*, youngs_modulus: float = 3e3, tets: tuple[int, int] = (80, 2), **options: Any) -> Simulation:
    """A knot of 3,960 triangles with its base held collapses on itself.

    Args:
        youngs_modulus: Young's modulus [Pa].
        tets: segments and cubes across of the solid that carries the surface, see `solid_knot`.
        options: of the `Simulation`; the contact distance is 0.4 m unless given.
    """
    upright = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    solid = solid_knot(tets).at(upright)
    surface = generate.trefoil_knot(grid=(165, 12)).at(upright)
    base = solid.vertices[:, 2] < solid.vertices[:, 2].min() + 2.0
    body = Body(solid, surface=surface, youngs_modulus=youngs_modulus, density=DENSITY, fixed=base, name="knot")
    return Simulation([body], **{"distance": 0.4, **options})


def cloth(triangles: int = 19_602, *, youngs_modulus: float = 1e5, **options: Any) -> Simulation:
    """A square cloth of 1 m by 1 m falls on a ball, drapes and folds over itself.

    Args:
        triangles: of the cloth: 2 n^2.
        youngs_modulus: Young's modulus [Pa].
        options: of the `Simulation`.
    """
    sheet = generate.sheet(triangles, size=(1.0, 1.0))
    sheet = sheet.replace(vertices=sheet.vertices + [0.0, 0.0, 0.32])
    ball = generate.icosphere(subdivisions=4, radius=0.3)
    return Simulation(
        [
            Body(sheet, youngs_modulus=youngs_modulus, poisson=0.3, density=300.0, thickness=1e-3, name="cloth"),
            Body(ball, fixed=True, name="ball"),
        ],
        **options,
    )


def drop(shape: TetMesh | None = None, *, youngs_modulus: float | None = None, **options: Any) -> Simulation:
    """A solid of tetrahedra falls on a floor, from a quarter of its size above it.

    Args:
        shape: what falls, of any size, where it is; None means three blocks one above the other, each turned a bit.
        youngs_modulus: Young's modulus [Pa]; None means 400 times the pressure of the solid's weight.
        options: of the `Simulation`; the contact distance is a fiftieth of the size unless given.
    """
    solids = [shape] if shape is not None else [_turned_block(number) for number in range(3)]
    low = np.min([solid.vertices.min(axis=0) for solid in solids], axis=0)
    high = np.max([solid.vertices.max(axis=0) for solid in solids], axis=0)
    size = float(np.max(high - low))
    if youngs_modulus is None:
        youngs_modulus = 400.0 * 9.81 * DENSITY * size
    floor = generate.sheet(2, size=(2.5 * size, 2.5 * size))
    middle = 0.5 * (low + high)
    under = floor.replace(vertices=floor.vertices + [middle[0], middle[1], low[2] - 0.25 * size])
    bodies = [Body(solid, youngs_modulus=youngs_modulus, density=DENSITY, name=solid.name) for solid in solids]
    floor_body = Body(under, fixed=True, name="floor")
    return Simulation([*bodies, floor_body], **{"distance": 0.02 * size, **options})


def cut(
    shape: TetMesh | str = "block",
    *,
    toughness: float = 20.0,
    depth: float = 1.1,
    youngs_modulus: float = 1e4,
    speed: float = 0.1,
    kerf: float | None = None,
    **options: Any,
) -> Simulation:
    """A blade comes down on a solid that lies held on the ground, and cuts it (after Léonard 2021, section 4.1.4).

    Args:
        shape: "block", "torus", or what is cut, of any size, where it is.
        toughness: of the blade [N/m = J/m^2].
        depth: how far it goes, as part of the height; beyond 1 right through.
        youngs_modulus: Young's modulus [Pa].
        speed: of the blade [m/s].
        kerf: width of the cut at rest [m]; None: 0.15 edges, or less where elements are flat.
        options: of the `Simulation`.
    """
    if isinstance(shape, str):
        if shape not in ("block", "torus"):
            raise InputError(f"cut: a shape is 'block', 'torus' or tetrahedra, not {shape!r}")
        block = solid_block((12, 6, 6), size=(0.2, 0.1, 0.1), name="block")
        shape = block if shape == "block" else solid_torus((36, 3), radius=0.08, tube=0.03)
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    size, middle = high - low, 0.5 * (low + high)
    seconds = (positive(depth, "depth") + 0.05) * size[2] / positive(speed, "speed")
    body = Body(
        shape,
        kerf=kerf_of(Body(shape), 0.15 / KERF_PART * mean_edge([Body(shape)])) if kerf is None else kerf,
        youngs_modulus=youngs_modulus,
        fixed=shape.vertices[:, 2] < low[2] + 0.02 * size[2],
        cuttable=True,
        name=shape.name,
    )
    blade = Blade.wedge(
        length=1.3 * size[1],
        height=1.5 * size[2],
        thickness=0.03 * size[2],
        toughness=toughness,
        at=(middle[0] + 0.013 * size[0], middle[1], high[2] + 0.05 * size[2]),
    )
    simulation = Simulation([body, blade], **options)
    simulation[1].drive((0.0, 0.0, -speed))

    def stop(_pipeline: StepPipeline) -> None:
        if simulation.time >= seconds:
            simulation[1].drive((0.0, 0.0, 0.0))

    simulation.phases = {"stop": stop, **simulation.phases}
    return simulation


def _turned_block(number: int) -> TetMesh:
    """A block of 2 m by 1 m by 0.5 m, the higher the more turned."""
    angle, tilt = 0.7 * number, 0.15 * number
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    lean = np.array([[np.cos(tilt), 0.0, np.sin(tilt)], [0.0, 1.0, 0.0], [-np.sin(tilt), 0.0, np.cos(tilt)]])
    pose = np.eye(4)
    pose[:3, :3], pose[2, 3] = turn @ lean, 1.1 * number
    return solid_block((8, 4, 2), size=(2.0, 1.0, 0.5), name=f"block {number + 1}").at(pose)
