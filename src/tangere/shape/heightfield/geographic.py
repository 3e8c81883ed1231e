"""Maps in degrees, and in Web Mercator: how long a degree or a unit is, east and north, where the map is.

Question: how far apart, in metres, are the samples of a map whose coordinates are longitude and latitude, or "metres"
          that get shorter towards the poles?
Method:   the radii of curvature of the WGS 84 ellipsoid at the latitude of the map's middle: north by the meridian,
          east by the parallel. Samples stay where they are, no height is interpolated.
Sound:    a degree east gets shorter towards the poles. Maps on which it changes by more than 2 % from the middle to a
          border are refused, with the UTM zone to project them to.
Known as: the local equirectangular projection (plate carrée with a standard parallel).
"""

from __future__ import annotations

import math

from tangere.runtime import InputError

#: The WGS 84 ellipsoid: its equatorial radius [m] and the square of its eccentricity.
_RADIUS, _ECCENTRICITY2 = 6378137.0, 6.69437999014e-3
#: How much the length of a degree east may change from the middle to a border.
_LARGEST_CHANGE = 0.02


def metres_per_degree(middle: tuple[float, float], half_height: float, name: str) -> tuple[float, float]:
    """How long a degree is, east and north, in the middle of a map [m].

    Args:
        middle: longitude and latitude of the map's middle [degrees].
        half_height: from the middle to its northern and southern border [degrees].
        name: of the file, for errors.
    """
    longitude, latitude = middle
    borders = [latitude - half_height, latitude + half_height]
    if not all(math.isfinite(v) and abs(v) < 90.0 for v in (latitude, *borders)):
        raise InputError(f"Heightfield {name!r}: a map in degrees must lie between the poles, not around {latitude:g}")
    here = _east(latitude)
    if max(abs(_east(border) / here - 1.0) for border in borders) > _LARGEST_CHANGE:
        zone = int((longitude + 180.0) // 6.0) % 60 + 1
        code = (32600 if latitude >= 0.0 else 32700) + zone
        raise InputError(
            f"Heightfield {name!r}: the map is too high ({2.0 * half_height:.3g} degrees of latitude) for one scale;"
            f" cut it, or project it to metres first: gdalwarp -t_srs EPSG:{code} {name} projected.tif"
        )
    return here, _north(latitude)


def metres_per_mercator_unit(middle: tuple[float, float], half_height: float, name: str) -> tuple[float, float]:
    """How long a unit of Web Mercator (EPSG:3857), called a metre, is east and north in the middle of a map [m].

    Args:
        middle: of the map [units].
        half_height: from the middle to its northern and southern border [units].
        name: of the file, for errors.
    """
    low, latitude, high = (
        math.degrees(math.atan(math.sinh((middle[1] + side * half_height) / _RADIUS))) for side in (-1, 0, 1)
    )
    place = math.degrees(middle[0] / _RADIUS), latitude
    east, north = metres_per_degree(place, max(high - latitude, latitude - low), name)
    unit = math.degrees(1.0 / _RADIUS)
    return east * unit, north * unit * math.cos(math.radians(latitude))


def _east(latitude: float) -> float:
    sine = math.sin(math.radians(latitude))
    across = _RADIUS / math.sqrt(1.0 - _ECCENTRICITY2 * sine * sine)
    return math.radians(across * math.cos(math.radians(latitude)))


def _north(latitude: float) -> float:
    sine = math.sin(math.radians(latitude))
    return math.radians(_RADIUS * (1.0 - _ECCENTRICITY2) / (1.0 - _ECCENTRICITY2 * sine * sine) ** 1.5)
