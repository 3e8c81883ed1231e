"""Heights in and out of files: .npy and .npz, 16-bit .png (pillow), GeoTIFF (rasterio).

Pictures and maps have their first row at the top, or north; heightfields have it where y is smallest: rows are turned
round. A map has its heights in the middle of its pixels, so vertex (0, 0) is the middle of the last row's first pixel.
Maps in degrees and in Web Mercator become metres east and north of their middle (`geographic`), maps in feet metres.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, needs_extra
from tangere.shape.heightfield.geographic import metres_per_degree, metres_per_mercator_unit

_STEPS = 65535


@dataclass(frozen=True)
class FileHeights:
    """What a file says about a terrain; what it does not say has the default."""

    heights: np.ndarray
    spacing: tuple[float, float] = (1.0, 1.0)
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    holes: np.ndarray | None = None
    scale: float = 1.0  #: metres per unit
    offset: float = 0.0  #: height of a vertex that has 0 in the file [m]


def read_heights(path: str | PathLike[str]) -> FileHeights:
    """The heights in a file, lowest y first."""
    path = Path(fspath(path))
    readers = {".npy": _read_npy, ".npz": _read_npz, ".png": _read_png, ".tif": _read_tiff, ".tiff": _read_tiff}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"cannot read heights from {str(path)!r}: the known types are {', '.join(readers)}")
    if not path.is_file():
        raise InputError(f"Heightfield {path.name!r}: there is no file {str(path)!r}")
    return reader(path)


def write_heights(
    path: str | PathLike[str],
    heights: np.ndarray,
    spacing: tuple[float, float],
    origin: tuple[float, float, float],
    holes: np.ndarray | None,
) -> None:
    """Write heights as the suffix says: .npz (everything), .npy (heights only), .png (16 bits, all but holes)."""
    path = Path(fspath(path))
    kind = path.suffix.lower()
    if holes is not None and kind in (".npy", ".png"):
        raise InputError(f"cannot write {str(path)!r}: there are holes, which only .npz keeps")
    try:
        if kind == ".npy":
            np.save(path, heights, allow_pickle=False)
        elif kind == ".npz":
            mask = np.zeros((0, 0), bool) if holes is None else holes
            np.savez_compressed(path, heights=heights, spacing=spacing, origin=origin, holes=mask)
        elif kind == ".png":
            _write_png(path, heights, spacing, origin)
        else:
            raise InputError(f"cannot write {str(path)!r}: the known types are .npy, .npz, .png")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error


def _read_npy(path: Path) -> FileHeights:
    try:
        return FileHeights(np.load(path, allow_pickle=False))
    except (OSError, ValueError) as error:
        raise InputError(f"Heightfield {path.name!r}: cannot be read ({error})") from error


def _read_npz(path: Path) -> FileHeights:
    try:
        with np.load(path, allow_pickle=False) as parts:
            dx, dy = (float(v) for v in parts["spacing"])
            x, y, z = (float(v) for v in parts["origin"])
            holes = parts["holes"] if parts["holes"].size else None
            return FileHeights(parts["heights"], (dx, dy), (x, y, z), holes)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"Heightfield {path.name!r}: cannot be read ({error})") from error


def _read_png(path: Path) -> FileHeights:
    image_module = _pillow()
    try:
        with image_module.open(path) as picture:
            text = dict(getattr(picture, "text", {}))
            steps = np.array(picture)
    except (OSError, ValueError) as error:
        raise InputError(f"Heightfield {path.name!r}: cannot be read ({error})") from error
    if steps.ndim != 2:
        raise InputError(f"Heightfield {path.name!r}: a picture of heights has one channel, this one {steps.shape[-1]}")
    try:
        scale, offset = (float(text.get(name, default)) for name, default in (("scale", 1.0), ("offset", 0.0)))
        dx, dy = map(float, text.get("spacing", "1 1").split())
        x, y, z = map(float, text.get("origin", "0 0 0").split())
    except ValueError as error:
        raise InputError(f"Heightfield {path.name!r}: the text beside its heights is wrong ({error})") from error
    return FileHeights(steps[::-1].astype(np.float64), (dx, dy), (x, y, z), scale=scale, offset=offset)


def _write_png(path: Path, heights: np.ndarray, spacing: tuple[float, float], origin: tuple[float, ...]) -> None:
    image_module = _pillow()
    from PIL.PngImagePlugin import PngInfo

    lowest = float(heights.min())
    step = (float(heights.max()) - lowest) / _STEPS or 1.0
    steps = np.rint((heights[::-1].astype(np.float64) - lowest) / step).astype(np.uint16)
    text = PngInfo()
    for name, numbers in (("scale", [step]), ("offset", [lowest]), ("spacing", spacing), ("origin", origin)):
        text.add_text(name, " ".join(map(repr, numbers)))
    image_module.fromarray(steps).save(path, pnginfo=text)


def _read_tiff(path: Path) -> FileHeights:
    with needs_extra("rasterio", "terrain"):
        rasterio = import_module("rasterio")  # not installed with tangere itself
    try:
        with rasterio.open(path) as source:
            heights, valid, step = source.read(1)[::-1], source.read_masks(1)[::-1] > 0, source.transform
            system = source.crs
    except rasterio.errors.RasterioError as error:
        raise InputError(f"Heightfield {path.name!r}: cannot be read ({error})") from error
    if step.b or step.d or step.e >= 0.0:
        raise InputError(f"Heightfield {path.name!r}: the map is turned; only north-up maps can be read")
    holes = None
    if not valid.all():  # a cell without one of its corners is a hole
        holes = ~(valid[:-1, :-1] & valid[:-1, 1:] & valid[1:, :-1] & valid[1:, 1:])
        heights = np.where(valid, heights, heights[valid].min() if valid.any() else 0)
    x, y = step.c + 0.5 * step.a, step.f + (len(heights) - 0.5) * step.e
    if scale := _scale_of_map(system):
        middle = x + 0.5 * step.a * (heights.shape[1] - 1), y - 0.5 * step.e * (len(heights) - 1)
        east, north = scale(middle, 0.5 * abs(step.e) * (len(heights) - 1), path.name)
        x, y = (x - middle[0]) * east, (y - middle[1]) * north
        return FileHeights(heights, (step.a * east, -step.e * north), (x, y, 0.0), holes)
    metres = _metres_of_map(system)
    return FileHeights(heights, (step.a * metres, -step.e * metres), (x * metres, y * metres, 0.0), holes)


def _scale_of_map(system: Any) -> Callable[..., tuple[float, float]] | None:
    """What tells the scale of a map that has another one in every place; None of others."""
    if system is None:
        return None
    if system.is_geographic:
        return metres_per_degree
    try:
        return metres_per_mercator_unit if system.to_epsg() == 3857 else None
    except Exception:  # a system that nobody has described
        return None


def _metres_of_map(system: Any) -> float:
    """Metres of a unit of a map in plane coordinates; 1 where it does not say."""
    try:
        return float(system.linear_units_factor[1])
    except Exception:  # of a map without a system of coordinates, or with one that nobody has described
        return 1.0


def _pillow():
    with needs_extra("pillow", "view"):
        from PIL import Image
    return Image
