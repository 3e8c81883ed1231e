"""A deformable body: what it is made of, what is held, and the surface it touches others with.

A solid of tetrahedra carries its own surface or any other one near it (a coarse solid, a fine surface: the collision
model apart from the degrees of freedom, Léonard 2021, section 2.7); a triangle mesh is a thin sheet, cloth or membrane,
and its own surface. With every vertex fixed a body is an obstacle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from tangere.runtime import Arrays, InputError, check_kind, not_negative, number, positive, to_numpy, view_room
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh

#: Of a solid that does not say [kg/m^3]: water, and about that of soft tissue.
SOLID_DENSITY = 1000.0
#: Of a sheet that does not say [kg/m^2]: a light cloth.
SHEET_DENSITY = 0.2


@dataclass(frozen=True, eq=False)
class Body:
    """A body at rest, ready to be simulated.

    Args:
        shape: a solid of tetrahedra, or a mesh that is a thin sheet; its vertices are the degrees of freedom. Sheets
            bend towards flat, whatever shape they are given: a thick and stiff one that is not flat is not at rest.
        surface: what touches others, moved along with a solid; None means the surface of the shape itself, or of the
            material.
        material: finer tetrahedra that a solid is made of and that a blade cuts, as `TetMesh.fill` makes them of a fine
            surface; each is in one of the shape, near its middle, and each of the shape has some. Mass and stiffness of
            the shape's are those of the material in them.
        youngs_modulus: [Pa].
        poisson: Poisson's ratio, 0 to 0.49; near 0.5 the solver needs many sweeps.
        density: [kg/m^3]; None means 1000 for a solid, as water, and what `areal_density` says for a sheet.
        areal_density: of a sheet, in the place of its density [kg/m^2]; None means density times thickness, and 0.2, a
            light cloth, where no density is given either.
        thickness: of a sheet [m]; it sets membrane stiffness and bending stiffness.
        damping: rate at which velocities fade [1/s].
        fixed: vertices of the shape that do not move: a mask (n,), numbers, or True for all of them.
        velocity: at the start, shape (3,) or (n, 3) [m/s].
        name: what to call it; None means the name of the shape.
        cuttable: whether it can be cut (`Simulation.cut`, `Blade`); a solid then has its own surface.
        snap: vertices nearer to a cut than this part of an edge are put on it, 0 to 0.4.
        kerf: width of a cut at rest [m]; None means a tenth of the contact distance, or less where elements are flat.

    Example:
        >>> import tangere as tg
        >>> from tangere.soft import Body
        >>> Body(tg.generate.sheet(200), fixed=[0, 10], name="flag")
        Body('flag', sheet of 121 vertices, 200 surface triangles)
    """

    shape: TetMesh | Mesh
    surface: Mesh = cast(Mesh, None)
    youngs_modulus: float = 1e4
    poisson: float = 0.4
    density: float = cast(float, None)
    thickness: float = 0.01
    damping: float = 0.0
    fixed: Arrays = False
    velocity: Arrays = (0.0, 0.0, 0.0)
    name: str | None = None
    areal_density: float | None = None
    cuttable: bool = False
    snap: float = 0.2
    kerf: float | None = None
    material: TetMesh | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shape, TetMesh | Mesh):
            raise InputError(f"Body: a shape is a TetMesh or a Mesh, not a {type(self.shape).__name__}")
        if self.name is None:
            object.__setattr__(self, "name", self.shape.name)
        if self.material is not None:
            self._check_material()
        if self.surface is None:
            inner = self.material or self.shape
            object.__setattr__(self, "surface", inner.surface if isinstance(inner, TetMesh) else inner)
        elif not self.is_solid:
            raise InputError(f"Body {self.name!r}: a sheet is its own surface; only a solid can carry another one")
        check_kind(self.surface, Mesh, f"Body {self.name!r}: surface")
        for what in ("youngs_modulus", "density", "areal_density", "thickness"):
            if getattr(self, what) is not None or what not in ("density", "areal_density"):
                positive(getattr(self, what), f"Body {self.name!r}: {what}")
        if not 0.0 <= number(self.poisson, f"Body {self.name!r}: poisson") <= 0.49:
            raise InputError(f"Body {self.name!r}: poisson must be between 0 and 0.49, not {self.poisson!r}")
        not_negative(self.damping, f"Body {self.name!r}: damping")
        self._set_densities()
        object.__setattr__(self, "fixed", self._mask(self.fixed))
        object.__setattr__(self, "velocity", self._start_velocity(self.velocity))
        self._check_cutting()
        if not self.is_solid:
            flat = np.flatnonzero(self.shape.face_areas <= 0.0)
            if len(flat):
                raise InputError(f"Body {self.name!r}: triangle {flat[0]} has no area and cannot be part of a sheet")

    def __repr__(self) -> str:
        kind = "solid" if self.is_solid else "sheet"
        return (
            f"Body({self.name!r}, {kind} of {len(self.shape.vertices)} vertices,"
            f" {len(self.surface.faces)} surface triangles)"
        )

    def _repr_png_(self) -> bytes | None:
        """For notebooks: its surface; None where it cannot be drawn."""
        return view_room().png(self.surface)

    @property
    def is_solid(self) -> bool:
        """Whether it is made of tetrahedra; else it is a thin sheet."""
        return isinstance(self.shape, TetMesh)

    @property
    def is_obstacle(self) -> bool:
        """Whether nothing of it can move."""
        return bool(self.fixed.all())

    @cached_property
    def vertex_mass(self) -> np.ndarray:
        """(n,) mass of each vertex of the shape [kg]: its share of the elements around it."""
        if self.is_solid:
            elements, size = self.shape.tets, self.shape.volumes * self.fractions
        else:
            elements, size = self.shape.faces, self.shape.face_areas * self.thickness
        corners = elements.shape[1]
        share = np.repeat(self.density * size / corners, corners)
        return np.bincount(elements.ravel(), share, len(self.shape.vertices))

    @cached_property
    def homes(self) -> np.ndarray:
        """(n,) the tetrahedron of the shape that each one of the material is in."""
        assert isinstance(self.shape, TetMesh)
        assert self.material is not None
        middles = self.material.vertices[self.material.tets].mean(axis=1)
        corners = np.concatenate([np.sort(self.shape.tets, axis=1), np.sort(self.shape.weights_at(middles)[0], axis=1)])
        _, name = np.unique(corners, axis=0, return_inverse=True)
        number, count = np.zeros(len(corners), np.int64), len(self.shape.tets)
        number[name.ravel()[:count]] = np.arange(count)
        return number[name.ravel()[count:]]

    @cached_property
    def fractions(self) -> np.ndarray:
        """(m,) which part of each tetrahedron of the shape there is material in."""
        assert isinstance(self.shape, TetMesh)
        if self.material is None:
            return np.ones(len(self.shape.tets))
        return np.bincount(self.homes, self.material.volumes, len(self.shape.tets)) / self.shape.volumes

    @cached_property
    def carriers(self) -> tuple[np.ndarray, np.ndarray]:
        """The vertices of the shape, (k, 4), and their weights, (k, 4), that move each vertex of the surface."""
        if self.is_solid and self.surface is not self.shape.surface:
            return self.shape.weights_at(self.surface.vertices)
        own = self.shape.surface_vertices if self.is_solid else np.arange(len(self.shape.vertices), dtype=np.int32)
        return np.repeat(own[:, None], 4, axis=1), np.tile([1.0, 0.0, 0.0, 0.0], (len(own), 1))

    @cached_property
    def wall_vertices(self) -> np.ndarray:
        """(k,) bool: which vertices of the surface are on walls that a blade has opened."""
        return np.zeros(len(self.surface.vertices), bool)

    @cached_property
    def wall_faces(self) -> np.ndarray:
        """(f,) bool: which triangles of the surface are walls that a blade has opened."""
        return np.zeros(len(self.surface.faces), bool)

    @cached_property
    def mass_per_area(self) -> float:
        """What a surface vertex weighs in contacts, by the area around it [kg/m^2]; cuts do not change it."""
        return float(self.vertex_mass.sum() / self.surface.face_areas.sum())

    @cached_property
    def origin(self) -> Body:
        """The body that it was cut off, as it was given; itself if it was not."""
        return self

    def piece(
        self,
        shape: TetMesh | Mesh,
        surface: Mesh,
        carriers: tuple[np.ndarray, np.ndarray],
        *,
        fixed: np.ndarray,
        walls: tuple[np.ndarray, np.ndarray],
        name: str | None = None,
        material: tuple[TetMesh, np.ndarray] | None = None,
    ) -> Body:
        """A body of the same material in another shape: what a cut leaves of it.

        Args:
            carriers: of its surface vertices, see `carriers`.
            walls: which of its surface vertices, and of its triangles, a blade has opened.
            material: the finer tetrahedra that it is made of, and `fractions`.
        """
        made = object.__new__(Body)
        made.__dict__.update({key: self.__dict__[key] for key in self.__dataclass_fields__})
        velocity = np.zeros((len(shape.vertices), 3))
        made.__dict__.update(shape=shape, surface=surface, fixed=fixed, velocity=velocity, name=name or self.name)
        made.__dict__.update(carriers=carriers, wall_vertices=walls[0], wall_faces=walls[1])
        if material is not None:
            made.__dict__.update(material=material[0], fractions=material[1])
        made.__dict__.update(mass_per_area=self.mass_per_area, origin=self.origin)
        return made

    def sweeps_needed(self, dt: float) -> int:
        """Sweeps after which a step of `dt` [s] is near its solution: 5.5 for every edge that sound crosses.

        3.5 would do for 10 % of error, but long thin bodies gain energy then: a knot of 1e5 Pa 8 % with 4.8, 3 %
        with 5, nothing with 5.4. Where one edge in ten is less than half as long as most, as in ribbons, those short
        edges count. Narrow ribbons that are violently shaken may gain energy even so, a quarter in the worst case seen.
        """
        if self.is_obstacle:
            return 0
        edges = self.shape.vertices[self.shape.edges]
        short, edge = np.quantile(np.linalg.norm(edges[:, 0] - edges[:, 1], axis=1), [0.1, 0.5])
        edge = edge if edge < 2.0 * short else short
        return int(np.ceil(5.5 * dt * np.sqrt(self.youngs_modulus / self.density) / edge))

    def _check_material(self) -> None:
        """Whether the shape can carry it."""
        check_kind(self.material, TetMesh, f"Body {self.name!r}: material")
        if not self.is_solid:
            raise InputError(f"Body {self.name!r}: only a solid can be made of finer tetrahedra, not a sheet")
        if self.surface is not None:
            raise InputError(f"Body {self.name!r}: material has a surface of its own; leave out the other one")
        empty = np.flatnonzero(self.fractions <= 0.0)
        if len(empty):
            raise InputError(
                f"Body {self.name!r}: tetrahedron {empty[0]} of the shape has no material in it; leave it out"
            )

    def _check_cutting(self) -> None:
        """Whether it can be cut, if it should."""
        if not isinstance(self.cuttable, bool | np.bool_):
            raise InputError(f"Body {self.name!r}: cuttable must be True or False, not {self.cuttable!r}")
        if not 0.0 <= number(self.snap, f"Body {self.name!r}: snap") <= 0.4:
            raise InputError(f"Body {self.name!r}: snap must be between 0 and 0.4, not {self.snap!r}")
        if self.kerf is not None:
            positive(self.kerf, f"Body {self.name!r}: kerf")
        if self.cuttable and self.is_solid and self.material is None and self.surface is not self.shape.surface:
            raise InputError(
                f"Body {self.name!r}: a solid that carries another surface cannot be cut; leave out the surface, or say"
                " material=TetMesh.fill(surface) in its place"
            )
        if self.cuttable and self.is_obstacle:
            raise InputError(f"Body {self.name!r}: nothing of it can move, so it cannot be cut")

    def _set_densities(self) -> None:
        """What is not given of density and areal density."""
        if self.is_solid:
            if self.areal_density is not None:
                raise InputError(f"Body {self.name!r}: a solid has a density [kg/m^3], no areal_density")
            density, areal = SOLID_DENSITY if self.density is None else self.density, None
        elif self.density is None:
            areal = SHEET_DENSITY if self.areal_density is None else self.areal_density
            density = areal / self.thickness
        elif self.areal_density is None:
            density, areal = self.density, self.density * self.thickness
        else:
            raise InputError(f"Body {self.name!r}: give density [kg/m^3] or areal_density [kg/m^2], not both")
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "areal_density", areal)

    def _mask(self, fixed: Arrays) -> np.ndarray:
        count = len(self.shape.vertices)
        array = to_numpy(fixed, f"Body {self.name!r}: fixed", dtype=None)
        if array.dtype == bool:
            if array.shape not in ((), (count,)):
                raise InputError(
                    f"Body {self.name!r}: the mask of fixed vertices has shape {array.shape}, not ({count},)"
                )
            return np.array(np.broadcast_to(array, count))
        if array.size == 0:
            return np.zeros(count, bool)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"Body {self.name!r}: fixed is a mask or a list of vertex numbers")
        if array.min() < 0 or array.max() >= count:
            wrong = array[(array < 0) | (array >= count)][0]
            raise InputError(f"Body {self.name!r}: vertex {wrong} cannot be fixed: there are {count} vertices")
        mask = np.zeros(count, bool)
        mask[array] = True
        return mask

    def _start_velocity(self, velocity: Arrays) -> np.ndarray:
        array = to_numpy(velocity, f"Body {self.name!r}: velocity")
        count = len(self.shape.vertices)
        if array.shape not in ((3,), (count, 3)):
            raise InputError(f"Body {self.name!r}: velocity has shape {array.shape}, not (3,) or ({count}, 3)")
        if not np.isfinite(array).all():
            raise InputError(f"Body {self.name!r}: a velocity is not finite")
        return np.where(self.fixed[:, None], 0.0, np.broadcast_to(array, (count, 3)))
