"""Floor plans from drawings: layers of a DXF file, or the light pixels of an image.

Question: which area is enclosed by the lines of a drawing, and which of it is floor?
Method:   lines, polylines, arcs, circles, splines and hatches of the layers are made straight to a tolerance; where
          they cross they are cut, and ends that lie nearer to each other than `snap` are one. Outlines that lie in one
          another are floor and wall by turns, the outermost being floor; lines within an outline that they touch, and
          lines that enclose nothing, are walls of some thickness. An image is floor where it is light.
Known as: polygonization of a planar straight-line graph; even-odd rule; vectorization.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.runtime import InputError, MissingExtraError, positive

#: Metres of a unit of a drawing, by `$INSUNITS` of its header; 0: none is told.
_UNITS = {1: 0.0254, 2: 0.3048, 4: 0.001, 5: 0.01, 6: 1.0, 7: 1000.0, 14: 0.1, 13: 1e-6}
#: Where lines are cut, points are rounded to this [m].
_GRID = 1.0e-6
_ENTITIES = ("LINE", "LWPOLYLINE", "POLYLINE", "ARC", "CIRCLE", "ELLIPSE", "SPLINE", "HATCH", "INSERT")


def polygon_of_dxf(
    path: Path, layers: list[str] | None, unit: float | None, snap: float, thickness: float, tolerance: float = 1.0e-3
) -> Any:
    """What the lines of a DXF file enclose [m]."""
    try:
        ezdxf = import_module("ezdxf")
    except ImportError as error:
        raise MissingExtraError("ezdxf", "crowd") from error
    try:
        drawing = ezdxf.readfile(path)
    except (OSError, ezdxf.DXFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as DXF: {str(error).splitlines()[0]}") from error
    known = sorted({entity.dxf.layer for entity in drawing.modelspace()})
    if layers is not None:
        missing = [name for name in layers if name not in known]
        if missing:
            raise InputError(f"layers: {path} has no layer {missing[0]!r}, but {', '.join(map(repr, known))}")
    scale = positive(unit, "unit") if unit is not None else _UNITS.get(drawing.header.get("$INSUNITS", 0))
    if scale is None:
        raise InputError(f"{path}: the file does not tell its unit: give unit, how many metres one is")
    lines = []
    for entity in _entities(drawing.modelspace()):
        if layers is None or entity.dxf.layer in layers:
            lines += _lines_of(entity, tolerance / scale)
    if not lines:
        raise InputError(f"{path}: there are no lines on these layers; it has {', '.join(map(repr, known)) or 'none'}")
    return enclosed([scale * line for line in lines], snap, thickness, str(path))


def _entities(space: Any) -> Any:
    """All entities, blocks taken apart."""
    for entity in space:
        if entity.dxftype() == "INSERT":
            yield from _entities(entity.virtual_entities())
        elif entity.dxftype() in _ENTITIES:
            yield entity


def _lines_of(entity: Any, tolerance: float) -> list[np.ndarray]:
    """The entity as lines of points (n, 2), in units of the drawing."""
    paths = import_module("ezdxf.path")
    try:
        parts = paths.from_hatch(entity) if entity.dxftype() == "HATCH" else [paths.make_path(entity)]
        found = [np.array([(p.x, p.y) for p in part.flattening(tolerance)]) for part in parts]
    except (TypeError, ValueError):
        return []
    return [line for line in found if len(line) > 1 and np.isfinite(line).all()]


def enclosed(lines: list[np.ndarray], snap: float, thickness: float, name: str) -> Any:
    """The floor within lines (n, 2) [m]."""
    shapely = shapely_library()
    points, owner = np.concatenate(lines), np.repeat(np.arange(len(lines)), list(map(len, lines)))
    if snap > 0:
        points = _snapped(points, snap)
    joined = shapely.linestrings(points, indices=owner)
    cut = shapely.get_parts(shapely.union_all(joined[shapely.length(joined) > 0], grid_size=_GRID))
    outlines, inner = [], []
    for group in _connected(cut):
        faces = shapely.get_parts(shapely.polygonize(cut[group]))
        filled = shapely.union_all([shapely.Polygon(face.exterior) for face in faces])
        rim = shapely.boundary(filled)
        inner += [shapely.difference(line, rim, grid_size=_GRID) for line in cut[group]]
        outlines += list(shapely.get_parts(filled))
    if not outlines:
        raise InputError(f"{name}: its lines enclose nothing: are there gaps wider than snap, {snap:g} m?")
    # From the largest to the smallest: what lies in another is wall and floor by turns.
    outlines.sort(key=lambda outline: -outline.area)
    floor = outlines[0]
    for outline in outlines[1:]:
        floor = shapely.symmetric_difference(floor, outline, grid_size=_GRID)
    walls = shapely.union_all([line for line in inner if not line.is_empty])
    if not walls.is_empty:
        thick = shapely.buffer(walls, thickness / 2, cap_style="square", join_style="mitre")
        floor = shapely.difference(floor, thick, grid_size=_GRID)
    return floor


def _connected(lines: np.ndarray) -> list[np.ndarray]:
    """Lines that share ends, as lists of numbers."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    shapely = shapely_library()
    ends = np.concatenate([shapely.get_coordinates(shapely.get_point(lines, k)) for k in (0, -1)])
    node = np.unique(ends, axis=0, return_inverse=True)[1].ravel()
    count, one = int(node.max()) + 1, np.ones(len(lines))
    graph = coo_matrix((one, (node[: len(lines)], node[len(lines) :])), shape=(count, count))
    label = connected_components(graph, directed=False)[1][node[: len(lines)]]
    return [np.flatnonzero(label == k) for k in np.unique(label)]


