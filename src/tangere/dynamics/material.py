"""What surfaces do to each other: friction and restitution, by pair of materials or from what each body says.

A pair of materials that is listed has what the list says. Any other pair has the geometric mean of the two bodies'
friction and the larger restitution, as Box2D mixes them; a body that says nothing has the world's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.dynamics.body import Body, check_restitution
from tangere.runtime import InputError, described, not_negative


@dataclass(frozen=True)
class ContactMaterial:
    """What two materials do to each other where they meet.

    Args:
        friction: coefficient of Coulomb friction; None means as without this entry.
        restitution: of impacts, 0 to 1; None means as without this entry.
    """

    friction: float | None = None
    restitution: float | None = None

    def __post_init__(self) -> None:
        if self.friction is not None:
            not_negative(self.friction, "ContactMaterial: friction")
        if self.restitution is not None:
            check_restitution(self.restitution, "ContactMaterial: restitution")


#: Names of two materials, in any order, to what they do to each other.
Materials = Mapping[tuple[str, str], ContactMaterial]


@dataclass(frozen=True, eq=False)
class SurfaceKinds:
    """The kinds of surfaces of a world, and a table over pairs of them."""

    of_body: np.ndarray  #: (n,) int32, the kind of each body's surface
    friction: np.ndarray  #: (k, k)
    restitution: np.ndarray  #: (k, k)

    @staticmethod
    def of(bodies: Sequence[Body], friction: float, restitution: float, materials: Materials | None) -> SurfaceKinds:
        """The kinds that the bodies have.

        Args:
            friction, restitution: of bodies that say nothing.
            materials: of pairs that have something else.
        """
        listed = _checked(materials or {}, {body.material for body in bodies})
        own = [
            (
                body.material,
                friction if body.friction is None else float(body.friction),
                restitution if body.restitution is None else float(body.restitution),
            )
            for body in bodies
        ]
        kinds = list(dict.fromkeys(own))
        table = np.zeros((2, len(kinds), len(kinds)))
        for i, (first, friction_a, restitution_a) in enumerate(kinds):
            for j, (second, friction_b, restitution_b) in enumerate(kinds):
                said = listed.get(frozenset((first, second)), ContactMaterial())
                mixed = float(np.sqrt(friction_a * friction_b))
                table[0, i, j] = mixed if said.friction is None else said.friction
                larger = max(restitution_a, restitution_b)
                table[1, i, j] = larger if said.restitution is None else said.restitution
        number = {kind: k for k, kind in enumerate(kinds)}
        return SurfaceKinds(np.array([number[one] for one in own], np.int32), table[0], table[1])


def _checked(materials: Any, known: set[str | None]) -> dict[frozenset[str], ContactMaterial]:
    if not isinstance(materials, Mapping):
        raise InputError(f"materials must map pairs of names to a ContactMaterial, not be {described(materials)}")
    found: dict[frozenset[str], ContactMaterial] = {}
    for pair, material in materials.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(material, ContactMaterial)):
            raise InputError(f"materials: an entry is (name, name): ContactMaterial(…), not {described(pair)}")
        for name in pair:
            if name not in known:
                raise InputError(f"materials: no body is made of {name!r}")
        found[frozenset(pair)] = material
    return found
