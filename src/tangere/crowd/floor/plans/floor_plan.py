"""A floor plan: where people may walk, as one polygon with holes.

Question: which segments are walls, and what is wrong with a plan that cannot be used?
Method:   every side of the polygon and of its holes is a wall, as it is: nothing is cut, merged or refused for being
          narrow. `doors` tells where it is too narrow for somebody (`narrow_doors`).
Known as: walkable area with obstacles (RiMEA guideline).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.crowd.floor.plans.drawings import polygon_of_dxf, polygon_of_image, read_image
from tangere.crowd.floor.plans.narrow_doors import Door, narrow_doors, shapely_library
from tangere.crowd.floor.plans.sheets import Sheet, SheetJoint, segments_of
from tangere.runtime import InputError, not_negative, positive

if TYPE_CHECKING:
    from tangere.crowd.floor.simulation import FloorSimulation

#: Coordinates beyond this are too coarse for walls kept at a micrometre [m].
_FAR = 1.0e7


class FloorPlan:
    """Where people may walk.

    Args:
        polygon: a polygon or several, holes are walls: of shapely, as WKT, or as GeoJSON (text or dict) [m].

    Example:
        >>> plan = FloorPlan("POLYGON ((0 0, 9 0, 9 4, 4.5 4, 4.5 0.5, 4 0.5, 4 4, 0 4, 0 0))")
        >>> plan
        FloorPlan(34.25 m², 8 walls)
        >>> print(*plan.doors(radius=0.3))
        a door of 0.500 m at (4.00, 0.25)
    """

    def __init__(self, polygon: Any) -> None:
        shapely = shapely_library()
        self.polygon = _checked(shapely, _geometry(shapely, polygon, "polygon"))
        #: (n, 2, 2) the two ends of each wall [m]
        self.walls = segments_of(self.polygon)
        self.sheets: tuple[Sheet, ...] = (Sheet(self.polygon, self.walls, self.walls),)  #: the one that it is
        self.joints: tuple[SheetJoint, ...] = ()  #: none

    def __repr__(self) -> str:
        return f"FloorPlan({self.area:.6g} m², {len(self.walls)} walls)"

    def __simulation__(self, **settings: Any) -> FloorSimulation:
        """What `Simulation` makes of it."""
        from tangere.crowd.floor.simulation import FloorSimulation  # which knows plans

        return FloorSimulation(self, **settings)

    @classmethod
    def from_dxf(
        cls,
        path: str | Path,
        layers: str | list[str] | None = None,
        *,
        unit: float | None = None,
        snap: float = 0.005,
        thickness: float = 0.02,
    ) -> FloorPlan:
        """What the lines of a DXF file enclose; outlines in one another are floor and wall by turns.

        Args:
            layers: those that are read; None: all.
            unit: metres of a unit of the drawing; None: as the file tells.
            snap: ends nearer than this are one [m]. thickness: of lines within an outline, which are walls [m].
        """
        chosen = [layers] if isinstance(layers, str) else layers
        given = not_negative(snap, "snap"), positive(thickness, "thickness")
        return cls(polygon_of_dxf(Path(path), chosen, unit, *given))

    @classmethod
    def from_image(cls, image: Any, pixel: float, *, light: float = 0.5) -> FloorPlan:
        """Floor where an image is light.

        Args:
            image: a file, or (rows, columns) or (rows, columns, 3) of 0 to 255 or 0 to 1, the uppermost row first.
            pixel: side of a pixel [m]. light: lighter than this part of white is floor.
        """
        pixels = read_image(Path(image)) if isinstance(image, (str, Path)) else image
        return cls(polygon_of_image(pixels, pixel, light))

    @classmethod
    def load(cls, path: str | Path) -> FloorPlan:
        """Read a file of WKT (`.wkt`), GeoJSON (`.geojson`, `.json`) or DXF (`.dxf`, all layers)."""
        path = Path(path)
        if path.suffix == ".dxf":
            return cls.from_dxf(path)
        if path.suffix not in (".wkt", ".geojson", ".json"):
            raise InputError(
                f"{path}: floor plans are read from .wkt, .geojson, .json or .dxf, not {path.suffix or 'this'}"
            )
        text = read_text(path)
        try:
            return cls(text)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @staticmethod
    def area_of(text: str) -> str:
        """An area of a plan as people write it, as WKT or GeoJSON: a box x0,y0,x1,y1 [m], or either of these itself."""
        if text.lstrip()[:1] not in tuple("-+.0123456789"):
            return text
        try:
            x0, y0, x1, y1 = map(float, text.split(","))
        except ValueError as error:
            raise InputError(f"a box is x0,y0,x1,y1, not {text}") from error
        return f"POLYGON (({x0} {y0}, {x1} {y0}, {x1} {y1}, {x0} {y1}, {x0} {y0}))"

    def save(self, path: str | Path) -> None:
        """Write it as WKT or GeoJSON, by the name of the file."""
        path = Path(path)
        if path.suffix not in (".wkt", ".geojson", ".json"):
            raise InputError(f"{path}: floor plans are written as .wkt, .geojson or .json, not {path.suffix or 'this'}")
        shapely = shapely_library()
        text = shapely.to_wkt(self.polygon, -1) if path.suffix == ".wkt" else shapely.to_geojson(self.polygon)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    def laid_out(self) -> tuple[FloorPlan, np.ndarray]:
        """The plan, and by how much it was moved: not at all. Buildings lay their storeys side by side."""
        return self, np.zeros((1, 2))

    def to_text(self) -> str:
        """It as WKT."""
        return shapely_library().to_wkt(self.polygon, -1)

    @property
    def area(self) -> float:
        """[m²]."""
        return float(self.polygon.area)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Least x and y, most x and y [m]."""
        return self.polygon.bounds

    def contains(self, points: Any) -> np.ndarray:
        """(n,) which of (n, 2) points are on the floor and on no wall."""
        return self.sheets[0].contains(points)

    def distance_to_walls(self, points: Any) -> np.ndarray:
        """(n,) of (n, 2) points [m]."""
        return self.sheets[0].distance_to_walls(points)

    def doors(self, radius: float) -> list[Door]:
        """Where a person of this radius [m] does not get from one part of the plan to another, narrowest first."""
        return narrow_doors(self.polygon, self.walls, positive(radius, "radius"))


