"""What `tangere terrain demo` shows: three barrels of the article about cylinders on terrain, and wheels over dunes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import tangere as tg
from tangere.cli.shared.ground_patch import patch
from tangere.query.contacts import Contacts
from tangere.scene import Camera, Scene, Thing
from tangere.shape.generate import TerrainScene, barrels

_ASPHALT, _SAND = (0.60, 0.61, 0.63), (0.88, 0.77, 0.58)
_BARREL, _TYRE, _HUB = (0.36, 0.55, 0.75), (0.17, 0.18, 0.20), (0.86, 0.87, 0.88)
_GLASS = 0.45  #: opacity of a barrel: its contacts are below it


@dataclass(frozen=True, eq=False)
class Barrel:
    """One barrel at rest and the ground around it."""

    told: str
    body: tg.Cylinder
    ground: tg.Heightfield


@dataclass(frozen=True, eq=False)
class Lowering:
    """Wheels that come straight down on a terrain."""

    scene: TerrainScene
    way: float = 2.0  #: how far each would go within the step: with its axle down to the ground [m]

    @property
    def moving(self) -> tg.shape.Moving:
        """The wheels on their way, each with a motion of its own."""
        return _lowered(self.scene.bodies, np.full(len(self.scene.bodies), -self.way))

    def at(self, time: np.ndarray, deeper: float = 0.0) -> tg.Cylinder:
        """The wheels, each at its own time, and a little deeper [m]."""
        poses = self.scene.bodies.poses.copy()
        poses[:, 2, 3] -= self.way * time + deeper
        return tg.Cylinder(self.radius, self.width).at(poses)

    @property
    def radius(self) -> float:
        """Of a wheel [m]."""
        return float(self.scene.bodies.records["radius"][0])

    @property
    def width(self) -> float:
        """Of a wheel [m]."""
        return 2.0 * float(self.scene.bodies.records["half"][0, 2])


def article_barrels(cell: float = 0.05) -> dict[str, Barrel]:
    """The barrels of the article, "base", "side" and "kerb": what each rests on."""
    scene = barrels(cell=cell)
    told = {"base": (2, "on its base"), "side": (1, "on its side"), "kerb": (0, "on road and kerb")}
    return {
        name: Barrel(words, scene.bodies[k], patch(scene.terrain, scene.bodies.poses[k, :2, 3], (0.92, 0.75)))
        for name, (k, words) in told.items()
    }


def barrel_scene(barrel: Barrel, contacts: Contacts) -> Scene:
    """A barrel one can look through, and its contacts."""
    drawn_apart = np.eye(4)
    drawn_apart[2, 3] = 1e-3  # faces that coincide would flicker [m]
    things = (
        Thing("ground", barrel.ground, _ASPHALT),
        Thing("barrel", barrel.body, _BARREL, _GLASS, drawn_apart),
    )
    camera = Camera((0.42, -1.0, 0.42), zoom=1.03)
    return Scene(things, contacts, camera=camera, title=f"A barrel {barrel.told}", mark_size=1.2)


def wheel_scene(
    lowering: Lowering, hits: tg.FirstContacts, half: tuple[float, float], device: str | None = None
) -> tuple[Scene, int]:
    """Wheels in the middle of the field, lowered until each touches when the scene ends, with their contacts there.

    Wheels that would hide each other are left out; the number of those shown is told as well.

    Args:
        half: half sides of what is shown of the ground [m].
    """
    ground, places = lowering.scene.terrain, lowering.scene.bodies.poses[:, :2, 3]
    away = np.linalg.norm(places - ground.bounds[:, :2].mean(axis=0), axis=1)
    middle = places[np.argmin(away)]  # so that one wheel is shown at least
    near = np.flatnonzero((np.abs(places - middle) < np.subtract(half, lowering.radius)).all(axis=1))
    rows = near[_spread_out(places[near], 3.0 * lowering.radius)]
    wheels, way = lowering.scene.bodies[rows], -lowering.way * hits.time[rows]
    hubs = tg.Cylinder(0.55 * lowering.radius, 1.06 * lowering.width).at(wheels.poses)
    things = (
        Thing("sand", patch(ground, middle, half), _SAND),
        Thing("tyres", _lowered(wheels, way), _TYRE),
        Thing("hubs", _lowered(hubs, way), _HUB),
    )
    found = tg.manifold(lowering.at(hits.time)[rows], ground, device=device)
    contacts = replace(found, time=np.ones(len(found)))
    camera = Camera((0.5, -1.0, 0.62), zoom=1.02)
    scene = Scene(things, contacts, camera=camera, title="Wheels lowered on dunes", mark_size=0.7)
    return scene, len(rows)


def _spread_out(places: np.ndarray, apart: float) -> np.ndarray:
    """Row numbers of points (n, 2), the first that come, no two nearer than `apart` [m]."""
    chosen: list[int] = []
    for row, place in enumerate(places):
        if not chosen or np.hypot(*(places[chosen] - place).T).min() >= apart:
            chosen.append(row)
    return np.array(chosen, int)


def _lowered(bodies: tg.Cylinder, way: np.ndarray) -> tg.shape.Moving:
    down = np.multiply.outer(way, [0.0, 0.0, 1.0])
    return bodies.moving(tg.Twist(np.eye(4), down, np.zeros(3)))
