"""Units of mesh files: what a length in a file is in metres, and files whose unit may have been mistaken.

Question: how long is 1 in this file?
Method:   formats that say (3MF, COLLADA) or fix it (glTF, STEP through cascadio, which gives metres) are believed; the
          others (.stl, .ply, .obj, .off …) say nothing and are taken as metres unless the caller tells.
          Bodies of one question whose sizes differ 300-fold, one of them from a file that says nothing, are doubted:
          a part in millimetres taken as metres is 1000 times too large.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.runtime import InputError, described

if TYPE_CHECKING:
    from tangere.shape.mesh.mesh import Mesh

#: Bodies of one question are this much larger than others only if somebody has mistaken a unit, or seldom.
DOUBTFUL = 300.0
#: Formats that say their unit, or have always the same.
KNOWING = (".3mf", ".dae", ".glb", ".gltf", ".step", ".stp", ".npz")


@dataclass(frozen=True)
class LengthUnit:
    """A length: `metres` of it make one, or one has `per_metre` of it; whichever is a short number is exact."""

    name: str
    metres: float
    per_metre: float = 0.0  #: 0 where `metres` is the exact one

    def to_metres(self, lengths: np.ndarray) -> np.ndarray:
        """Lengths [m]; the array itself if they are metres already."""
        if self.metres == 1.0:
            return lengths
        return lengths / self.per_metre if self.per_metre else lengths * self.metres


METRE = LengthUnit("metres", 1.0)
_UNITS = {
    ("m", "meter", "meters", "metre", "metres"): METRE,
    ("mm", "millimeter", "millimeters", "millimetre", "millimetres"): LengthUnit("millimetres", 1e-3, 1e3),
    ("cm", "centimeter", "centimeters", "centimetre", "centimetres"): LengthUnit("centimetres", 1e-2, 1e2),
    ("um", "micron", "microns", "micrometer", "micrometre"): LengthUnit("micrometres", 1e-6, 1e6),
    ("km", "kilometer", "kilometre"): LengthUnit("kilometres", 1e3),
    ("in", "inch", "inches"): LengthUnit("inches", 0.0254),
    ("ft", "foot", "feet"): LengthUnit("feet", 0.3048),
}
_BY_NAME = {name: unit for names, unit in _UNITS.items() for name in names}


@dataclass(frozen=True)
class MeshSource:
    """The file a mesh comes from, and in which unit its lengths were taken."""

    file: str
    unit: LengthUnit = METRE
    known: bool = True  #: whether the file or the caller has said so; else metres were assumed

    @property
    def units(self) -> str:
        """The unit in words, and whether it was assumed."""
        return self.unit.name if self.known else f"{self.unit.name} (assumed: the file does not say)"


def named_unit(name: str) -> LengthUnit:
    """The unit that goes by this name: "m", "mm", "cm", "um", "km", "inch", "ft", or written out."""
    found = _BY_NAME.get(name.strip().lower()) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(names[0] if names[0] != "in" else names[1] for names in _UNITS)
        raise InputError(f"units must be one of {known}, not {described(name)}")
    return found


def unit_in_file(told: str | None) -> LengthUnit | None:
    """The unit as a reader tells it, "millimeter" or "0.01 * meters"; None if it is none we know."""
    if told is None:
        return None
    number, times, name = told.rpartition("*")
    unit = _BY_NAME.get(name.strip().lower())
    if unit is None or not times:
        return unit
    try:
        metres = float(number) * unit.metres
    except ValueError:
        return None
    known = next((each for each in _UNITS.values() if np.isclose(each.metres, metres, rtol=1e-9)), None)
    return (known or LengthUnit(f"units of {metres:g} m", metres)) if metres > 0.0 else None


def says_its_unit(suffix: str) -> bool:
    """Whether files with this suffix say their unit, or have always the same."""
    return suffix.lower() in KNOWING


def doubted_units(*bodies: Any) -> str | None:
    """What to tell the user, once, of bodies of one question whose sizes are too different; None if nothing.

    Args:
        bodies: meshes, at rest or moving, and lists of them; anything else is passed over.
    """
    things = list(_meshes(bodies))
    unsure = [mesh for mesh in things if mesh.source is not None and not mesh.source.known]
    if not unsure or len(things) < 2:
        return None
    asked = ("units compared", frozenset(id(mesh.topology) for mesh in things))
    if asked in unsure[0].topology.cache:
        return None
    unsure[0].topology.cache[asked] = True
    sizes = [(mesh.extent, mesh) for mesh in things if mesh.extent > 0.0]
    if not sizes:
        return None
    (small, one), (large, other) = min(sizes, key=lambda each: each[0]), max(sizes, key=lambda each: each[0])
    blamed = next((mesh for mesh in (other, one) if mesh.source is not None and not mesh.source.known), None)
    if large < DOUBTFUL * small or blamed is None or blamed.source is None:
        return None
    return (
        f"{other.name!r} ({large:.3g} m) is {large / small:.0f} times as large as {one.name!r} ({small:.3g} m):"
        f" the file {blamed.source.file!r} does not say its unit and was taken as metres;"
        " if that is wrong, load it with units='mm' or what it is (--units mm)"
    )


def warn_of_doubted_units(*bodies: Any) -> None:
    """A `UserWarning` if sizes of bodies of one question make it likely that a file's unit was mistaken."""
    told = doubted_units(*bodies)
    if told is not None:
        warnings.warn(told, UserWarning, stacklevel=3)


def _meshes(bodies: Iterable[Any]) -> Iterator[Mesh]:
    for body in bodies:
        if isinstance(body, list | tuple):
            yield from _meshes(body)
        elif hasattr(thing := getattr(body, "shape", body), "source"):
            yield thing
