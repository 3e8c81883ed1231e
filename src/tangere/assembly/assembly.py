"""Assemblies: parts with names, where they are, and the questions asked of all of them.

Known as: an assembly (product structure) of instances of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import warp as wp

from tangere.assembly.clash import Clash, Clashes
from tangere.assembly.clash_search import DOUBLE, LEAST_SKIN, SINGLE, ClashSearch
from tangere.assembly.drawing import assembly_scene, clash_scene
from tangere.assembly.files import read_parts, unique_names
from tangere.assembly.part import Part, with_shared_shapes
from tangere.assembly.removal import Removals, find_removals
from tangere.motion import Rest
from tangere.query.clearance import check_accuracy
from tangere.runtime import Arrays, InputError, choose_device, described, not_negative, positive, using_threads
from tangere.scene import Scene
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, chord_error


class Assembly:
    """Parts and where they are.

    Args:
        parts: meshes by name, at rest or `mesh.moving(tg.Rest(pose))`; or a `Part` each.
        name: what to call it.
        chord_error: how far the facets may be from the surfaces they stand for [m]; None means as the facets look.

    Example:
        >>> import numpy as np, tangere as tg
        >>> box, beside = tg.generate.box([0.2, 0.2, 0.2]), np.eye(4)
        >>> beside[0, 3] = 0.19
        >>> found = tg.Assembly({"left": box, "right": box.moving(tg.Rest(beside))}).clashes(device="cpu")
        >>> found[0].kind.name, found[0].depth_lower <= 0.01 <= found[0].depth_upper
        ('HARD', True)
    """

    parts: tuple[Part, ...]
    name: str

    def __init__(
        self,
        parts: Mapping[str, Mesh | Moving] | Iterable[Part],
        *,
        name: str = "assembly",
        chord_error: float | None = None,
    ) -> None:
        if not isinstance(parts, Iterable):
            raise InputError(f"Assembly {name!r}: parts must be meshes by name, or a Part each, not {described(parts)}")
        given = [_part(key, thing) for key, thing in parts.items()] if isinstance(parts, Mapping) else list(parts)
        for number, part in enumerate(given):
            if not isinstance(part, Part):
                raise InputError(f"Assembly {name!r}: part {number} must be a Part, not {described(part)}")
        if not given:
            raise InputError(f"Assembly {name!r}: there are no parts")
        names = [part.name for part in given]
        if unique_names(names) != names:
            twice = next(one for one, unique in zip(names, unique_names(names), strict=True) if one != unique)
            raise InputError(f"Assembly {name!r}: two parts are called {twice!r}")
        self.parts, self.name = with_shared_shapes(given), name
        self._chord_error = None if chord_error is None else not_negative(chord_error, "chord_error")
        self._of_pose = DOUBLE  # to which part of them poses are known

    @classmethod
    def load(cls, path: str | PathLike[str], *, tolerance: float | None = None, units: str | None = None) -> Assembly:
        """Read an assembly, in metres.

        Args:
            path: a STEP file (extra [cad]), whose solids are cut into triangles; a .glb, .gltf, .3mf or .dae scene; a
                .urdf robot (extra [robot]), all joints at 0; or a folder of .stl, .ply, .obj or .off files.
            tolerance: of a STEP file: how far facets may be from its surfaces [m]; None means 1e-5.
            units: of a folder of meshes: "m", "mm", "inch" …; None means as for `Mesh.load`.
        """
        read = read_parts(path, tolerance, units)
        made = cls(read.parts, name=read.name, chord_error=read.tolerance)
        made._of_pose = SINGLE
        return made

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, name: str) -> Part:
        return self.parts[self.number_of(name)]

    def __repr__(self) -> str:
        triangles = sum(len(part.shape.faces) for part in self.parts)
        return f"Assembly({self.name!r}, {len(self)} parts of {len(self.shapes)} shapes, {triangles} triangles)"

    @property
    def shapes(self) -> tuple[Mesh, ...]:
        """The shapes there are, each once."""
        return tuple(dict.fromkeys(part.shape for part in self.parts))

    @property
    def chord_error(self) -> float:
        """How far the facets may be from the surfaces they stand for [m]: the tolerance of a STEP file, else the
        largest sagitta."""
        if self._chord_error is None:
            self._chord_error = max(chord_error(shape) for shape in self.shapes)
        return self._chord_error

    def number_of(self, part: str | int) -> int:
        """The number of a part; its name, its path or the number itself say which."""
        if isinstance(part, str):
            found = [k for k, each in enumerate(self.parts) if part in (each.name, each.path)]
            if len(found) != 1:
                known = "there is none" if not found else f"there are {len(found)}"
                raise InputError(f"Assembly {self.name!r}: {known} of the name {part!r}")
            return found[0]
        if isinstance(part, bool) or not isinstance(part, (int, np.integer)) or not 0 <= part < len(self):
            raise InputError(f"Assembly {self.name!r}: has {len(self)} parts, none of the number {described(part)}")
        return int(part)

    def numbers_of(self, name: str | int) -> list[int]:
        """The number of a part, or those of all parts below an assembly of that name within this one."""
        if isinstance(name, str) and not any(name in (part.name, part.path) for part in self.parts):
            below = [k for k, part in enumerate(self.parts) if name in part.path.split("/")[:-1]]
            if below:
                return below
        return [self.number_of(name)]

    def clashes(
        self,
        clearance: float = 0.0,
        skin: float | None = None,
        *,
        allowed: Iterable[tuple[str | int, str | int]] = (),
        depth: bool = True,
        accuracy: float = 0.05,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> Clashes:
        """All pairs of parts that clash: duplicate, inside, hard, touching, near.

        Args:
            clearance: parts nearer than this are near [m].
            skin: parts that are in each other no deeper than this only touch [m]; None means twice the chord error and
                the rounding of single precision. What is a little deeper at sharp edges may be either.
            allowed: pairs of parts, by name or number, that are not compared.
            depth: whether to find how deep hard clashes are, and a way out.
            accuracy: of the depth, as for `tg.depth`.
            device: where to compute; None means CUDA if present.
            threads: CPU threads; None means all, or TANGERE_THREADS.
        """
        not_negative(clearance, "clearance")
        check_accuracy(accuracy)
        touch, skin = self.touch, self.skin(skin)
        pairs = self._pairs(allowed)
        with using_threads(threads):
            search = ClashSearch(self.parts, touch, skin, choose_device(device))
            return search.find(float(clearance), pairs, depth, accuracy, self.chord_error)

    def _pairs(self, allowed: Any) -> set[tuple[int, int]]:
        """Pairs of parts by their numbers, the smaller first."""
        if isinstance(allowed, str) or not isinstance(allowed, Iterable):
            raise InputError(f"allowed must be pairs of parts, not {described(allowed)}")
        pairs = set()
        for k, pair in enumerate(allowed):
            both = list(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else []
            if len(both) != 2:
                raise InputError(f"allowed[{k}] must be two parts, by name or number, not {described(pair)}")
            a, b = sorted(map(self.number_of, both))
            if a == b:
                raise InputError(f"allowed[{k}] names one part twice: {described(pair)}")
            pairs.add((a, b))
        return pairs

    @property
    def touch(self) -> float:
        """Surfaces nearer than this meet: files of single precision know no better [m]. Poses that were given and not
        read are known to the last digit, coordinates of meshes may always come from a file."""
        return max(
            float(SINGLE * np.abs(part.shape.bounds).max() + self._of_pose * np.abs(part.pose[:3, 3]).max())
            for part in self.parts
        )

    def skin(self, given: float | None = None) -> float:
        """The depth to which parts only touch [m]: what is given, checked, or twice the chord error and rounding."""
        least = LEAST_SKIN * self.touch
        if given is None:
            return 2.0 * self.chord_error + least
        if positive(given, "skin") < least:
            raise InputError(f"skin must be at least {least:.3g} m, for coordinates of single precision, not {given:g}")
        return float(given)

    def removal(
        self,
        part: str | int,
        directions: int | Arrays = 6,
        skin: float | None = None,
        *,
        along: Iterable[str | int] = (),
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> Removals:
        """Which ways a part comes out of the assembly, straight, all others staying where they are.

        Args:
            part: by name or number; the name of an assembly within this one stands for all parts below it.
            directions: 6 along the axes, 26 with the edges and corners of a cube, or (m, 3) of your own.
            skin: contacts shallower than this are ignored [m], as for `clashes`.
            along: parts that go along with it: a bolt with its washer.
            device, threads: as for `clashes`.
        """
        if isinstance(along, str) or not isinstance(along, Iterable):
            raise InputError(f"along must be parts, by name or number, not {described(along)}")
        moved = list(dict.fromkeys(k for name in (part, *along) for k in self.numbers_of(name)))
        name = part if isinstance(part, str) else self.parts[moved[0]].name
        with using_threads(threads):
            return find_removals(name, self.parts, moved, directions, self.skin(skin), choose_device(device))

    def scene(self, clash: Clash | None = None) -> Scene:
        """All parts as a scene; or the two of a clash, the larger as glass, with a mark where it is."""
        return assembly_scene(self.parts, self.name) if clash is None else clash_scene(self.parts, clash)


def _part(name: Any, thing: Any) -> Part:
    if not isinstance(name, str):
        raise InputError(f"Assembly: parts have names, not {described(name)}")
    if isinstance(thing, Mesh):
        return Part(name, name, thing, np.eye(4))
    if isinstance(thing, Moving) and isinstance(thing.shape, Mesh) and isinstance(thing.motion, Rest):
        if thing.motion.shape:
            raise InputError(f"Assembly: part {name!r} has {thing.motion.shape[0]} poses, not one")
        return Part(name, name, thing.shape, thing.motion.pose(0.0))
    raise InputError(f"Assembly: part {name!r} must be a Mesh at rest, not {described(thing)}")
