"""Oracles for deformable bodies: exact overlap and motion tests, and the energies written down once more in NumPy."""

from __future__ import annotations

import numpy as np

import tangere as tg
from tangere.broad_phase.deforming import Step
from tangere.query.first_contact.deforming.initial_overlap import first_overlap
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh
from tangere.soft import Simulation


def overlaps(simulation: Simulation) -> bool:
    """Whether any edge meets a face it has no vertex in common with, decided exactly."""
    return first_overlap(Step.of([Mesh.join(simulation.meshes())], "cpu")) is not None


def passes_through(before: list[Mesh], after: list[Mesh]) -> bool:
    """Whether anything touches anything while the surfaces go on straight lines from one state to the other."""
    end = np.concatenate([mesh.vertices for mesh in after])
    return bool(tg.first_contact(Mesh.join(before).moving(tg.Linear(end)), mode="exact", device="cpu"))


def solid_energy(solid: TetMesh, x: np.ndarray, young: float, nu: float) -> float:
    """mu/2 (|F|^2 - 3) + lam/2 ((J - a)^2 - (1 - a)^2), with F from edge vectors [J]."""
    mu = young / (2.0 * (1.0 + nu))
    lam = young * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) + mu
    a = 1.0 + mu / lam
    rest, now = (np.moveaxis(p[solid.tets][:, 1:] - p[solid.tets][:, :1], 1, 2) for p in (solid.vertices, x))
    f = now @ np.linalg.inv(rest)
    j = np.linalg.det(f)
    density = 0.5 * mu * ((f**2).sum(axis=(1, 2)) - 3.0) + 0.5 * lam * ((j - a) ** 2 - (1.0 - a) ** 2)
    return float(density @ np.abs(np.linalg.det(rest)) / 6.0)


def membrane_energy(mesh: Mesh, x: np.ndarray, young: float, nu: float, thickness: float) -> float:
    """The same in the plane of each triangle, with J the ratio of areas [J]."""
    mu = young / (2.0 * (1.0 + nu))
    lam = young * nu / (1.0 - nu**2) + mu
    a = 1.0 + mu / lam
    total = 0.0
    for face in mesh.faces:
        rest = (mesh.vertices[face[1:]] - mesh.vertices[face[0]]).T
        frame, in_plane = np.linalg.qr(rest)
        f = (x[face[1:]] - x[face[0]]).T @ np.linalg.inv(in_plane)
        j = np.sqrt(np.linalg.det(f.T @ f))
        area = 0.5 * abs(np.linalg.det(in_plane))
        total += area * thickness * (0.5 * mu * ((f**2).sum() - 2.0) + 0.5 * lam * ((j - a) ** 2 - (1.0 - a) ** 2))
    return total


def copy_strains(source, target) -> None:
    """What friction remembers: it belongs to the state, but `set_state`, which puts bodies elsewhere, forgets it."""
    of, to = (simulation._pipeline.rows.memory.bristles for simulation in (source, target))
    to.strain.assign(of.strain.numpy())
    to.partner.assign(of.partner.numpy())
    to.limit.assign(of.limit.numpy())