def _snapped(points: np.ndarray, snap: float) -> np.ndarray:
    """Points of which those nearer than this to each other are one: the first of them."""
    from scipy.spatial import cKDTree

    tree, to = cKDTree(points), np.arange(len(points))
    for a, b in sorted(tree.query_pairs(snap)):
        to[b] = min(to[b], to[a])
    while (to != to[to]).any():
        to = to[to]
    return points[to]


def polygon_of_image(given: Any, pixel: float, light: float) -> Any:
    """Where an image is light: y is up, the least corner at (0, 0) [m]."""
    shapely = shapely_library()
    picture = np.asarray(given)
    if picture.dtype.kind not in "biuf":
        raise InputError(f"image must be numbers, not {picture.dtype}")
    top = float(np.iinfo(picture.dtype).max) if picture.dtype.kind in "iu" else 1.0
    if picture.ndim == 3:
        picture = picture[..., :3].mean(axis=2)
    if picture.ndim != 2 or picture.size == 0:
        raise InputError(f"image must be of shape (rows, columns) or (rows, columns, 3), not {np.shape(given)}")
    floor = np.pad(picture > light * top, 1)[::-1]
    if not floor.any():
        raise InputError("image: nothing in it is light enough to be floor")
    # Runs of each row as boxes: their union has the sides of pixels, straight ones as one.
    changes = np.diff(floor.astype(np.int8), axis=1)
    row, first = np.nonzero(changes == 1)
    last = np.nonzero(changes == -1)[1]
    side = positive(pixel, "pixel")
    boxes = shapely.box(first * side, (row - 1) * side, last * side, row * side)
    area = shapely.union_all(boxes, grid_size=side / 16)
    # Squares that touch at a corner only: such corners are walls.
    return shapely.simplify(shapely.buffer(area, -side * 1.0e-3, join_style="mitre"), side * 1.0e-6)


def read_image(path: Path) -> np.ndarray:
    """The pixels of a file."""
    try:
        pillow = import_module("PIL.Image")
    except ImportError as error:
        raise MissingExtraError("pillow", "view") from error
    try:
        with pillow.open(path) as picture:
            return np.asarray(picture.convert("L"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as an image: {error}") from error
