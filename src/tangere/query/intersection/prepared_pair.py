"""Two trees and their poses, for launches prepared once: from call to call only the poses are written (CPU)."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbTree
from tangere.shape.mesh import Mesh


class PosedPair:
    """Two trees, and where their poses are written: `poses`, (1, 2) mat44d, is what `rows`, (1, 2, 4, 4), shows."""

    def __init__(self, a: Mesh, b: Mesh) -> None:
        self.trees = ObbTree.of(a, "cpu"), ObbTree.of(b, "cpu")
        self.poses = wp.zeros((1, 2), dtype=wp.mat44d, device="cpu")
        self.rows: np.ndarray = self.poses.numpy()
