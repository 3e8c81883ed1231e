"""OBB trees: oriented boxes around ever smaller parts of a mesh, down to one triangle.

Question: which parts of a rigid mesh can be near something, whatever way it is turned?
Method:   boxes along the eigenvectors of the area-weighted covariance; a set is cut across its longest axis at the
          mean or at the median of its centroids, whichever makes the larger of the two child boxes smallest (the
          min-max rule), or across another axis at the mean where that makes it smaller still: so the two faces of a
          sheet of metal, or of a door, part early, and thin boxes are what separates parts that lie on each other
          (16,000 on 29,000 triangles: a third of the box tests). Near the depth limit the median is taken, so the
          depth never exceeds `DEPTH_LIMIT`. The numbers of the children are known before they are built (right = node
          + 2 x triangles on the left), so the subtrees are built in parallel and never meet.
          Known as: OBB tree (Gottschalk, Lin and Manocha 1996); as in Redon 2002, section 3.2.
Sound:    records are float32, rounded outward. With axes a_k, centre c and half sizes h of a record, taken as exact
          numbers, each point p of its triangles lies in the slabs |a_k . (p - c)| <= h_k, and also in the box of all
          c + sum x_k a_k with |x_k| <= h_k: so a test may read either, although the axes are only orthonormal to 2^-23.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bvh.obb.build import build_nodes
from tangere.runtime import InputError, choose_device
from tangere.shape.mesh import Mesh

#: Where a mesh that came from a prepared part keeps it in its cache.
PREPARED = "prepared part"

#: Coordinates beyond this do not fit the float32 records [m].
LARGEST_COORDINATE = 1.0e37
#: Below this size [m] lengths of a mesh cannot be told: float32 boxes would not be its own, and products underflow.
SMALLEST_SIZE = 1.0e-40


@dataclass(frozen=True, eq=False)
class ObbTree:
    """The boxes of a mesh in its own frame, on one device; 2n - 1 nodes for n triangles."""

    nodes: wp.array  #: (2n - 1,) `ObbNode`, in preorder
    corners: wp.array  #: (3n,) vec3d: the corners of triangle i at 3i, 3i + 1, 3i + 2 [m]
    depth: int  #: of the deepest leaf, at most `DEPTH_LIMIT`

    def __len__(self) -> int:
        return len(self.nodes)

    @staticmethod
    def of(mesh: Mesh, device: str | wp.Device | None = None) -> ObbTree:
        """The tree of `mesh` on `device`, built when it is first asked for and kept in `mesh.cache`."""
        device = choose_device(device)
        key = (ObbTree, device.alias)
        tree = mesh.cache.get(key)
        if tree is None:
            prepared = mesh.cache.get(PREPARED)
            cpu = mesh.cache.get((ObbTree, "cpu")) or (ObbTree.build(mesh) if prepared is None else prepared.tree)
            mesh.cache[ObbTree, "cpu"] = cpu
            tree = mesh.cache[key] = cpu if device.is_cpu else cpu.to(device)
        return tree

    @staticmethod
    def build(mesh: Mesh, *, rule: str = "min-max") -> ObbTree:
        """Build the tree, on the CPU; the same bits for any number of threads.

        Args:
            rule: "min-max", or "median": always cut at the median, for comparison.
        """
        if rule not in ("min-max", "median"):
            raise InputError(f"rule must be 'min-max' or 'median', not {rule!r}")
        largest = float(np.abs(mesh.bounds).max())
        if largest > LARGEST_COORDINATE:
            raise InputError(f"Mesh {mesh.name!r}: coordinate {largest:.6g} is too large for float32 boxes")
        corners = wp.array(mesh.vertices[mesh.faces.ravel()], dtype=wp.vec3d, device="cpu")
        # Triangles without area count a little, so that a set made of them alone still has a covariance.
        weights = mesh.face_areas + (float(1e-9 * mesh.face_areas.mean()) or 1.0)
        nodes, depth = build_nodes(corners, mesh.bounds, weights, median_only=rule == "median")
        return ObbTree(nodes, corners, depth)

    def to(self, device: str | wp.Device) -> ObbTree:
        """The same tree on another device."""
        return ObbTree(self.nodes.to(device), self.corners.to(device), self.depth)

    def records(self) -> np.ndarray:
        """The nodes as a structured NumPy array with the fields of `ObbNode`; axes[:, :, k] is axis k."""
        return self.nodes.numpy()


def refuse_tiny(mesh: Mesh) -> None:
    """Raise if `mesh` is too small for queries that tell lengths or times; a single point is not."""
    if mesh.cache.get(SMALLEST_SIZE):  # asked before: small queries would feel the arithmetic
        return
    size = float((mesh.bounds[1] - mesh.bounds[0]).max())  # the diagonal would underflow
    if 0.0 < size < SMALLEST_SIZE:
        raise InputError(f"Mesh {mesh.name!r}: is {size:.3g} in size; the least is {SMALLEST_SIZE:g}")
    mesh.cache[SMALLEST_SIZE] = True