def read_text(path: Path) -> str:
    """What is in a file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def area_of(given: Any, name: str) -> Any:
    """A polygon of shapely, from what people give: shapely, WKT, GeoJSON."""
    shapely = shapely_library()
    area = _geometry(shapely, given, name)
    if area.geom_type not in ("Polygon", "MultiPolygon") or area.is_empty or not area.is_valid:
        raise InputError(f"{name} must be a polygon that does not cross itself, not {_short(given)}")
    return shapely.force_2d(area)


def _geometry(shapely: Any, given: Any, name: str) -> Any:
    if isinstance(given, FloorPlan):
        return given.polygon
    if isinstance(given, shapely.Geometry):
        return given
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        try:
            given = json.loads(given)
        except json.JSONDecodeError as error:
            raise InputError(f"{name}: this is not GeoJSON: {error}") from error
    try:
        if isinstance(given, dict):
            return _from_geojson(shapely, given, name)
        if isinstance(given, str):
            return shapely.from_wkt(given)
    except shapely.errors.ShapelyError as error:
        reason = str(error).splitlines()[0].removeprefix("ParseException: ")
        raise InputError(f"{name} cannot be read: {reason}") from error
    raise InputError(f"{name} must be a polygon of shapely, WKT or GeoJSON, not {_short(given)}")


def _from_geojson(shapely: Any, given: dict, name: str) -> Any:
    """All polygons of a geometry, a feature or a collection of them, as one."""
    kind = given.get("type")
    if kind == "FeatureCollection":
        features = [f for f in given.get("features", []) if not _is_without_place(f)]
        shapes = [_from_geojson(shapely, feature, name) for feature in features]
        return shapely.union_all([s for s in shapes if s.geom_type in ("Polygon", "MultiPolygon")])
    if kind == "Feature":
        return _from_geojson(shapely, given.get("geometry") or {}, name)
    return shapely.from_geojson(json.dumps(given))


def _is_without_place(feature: Any) -> bool:
    """Whether this is a feature without a geometry, as GeoJSON allows it."""
    return isinstance(feature, dict) and feature.get("type") == "Feature" and feature.get("geometry") is None


def _checked(shapely: Any, polygon: Any) -> Any:
    """The polygon, or a sentence on what is wrong with it."""
    if polygon is None or polygon.is_empty:
        raise InputError("polygon: the plan is empty")
    if polygon.geom_type == "GeometryCollection":  # as JuPedSim's files are
        parts = shapely.get_parts(polygon)
        wrong = [part for part in parts if part.geom_type not in ("Polygon", "MultiPolygon")]
        if wrong:
            raise InputError(f"polygon: a collection must be of polygons, not of a {wrong[0].geom_type}")
        for part in parts:
            _checked(shapely, part)
        polygon = shapely.union_all(parts)
    if polygon.geom_type not in ("Polygon", "MultiPolygon"):
        raise InputError(f"polygon must be a Polygon or a MultiPolygon, not a {polygon.geom_type}")
    polygon = shapely.force_2d(polygon)
    coordinates = shapely.get_coordinates(polygon)
    if not np.isfinite(coordinates).all():
        raise InputError(f"polygon: corner {int(np.argwhere(~np.isfinite(coordinates))[0, 0])} is not finite")
    if not polygon.is_valid:
        reason = shapely.is_valid_reason(polygon).replace("[", " near (").replace("]", ")")
        raise InputError(f"polygon: its sides cross or touch each other: {reason}")
    if np.abs(coordinates).max() > _FAR:
        raise InputError(f"polygon: corners are farther than {_FAR:.0e} m from the origin: move the plan there")
    return polygon


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
