"""Needles into a liver, a brain, a solid of one's own, and one that meets itself: ready to be driven.

Constants are of the size that is measured for such tissue, no more: they make a scene, not a claim about organs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.generate import hex_grid
from tangere.cells.maps import CellMap
from tangere.needle.anatomy import Membrane, Vessel
from tangere.needle.instrument import Bevel, Needle
from tangere.needle.kinematic import KinematicSimulation
from tangere.needle.scenarios.organs import bent, organ, surface_point, vessel_tree
from tangere.needle.scenarios.trace import Trace
from tangere.needle.simulation import Simulation
from tangere.needle.tip_refinement import Mode
from tangere.needle.tissue import Tissue
from tangere.runtime import check_kind
from tangere.shape.generate import icosphere, sheet
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh
from tangere.soft import Body

#: Deadline of `mode="hard"` [s].
_DEADLINE = 2e-3
#: Gap to the surface at which a kinematic needle begins, as a part of the height of the solid.
_BELOW = 1e-3


@dataclass(frozen=True, eq=False)
class Insertion:
    """A needle and how it is driven."""

    name: str
    simulation: Simulation | KinematicSimulation
    trace: Trace
    dt: float  #: of a step [s]

    def __repr__(self) -> str:
        return f"Insertion({self.name!r}, {self.trace.seconds:g} s, {self.simulation!r})"


@dataclass(frozen=True, eq=False)
class _Place:
    """Everything that a needle of either kind is made of."""

    name: str
    solid: TetMesh
    needle: Needle
    tissue: Tissue
    youngs_modulus: float
    entry: np.ndarray
    direction: np.ndarray
    vessels: tuple[Vessel, ...] = ()
    membranes: tuple[Membrane | Mesh, ...] = ()
    lock_length: float = 3e-3

    def made(
        self, trace: Trace, mode: Mode | None, dt: float, device: str | wp.Device | None, threads: int | None
    ) -> Insertion:
        around: dict[str, Any] = {"vessels": self.vessels, "membranes": self.membranes}
        around |= {"direction": self.direction, "lock_length": self.lock_length, "distance": 3.0 * self.lock_length}
        if mode is None:
            z = self.solid.vertices[:, 2]
            body = Body(
                self.solid,
                youngs_modulus=self.youngs_modulus,
                poisson=0.45,
                damping=20.0,
                fixed=z < z.min() + 0.2 * np.ptp(z),
                name=self.name,
            )
            options = {"entry": self.entry, "dt": dt, "sweeps": 20, "device": device, "threads": threads, **around}
            return Insertion(self.name, Simulation(body, self.needle, self.tissue, **options), trace, dt)
        map = CellMap.from_polyhedra(self.solid.vertices, self.solid.tets, device="cpu")
        inside = self.entry + _BELOW * np.ptp(self.solid.vertices[:, 2]) * self.direction
        options = {"entry": inside, "level": 2, "mode": mode, "deadline": _DEADLINE, **around}
        only_in = Trace(trace.times, np.maximum(trace.speed, 0.0), trace.spin)
        return Insertion(self.name, KinematicSimulation(map, self.needle, **options), only_in, dt)


def liver(
    *,
    mode: Mode | None = None,
    dt: float = 0.01,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Insertion:
    """A bevel tip into a liver: in by 55 mm past branches of two trees, through a sheet, held, and out.

    Args:
        mode: None: the needle pushes the tissue. "soft" or "hard": it goes where it is told, through cells that are
            fine around its tip (`KinematicSimulation`).
        dt: of a step [s].
    """
    shaped = bent((0.09, 0.065, 0.045))
    solid = organ(shaped, (14, 10, 8), name="liver")
    trees = vessel_tree(shaped, (-0.3, 0.1, -0.35), (0.6, 0.1, 0.35), radius=2.5e-3, generations=5, seed=3)
    trees += vessel_tree(shaped, (-0.5, -0.2, 0.1), (0.9, 0.3, 0.0), radius=2.0e-3, generations=4, seed=8)
    flat = sheet(128, size=(0.05, 0.05), name="sheet inside")
    inner = flat.replace(vertices=flat.vertices + [0.0, 0.0, -0.003])
    place = _Place(
        "liver",
        solid,
        Needle(length=0.15, radius=0.5e-3, youngs_modulus=75e9, tip=Bevel(0.5, curvature=3.0)),
        Tissue(puncture=1.0, cutting=0.4, friction=10.0, patch=0.012, hardening=6e4),
        8e3,
        surface_point(solid, 0.004, 0.003),
        np.array([0.0, 0.0, -1.0]),
        tuple(trees),
        (Membrane(inner, puncture=0.8),),
    )
    trace = Trace([0.0, 2.75, 3.05, 5.9], [0.02, 0.0, -0.02, 0.0])
    return place.made(trace, mode, dt, device, threads)


def brain(
    *,
    mode: Mode | None = None,
    dt: float = 0.01,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Insertion:
    """A thin flexible needle into soft tissue, towards a hollow in the middle; turned half round on the way."""
    shaped = bent((0.075, 0.065, 0.06), taper=0.08, bow=0.05)
    solid = organ(shaped, (12, 10, 10), name="brain")
    trees = vessel_tree(shaped, (0.1, -0.55, -0.2), (-0.1, 0.7, 0.6), radius=1.2e-3, generations=5, seed=2)
    trees += vessel_tree(shaped, (0.15, 0.6, -0.2), (0.0, -0.7, 0.5), radius=1.2e-3, generations=5, seed=5)
    hollow = icosphere(triangles=320, radius=0.014, name="hollow")
    place = _Place(
        "brain",
        solid,
        Needle(length=0.16, radius=0.4e-3, youngs_modulus=75e9, tip=Bevel(0.6, curvature=6.0)),
        Tissue(puncture=0.3, cutting=0.12, friction=3.0, patch=0.012),
        3e3,
        surface_point(solid, 0.006, 0.003),
        np.array([0.0, 0.0, -1.0]),
        tuple(trees),
        (Membrane(hollow, puncture=0.2),),
        2.5e-3,
    )
    trace = Trace([0.0, 1.4, 1.5, 3.3, 3.6], [0.02, 0.0, 0.02, 0.0, 0.0], [0.0, 10.0 * np.pi, 0.0, 0.0, 0.0])
    return place.made(trace, mode, dt, device, threads)


def self_collision(
    *,
    mode: Mode | None = None,
    dt: float = 0.01,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Insertion:
    """A needle that goes round in a cube of cells until it meets itself."""
    needle = Needle(length=1.0, radius=0.5e-3, tip=Bevel(curvature=40.0))
    map = hex_grid(4, 4, 4, size=0.025, device="cpu")
    options: dict[str, Any] = {"lock_length": 3e-3, "distance": 4.5e-3, "radius": 6e-3, "level": 3}
    start = {"entry": [0.05, 0.078, 0.06], "direction": [1.0, 0.0, 0.0]}
    moving = KinematicSimulation(map, needle, mode=mode or "soft", deadline=_DEADLINE, **start, **options)
    return Insertion("self", moving, Trace([0.0, 4.0], [0.05, 0.0], [0.02, 0.0]), dt)


def own(
    solid: TetMesh,
    *,
    mode: Mode | None = None,
    dt: float = 0.01,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Insertion:
    """A needle from above into a solid of your own, by half of its height; held below, of the tissue of the liver."""
    check_kind(solid, TetMesh, "solid")
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    height, middle = float(high[2] - low[2]), 0.5 * (low + high)
    needle = Needle(
        length=1.6 * height, radius=5e-3 * height, youngs_modulus=75e9, tip=Bevel(0.5, curvature=0.1 / height)
    )
    place = _Place(
        Path(solid.name).stem,
        solid,
        needle,
        # Forces as of the liver, by the size of the solid.
        Tissue(puncture=120.0 * height**2, cutting=50.0 * height**2, friction=110.0 * height, patch=0.13 * height),
        8e3,
        surface_point(solid, middle[0], middle[1]),
        np.array([0.0, 0.0, -1.0]),
        lock_length=0.03 * height,
    )
    trace = Trace([0.0, 2.5, 2.8, 5.4], [0.2 * height, 0.0, -0.2 * height, 0.0])
    return place.made(trace, mode, dt, device, threads)


#: The scenes of the command line.
SCENES = {"liver": liver, "brain": brain, "self": self_collision}
