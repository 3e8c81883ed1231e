"""Recession cones: which velocities carry every triangle below a node away from what is outside?

A triangle all of whose points move against its outward normal cannot take part in a first contact. A node keeps a few
recession vectors whose cone holds the normals of all triangles below it: whoever moves against all of them moves
against every normal (lemmas 1 and 2). No vectors mean: never cull (Redon 2002, sections 4.3 to 4.5).
Built:  "top-down" encloses all normals below a node, "bottom-up" the vectors of its children; by hulls
        (`hull`) or as printed (`tangere.published.redon_recession`). Any tree in preorder will do.
Sound:  for closed meshes that face outwards, each outside of the other at first (`initial_check`), up to the margin
        the tests in `culling` keep; of any other mesh, and of triangles without area, nothing is ever culled.
        A triangle that is culled must not take edges and corners along that a triangle beside it still needs.
Known as: hierarchical back-face culling for collision detection (Redon, Kheddar and Coquillart 2002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.bvh.obb.tree import PREPARED, ObbTree
from tangere.bvh.recession.hull import enclosing_cones
from tangere.runtime import InputError, choose_device, published
from tangere.shape.mesh import Mesh

#: Bytes of a vector and of the place where the vectors of a node begin.
VECTOR_BYTES, POINTER_BYTES = 24, 4


#: Counts and vectors: of the extreme directions of many sets, and of the few that enclose them.
Enclosed = tuple[list[np.ndarray], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class Branches:
    """A binary tree in preorder (the left child of node i is i + 1) and the triangles at its leaves."""

    right: np.ndarray  #: (N,) right child, 0 or less at a leaf
    first: np.ndarray  #: (N + 1,) where the triangles of each node begin; none above the leaves
    triangles: np.ndarray

    @staticmethod
    def of(tree: Any) -> Branches:
        """The branches of a tree of boxes, or of any other that tells its `branches()`."""
        if not isinstance(tree, ObbTree):
            return tree.branches()
        records = tree.nodes.numpy()
        right = records["right"]
        leaf = right <= 0
        return Branches(right, np.concatenate([[0], np.cumsum(leaf)]), records["triangle"][leaf])


@dataclass(frozen=True, eq=False)
class RecessionCones:
    """Recession vectors of every node of a tree, in the body's frame; node i has first[i] … first[i + 1]."""

    first: wp.array  #: (N + 1,) int32
    vectors: wp.array  #: (M,) vec3d, unit
    most: int  #: vectors a node may have

    @staticmethod
    def of(mesh: Mesh, tree: Any, *, most: int = 6, device: str | wp.Device | None = None) -> RecessionCones:
        """The cones of a tree of `mesh` by the hull builder, top-down, built when first asked for and kept."""
        device = choose_device(device)
        key = (RecessionCones, id(tree), most, device.alias)
        if key not in mesh.cache:
            prepared = mesh.cache.get(PREPARED)
            if prepared is not None and tree is prepared.tree and prepared.cones.most == most:
                cones = prepared.cones
            else:
                cones = RecessionCones.build(mesh, tree, most=most)
            # The tree is kept as well: its identity must not be given to another one.
            mesh.cache[key] = (cones.to(device), tree)
        return mesh.cache[key][0]

    @staticmethod
    def build(
        mesh: Mesh,
        tree: Any,
        *,
        most: int = 6,
        attach: Literal["top-down", "bottom-up"] = "top-down",
        builder: Literal["hull", "published"] = "hull",
        seed: int = 0,
    ) -> RecessionCones:
        """Build cones on the CPU.

        Args:
            tree: whose triangles are those of `mesh`: an `ObbTree`, `Branches`, or what tells its `branches()`.
            most: vectors a node may have (r_max), 1 or more; 6 in the thesis.
            attach: from all normals below, or from the vectors of the children.
            builder: "published" is the printed construction, random with `seed`, and slow.
        """
        if most < 1:
            raise InputError(f"most must be 1 or more, not {most}")
        if attach not in ("top-down", "bottom-up") or builder not in ("hull", "published"):
            raise InputError(f"no way to build cones {attach!r} with {builder!r}")
        branches = tree if isinstance(tree, Branches) else Branches.of(tree)
        counts, vectors = np.zeros(len(branches.right), np.int64), np.zeros((0, 3))
        if _faces_outwards(mesh):
            rng = np.random.default_rng(seed)

            def enclose(directions: np.ndarray, first: np.ndarray) -> Enclosed:
                if builder == "hull":
                    return enclosing_cones(directions, first, most)
                return published("redon_recession").published_cones(directions, first, most, rng)

            handed = "vectors" if attach == "bottom-up" else "extremes" if builder == "hull" else "normals"
            counts, vectors = _attached(branches, mesh.face_normals, enclose, handed)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return RecessionCones(
            wp.array(first, dtype=wp.int32, device="cpu"), wp.array(vectors, dtype=wp.vec3d, device="cpu"), most
        )

    def to(self, device: str | wp.Device) -> RecessionCones:
        """The same cones on another device."""
        return RecessionCones(self.first.to(device), self.vectors.to(device), self.most)

    @property
    def sizes(self) -> np.ndarray:
        """(N,) vectors of each node; 0 means: never cull."""
        return np.diff(self.first.numpy())

    @property
    def memory(self) -> int:
        """Bytes the cones take."""
        return int(self.first.capacity + self.vectors.capacity)


