"""Storeys joined by stairs and ramps: one surface that people walk on.

Question: where may people walk in a house of several storeys, and how do they get from one to another?
Method:   every storey is a plan of its own at a height; a flight of stairs is the strip from its foot, a line on the
          lower storey, to its head, a line on the upper one. The strip is cut out of both storeys: nobody walks under
          stairs, nor over the hole above them. Foot and head are joints, all other sides are walls. A landing is a
          storey. Speed on stairs is a part of that on level ground, by Weidmann's (1993) means of horizontal speed:
          0.61 m/s up and 0.69 m/s down of 1.34 m/s.
Sound:    what is no joint is a wall, but for a tenth of a micrometre, and nobody gets nearer to a wall than ten times
          that.
Known as: multi-storey geometry; floors and stairs (RiMEA guideline).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.crowd.floor.plans.floor_plan import FloorPlan, read_text
from tangere.crowd.floor.plans.narrow_doors import Door, narrow_doors, shapely_library
from tangere.crowd.floor.plans.sheets import Sheet, SheetJoint, segments_of, segments_of_lines
from tangere.runtime import InputError, check_kind, number, positive

if TYPE_CHECKING:
    from tangere.crowd.floor.simulation import FloorSimulation

#: Speeds on stairs as parts of that on level ground: Weidmann 1993.
_UP, _DOWN = 0.610 / 1.34, 0.694 / 1.34
#: How near a side is to a joint that is it, and what is the same line [m].
_NEAR, _SAME = 1.0e-7, 1.0e-9

#: Half the width of the sides of stairs where storeys are laid out [m].
_RAIL = 0.01

Line = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Stairs:
    """A flight of stairs, or a ramp, between two storeys.

    Args:
        lower, upper: names of the storeys.
        foot, head: lines where it begins on the lower and ends on the upper storey, two points each [m].
        up, down: horizontal speed on it, as a part of that on level ground; 1 and 1 for a gentle ramp.
    """

    lower: str
    foot: Line
    upper: str
    head: Line
    up: float = _UP
    down: float = _DOWN

    def __post_init__(self) -> None:
        positive(self.up, "Stairs: up")
        positive(self.down, "Stairs: down")
        for name in ("foot", "head"):
            ends = _line(getattr(self, name), f"Stairs: {name}")
            object.__setattr__(self, name, tuple((float(x), float(y)) for x, y in ends))

    @property
    def name(self) -> str:
        """From where to where."""
        return f"stairs from {self.lower} to {self.upper}"


class Building:
    """Storeys and the stairs that join them.

    Args:
        storeys: by name: the plan (what `FloorPlan` takes) and its height [m].
        stairs: between them.

    Example:
        >>> house = Building(
        ...     {
        ...         "ground": ("POLYGON ((0 0, 9 0, 9 4, 0 4, 0 0))", 0.0),
        ...         "upper": ("POLYGON ((12 0, 20 0, 20 4, 12 4, 12 0))", 3.0),
        ...     },
        ...     [Stairs("ground", ((9, 1), (9, 3)), "upper", ((12, 1), (12, 3)))],
        ... )
        >>> house
        Building(2 storeys, 1 stairs, 74 m²)
    """

    def __init__(self, storeys: Mapping[str, tuple[Any, float]], stairs: Sequence[Stairs] = ()) -> None:
        if not isinstance(storeys, Mapping) or not storeys:
            raise InputError("storeys must be a dict of at least one name: (plan, height)")
        self.storeys: dict[str, FloorPlan] = {}  #: by name, as given
        self.heights: dict[str, float] = {}  #: by name [m]
        for name, given in storeys.items():
            if not isinstance(given, (tuple, list)) or len(given) != 2:
                raise InputError(f"storeys: {name!r} must be (plan, height), not {type(given).__name__}")
            self.storeys[str(name)] = FloorPlan(given[0])
            self.heights[str(name)] = number(given[1], f"storeys: height of {name!r}")
        self.stairs = tuple(stairs)
        for flight in self.stairs:
            check_kind(flight, Stairs, "stairs")
            for storey in (flight.lower, flight.upper):
                if storey not in self.storeys:
                    raise InputError(
                        f"stairs: there is no storey {storey!r}, only {', '.join(map(repr, self.storeys))}"
                    )
            if flight.lower == flight.upper:
                raise InputError(f"stairs: {flight.name} must join two storeys")
        self.sheets, self.joints = _sheets_of(self)

    def __repr__(self) -> str:
        return f"Building({len(self.storeys)} storeys, {len(self.stairs)} stairs, {self.area:.6g} m²)"

    def __simulation__(self, **settings: Any) -> FloorSimulation:
        """What `Simulation` makes of it."""
        from tangere.crowd.floor.simulation import FloorSimulation  # which knows buildings

        return FloorSimulation(self, **settings)

    @property
    def area(self) -> float:
        """Of all storeys and stairs, from above [m²]."""
        return float(sum(sheet.polygon.area for sheet in self.sheets))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Least x and y, most x and y of all storeys [m]."""
        boxes = np.array([sheet.polygon.bounds for sheet in self.sheets])
        (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
        return float(x0), float(y0), float(x1), float(y1)

    def doors(self, radius: float) -> list[Door]:
        """Where a person of this radius [m] does not get through, on storeys, stairs and between them."""
        radius = positive(radius, "radius")
        found = [d for sheet in self.sheets for d in narrow_doors(sheet.polygon, sheet.walls, radius)]
        for flight in self.stairs:
            widths = [(float(np.linalg.norm(np.subtract(*line))), line) for line in (flight.foot, flight.head)]
            found += [Door(width, *line) for width, line in widths if width < 2.0 * radius * (1.0 - 1.0e-9)]
        return sorted(found, key=lambda door: door.width)

    def laid_out(self) -> tuple[FloorPlan, np.ndarray]:
        """Storeys side by side as one plan, stairs with the lower one; and (sheets, 2) by how much each was moved."""
        shapely = shapely_library()
        x0, y0, x1, y1 = self.bounds
        step = (x1 - x0) + 0.05 * max(x1 - x0, y1 - y0)
        names = list(self.storeys)
        column = [*range(len(names)), *(names.index(flight.lower) for flight in self.stairs)]
        moved = np.stack([step * np.array(column, float), np.zeros(len(column))], axis=1)
        moved_to = [
            shapely.transform(sheet.polygon, lambda points, by=by: points + by)
            for sheet, by in zip(self.sheets, moved, strict=True)
        ]
        floor = shapely.union_all(moved_to, grid_size=1.0e-9)
        stairs = zip(self.sheets[len(names) :], moved[len(names) :], strict=True)
        rails = []
        for flight, (sheet, by) in zip(self.stairs, stairs, strict=True):
            foot = shapely.buffer(shapely.linestrings(np.array(flight.foot) + by), _NEAR, cap_style="flat")
            rim = shapely.transform(shapely.boundary(sheet.polygon), lambda points, by=by: points + by)
            rails.append(shapely.difference(rim, foot))
        if rails:  # the sides of stairs, which are beside floor of the lower storey
            floor = shapely.difference(floor, shapely.buffer(shapely.union_all(rails), _RAIL, cap_style="flat"))
        return FloorPlan(_without_slivers(shapely, floor, "all")), moved

    @classmethod
    def load(cls, path: str | Path) -> Building:
        """Read what `save` wrote."""
        return cls.from_text(read_text(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write it as .json: storeys with name, height and plan (WKT), and stairs."""
        path = Path(path)
        if path.suffix != ".json":
            raise InputError(f"{path}: buildings are written as .json, not {path.suffix or 'this'}")
        try:
            path.write_text(self.to_text(), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    def to_text(self) -> str:
        """What `save` writes."""
        wkt = shapely_library().to_wkt
        storeys = [
            {"name": name, "height": self.heights[name], "plan": wkt(plan.polygon, -1)}
            for name, plan in self.storeys.items()
        ]
        return json.dumps({"storeys": storeys, "stairs": [asdict(flight) for flight in self.stairs]}, indent=1)

    @classmethod
    def from_text(cls, text: str) -> Building:
        """The building of what `save` wrote."""
        try:
            told = json.loads(text)
            storeys = {storey["name"]: (storey["plan"], storey["height"]) for storey in told["storeys"]}
            stairs = [Stairs(**flight) for flight in told.get("stairs", [])]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(f"this is no building: {error}") from error
        return cls(storeys, stairs)


#: What people walk on.
AnyPlan = FloorPlan | Building


class FloorWithout:
    """The sheets of a plan less obstacles.

    Args:
        obstacles: a sheet and a polygon each.
    """

    def __init__(self, plan: FloorPlan | Building, obstacles: list[tuple[int, Any]]) -> None:
        shapely = shapely_library()
        self.joints, self.bounds = plan.joints, plan.bounds
        sheets = list(plan.sheets)
        for k in {sheet for sheet, _ in obstacles}:
            cut = shapely.union_all([area for sheet, area in obstacles if sheet == k])
            polygon = shapely.difference(sheets[k].polygon, cut)
            joints = [joint.ends for joint in plan.joints if k in joint.sheets]
            sides = segments_of(polygon) if not polygon.is_empty else np.empty((0, 2, 2))
            walls = sides if not joints else _walls(shapely, polygon, joints)
            sheets[k] = replace(sheets[k], polygon=polygon, sides=sides, walls=walls)
        self.sheets = tuple(sheets)


def plan_from_text(text: str) -> AnyPlan:
    """A building of the text of one, or else a plan of WKT or GeoJSON."""
    return Building.from_text(text) if text.lstrip()[:1] == "{" and '"storeys"' in text else FloorPlan(text)


def load_plan(path: str | Path) -> AnyPlan:
    """Read a floor plan, or a building from what its `save` wrote."""
    path = Path(path)
    if path.suffix != ".json":
        return FloorPlan.load(path)
    text = read_text(path)
    try:
        return plan_from_text(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _line(given: Any, name: str) -> np.ndarray:
    try:
        ends = np.asarray(given, float)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (2, 2) or not np.isfinite(ends).all() or (ends[0] == ends[1]).all():
        raise InputError(f"{name} must be two different points, not {given}")
    return ends


def _sheets_of(house: Building) -> tuple[tuple[Sheet, ...], tuple[SheetJoint, ...]]:
    shapely = shapely_library()
    names = list(house.storeys)
    strips = [_strip(shapely, flight) for flight in house.stairs]
    polygons = []
    for name in names:
        mine = [strips[k] for k, flight in enumerate(house.stairs) if name in (flight.lower, flight.upper)]
        cut = shapely.difference(house.storeys[name].polygon, shapely.union_all(mine)) if mine else None
        polygons.append(house.storeys[name].polygon if cut is None else _without_slivers(shapely, cut, name))
    polygons += strips
    joints = []
    for k, flight in enumerate(house.stairs):
        for storey, end in ((flight.lower, flight.foot), (flight.upper, flight.head)):
            joints.append(SheetJoint((names.index(storey), len(names) + k), np.array(end)))
            side = "foot" if end is flight.foot else "head"
            _check_joint(shapely, polygons[names.index(storey)], joints[-1].ends, f"{side} of {flight.name}", storey)
    sides = [segments_of(polygon) for polygon in polygons]
    walls = [_walls(shapely, polygon, [j.ends for j in joints if k in j.sheets]) for k, polygon in enumerate(polygons)]
    sheets = []
    for k, polygon in enumerate(polygons):
        beyond = {}
        for other in {a + b - k for a, b in (joint.sheets for joint in joints) if k in (a, b)}:
            lines = shapely.multilinestrings(list(walls[other])) if len(walls[other]) else shapely.MultiLineString()
            own = shapely.buffer(shapely.boundary(polygon), _SAME)
            beyond[other] = segments_of_lines(shapely.difference(lines, own))
        sheets.append(Sheet(polygon, sides[k], walls[k], beyond=beyond, **_nature(house, names, k)))
    return tuple(sheets), tuple(joints)


def _nature(house: Building, names: list[str], k: int) -> dict[str, Any]:
    """Name, height and speeds of a sheet."""
    if k < len(names):
        return {"name": names[k], "height": (house.heights[names[k]], 0.0, 0.0)}
    flight = house.stairs[k - len(names)]
    low, high = house.heights[flight.lower], house.heights[flight.upper]
    if low > high:
        raise InputError(f"stairs: {flight.name}: the lower storey is at {low:g} m, the upper one at {high:g} m")
    foot, head = np.array(flight.foot), np.array(flight.head)
    # The plane through the middles of foot and head, level across.
    along = head.mean(axis=0) - foot.mean(axis=0)
    rise = (high - low) * along / (along @ along)
    base = low - float(rise @ foot.mean(axis=0))
    return {
        "name": flight.name,
        "height": (base, float(rise[0]), float(rise[1])),
        "up": flight.up,
        "down": flight.down,
    }


def _strip(shapely: Any, flight: Stairs) -> Any:
    corners = np.array([*flight.foot, *flight.head])
    strip = shapely.convex_hull(shapely.multipoints(corners))
    ends = [shapely.linestrings(np.array(line)) for line in (flight.foot, flight.head)]
    middles = [shapely.line_interpolate_point(line, 0.5, normalized=True) for line in ends]
    rim = shapely.boundary(strip)
    if strip.geom_type != "Polygon" or any(shapely.distance(rim, middle) > _SAME for middle in middles):
        raise InputError(f"stairs: {flight.name}: foot {flight.foot} and head {flight.head} do not face each other")
    return strip


def _without_slivers(shapely: Any, polygon: Any, name: str) -> Any:
    parts = shapely.get_parts(polygon)
    kept = parts[shapely.area(parts) > _NEAR * shapely.length(parts)]
    if len(kept) == 0:
        raise InputError(f"stairs: nothing of the storey {name!r} is left beside them")
    return kept[0] if len(kept) == 1 else shapely.multipolygons(list(kept))


def _check_joint(shapely: Any, polygon: Any, ends: np.ndarray, what: str, storey: str) -> None:
    line = shapely.linestrings(ends)
    on = shapely.intersection(shapely.boundary(polygon), shapely.buffer(line, _NEAR, cap_style="flat"))
    length = shapely.length(line)
    if shapely.length(on) < length - 4.0 * _NEAR:
        raise InputError(f"stairs: the {what} does not lie along the floor of {storey!r}")


def _walls(shapely: Any, polygon: Any, joints: list[np.ndarray]) -> np.ndarray:
    rim = shapely.boundary(polygon)
    if not joints:
        return segments_of(polygon)
    for ends in joints:
        rim = shapely.difference(rim, shapely.buffer(shapely.linestrings(ends), _NEAR, cap_style="flat"))
    return segments_of_lines(rim)
