"""A rigid body: what it is made of, where it starts, and what holds or drives it.

Any mesh is a body. A closed one that faces outwards is a solid of its density, and one that faces inwards is refused;
any other is a shell: its triangles weigh density times thickness. Bodies are also cylinders, spheres and the other
analytic bodies, and a height grid is ground.
Fixed bodies never move, driven ones move as they are told, whatever they meet; of all others single axes may be held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from tangere.dynamics.analytic.analytic_body import check_one, mass_of, surface_of
from tangere.dynamics.joint import LARGEST
from tangere.motion import as_poses
from tangere.runtime import (
    Arrays,
    InputError,
    check_kind,
    described,
    not_negative,
    positive,
    to_numpy,
    view_room,
    whole,
)
from tangere.shape.analytic import HULL, Analytic, ConvexMesh
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import MassProperties, Mesh

#: Of a body that does not say [kg/m^3]: water.
DENSITY = 1000.0
#: Thickness of a shell that does not say, as part of its size.
SHELL_PART = 0.01
#: A body reaches at least so far [m]: below that single precision, in which boxes are kept, ends.
SMALLEST = 1e-36


@dataclass(frozen=True, eq=False, repr=False)
class Body:
    """A rigid body at the start of a simulation.

    Args:
        mesh: its surface, which touches others; open ones, sheets and non-manifold ones too. Or an analytic body, one
            `Cylinder`, `Sphere`, `Capsule`, `Cone`, `Box` or `ConvexMesh`: solid, and what its formula says, whatever
            it meets. Or a `Heightfield`: ground, which never moves.
        pose: where it starts, shape (4, 4), a rotation and an offset [m]; None means where the mesh is. If it is given,
            an analytic body that is placed (`shape.at(pose)`) stays there in the frame of the body.
        density: [kg/m^3].
        mass: [kg], in the place of a density.
        thickness: of a shell [m]; None means a hundredth of its size.
        centre: of mass, (3,) in the mesh's frame [m]; None means that of the uniform body.
        inertia: (3, 3) about the centre of mass, along the mesh's axes [kg m^2]; None means that of the uniform body.
        fixed: True never moves; six truth values hold single axes of the world, x y z and the rotations about them.
        driven: moves at its velocity and spin, whatever it meets, and is held back only where nothing can yield.
        velocity: of the centre of mass at the start, (3,) [m/s].
        spin: angular velocity at the start, (3,) [rad/s].
        force, torque: that always act, at the centre of mass, (3,) [N], [N m].
        friction: coefficient of Coulomb friction; None means the world's. Two bodies have the geometric mean.
        restitution: of impacts, 0 to 1; None means the world's. Two bodies have the larger one.
        material: what it is made of, for the `materials` of a world.
        group: a whole number; bodies of one group are not compared with each other; None is no group.
        name: what to call it; None means the name of the mesh.

    Example:
        >>> import tangere as tg
        >>> from tangere.dynamics import Body
        >>> Body(tg.generate.box((1.0, 2.0, 3.0)), density=500.0, name="crate")
        Body('crate', 12 triangles, 3000 kg)
    """

    mesh: Mesh
    pose: Arrays = cast(Any, None)
    density: float = DENSITY
    mass: float = cast(float, None)
    thickness: float | None = None
    centre: Arrays = cast(Any, None)
    inertia: Arrays = cast(Any, None)
    fixed: Any = False
    driven: bool = False
    velocity: Arrays = (0.0, 0.0, 0.0)
    spin: Arrays = (0.0, 0.0, 0.0)
    force: Arrays = (0.0, 0.0, 0.0)
    torque: Arrays = (0.0, 0.0, 0.0)
    friction: float | None = None
    restitution: float | None = None
    material: str | None = None
    group: int | None = None
    name: str = cast(str, None)
    held: np.ndarray = field(init=False)  #: (6,) bool: x y z, and the rotations about them
    analytic: Analytic | None = field(init=False, default=None)  #: what it is by formula, if it was given so
    offset: np.ndarray = field(init=False, default_factory=lambda: np.eye(4))  #: where that is in the body's frame
    ground: Heightfield | None = field(init=False, default=None)  #: what it is, if ground

    def __post_init__(self) -> None:
        if isinstance(self.mesh, Analytic):
            self._take_analytic(self.mesh)
        elif isinstance(self.mesh, Heightfield):
            self._take_ground(self.mesh)
        check_kind(self.mesh, Mesh, "Body: mesh")
        self._put("name", self.mesh.name if self.name is None else str(self.name))
        self._check_reach(np.abs(self.mesh.vertices).max(), self._whose)
        self._put("pose", self._rigid_pose(np.eye(4) if self.pose is None else self.pose))
        for what in ("velocity", "spin", "force", "torque"):
            self._put(what, self._three(getattr(self, what), what))
        if self.friction is not None:
            not_negative(self.friction, f"{self._whose}: friction")
        if self.restitution is not None:
            check_restitution(self.restitution, f"{self._whose}: restitution")
        self._put("driven", yes_or_no(self.driven, f"{self._whose}: driven"))
        if self.group is not None:
            self._put("group", whole(self.group, f"{self._whose}: group"))
        if self.material is not None and not isinstance(self.material, str):
            raise InputError(f"{self._whose}: material is a name, not {described(self.material)}")
        if self.driven and self.fixed is True:
            raise InputError(f"{self._whose}: fixed bodies never move and driven ones do: choose one")
        self._put("held", self._held_axes(self.fixed))
        if self.driven and not self.held.all():
            self._put("held", np.ones(6, bool))
        self._put("fixed", bool(self.held.all()) and not self.driven)
        self._check_mass()

    def __repr__(self) -> str:
        kind = "fixed" if self.fixed else "driven" if self.driven else f"{self.mass:.6g} kg"
        return f"Body({self.name!r}, {len(self.mesh.faces)} triangles, {kind})"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: its surface; None where it cannot be drawn."""
        return view_room().png(self.mesh.at(self.pose))

    @property
    def moves(self) -> bool:
        """Whether contacts can move it."""
        return not self.held.all()

    @cached_property
    def size(self) -> float:
        """Diagonal of the box round its triangles [m]; vertices that none of them uses count for nothing."""
        return float(np.linalg.norm(np.ptp(self.mesh.vertices[np.unique(self.mesh.faces)], axis=0)))

    @property
    def is_shell(self) -> bool:
        """Whether its triangles have the mass, because they enclose nothing."""
        topology = self.mesh.topology
        return bool(topology.open_edge_count or topology.crowded_edge_count or not topology.is_oriented)

    @cached_property
    def form(self) -> Analytic:
        """What it is on ground: its formula, or the convex hull of its mesh."""
        return ConvexMesh(self.mesh) if self.analytic is None else self.analytic

    @cached_property
    def mass_properties(self) -> MassProperties:
        """Mass [kg], centre of mass [m] and inertia about it [kg m^2], in the mesh's frame."""
        if self.analytic is not None:
            uniform = mass_of(self.analytic, self.density, self.offset)
        elif self.is_shell:
            thickness = SHELL_PART * self.size if self.thickness is None else self.thickness
            uniform = self.mesh.sheet_mass_properties(self.density * thickness)
        else:
            uniform = self.mesh.mass_properties(self.density)
        mass = uniform.mass if self.mass is None else float(self.mass)
        centre = uniform.centre if self.centre is None else self._three(self.centre, "centre")
        if self.inertia is not None:
            return MassProperties(mass, uniform.volume, centre, self._checked_inertia(self.inertia))
        offset = centre - uniform.centre
        inertia = uniform.inertia * (mass / uniform.mass)
        inertia = inertia + mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
        return MassProperties(mass, uniform.volume, centre, inertia)

    # -- checks --------------------------------------------------------------------------------------------------------

    @property
    def _whose(self) -> str:
        return f"Body {self.name!r}"

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @staticmethod
    def _check_reach(length: float, whose: str) -> None:
        """Raise where a body is too large to be told from others, or too small."""
        if length > LARGEST:
            raise InputError(f"{whose} reaches {length:g} m from its origin, more than {LARGEST:g}, the most it may")
        if 0.0 < length < SMALLEST:
            raise InputError(f"{whose} reaches {length:g} m from its origin, less than {SMALLEST:g}, the least it may")

    def _take_analytic(self, shape: Analytic) -> None:
        name = type(shape).__name__.lower() if self.name is None else str(self.name)
        check_one(shape, f"Body {name!r}")
        lengths = np.append(shape.records["half"][0], shape.records["radius"][0])
        self._check_reach(np.abs(lengths).max(), f"Body {name!r}")
        placed = to_numpy(shape.poses, f"Body {name!r}: pose")[0]
        if self.pose is None:
            self._put("pose", placed)
        else:
            self._put("offset", placed)
        self._put("analytic", Analytic.joined([shape]))
        self._put("mesh", surface_of(self.analytic, name, self.offset))

    @property
    def is_curved(self) -> bool:
        """Whether it is what its formula says and triangles are not: boxes and hulls meet others by their triangles."""
        return self.analytic is not None and self.analytic.kind != HULL

    def by_formula_at(self, pose: np.ndarray) -> Analytic | None:
        """The analytic body that it is where its frame is at a pose, (4, 4) or (n, 4, 4); None for a mesh."""
        return None if self.analytic is None else self.analytic.at(pose @ self.offset)

    def _take_ground(self, field: Heightfield) -> None:
        name = field.name if self.name is None else str(self.name)
        if self.pose is not None or self.driven:
            raise InputError(f"Body {name!r} is ground: it has no pose but its grid's, and is not driven")
        self._put("ground", field)
        self._put("mesh", field.to_mesh())
        self._put("fixed", True)
        self._put("name", name)

    def _check_mass(self) -> None:
        if not self.moves:
            self._put("mass", np.inf if self.mass is None else self.mass)
            return
        if self.mass is not None:
            positive(self.mass, f"{self._whose} moves: mass")
        else:
            positive(self.density, f"{self._whose} moves: density")
        if self.thickness is not None:
            positive(self.thickness, f"{self._whose}: thickness")
        if self.centre is not None and np.abs(self._three(self.centre, "centre")).max() > LARGEST:
            raise InputError(f"{self._whose}: centre is farther than {LARGEST:g} m from its origin")
        if not self.size > 0.0:
            raise InputError(f"{self._whose}: its triangles are all in one point")
        found = self.mass_properties
        self._put("mass", found.mass)
        least = np.linalg.eigvalsh(found.inertia).min()
        if not least > 0.0:
            raise InputError(
                f"{self._whose}: its inertia has a moment of {least:.3g} kg m^2, so nothing resists turning"
            )

    def _checked_inertia(self, given: Any) -> np.ndarray:
        array = to_numpy(given, f"{self._whose}: inertia")
        if array.shape != (3, 3) or not np.isfinite(array).all():
            raise InputError(f"{self._whose}: inertia must be (3, 3) finite numbers, not {described(given)}")
        scale = np.abs(array).max()
        if not np.allclose(array, array.T, atol=1e-9 * scale):
            raise InputError(f"{self._whose}: inertia must be symmetric")
        if not possible_moments(array):
            moments = np.linalg.eigvalsh(array)
            told = ", ".join(f"{moment:.4g}" for moment in moments)
            raise InputError(f"{self._whose}: no body has the moments of inertia {told} kg m^2")
        return 0.5 * (array + array.T)

    def _three(self, given: Any, what: str) -> np.ndarray:
        array = to_numpy(given, f"{self._whose}: {what}")
        if array.shape != (3,) or not np.isfinite(array).all():
            raise InputError(f"{self._whose}: {what} must be three finite numbers, not {described(given)}")
        return array

    def _held_axes(self, fixed: Any) -> np.ndarray:
        array = to_numpy(fixed, f"{self._whose}: fixed", dtype=None)
        if array.shape not in ((), (6,)) or array.dtype != bool:
            raise InputError(f"{self._whose}: fixed is True, False or six of them, not {described(fixed)}")
        return np.array(np.broadcast_to(array, 6))

    def _rigid_pose(self, pose: Any) -> np.ndarray:
        matrix = as_poses(pose, f"{self._whose}: pose")
        if matrix.shape != (4, 4):
            raise InputError(f"{self._whose}: pose must have shape (4, 4), not {matrix.shape}")
        return matrix


def possible_moments(inertia: np.ndarray) -> bool:
    """Whether a body can have an inertia, (3, 3): all moments are positive, and none is above the sum of the others."""
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] > 0.0 and moments[2] <= (moments[0] + moments[1]) * (1.0 + 1e-6))


def yes_or_no(value: Any, name: str) -> bool:
    """True or False, and nothing that could be taken for one of them."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is True or False, not {described(value)}")
    return bool(value)


def check_restitution(value: Any, name: str) -> float:
    """A number from 0, nothing bounces, to 1."""
    given = not_negative(value, name)
    if given > 1.0:
        raise InputError(f"{name} must be between 0 and 1, not {described(value)}")
    return given