def surface_labels(mesh: Mesh) -> np.ndarray:
    """(m,) which connected surface each triangle is of, numbered from 0."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, faces = len(mesh.vertices), mesh.faces
    links = faces[:, [0, 0]].ravel(), faces[:, [1, 2]].ravel()
    _, label = connected_components(coo_array((np.ones(len(links[0]), bool), links), (count, count)), directed=False)
    return np.unique(label[faces[:, 0]], return_inverse=True)[1]


def _faces_outwards(mesh: Mesh) -> bool:
    """Whether the mesh is closed, oriented, and its triangles face outwards.

    A surface that faces inwards must be the wall of a hollow: inside of the others. Then the mesh winds round no point
    a negative number of times, so that all that borders on the outside faces it.
    """
    if not (mesh.topology.is_closed and mesh.topology.is_oriented):
        return False
    label, corners = surface_labels(mesh), mesh.vertices[mesh.faces]
    _, sample = np.unique(label, return_index=True)
    volumes = np.linalg.det(corners - corners[sample, :1][label])
    inwards = ~(np.bincount(label, volumes) > 1e-12 * np.bincount(label, np.abs(volumes)))
    return all(_windings(corners[sample[k], 0], corners[label != k]) > 0.5 for k in np.flatnonzero(inwards))


def _windings(point: np.ndarray, corners: np.ndarray) -> float:
    """How often triangles (m, 3, 3) wind round a point, by their solid angles."""
    x, y, z = np.moveaxis(corners - point, 1, 0)
    lengths = [np.linalg.norm(side, axis=1) for side in (x, y, z)]
    dots = [np.einsum("mi,mi->m", p, q) for p, q in ((y, z), (z, x), (x, y))]
    volume = np.einsum("mi,mi->m", x, np.cross(y, z))
    angles = np.arctan2(volume, np.prod(lengths, axis=0) + sum(d * r for d, r in zip(dots, lengths, strict=True)))
    return float(angles.sum() / (2.0 * np.pi))


def _attached(
    branches: Branches,
    normals: np.ndarray,
    enclose: Callable[[np.ndarray, np.ndarray], Enclosed],
    what: Literal["normals", "extremes", "vectors"],
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of all nodes, deepest first: how many each has (N,), and all of them in the order of the nodes.

    A node encloses what its children hand up: all normals below (top-down, as printed), the extreme ones, which span
    the same cone (top-down, quicker), or their vectors (bottom-up). If a child has nothing to hand up, neither has the
    node.
    """
    count = len(branches.right)
    handed = normals[branches.triangles]
    start, size = branches.first[:-1].astype(np.int64), np.diff(branches.first).astype(np.int64)
    flat = np.flatnonzero(~handed.any(axis=1))  # triangles without area have no normal: never cull
    size[np.searchsorted(branches.first, flat, side="right") - 1] = 0
    vector_start, vector_size, vectors = np.zeros(count, np.int64), np.zeros(count, np.int64), [np.zeros((0, 3))]
    for nodes in reversed(_levels(branches.right)):
        inner = branches.right[nodes] > 0
        one = np.where(inner, nodes + 1, nodes)
        other = np.where(inner, branches.right[nodes], nodes)
        sizes = np.stack([size[one], np.where(inner, size[other], 0)], axis=1)
        sizes[(size[one] == 0) | (size[other] == 0)] = 0
        first = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        below = handed[_ranges(np.stack([start[one], start[other]], axis=1).ravel(), sizes.ravel())]
        (extreme, directions), (enclosing, found) = enclose(below, first)
        up, upwards = (enclosing, found) if what == "vectors" else (extreme, directions)
        if what == "normals":
            culls = extreme > 0
            up, upwards = np.where(culls, np.diff(first), 0), below[np.repeat(culls, np.diff(first))]
        start[nodes], size[nodes] = len(handed) + np.cumsum(up) - up, up
        handed = np.concatenate([handed, upwards])
        vector_start[nodes], vector_size[nodes] = sum(map(len, vectors)) + np.cumsum(enclosing) - enclosing, enclosing
        vectors.append(found)
    return vector_size, np.concatenate(vectors)[_ranges(vector_start, vector_size)]


def _levels(right: np.ndarray) -> list[np.ndarray]:
    """The nodes of each depth."""
    levels, nodes = [], np.zeros(1, np.int64)
    while len(nodes):
        levels.append(nodes)
        inner = nodes[right[nodes] > 0]
        nodes = np.concatenate([inner + 1, right[inner]])
    return levels


def _ranges(start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """start[0], start[0] + 1, … size[0] of them, then those of the next range, and so on."""
    return np.repeat(start - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
