"""Energy and momentum of rigid bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.dynamics.state import BodyConstants, RigidState


@dataclass(frozen=True)
class RigidEnergy:
    """Energies of all bodies that can move [J]."""

    kinetic: float
    gravitational: float  #: relative to the world's origin

    @property
    def total(self) -> float:
        """Both together."""
        return self.kinetic + self.gravitational


def energy_of(state: RigidState, table: BodyConstants, gravity: np.ndarray) -> RigidEnergy:
    """Kinetic and gravitational energy of what contacts can move."""
    kinetic, height = _energies(state, table, gravity)
    return RigidEnergy(float(kinetic.sum()), float(height.sum()))


def energies_of(state: RigidState, table: BodyConstants, gravity: np.ndarray) -> np.ndarray:
    """(n,) of each body; 0 for those that contacts cannot move."""
    kinetic, height = _energies(state, table, gravity)
    return kinetic + height


def _energies(state: RigidState, table: BodyConstants, gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mass, inertia, moves = _masses(state, table)
    velocity, position = state.velocity.numpy(), state.position.numpy()
    spin = velocity[:, 3:]
    kinetic = 0.5 * mass * (velocity[:, :3] ** 2).sum(axis=1) + 0.5 * np.einsum("ni,nij,nj->n", spin, inertia, spin)
    height = -mass * (position @ gravity)
    return np.where(moves, kinetic, 0.0), np.where(moves, height, 0.0)


def momentum_of(state: RigidState, table: BodyConstants) -> tuple[np.ndarray, np.ndarray]:
    """Linear [kg m/s], and angular about the world's origin [kg m^2/s], of what contacts can move."""
    mass, inertia, moves = _masses(state, table)
    velocity, position = state.velocity.numpy(), state.position.numpy()
    linear = mass[:, None] * velocity[:, :3]
    angular = np.cross(position, linear) + np.einsum("nij,nj->ni", inertia, velocity[:, 3:])
    return linear[moves].sum(axis=0), angular[moves].sum(axis=0)


def _masses(state: RigidState, table: BodyConstants) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses, inertia along the world's axes, and who can move."""
    rotation = state.rotation.numpy()
    inertia = rotation @ table.inertia.numpy() @ np.swapaxes(rotation, 1, 2)
    return table.mass.numpy(), inertia, (table.held.numpy() & 63) != 63
